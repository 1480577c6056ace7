"""Who called what in a run: its agents, tools and models as nodes, calls and hand-offs as edges.

A step belongs to the nearest agent or tool above it; a run without an agent has one node that
stands for the run. Each counted call is in one edge, so the costs of edges to models add up to
the run's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import apsw

from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.tree import Tree
from hansard_store.steps.usage_sums import SubtreeUsage

NodeKind = Literal["run", "agent", "tool", "model"]
EdgeKind = Literal["call", "hand-off"]

_STEPS: Final = """
SELECT id, coalesce(label, name), agent_name, tool_name, model FROM span
WHERE trace_id = :trace AND role IN ('agent', 'tool', 'mcp', 'llm', 'embedding')
"""
_AGENTS: Final = """
SELECT id, agent_name, coalesce(label, name) FROM span WHERE trace_id = :trace AND role = 'agent'
"""
_KINDS: Final[Mapping[str, NodeKind]] = {
    "agent": "agent", "tool": "tool", "mcp": "tool", "llm": "model", "embedding": "model",
}  # fmt: skip
_ERROR: Final = int(SpanFlag.ERROR)
_NOT_COUNTED: Final = int(SpanFlag.DUPLICATE | SpanFlag.REPORTED_ELSEWHERE)
_RUN: Final = ("run", "")
_NAME_CHARS: Final = 200


@dataclass(slots=True)
class GraphPart:
    """What a node or an edge stands for, summed over its steps."""

    calls: int = 0
    errors: int = 0
    duration_ns: int = 0  # of all steps together
    tokens: int = 0  # input and output of counted calls at or below its steps
    cost_usd_nano: int | None = None  # None: no call reports one
    step: int = -1  # row of the first step that failed, else of the first

    def add(self, row: int, tree: Tree, sums: SubtreeUsage) -> None:
        """Count one more step."""
        node = tree.nodes[row]
        failed = bool(node.flags & _ERROR)
        if self.step < 0 or (failed and not self.errors):
            self.step = row
        self.calls += 1
        self.errors += failed
        if node.start_ns is not None and node.end_ns is not None:
            self.duration_ns += max(node.end_ns - node.start_ns, 0)
        used = sums.below(row)
        if used is None:
            return
        if used.tokens is not None:
            self.tokens += (used.tokens.input or 0) + (used.tokens.output or 0)
        if used.cost_usd_nano is not None:
            self.cost_usd_nano = (self.cost_usd_nano or 0) + used.cost_usd_nano


@dataclass(frozen=True, slots=True)
class GraphNode:
    number: int
    kind: NodeKind
    name: str
    part: GraphPart = field(default_factory=GraphPart)


@dataclass(frozen=True, slots=True)
class GraphEdge:
    source: int  # number of a node
    target: int
    kind: EdgeKind
    part: GraphPart = field(default_factory=GraphPart)


@dataclass(frozen=True, slots=True)
class AgentGraph:
    """Nodes in the order they first ran; edges in the order of their first call."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class Acting:
    """The agent that a step belongs to."""

    name: str
    caller: str | None  # the agent that called it; None: it was called by nobody


def agents_above(connection: apsw.Connection, run_id: str, tree: Tree) -> dict[int, Acting]:
    """Return the nearest agent at or above each step that has one, by span.id. O(steps)."""
    rows = connection.execute(_AGENTS, {"trace": bytes.fromhex(run_id)})
    names = {span: _agent(agent, name) for span, agent, name in rows}
    holders: list[Acting | None] = []
    for node, parent in zip(tree.nodes, tree.parents, strict=True):
        holder = holders[parent] if parent >= 0 else None
        name = names.get(node.id)
        if name and (holder is None or holder.name != name):
            holder = Acting(name, holder.name if holder else None)
        holders.append(holder)
    return {node.id: one for node, one in zip(tree.nodes, holders, strict=True) if one}


def _agent(agent: str | None, name: str | None) -> str:
    return (agent or (name or "").removeprefix("invoke_agent ").strip())[:_NAME_CHARS]


def agent_graph(
    connection: apsw.Connection, run_id: str, tree: Tree, sums: SubtreeUsage
) -> AgentGraph:
    """Return the graph of a run. Reads the names of its agents, tools and models."""
    rows: Any = connection.execute(_STEPS, {"trace": bytes.fromhex(run_id)})
    return build_graph(tree, sums, rows)


def build_graph(
    tree: Tree,
    sums: SubtreeUsage,
    steps: Iterable[tuple[int, str, str | None, str | None, str | None]],
) -> AgentGraph:
    """Return the graph of a tree; `steps` are span.id, name, agent, tool and model. O(steps)."""
    names = {one[0]: one[1:] for one in steps}
    nodes: dict[tuple[str, str], GraphNode] = {}
    edges: dict[tuple[int, int], GraphEdge] = {}
    holders: list[tuple[str, str]] = [_RUN] * len(tree)  # what each row's children belong to
    for row, node in enumerate(tree.nodes):
        parent = tree.parents[row]
        holder = holders[parent] if parent >= 0 else _RUN
        kind = _KINDS.get(node.role)
        found = names.get(node.id)
        if kind is None or found is None or node.flags & _NOT_COUNTED:
            holders[row] = holder
            continue
        key = (kind, _name(kind, *found))
        holders[row] = holder if kind == "model" else key
        target = nodes.setdefault(key, GraphNode(len(nodes), kind, key[1]))
        target.part.add(row, tree, sums)
        if holder == _RUN and kind == "agent":
            continue  # the agents that a run begins with are called by nobody
        source = nodes.setdefault(
            holder, GraphNode(len(nodes), "run" if holder == _RUN else "agent", holder[1])
        )
        edge: EdgeKind = "hand-off" if kind == "agent" else "call"
        edges.setdefault(
            (source.number, target.number), GraphEdge(source.number, target.number, edge)
        ).part.add(row, tree, sums)
    return AgentGraph(tuple(nodes.values()), tuple(edges.values()))


def _name(kind: NodeKind, name: str, agent: str | None, tool: str | None, model: str | None) -> str:
    own = {"agent": agent, "tool": tool, "model": model}.get(kind)
    return (own or name or "(no name)")[:_NAME_CHARS]
