"""Which of the two places decisions of this process are kept in: its own store, or a server's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hansard._backend.approvals import Decisions
from hansard._runtime import recorder as _state

if TYPE_CHECKING:
    from hansard._config.settings import Settings

_lock = threading.Lock()  # held while a place is opened, by whichever threads ask first
_made: list[tuple[Settings, Decisions]] = []


def decisions_of_this_process() -> Decisions:
    """Return where decisions are kept, as `init()` or the environment says."""
    settings = _state.settings()
    if _made and (settings is None or _made[-1][0] is settings):
        return _made[-1][1]
    with _lock:
        if settings is None:
            from hansard._config.settings import load_settings

            settings = load_settings()
        decisions = open_decisions(settings)
        close_decisions()
        _made.append((settings, decisions))
        return decisions


def open_decisions(settings: Settings) -> Decisions:
    """Open the place that settings name."""
    if settings.embedded:
        from hansard._backend.local_approvals import open_local

        return open_local(settings)
    from hansard._backend.http_approvals import HttpDecisions

    return HttpDecisions(settings)


def close_decisions() -> None:
    """Close the place that was used; the next call opens it again."""
    while _made:
        _made.pop()[1].close()


_state.before_shutdown.append(close_decisions)
