"""What the overview shows, as its address has it: the filters of runs, a period, a dimension."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from hansard_store.errors import InvalidQueryError
from hansard_store.figures.records import DAY_NS, HOUR_NS, Dimension
from hansard_web.api.times import read_time
from hansard_web.runs.filters import ListState, read_state

PERIODS: Final = {"24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days"}
DEFAULT_PERIOD: Final = "7d"
DIMENSIONS: Final[tuple[Dimension, ...]] = ("model", "agent", "service", "user", "tag")
STEPS: Final = {"hour": HOUR_NS, "day": DAY_NS}
_MOST_BUCKETS: Final = 192
_HOURS_UP_TO_NS: Final = 3 * DAY_NS
_LONGEST_NS: Final = 400 * DAY_NS
LATENCY_DIMENSIONS: Final[tuple[Dimension, ...]] = ("model", "tool", "agent")
_OWN_KEYS: Final = ("by", "step", "dated", "before", "order", "show")


@dataclass(frozen=True, slots=True)
class Window:
    """Whole hours or days of UTC; `now_ns` ends what can have happened so far."""

    since_ns: int
    until_ns: int
    step_ns: int
    now_ns: int

    @property
    def length_ns(self) -> int:
        return self.until_ns - self.since_ns

    def before(self) -> Window:
        """The period of the same length that ends where this one begins."""
        length_ns = self.length_ns
        return Window(
            self.since_ns - length_ns, self.since_ns, self.step_ns, self.now_ns - length_ns
        )


@dataclass(frozen=True, slots=True)
class OverviewState:
    """The whole state of the page. `runs` holds the filters, its since and until the period."""

    runs: ListState
    by: Dimension = "model"
    step: str = ""  # "" as fits the period
    is_dated: bool = False  # model versions are counted apart
    has_before: bool = True
    order: str = ""  # of a table, with "-" for the highest first
    show: str = ""  # of the charts of usage: cost, tokens, calls
    path: str = "/overview"
    default_period: str = DEFAULT_PERIOD

    def with_runs(self, runs: ListState) -> OverviewState:
        return replace(self, runs=runs)

    def period(self, since: str) -> OverviewState:
        runs = self.runs.without("since", "until")
        return replace(
            self, runs=runs if since == self.default_period else runs.setting("since", since)
        )

    def own_pairs(self) -> list[tuple[str, str]]:
        pairs = [("by", self.by if self.by != "model" else ""), ("step", self.step)]
        pairs += [
            ("dated", "1" if self.is_dated else ""),
            ("before", "" if self.has_before else "0"),
            ("order", self.order),
            ("show", self.show),
        ]
        return [(key, value) for key, value in pairs if value]

    def pairs(self) -> list[tuple[str, str]]:
        return [*self.runs.pairs(), *self.own_pairs()]

    @property
    def url(self) -> str:
        query = urlencode(self.pairs())
        return f"{self.path}?{query}" if query else self.path

    def runs_url(self, *pairs: tuple[str, str]) -> str:
        """Return the address of the runs of a time, or of a value, with the filters in force."""
        keys = {key for key, _ in pairs}
        kept = [pair for pair in self.runs.pairs() if pair[0] not in keys]
        return f"/?{urlencode([*kept, *pairs])}"

    @property
    def since(self) -> str:
        return self.runs.value("since") or self.default_period

    @property
    def is_custom(self) -> bool:
        return self.since not in PERIODS or bool(self.runs.value("until"))

    def window(self, *, now_ns: int) -> Window:
        """Return the smallest window in whole steps that holds the period, as the API has it.

        A time that is none is the default period.
        """
        until_text = self.runs.value("until")
        since_ns = _time(self.since, now_ns)
        until_ns = _time(until_text, now_ns) if until_text else now_ns
        if since_ns is None:
            since_ns = now_ns - 7 * DAY_NS
        if until_ns is None or until_ns <= since_ns:
            until_ns = max(now_ns, since_ns + HOUR_NS)
        since_ns = max(since_ns, until_ns - _LONGEST_NS)
        step_ns = self._step_ns(until_ns - since_ns)
        last_ns = -(-until_ns // step_ns) * step_ns
        return Window(since_ns // step_ns * step_ns, last_ns, step_ns, now_ns)

    def _step_ns(self, length_ns: int) -> int:
        chosen = STEPS.get(self.step)
        if chosen and length_ns / chosen <= _MOST_BUCKETS:
            return chosen
        return HOUR_NS if length_ns <= _HOURS_UP_TO_NS else DAY_NS

    def can_be_hours(self, window: Window) -> bool:
        return window.length_ns / HOUR_NS <= _MOST_BUCKETS


def _time(text: str, now_ns: int) -> int | None:
    try:
        return read_time("since", text, now_ns=now_ns)
    except InvalidQueryError:
        return None  # the page names it beside the filters


def read_overview(
    pairs: Iterable[tuple[str, str]],
    *,
    path: str = "/overview",
    dimensions: Sequence[Dimension] = DIMENSIONS,
    default_period: str = DEFAULT_PERIOD,
) -> OverviewState:
    """Return the state of an address; what it does not know is left out.

    Raises InvalidQueryError where there are too many filters.
    """
    pairs = list(pairs)
    own = {key: value for key, value in pairs if key in _OWN_KEYS}
    runs = read_state((key, value) for key, value in pairs if key not in _OWN_KEYS)
    runs = replace(runs, sort="", cursor="", compare=())
    chosen = own.get("by", "")
    return OverviewState(
        runs=runs,
        by=next((one for one in dimensions if one == chosen), dimensions[0]),
        step=own.get("step", "") if own.get("step") in STEPS else "",
        is_dated=own.get("dated") == "1",
        has_before=own.get("before") != "0",
        order=own.get("order", "")[:20],
        show=own.get("show", "")[:20],
        path=path,
        default_period=default_period,
    )
