"""Groups of errors in words: states, changes, what fails."""

from __future__ import annotations

from typing import Final

# Of a state: its mark, and what it is called.
STATES: Final = {
    "open": ("error", "open"),
    "closed": ("ok", "closed"),
    "reopened": ("warn", "reopened"),
}
# Of a change: its icon, and what it is called.
CHANGES: Final = {
    "watch": ("eye", "watched"),
    "unwatch": ("eye", "no longer watched"),
    "note": ("edit", "note"),
    "close": ("check", "closed"),
    "open": ("undo", "opened again"),
    "reopened": ("warn", "reopened: it happened again"),
}
# What can be shown, in the order of the switch.
SHOWN: Final = {"open": "Open", "watched": "Watched", "closed": "Closed", "all": "All"}
# Of a subject: its icon.
SUBJECTS: Final = {"tool": "tool", "model": "llm", "step": "other"}
NO_MESSAGE: Final = "no message"
