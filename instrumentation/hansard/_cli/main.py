"""The `hansard` command. A hook's event is handled before anything else is imported."""

from __future__ import annotations

import sys

_EVENTS = frozenset(
    ("pre-tool-use", "post-tool-use", "session-start", "user-prompt-submit", "stop", "session-end")
)
_HELP = frozenset(("-h", "--help"))


def main() -> None:
    """Run the command line; a missing extra exits 2 and names it."""
    words = sys.argv[1:]
    if len(words) > 1 and words[0] == "hook" and words[1] in _EVENTS and _HELP.isdisjoint(words):
        from hansard._hooks.process import run

        run(words[1:])
    from hansard._cli.group import run_command

    run_command()
