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
_LABELS: Final = 3  # of calls into one node; more would lie on each other: the table has them
_PORT: Final = 14  # between the ends of edges into one node
_ROUND: Final = 96  # beside the last column, for edges that lead back
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
    anchor: str
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
    laid = layout([node.number for node in graph.nodes if node.number in drawn], edges)
    missing = len(graph.nodes) - len(drawn)
    kinds = [node.kind for node in graph.nodes]
    return GraphView(
        nodes=tuple(
            _draw_node(look, node, laid.places[node.number])
            for node in graph.nodes
            if node.number in drawn
        ),
        edges=tuple(_draw_edges(edges, laid)),
        width=laid.columns * (_NODE_WIDTH + _GAP_X)
        - _GAP_X
        + 2 * _MARGIN
        + (_ROUND if _turns(edges, laid) else 0),
        height=laid.lines * (_NODE_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN,
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


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand, as (column, line)."""

    places: Mapping[int, tuple[int, int]]  # by node
    lanes: Mapping[tuple[int, int], int]  # lines of what passes, by source and column
    columns: int
    lines: int


def layout(nodes: Sequence[int], edges: Sequence[GraphEdge]) -> Layout:
    """Place nodes; a column is one call deeper than the one before it.

    What calls others stands in the column of its shortest way from the start, so a loop of
    hand-offs cannot push anything away; what calls nothing stands behind all that call it, so that
    its edges lead forward. An edge over several columns has a free line in those between, one for
    each source.
    In a column nodes stand in the order of what calls them. O(nodes + edges * columns).
    """
    column = _columns(nodes, edges)
    calling = {edge.source for edge in edges if edge.source != edge.target}
    behind: dict[int, int] = {}  # the last column of what calls a node that calls nothing
    for edge in edges:
        if edge.target not in calling and edge.source != edge.target:
            behind[edge.target] = max(behind.get(edge.target, 0), column[edge.source])
    column |= {node: at + 1 for node, at in behind.items()}
    lanes: dict[tuple[int, int], int] = {}
    lines: Counter[int] = Counter()
    for edge in edges:
        for at in range(column[edge.source] + 1, column[edge.target]):
            if (edge.source, at) not in lanes:
                lanes[edge.source, at] = lines[at]
                lines[at] += 1
    places = {}
    for node in column:
        places[node] = (column[node], lines[column[node]])
        lines[column[node]] += 1
    return Layout(places, lanes, max(lines, default=0) + 1, max(lines.values(), default=1))


def _columns(nodes: Sequence[int], edges: Sequence[GraphEdge]) -> dict[int, int]:
    """Return the shortest way from a start to each node, breadth first."""
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
    return column


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


def _turns(edges: Sequence[GraphEdge], laid: Layout) -> bool:
    """Whether an edge goes round the right side of the last column."""
    sides = [{laid.places[edge.source][0], laid.places[edge.target][0]} for edge in edges]
    forward = [laid.places[edge.source][0] < laid.places[edge.target][0] for edge in edges]
    return any(
        laid.columns - 1 in columns and not is_forward
        for columns, is_forward in zip(sides, forward, strict=True)
    )


def _draw_edges(edges: Sequence[GraphEdge], laid: Layout) -> list[DrawnEdge]:
    """Draw the edges into a node side by side, from the highest source to the lowest."""
    into: dict[int, list[GraphEdge]] = {}
    for edge in edges:
        into.setdefault(edge.target, []).append(edge)
    drawn = []
    for found in into.values():
        found.sort(key=lambda edge: _end_of_way(edge, laid))
        step = min(_PORT, (_NODE_HEIGHT - 8) / max(len(found) - 1, 1))
        for at, edge in enumerate(found):
            port = round((at - (len(found) - 1) / 2) * step)
            drawn.append(_draw_edge(edge, laid, port, has_label=len(found) <= _LABELS))
    return drawn


def _end_of_way(edge: GraphEdge, laid: Layout) -> int:
    """Return the line from which an edge comes to its target."""
    lane = laid.lanes.get((edge.source, laid.places[edge.target][0] - 1))
    return laid.places[edge.source][1] if lane is None else lane


def _draw_edge(edge: GraphEdge, laid: Layout, port: int, *, has_label: bool) -> DrawnEdge:
    source, target = laid.places[edge.source], laid.places[edge.target]
    (x, y), (x2, y2) = _corner(source), _corner(target)
    x, y, y2 = x + _NODE_WIDTH, y + _NODE_HEIGHT // 2, y2 + _NODE_HEIGHT // 2 + port
    path = f"M{x} {y}"
    bend = _GAP_X // 2
    if source[0] < target[0]:
        for column in range(source[0] + 1, target[0]):
            left, top = _corner((column, laid.lanes[edge.source, column]))
            lane = top + _NODE_HEIGHT // 2
            path += f"C{x + bend} {y} {left - bend} {lane} {left} {lane}H{left + _NODE_WIDTH}"
            x, y = left + _NODE_WIDTH, lane
        path += f"C{x + bend} {y} {x2 - bend} {y2} {x2} {y2}"
        label_x, anchor = x2 - 6, "end"
    else:  # back, or to itself: round the right sides
        x2 += _NODE_WIDTH
        out = max(x, x2) + bend
        y2 += 8 if edge.source == edge.target else 0
        path += f"C{out} {y} {out} {y2} {x2} {y2}"
        label_x, anchor = x2 + 6, "start"
    part = edge.part
    cost = f" · {money(part.cost_usd_nano)}" if part.cost_usd_nano else ""
    label = f"{count(part.calls)}×{cost}" if has_label else ""
    return DrawnEdge(path, edge.kind, label, label_x, y2 - 3, anchor, bool(part.errors))


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
