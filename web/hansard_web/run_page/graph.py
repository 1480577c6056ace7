"""The graph reading of a run: agents, tools and models in layers, drawn by the server."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hansard_store.steps.agent_graph import AgentGraph, GraphEdge, GraphNode, GraphPart
from hansard_web.run_page.waterfall import Look
from hansard_web.ui.format import count, duration, money, plural, tokens

MOST_NODES: Final = 20  # drawn; the table has all
_MOST_EDGES: Final = 1_000  # of the table
_NODE_WIDTH: Final = 176
_NODE_HEIGHT: Final = 44
_GAP_X: Final = 132  # where the figures of calls stand
_GAP_Y: Final = 20
_MARGIN: Final = 12
_NAME_CHARS: Final = 20  # that fit into a node
_LABELS: Final = 2  # of calls into one node; more would lie on each other: the table has them
_WORDS: Final[Mapping[str, str]] = {
    "run": "run", "agent": "agent", "tool": "tool", "model": "model",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnNode:
    x: int
    y: int
    kind: str
    name: str
    short: str
    figures: str
    href: str | None
    failed: bool
    title: str


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    path: str
    kind: str
    label: str
    label_x: int
    label_y: int
    failed: bool


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A line of the table under the drawing."""

    source: str
    target: str
    target_kind: str
    kind: str
    part: GraphPart
    duration: str
    href: str


@dataclass(frozen=True, slots=True)
class GraphView:
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    width: int
    height: int
    node_width: int
    node_height: int
    rows: tuple[EdgeRow, ...]
    summary: str
    left_out: str  # what is not drawn, in a sentence


def graph_view(look: Look) -> GraphView:
    """Return the graph of a run as it is drawn, and as a table."""
    graph = look.shown.graph(look.connection)
    drawn = _most_used(graph)
    edges = [edge for edge in graph.edges if edge.source in drawn and edge.target in drawn]
    places = layers([node.number for node in graph.nodes if node.number in drawn], edges)
    columns = max((column for column, _ in places.values()), default=0) + 1
    tallest = max((line for _, line in places.values()), default=0) + 1
    missing = len(graph.nodes) - len(drawn)
    kinds = [node.kind for node in graph.nodes]
    return GraphView(
        nodes=tuple(
            _draw_node(look, node, places[node.number])
            for node in graph.nodes
            if node.number in drawn
        ),
        edges=tuple(_draw_edges(edges, places)),
        width=columns * (_NODE_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN,
        height=tallest * (_NODE_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN,
        node_width=_NODE_WIDTH,
        node_height=_NODE_HEIGHT,
        rows=tuple(_row(look, graph, edge) for edge in graph.edges[:_MOST_EDGES]),
        summary=", ".join(
            plural(kinds.count(kind), word) for kind, word in _WORDS.items() if kind in kinds
        ),
        left_out=f"Drawn are the {MOST_NODES} nodes with the most calls, of {count(len(kinds))}; "
        "the table has all."
        if missing
        else "",
    )


def _most_used(graph: AgentGraph) -> set[int]:
    """Return the nodes to draw: agents before others, each by its calls."""
    ranked = sorted(
        graph.nodes,
        key=lambda node: (node.kind not in ("run", "agent"), -node.part.calls, node.number),
    )
    return {node.number for node in ranked[:MOST_NODES]}


def layers(nodes: Sequence[int], edges: Sequence[GraphEdge]) -> dict[int, tuple[int, int]]:
    """Place nodes: (column, line). A column is one call deeper than the one before it.

    A node stands in the column of its shortest way from the start, so a loop of hand-offs cannot
    push anything away; in a column nodes stand in the order of what calls them. O(nodes + edges).
    """
    targets: dict[int, list[int]] = {}
    called = set()
    for edge in edges:
        if edge.source != edge.target:
            targets.setdefault(edge.source, []).append(edge.target)
            called.add(edge.target)
    column: dict[int, int] = {}
    starts = [node for node in nodes if node not in called]
    for start in (starts, *([node] for node in nodes)):  # what only a loop reaches begins one, too
        order = deque(node for node in start if node not in column)
        column.update(dict.fromkeys(order, 0))
        while order:
            node = order.popleft()
            for target in targets.get(node, ()):
                if target not in column:
                    column[target] = column[node] + 1
                    order.append(target)
    lines: dict[int, int] = {}
    found = {}
    for node, at in column.items():  # breadth first: behind what calls them
        found[node] = (at, lines.get(at, 0))
        lines[at] = lines.get(at, 0) + 1
    return found


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    column, line = place
    return (
        _MARGIN + column * (_NODE_WIDTH + _GAP_X),
        _MARGIN + line * (_NODE_HEIGHT + _GAP_Y),
    )


def _draw_node(look: Look, node: GraphNode, place: tuple[int, int]) -> DrawnNode:
    x, y = _corner(place)
    name = node.name if node.kind != "run" else look.run.name or "run"
    figures = [plural(node.part.calls, "call")] if node.part.calls else []
    if node.part.errors:
        figures.append(f"{count(node.part.errors)} failed")
    elif node.part.cost_usd_nano:
        figures.append(money(node.part.cost_usd_nano))
    return DrawnNode(
        x,
        y,
        node.kind,
        name,
        name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…",
        " · ".join(figures),
        look.row_address(node.part.step) if node.part.step >= 0 else None,
        bool(node.part.errors),
        f"{node.kind} {name}: {_say(node.part)}" if node.part.calls else f"{node.kind} {name}",
    )


def _say(part: GraphPart) -> str:
    figures = [plural(part.calls, "call"), duration(part.duration_ns)]
    if part.errors:
        figures.append(f"{count(part.errors)} failed")
    if part.tokens:
        figures.append(f"{tokens(part.tokens)} tokens")
    if part.cost_usd_nano is not None:
        figures.append(money(part.cost_usd_nano))
    return ", ".join(figures)


def _draw_edges(
    edges: Sequence[GraphEdge], places: Mapping[int, tuple[int, int]]
) -> list[DrawnEdge]:
    into = Counter(edge.target for edge in edges)
    labelled: Counter[int] = Counter()
    drawn = []
    for edge in edges:
        below = labelled[edge.target] * 20  # the second stands under its line
        labelled[edge.target] += 1
        (x1, y1), (x2, y2) = _corner(places[edge.source]), _corner(places[edge.target])
        y1, y2 = y1 + _NODE_HEIGHT // 2, y2 + _NODE_HEIGHT // 2
        if places[edge.source][0] < places[edge.target][0]:
            x1 += _NODE_WIDTH
            bend = _GAP_X // 2
            path = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
        else:  # back, or to itself: round the right sides
            x1, x2 = x1 + _NODE_WIDTH, x2 + _NODE_WIDTH
            out = max(x1, x2) + _GAP_X // 2
            path = f"M{x1} {y1}C{out} {y1} {out} {y2 + 8} {x2} {y2 + 8}"
        part = edge.part
        cost = f" · {money(part.cost_usd_nano)}" if part.cost_usd_nano else ""
        label = f"{count(part.calls)}×{cost}" if into[edge.target] <= _LABELS else ""
        drawn.append(DrawnEdge(path, edge.kind, label, x2 - 10, y2 - 6 + below, bool(part.errors)))
    return drawn


def _row(look: Look, graph: AgentGraph, edge: GraphEdge) -> EdgeRow:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    return EdgeRow(
        source.name or look.run.name or "run",
        target.name,
        target.kind,
        edge.kind,
        edge.part,
        duration(edge.part.duration_ns),
        look.row_address(edge.part.step),
    )
