"""Tasks in words: states, levels, times."""

from __future__ import annotations

from typing import Final

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
    "report": "The newest report",
    "figure": "What was measured last",
}
