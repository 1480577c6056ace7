"""What breaks of the provider's prompt cache cost a run: found with its page, or just after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.derived_context.context import RunBreaks, run_breaks
from hansard_store.runs.queries import RunItem
from hansard_web.run_page.geometry import ShownRun

# Runs of more calls are laid side by side after their page has come: decision on the run page.
AT_ONCE: Final = 24
_NAME: Final = "breaks"


@dataclass(frozen=True, slots=True)
class BreaksNote:
    """What the head of a run says of them; with `pending_href` it is asked for there."""

    count: int = 0
    lost_tokens: int = 0
    href: str = ""  # the context of the call that paid most again
    why: str = ""
    pending_href: str = ""


def known_breaks(connection: apsw.Connection, shown: ShownRun, run: RunItem) -> RunBreaks | None:
    """Return the breaks of a run that are known already, or found in no time; None otherwise."""
    if run.model_calls <= AT_ONCE:
        return find_breaks(connection, shown, run)
    found: RunBreaks | None = shown.readings.peek(_NAME)
    return found


def find_breaks(connection: apsw.Connection, shown: ShownRun, run: RunItem) -> RunBreaks | None:
    """Return the breaks of a run; None where it has too many calls or texts to compare."""
    if run.model_calls < 2:
        return None
    found: RunBreaks | None = shown.readings.get(_NAME, lambda: run_breaks(connection, run.id))
    return found
