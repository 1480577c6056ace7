"""How often hooks looked at a call before it was made, and how often they warned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import apsw

EVALUATED: Final = "hansard.hook.evaluated"  # the event names of records of calls with a score:
WARNED: Final = "hansard.hook.warned"  # below the threshold of its hook, or not
# The condition is that of the partial index, word for word: the planner compares texts.
_RATES = """
SELECT count(*), count(*) FILTER (WHERE event_name = 'hansard.hook.warned')
FROM log_record INDEXED BY log_record_hook
WHERE event_name IN ('hansard.hook.evaluated', 'hansard.hook.warned')
  AND time_ns >= ? AND time_ns < ?
"""
_END_OF_TIME: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class HookRates:
    """What hooks did within a time."""

    evaluated: int  # calls with a score, warned ones too
    warned: int

    @property
    def share(self) -> float | None:
        """The share of warned calls, 0 to 1; None where none was looked at."""
        return self.warned / self.evaluated if self.evaluated else None


def hook_rates(
    connection: apsw.Connection, since_ns: int, *, before_ns: int = _END_OF_TIME
) -> HookRates:
    """Return how many calls hooks gave a score since a time, and of how many they warned.

    By the time of the call. Calls without a command, and those that a hook with its evaluator off
    saw, are not counted. One range of an index.
    """
    row: Any = connection.execute(_RATES, (since_ns, before_ns)).fetchone()
    return HookRates(row[0], row[1])
