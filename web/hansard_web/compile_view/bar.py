"""The budget of a compile as one bar: an item a segment, in prompt order; free; reserve. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_store.compilations.receipts import StoredReceipt
from hansard_web.compile_view.labels import SWATCHES
from hansard_web.ui.format import count

GAP_PCT: Final = 0.08  # air between segments
_SLIVER_PCT: Final = 0.25  # narrower ones of a section join: 5,000 items are some 400 rectangles


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle of a bar."""

    css: str
    x_pct: float
    width_pct: float
    title: str
    item: str = ""  # id; "" where several items share the segment
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A line of the legend."""

    css: str
    label: str
    tokens: int
    aside: str = ""


@dataclass(frozen=True, slots=True)
class BudgetBar:
    """The figures of a budget, in tokens; None is unknown."""

    tokens: int | None
    reserve: int | None
    used: int

    @property
    def available(self) -> int | None:
        return None if self.tokens is None else max(self.tokens - (self.reserve or 0), 0)

    @property
    def free(self) -> int | None:
        return None if self.available is None else self.available - self.used

    @property
    def whole(self) -> int:
        """Return what the whole width of the bar stands for."""
        return max(self.tokens or 0, self.used + (self.reserve or 0), 1)


def item_segments(
    sent: Sequence[StoredReceipt], budget: BudgetBar, *, selected: str
) -> tuple[Segment, ...]:
    """Return the segments of what was sent, from the left."""
    found: list[Segment] = []
    at = 0.0
    joined = 0  # items in the last segment
    for one in sent:
        width = (one.tokens_after or 0) / budget.whole * 100
        css = f"seg-{SWATCHES.get(one.section or '', 'task')}"
        last = found[-1] if found else None
        is_selected = one.item_id == selected
        joins = last is not None and last.css == css and not last.is_selected and not is_selected
        if last is not None and joins and width < _SLIVER_PCT and last.width_pct < _SLIVER_PCT * 4:
            joined += 1
            found[-1] = Segment(
                css, last.x_pct, round(at + width - last.x_pct, 3), f"{joined} items"
            )
        else:
            joined = 1
            shown = max(width - GAP_PCT, min(width, GAP_PCT))
            title = f"{one.item_id[:120]}, {count(one.tokens_after or 0)} tokens"
            found.append(
                Segment(css, round(at, 3), round(shown, 3), title, one.item_id, is_selected)
            )
        at += width
    return tuple(found)


def rest_segments(budget: BudgetBar) -> tuple[Segment, ...]:
    """Return the free tokens and the reserve, at the right end."""
    found = []
    if budget.free is not None and budget.free > 0:
        x, width = budget.used / budget.whole * 100, budget.free / budget.whole * 100
        title = f"free, {count(budget.free)} tokens"
        found.append(Segment("seg-free", round(x, 3), round(width, 3), title))
    if budget.reserve:
        width = budget.reserve / budget.whole * 100
        title = f"kept for the answer, {count(budget.reserve)} tokens"
        found.append(Segment("seg-reserve", round(100 - width, 3), round(width, 3), title))
    return tuple(found)
