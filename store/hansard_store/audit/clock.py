"""A clock that is set back: noticed by the next write, logged, and held against every deadline.

Deadlines are wall times. The store keeps the latest wall time that it has seen, with what the
machine's own uptime was then: that counts on, whatever the wall clock says. Where the wall clock is
behind what follows from both, it was set back, and the event that says by how much is part of the
chain. What was granted before that event has that much less of its time left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_store.approvals.unit_of_work import SYSTEM, Work
from hansard_store.audit.event_types import EventType

ACTION: Final = "clock"
_SLACK_NS: Final = 1_000_000_000  # two clocks that are read one after the other, and adjusted
_REBOOT_SLACK_NS: Final = 60_000_000_000  # a machine's clock before its first adjustment
_SEEN = "SELECT value FROM setting WHERE name = 'clock'"
_KEEP = """
INSERT INTO setting (name, value) VALUES ('clock', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
# Of the system alone: what programs and people log has another name.
_SET_BACKS = """
SELECT seq, json_extract(body, '$.set_back_ns') FROM event INDEXED BY event_action
WHERE action = 'clock' AND type = 'failure' AND actor = 'system' AND who = 'hansard'
"""
_BEGAN = """
SELECT max(seq) FROM event INDEXED BY event_approval
WHERE approval_id = ? AND type IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class Uptime:
    """How long a machine has been up since a boot, suspended or not."""

    boot: str
    ns: int


Measure = Callable[[], Uptime | None]


def measure_uptime() -> Uptime | None:
    """Return the uptime; None where the system does not say which boot it is of."""
    boot = _boot()
    if not boot:
        return None
    return Uptime(boot, time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def unknown_uptime() -> Uptime | None:
    """Return None: for a clock that is not this machine's."""
    return None


def notice(work: Work, uptime: Uptime | None) -> None:
    """Keep the time that a write sees, and log where the clock was set back before it."""
    row: Any = work.connection.execute(_SEEN).fetchone()
    behind_ns = 0 if row is None else _behind_ns(str(row[0]), work.now_ns, uptime)
    if behind_ns:
        text = f"the clock was set back by {behind_ns / 1e9:.0f} s: no deadline is later by that"
        work.tell(
            EventType.FAILURE,
            SYSTEM,
            action=ACTION,
            subject=ACTION,
            body={"set_back_ns": str(behind_ns)},
            contents=[work.keeper.content("error", text)],
        )
    reading = f"{work.now_ns} " + (f"{uptime.boot} {uptime.ns}" if uptime else "- 0")
    work.connection.execute(_KEEP, (reading,))


def _behind_ns(seen: str, now_ns: int, uptime: Uptime | None) -> int:
    """Return by how much the clock was set back since it was seen; 0 where it was not."""
    try:
        wall, boot, up = seen.split(" ")
        expected_ns, up_ns = int(wall), int(up)
    except ValueError:
        return 0
    slack_ns = _SLACK_NS
    if uptime is not None and uptime.boot == boot:
        expected_ns += max(uptime.ns - up_ns, 0)
    elif uptime is not None:
        slack_ns = _REBOOT_SLACK_NS
    behind_ns = expected_ns - now_ns
    return behind_ns if behind_ns > slack_ns else 0


def lost_ns(connection: apsw.Connection, approval_id: bytes, began: Collection[EventType]) -> int:
    """Return by how much the clock was set back since the last of these events of an approval."""
    found = _set_backs(connection)
    if not found:
        return 0
    types = "[" + ",".join(f'"{one}"' for one in began) + "]"
    row: Any = connection.execute(_BEGAN, (approval_id, types)).fetchone()
    since = row[0] or 0
    return sum(by_ns for seq, by_ns in found if seq > since)


def most_lost_ns(connection: apsw.Connection) -> int:
    """Return by how much any deadline may be nearer than it reads."""
    return sum(by_ns for _, by_ns in _set_backs(connection))


def _set_backs(connection: apsw.Connection) -> list[tuple[int, int]]:
    rows: Any = connection.execute(_SET_BACKS).fetchall()
    return [(seq, int(by_ns)) for seq, by_ns in rows if str(by_ns or "").isdigit()]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
