"""The whole run at a glance: all bars, thinned to what a strip of pixels can show."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hansard_store.steps.flags import SpanFlag
from hansard_web.run_page.picture import Picture, Scale
from hansard_web.ui.format import offset

WIDTH = 1000  # of the view box; about the columns of a wide screen
HEIGHT = 44
_ERROR = int(SpanFlag.ERROR)
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
        place = (row * lanes // len(tree), left, failed)
        width, _ = bars.get(place, (0, ""))
        if right - left + 1 > width:
            bars[place] = (right - left + 1, "error" if failed else node.role)
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
    ns: int  # after the start of the run
    text: str


def ticks(shown: Scale, origin_ns: int) -> tuple[Tick, ...]:
    """Return five labels, at every fifth of the axis: where the grid lines stand.

    No two have the same text, unless less than five nanoseconds are shown.
    """
    length = shown.end_ns - shown.start_ns
    first = shown.start_ns - origin_ns
    at = [first + length * part // 5 for part in range(5)]
    texts = [offset(ns) for ns in at]
    for digits in (1, 2, 3, 6, 9):
        if len(set(texts)) == len(texts):
            break
        texts = [_finer(ns, digits) for ns in at]
    return tuple(Tick(part * 20.0, at[part], texts[part]) for part in range(5))


def _finer(ns: int, digits: int) -> str:
    """Return a time after the start of a run with at most so many digits behind the point."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)):
        if abs(ns) >= size:
            rounded = round(Decimal(ns) / size, digits)
            return f"{rounded.normalize():f} {unit}"
    return f"{ns} ns" if ns else "0 s"
