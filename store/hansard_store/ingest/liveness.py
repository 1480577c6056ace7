"""Keepalives: that a process with open spans is alive; runs it leaves open get no end any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from hansard_store.runs.status import ALIVE_UNTIL, SILENCE_NS

_RETENTION_NS = 24 * 3600 * 1_000_000_000  # after that, no news of it says the same
_MOST_SILENT = 500  # runs that are reported at once

_ADD = """
INSERT INTO process_keepalive (resource, alive_until_ns) VALUES (?, ?)
ON CONFLICT (resource) DO UPDATE SET alive_until_ns = excluded.alive_until_ns
"""
_FORGET = "DELETE FROM process_keepalive WHERE alive_until_ns < ?"
_LATEST = f"""
SELECT max(coalesce(alive.alive_until_ns, run.last_received_ns + {SILENCE_NS}))
FROM run CROSS JOIN span INDEXED BY span_open
  ON span.trace_id = run.trace_id AND span.end_ns IS NULL
  LEFT JOIN process_keepalive AS alive ON alive.resource = span.resource
WHERE run.trace_id = ?
"""
_ALIVE = """
UPDATE run SET alive_until_ns = :until WHERE trace_id = :trace AND status = 'open'
RETURNING id
"""
_IS_SILENT = f"SELECT {ALIVE_UNTIL} < :now FROM run WHERE trace_id = :trace"
_NEXT = """
1 + max((SELECT max(change_seq) FROM run),
  coalesce((SELECT value FROM setting WHERE name = 'last_change'), 0))
"""
_SILENT = f"""
SELECT id FROM run WHERE status = 'open' AND {ALIVE_UNTIL} >= :since AND {ALIVE_UNTIL} < :now
LIMIT :limit
"""
_TOUCH_TRACE = f"UPDATE run SET version = version + 1, change_seq = {_NEXT} WHERE trace_id = ?"
_TOUCH = f"UPDATE run SET version = version + 1, change_seq = {_NEXT} WHERE id = ?"


@dataclass(frozen=True, slots=True)
class Keepalive:
    """A process says that it lives, and which traces have open spans of it."""

    resource: int
    traces: Sequence[bytes]
    alive_until_ns: int  # without another one; of the last one, when it was received


def add_keepalive(connection: apsw.Connection, keepalive: Keepalive, *, now_ns: int) -> None:
    """Store a keepalive, inside a transaction, after the runs of the transaction were written."""
    connection.execute(_ADD, (keepalive.resource, keepalive.alive_until_ns))
    connection.execute(_FORGET, (now_ns - _RETENTION_NS,))
    for trace_id in keepalive.traces:
        until_ns = connection.execute(_LATEST, (trace_id,)).get
        if until_ns is None:
            continue  # nothing of it is open, or here
        was_silent = connection.execute(_IS_SILENT, {"now": now_ns, "trace": trace_id}).get
        run = connection.execute(_ALIVE, {"until": until_ns, "trace": trace_id}).get
        if run is not None and was_silent != (until_ns < now_ns):
            touch_runs(connection, [run])


def silent_runs(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> list[int]:
    """Return runs that nobody has been alive for since a moment in this stretch of time."""
    parameters = {"since": since_ns, "now": now_ns, "limit": _MOST_SILENT}
    return [number for (number,) in connection.execute(_SILENT, parameters)]


def touch_runs(connection: apsw.Connection, numbers: Sequence[int]) -> None:
    """Make runs be looked at again, inside a transaction: time changed what they are."""
    for number in numbers:
        connection.execute(_TOUCH, (number,))


def touch_run(connection: apsw.Connection, trace_id: bytes) -> None:
    """Have a run shown again where it is followed: something beside its spans changed."""
    connection.execute(_TOUCH_TRACE, (trace_id,))
