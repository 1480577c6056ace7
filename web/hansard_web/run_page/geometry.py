"""The geometry of one run: where bars begin and end, their own time, the critical path.

Made once for a run and a version and shared by every request for it; what is costly is computed
for the rows that are looked at and kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

import apsw

from hansard_store.steps.agent_graph import AgentGraph, agent_graph
from hansard_store.steps.cycles import Cycle, find_loops
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import RunTree, get_tree
from hansard_store.steps.tree import Node, Tree, TreeCache
from hansard_store.steps.usage_sums import SubtreeUsage, usage_sums
from hansard_web.run_page.arrangement import Arrangement
from hansard_web.ui.format import offset

TINY_PCT = 0.4  # below, a bar is drawn 2 px wide whatever its share
# Plain ints: `int & IntFlag` makes an enum member each time, which 50,000 spans would feel.
_TIME_HUGE = int(SpanFlag.TIME_HUGE)
_TIME_ODD = int(SpanFlag.TIME_ODD | SpanFlag.TIME_HUGE)
_ERROR = int(SpanFlag.ERROR)
_NOT_COUNTED = int(SpanFlag.DUPLICATE | SpanFlag.REPORTED_ELSEWHERE)
_KEPT_DRAWN = 64  # bars of more pieces than are drawn
_MOST_PIECES = 160  # of own time in one bar; more would not be seen apart


class Span(NamedTuple):
    """A stretch of time, in nanoseconds since the epoch: a tuple, since 50,000 are sorted."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of time laid over 0 to 100 percent."""

    start_ns: int
    end_ns: int

    def at(self, time_ns: int) -> float:
        """Return the place of a time, 0 to 100; times outside are put at the edges."""
        length = max(self.end_ns - self.start_ns, 1)
        return min(max((time_ns - self.start_ns) / length, 0.0), 1.0) * 100

    def overlaps(self, span: Span) -> bool:
        return span.end_ns >= self.start_ns and span.start_ns <= self.end_ns


