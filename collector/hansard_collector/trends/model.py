"""A trend: what changed, from which figure to which, within which time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, get_args

What = Literal["error_rate", "latency", "new_error", "usage", "memory_growth"]
Period = Literal["hour", "day", "week", "rolling"]
_NAMES: Final = {"tool": "the tool", "model": "the model", "agent": "the agent"}
_PERIODS: Final = {
    "hour": "in the last hour",
    "day": "in the last 24 hours",
    "week": "in the last 7 days",
}


@dataclass(frozen=True, slots=True)
class Trend:
    """One change. Rates are shares from 0 to 1, latencies nanoseconds, all others counts."""

    what: What
    period: Period
    subject_kind: str  # tool model agent step memory; all
    subject: str  # a name; "" where the kind is all there is
    before: float | None  # None: there was nothing before
    now: float
    calls: int  # that `now` is taken from
    since_ns: int | None = None  # of a change point: the day on which it began
    step_id: str | None = None  # the newest example

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about: one trend of a key is enough."""
        return self.what, self.subject_kind, self.subject

    @property
    def is_worse(self) -> bool:
        """Whether it needs a look: use and memory change for good reasons too."""
        return self.what in ("error_rate", "latency", "new_error")

    def json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


_FIELDS: Final = {field.name for field in fields(Trend)}


def trends_of(figures: Mapping[str, Any]) -> list[Trend]:
    """Return the trends that a phase recorded; those of another version are left out."""
    found = []
    for one in figures.get("trends", ()):
        if isinstance(one, dict) and one.keys() <= _FIELDS and one.get("what") in get_args(What):
            try:
                found.append(Trend(**{"before": None, **one}))
            except TypeError:  # a field is missing
                continue
    return found


def distinct(trends: Iterable[Trend]) -> list[Trend]:
    """Return the first trend of each key."""
    found: dict[tuple[str, str, str], Trend] = {}
    for one in trends:
        found.setdefault(one.key, one)
    return list(found.values())


def subject_text(one: Trend, name: str) -> str:
    """Return what a trend is about; `name` is its subject as the reader may be shown it."""
    if not one.subject:
        return _NAMES.get(one.subject_kind, one.subject_kind)
    return f"{_NAMES.get(one.subject_kind, 'the ' + one.subject_kind)} {name}"


def trend_text(one: Trend, name: str, *, since: str = "") -> str:
    """Return a trend as a sentence without its stop; `since` is the day of a change point."""
    when = f"since {since}" if since else _PERIODS.get(one.period, "")
    subject = subject_text(one, name)
    if one.what == "error_rate":
        before = f"{_pct(one.before)} before" if one.before else "no errors before"
        if one.before is None:
            before = "no calls before"
        if not one.subject:
            return f"{_pct(one.now)} of all {one.calls:,} calls fail {when}, {before}"
        return f"{subject} fails in {_pct(one.now)} of {one.calls:,} calls {when}, {before}"
    if one.what == "latency":
        before = _ms(one.before or 0)
        return f"{subject} takes {_ms(one.now)} (median) {when}, {before} before"
    if one.what == "new_error":
        return f"{subject} fails in a new way, {int(one.now):,} times {when}"
    if one.what == "usage":
        return f"{subject}: {_pct(one.now)} of all calls {when}, {_pct(one.before or 0)} before"
    return f"{int(one.now):,} memories were written {when}, {int(one.before or 0):,} before"


def _pct(share: float) -> str:
    pct = 100 * share
    return f"{pct:.1f} %" if 0 < pct < 9.95 else f"{pct:.0f} %"


def _ms(nanoseconds: float) -> str:
    ms = nanoseconds / 1e6
    return f"{ms:,.0f} ms" if ms < 10_000 else f"{ms / 1000:,.1f} s"
