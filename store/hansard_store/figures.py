"""Figures that runs, steps and usage tables share: token sums and effective statuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hansard_store.flags import SpanFlag

# A span or run that is open without news for so long will get no end any more (DESIGN §6).
NO_NEWS_NS = 15 * 60 * 1_000_000_000
# As plain integers: `&` with an enum costs a microsecond, a tree has 50,000 rows.
_TIME_HUGE, _ERROR = int(SpanFlag.TIME_HUGE), int(SpanFlag.ERROR)
_CANCELLED = int(SpanFlag.CANCELLED)


@dataclass(frozen=True, slots=True)
class TokenSums:
    """The five figures of a call; None = no call reported it. `input` includes cached tokens."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int:
        """Input and output; the three others are parts of these."""
        return (self.input or 0) + (self.output or 0)


def token_sums(columns: Sequence[int | None]) -> TokenSums | None:
    """Return the five token columns as one value, None when no call reported any."""
    if all(column is None for column in columns):
        return None
    return TokenSums(*columns)


def run_status(stored: str, *, news_ns: int, now_ns: int) -> str:
    """Return ok, error, open or no_end: open runs without news for 15 minutes get no end."""
    if stored == "open" and news_ns < now_ns - NO_NEWS_NS:
        return "no_end"
    return stored


def step_status(
    status_code: int, *, flags: int, end_ns: int | None, news_ns: int, now_ns: int
) -> str:
    """Return ok, unset, error, cancelled, open or no_end.

    `news_ns` is when the run of the step last had news.
    """
    if end_ns is None and not flags & _TIME_HUGE:
        return run_status("open", news_ns=news_ns, now_ns=now_ns)
    if flags & _CANCELLED:
        return "cancelled"
    if flags & _ERROR or status_code == 2:
        return "error"
    return "ok" if status_code == 1 else "unset"