class Picture:
    """A tree with its times. `until_ns` is where open spans end: now, or the run's last news."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._own: dict[int, tuple[tuple[int, int], ...]] = {}
        self._drawn: Recent[list[Span]] = Recent(_KEPT_DRAWN)
        self._span_rows: dict[str, int] | None = None
        self._bounds = _bounds(tree.nodes)

    def bounds(self, until_ns: int) -> Scale:
        """Return the run from its first start to its last end; open spans reach `until_ns`."""
        start_ns, end_ns, is_open = self._bounds
        return Scale(start_ns, max(end_ns, until_ns if is_open else end_ns, start_ns + 1))

    @property
    def has_open(self) -> bool:
        """Whether some span has no end."""
        return self._bounds[2]

    def row_of(self, span: str) -> int | None:
        """Return the row of a span named as in addresses, None when it is not in the tree."""
        if self._span_rows is None:
            self._span_rows = {span_key(node): row for row, node in enumerate(self.tree.nodes)}
        return self._span_rows.get(span)

    def times(self, row: int, until_ns: int) -> Span:
        """Return when a row's span ran; an end before its start counts as its start."""
        node = self.tree.nodes[row]
        start_ns = node.sort_ns if node.start_ns is None else node.start_ns
        # A time not below 2^63 is NULL too; such a span is not open, it is drawn as a point.
        is_open = node.end_ns is None and not node.flags & _TIME_HUGE
        end_ns = until_ns if is_open else node.end_ns
        return Span(start_ns, max(start_ns, start_ns if end_ns is None else end_ns))

    def own_time(self, row: int, until_ns: int) -> tuple[tuple[int, int], ...]:
        """Return the pieces of a span during which none of its children ran.

        Pieces of open subtrees change with the clock and are not cached.
        """
        cached = self._own.get(row)
        if cached is not None:
            return cached
        pieces, has_open = self._find_own_time(row, until_ns)
        if not has_open:
            self._own[row] = pieces
        return pieces

    def drawn_own_time(self, row: int, until_ns: int, scale: Scale) -> list[Span]:
        """Return the pieces of own time that can be seen on a scale; of long loops cached."""
        pieces = self.own_time(row, until_ns)
        if len(pieces) <= _MOST_PIECES or row not in self._own:
            return drawn_pieces(pieces, scale)
        return self._drawn.get((row, scale), lambda: drawn_pieces(pieces, scale))

    def _find_own_time(self, row: int, until_ns: int) -> tuple[tuple[tuple[int, int], ...], bool]:
        whole = self.times(row, until_ns)
        nodes, sizes = self.tree.nodes, self.tree.sizes
        has_open = nodes[row].end_ns is None
        covered: list[tuple[int, int]] = []
        child, end = row + 1, row + sizes[row]
        while child < end:  # as `times` does, without an object a child: a loop may have 50,000
            node = nodes[child]
            child += sizes[child]
            start_ns = node.sort_ns if node.start_ns is None else node.start_ns
            end_ns = node.end_ns
            if end_ns is None:
                has_open = True
                end_ns = start_ns if node.flags & _TIME_HUGE else until_ns
            covered.append((start_ns, end_ns if end_ns > start_ns else start_ns))
        covered.sort()
        pieces, reached = [], whole.start_ns
        for start_ns, end_ns in covered:
            if min(start_ns, whole.end_ns) > reached:
                pieces.append((reached, min(start_ns, whole.end_ns)))
            reached = max(reached, end_ns)
            if reached >= whole.end_ns:
                break
        if reached < whole.end_ns:
            pieces.append((reached, whole.end_ns))
        return tuple(pieces), has_open

    def children(self, row: int) -> list[int]:
        """Return the rows directly below a row, in order."""
        found = []
        child, end = row + 1, row + self.tree.sizes[row]
        while child < end:
            found.append(child)
            child += self.tree.sizes[child]
        return found

    def critical_path(self, until_ns: int) -> set[int]:
        """Return the rows that the length of the run hangs on, each with its ancestors.

        Walked back from the latest end: the child that ended last decides, then what ended last
        before that child began, and so on, inside each child as well.
        """
        tops = self._tops()
        if not tops:
            return set()
        last = max(tops, key=lambda row: self.times(row, until_ns).end_ns)
        found = {last}
        waiting = [(last, self.times(last, until_ns).end_ns)]
        while waiting:
            row, reached = waiting.pop()
            ends = [(self.times(child, until_ns), child) for child in self.children(row)]
            ends.sort(key=lambda pair: (pair[0].end_ns, pair[1]), reverse=True)
            for span, child in ends:
                if span.start_ns < reached and span.end_ns <= reached:
                    found.add(child)
                    waiting.append((child, span.end_ns))
                    reached = span.start_ns
        return found

    def _tops(self) -> list[int]:
        found, row = [], 0
        while row < len(self.tree):
            found.append(row)
            row += self.tree.sizes[row]
        return found


def drawn_pieces(pieces: Sequence[tuple[int, int]], scale: Scale) -> list[Span]:
    """Return the pieces of a bar that can be seen: of many, one for each part of the axis.

    Of a part with several the longest stands for all, so that the pieces reach to the end of the
    bar however many gaps a loop has.
    """
    low, high = scale.start_ns, scale.end_ns
    inside = [piece for piece in pieces if piece[1] >= low and piece[0] <= high]
    if len(inside) <= _MOST_PIECES:
        return [Span(*piece) for piece in inside]
    longest: dict[int, tuple[int, int]] = {}
    length = max(high - low, 1)
    for piece in inside:
        part = max(piece[0] - low, 0) * _MOST_PIECES // length
        known = longest.get(part)
        if known is None or piece[1] - piece[0] > known[1] - known[0]:
            longest[part] = piece
    return [Span(*piece) for piece in longest.values()]


def span_key(node: Node) -> str:
    """Return a span's name in addresses of its run's page."""
    return node.span_id.hex() + (".server" if node.side else "")


