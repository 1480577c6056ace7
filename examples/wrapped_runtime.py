"""An agent runtime that knows nothing of Hansard, recorded from outside, without changing it.

    hansard serve &
    python examples/wrapped_runtime.py             # or with --embedded, without a server

The first part is a runtime as LangGraph is one, in small: nodes that return changes of a state, and
edges, some of which choose. The second is all that a wrapper takes: a run for each call, and a
step for each node with the state it got and the changes it made. LangGraph itself has instrumentors
that make such spans; Hansard reads them as they come.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import hansard

State = dict[str, Any]
Node = Callable[[State], State]

# ---- a runtime of somebody else


class Graph:
    """Nodes and edges over a shared state."""

    END = "__end__"

    def __init__(self, start: str) -> None:
        self.start = start
        self.nodes: dict[str, Node] = {}
        self.edges: dict[str, Callable[[State], str]] = {}

    def add_node(self, name: str, node: Node) -> None:
        self.nodes[name] = node

    def add_edge(self, name: str, to: str) -> None:
        self.edges[name] = lambda state: to

    def add_conditional_edges(self, name: str, choose: Callable[[State], str]) -> None:
        self.edges[name] = choose

    def invoke(self, state: State, *, recursion_limit: int = 25) -> State:
        name = self.start
        for _ in range(recursion_limit):
            state = {**state, **self.nodes[name](state)}
            name = self.edges.get(name, lambda state: self.END)(state)
            if name == self.END:
                return state
        raise RecursionError(f"no end after {recursion_limit} nodes")


# ---- the wrapper


class Recorded:
    """A graph as it was, with a record of each call of it."""

    def __init__(self, graph: Graph, agent_name: str) -> None:
        self._graph = graph
        self._agent_name = agent_name

    def invoke(self, state: State, **options: Any) -> State:
        """Call the graph: its result and its exceptions are its own."""
        watched = copy.copy(self._graph)
        watched.nodes = {name: _watched(name, node) for name, node in watched.nodes.items()}
        with hansard.start_run(self._agent_name, metadata={"runtime": "graph"}) as run:
            left = watched.invoke(state, **options)
            run.end(output=left)
        return left


def _watched(name: str, node: Node) -> Node:
    @functools.wraps(node)
    def run_node(state: State) -> State:
        run = hansard.current_run()
        if run is None:  # nothing is recorded
            return node(state)
        with run.step(name, "chain", input=state) as step:
            changed = node(state)
            step.end(output=changed)
        return changed

    return run_node


def recorded(graph: Graph, agent_name: str) -> Recorded:
    """Return the graph with a record of what it does; the graph itself stays as it is."""
    return Recorded(graph, agent_name)


# ---- an agent of somebody else, too

STOCK: Mapping[str, int] = {"lamp": 3, "chair": 0}


def understand(state: State) -> State:
    """Find out what is asked for."""
    return {"item": next(word for word in state["question"].strip("?").split() if word in STOCK)}


def look(state: State) -> State:
    """Count what is left."""
    return {"left": STOCK[state["item"]]}


def order(state: State) -> State:
    """Order more of what is out."""
    return {"left": 12, "ordered": True}


def reply(state: State) -> State:
    """Put it into words."""
    more = ", on order" if state.get("ordered") else ""
    return {"answer": f"{state['left']} of: {state['item']}{more}."}


def make_graph() -> Graph:
    """Four nodes, one of which is only gone to when it is needed."""
    graph = Graph("understand")
    for node in (understand, look, order, reply):
        graph.add_node(node.__name__, node)
    graph.add_edge("understand", "look")
    graph.add_conditional_edges("look", lambda state: "reply" if state["left"] else "order")
    graph.add_edge("order", "reply")
    return graph


if __name__ == "__main__":
    hansard.init(service_name="storekeeper", embedded="--embedded" in sys.argv)
    graph = recorded(make_graph(), "storekeeper")
    for question in ("Is there a lamp?", "Is there a chair?"):
        sys.stdout.write(graph.invoke({"question": question})["answer"] + "\n")
