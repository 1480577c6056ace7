"""Records that name no call, joined with the call that begins or ends when they were made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hansard_collector.sessions.marks import Place
from hansard_store.ingest.session_logs import SessionLog

_AT_ONCE = 8  # calls of one agent that run at one time, at most


@dataclass(frozen=True, slots=True)
class _Call:
    """A model call by its key, as far as its own records tell when it ran."""

    key: str
    lane: str
    start_ns: int
    end_ns: int


def joined(calls: Iterable[SessionLog], parts: Iterable[SessionLog]) -> Mapping[int, str]:
    """Return for each part (by log_record.id) the key of its call; parts without one are left out.

    START goes to the call that began closest to it among those that ended later; where the calls
    of an agent do not tell when they began, that is the next to end. END goes to the call that
    ended closest to it. A function of the records alone: the order in which they came is none of
    its business.
    """
    known = _calls(calls)
    lanes: dict[str, list[_Call]] = {}
    for call in known:
        lanes.setdefault(call.lane, []).append(call)
    found: dict[int, str] = {}
    for part in parts:
        # A call that names no lane may be of any; so may a part.
        of_lane = lanes.get(part.lane) or lanes.get("", []) if part.lane else known
        best = _closest(part, of_lane)
        if best is not None:
            found[part.log] = best.key
    return found


def _calls(rows: Iterable[SessionLog]) -> list[_Call]:
    """Return the calls by their ends; a call may be told by several records."""
    calls: dict[str, _Call] = {}
    for row in rows:
        known = calls.get(row.key)
        start_ns, end_ns, lane = row.start_ns, row.time_ns, row.lane
        if known is not None:
            start_ns, end_ns = min(start_ns, known.start_ns), max(end_ns, known.end_ns)
            lane = max(lane, known.lane)
        calls[row.key] = _Call(row.key, lane, start_ns, end_ns)
    return sorted(calls.values(), key=lambda call: (call.end_ns, call.key))


def _closest(part: SessionLog, calls: Sequence[_Call]) -> _Call | None:
    at = bisect_left(calls, part.time_ns, key=lambda call: call.end_ns)
    first = at if part.place == Place.START else max(at - _AT_ONCE, 0)
    return min(
        calls[first : at + _AT_ONCE], key=lambda call: _distance_ns(part, call), default=None
    )


def _distance_ns(part: SessionLog, call: _Call) -> int:
    tells_start = call.start_ns < call.end_ns
    moment_ns = call.start_ns if part.place == Place.START and tells_start else call.end_ns
    return abs(moment_ns - part.time_ns)