def _bounds(nodes: Sequence[Node]) -> tuple[int, int, bool]:
    """Odd clocks (1970, the far future) would squeeze all others: left out while others exist."""
    sound = [node for node in nodes if not node.flags & _TIME_ODD] or nodes
    if not sound:
        return 0, 1, False
    # No Span objects here: every span of the run passes, before the first byte of its page.
    starts = [node.sort_ns if node.start_ns is None else node.start_ns for node in sound]
    ends = [node.end_ns for node in sound if node.end_ns is not None]
    return min(starts), max([*ends, max(starts)]), len(ends) < len(sound)


# The cache of the runs looked at last: trees, their geometry, how they were laid out.

_KEPT_RUNS = 16
_KEPT_EACH = 8  # arrangements and searches of one run
_KEPT_READINGS = 16

_Value = TypeVar("_Value")


class Recent(Generic[_Value]):
    """The values made last, by key. Any request thread may ask; two may make one value at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()  # guards the order of `_values`, which every look changes

    def peek(self, key: Hashable) -> _Value | None:
        """Return a value that was made already, None otherwise."""
        with self._lock:
            return self._values.get(key)

    def has(self, key: Hashable) -> bool:
        """Say whether a value was made already; it may be None."""
        with self._lock:
            return key in self._values

    def get(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        # Made outside the lock: a slow run must not stop the pages of the others.
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run at one version, with what was worked out about it."""

    tree: RunTree
    picture: Picture
    arrangements: Recent[Arrangement] = field(default_factory=lambda: Recent(_KEPT_EACH))
    matches: Recent[frozenset[int]] = field(default_factory=lambda: Recent(_KEPT_EACH))
    # What is worked out once: talk, log lines, loops, sums, cache breaks, the graph.
    readings: Recent[Any] = field(default_factory=lambda: Recent(_KEPT_READINGS))

    @property
    def loops(self) -> Mapping[int, Cycle]:
        """The loops of the run, by first row."""
        found: Mapping[int, Cycle] = self.readings.get("loops", lambda: find_loops(self.tree.tree))
        return found

    def sums(self, connection: apsw.Connection) -> SubtreeUsage:
        """Return the counted usage of the run, by row."""
        found: SubtreeUsage = self.readings.get(
            "sums", lambda: usage_sums(connection, self.tree.run, self.tree.tree)
        )
        return found

    def graph(self, connection: apsw.Connection) -> AgentGraph:
        """Return who called what in the run."""
        sums = self.sums(connection)
        found: AgentGraph = self.readings.get(
            "graph", lambda: agent_graph(connection, self.tree.run_id, self.tree.tree, sums)
        )
        return found

    @property
    def opening_row(self) -> int | None:
        """The row that says most at first: the first error, else the last model call."""
        found: int | None = self.readings.get("opening", lambda: _opening_row(self.tree.tree))
        return found


def _opening_row(tree: Tree) -> int | None:
    failed: int | None = None
    last: int | None = None
    for row, node in enumerate(tree.nodes):
        if node.flags & _ERROR:
            # What failed inside it is why it failed.
            if failed is not None and row >= failed + tree.sizes[failed]:
                return failed
            failed = row
        elif (
            node.role == "llm"
            and not node.flags & _NOT_COUNTED
            and (last is None or node.sort_ns >= tree.nodes[last].sort_ns)
        ):
            last = row
    return last if failed is None else failed


class Pictures:
    """Trees and pictures of one store, shared by all requests."""

    def __init__(self) -> None:
        self._trees = TreeCache()
        self._shown: Recent[ShownRun] = Recent(_KEPT_RUNS)

    def tree(self, connection: apsw.Connection, run_id: str) -> RunTree:
        """Return the tree alone; raises NotFoundError or AmbiguousIdError."""
        return get_tree(connection, run_id, cache=self._trees)

    def get(self, connection: apsw.Connection, run_id: str) -> ShownRun:
        """Return a run as it is now; raises NotFoundError or AmbiguousIdError."""
        tree = self.tree(connection, run_id)
        key = (tree.run_id, tree.version)
        return self._shown.get(key, lambda: ShownRun(tree, Picture(tree.tree)))


