"""Tasks in words: states, levels, times."""

from __future__ import annotations

from typing import Final

from hansard_web.format import plural

# What became of a finding.
OUTCOMES: Final = {
    "opened": "opened",
    "counted": "counted on",
    "known": "known",
    "decided": "decided before",
    "would_open": "would open",
    "would_count": "would count on",
}
# Of a state: its mark, and what it is called.
STATES: Final = {
    "blocked": ("awaiting", "waits for review"),
    "approved": ("approved", "approved"),
    "dismissed": ("cancelled", "dismissed"),
    "done": ("ok", "done"),
}
# What stands for one time that it happened, by what it happened to.
SAYS: Final = {
    "step": "What the newest one says",
    "approval": "What was asked last",
    "memory": "What it is about",
}
_HOUR_NS: Final = 3_600 * 1_000_000_000


def span_of_time(ns: int) -> str:
    """Return a window as people say it: 24 hours, 7 days."""
    hours, rest = divmod(ns, _HOUR_NS)
    if rest:
        return plural(max(ns // (_HOUR_NS // 60), 1), "minute")
    if hours % 24 == 0 and hours > 48:
        return plural(hours // 24, "day")
    return plural(hours, "hour")