# The whole run at a glance: all bars, thinned to what a strip of pixels can show.

WIDTH = 1000  # of the view box; about the columns of a wide screen
HEIGHT = 44
_MARGIN = 1.2
_TALLEST_BAR = 3.0


@dataclass(frozen=True, slots=True)
class MinimapPath:
    """All bars of one colour, as one SVG path."""

    role: str  # "error" for what failed
    d: str


@dataclass(frozen=True, slots=True)
class Minimap:
    paths: tuple[MinimapPath, ...]
    bars: int  # drawn; fewer than spans when several fall on one place


def draw_minimap(picture: Picture, until_ns: int) -> Minimap:
    """Draw every span of a run. Spans that fall on one pixel are one bar; a failed one wins.

    50,000 spans become at most WIDTH x HEIGHT bars, some 40 kB; about 60 ms.
    """
    tree, scale = picture.tree, picture.bounds(until_ns)
    lanes = min(max(len(tree), 1), int(HEIGHT / 1.5))
    step = (HEIGHT - 2 * _MARGIN) / lanes
    bars: dict[tuple[int, int, bool], tuple[int, str]] = {}
    for row, node in enumerate(tree.nodes):
        span = picture.times(row, until_ns)
        left = int(scale.at(span.start_ns) * WIDTH / 100)
        right = int(scale.at(span.end_ns) * WIDTH / 100)
        failed = bool(node.flags & _ERROR)
        position = (row * lanes // len(tree), left, failed)
        width, _ = bars.get(position, (0, ""))
        if right - left + 1 > width:
            bars[position] = (right - left + 1, "error" if failed else node.role)
    return Minimap(_paths(bars, step), len(bars))


def _paths(
    bars: dict[tuple[int, int, bool], tuple[int, str]], step: float
) -> tuple[MinimapPath, ...]:
    height = min(max(step - 0.4, 0.8), _TALLEST_BAR)
    parts: dict[str, list[str]] = {}
    for (lane, left, _), (width, role) in bars.items():
        top = _MARGIN + lane * step
        shown = max(width, 3) if role == "error" else width
        parts.setdefault(role, []).append(f"M{left} {top:.1f}h{shown}v{height:.1f}h-{shown}z")
    # Failures are drawn last, above everything else.
    ordered = sorted(parts.items(), key=lambda part: (part[0] == "error", part[0]))
    return tuple(MinimapPath(role, "".join(moves)) for role, moves in ordered)


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of the time axis."""

    at_pct: float
    text: str


def ticks(shown: Scale, origin_ns: int) -> tuple[Tick, ...]:
    """Return five labels, at every fifth of the axis: where the grid lines stand.

    No two have the same text, unless less than five nanoseconds are shown. As short as can be:
    a narrow screen has some 45 pixels for each.
    """
    length = shown.end_ns - shown.start_ns
    first = shown.start_ns - origin_ns
    at = [first + length * part // 5 for part in range(5)]
    texts = [offset(ns) for ns in at]
    for digits in (1, 2, 3, 6, 9):
        if len(set(texts)) == len(texts):
            break
        texts = [_finer(ns, digits) for ns in at]
    return tuple(Tick(part * 20.0, _short(texts[part])) for part in range(5))


def _short(text: str) -> str:
    """Return `12 s` of `12.00 s`, `1m 20s` of `1 m 20 s`."""
    number, _, unit = text.partition(" ")
    if " " in unit:
        parts = text.split()
        return " ".join("".join(parts[at : at + 2]) for at in range(0, len(parts), 2))
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def _finer(ns: int, digits: int) -> str:
    """Return a time after the start of a run with at most so many digits behind the point."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)):
        if abs(ns) >= size:
            rounded = round(Decimal(ns) / size, digits)
            return f"{rounded.normalize():f} {unit}"
    return f"{ns} ns" if ns else "0 s"
