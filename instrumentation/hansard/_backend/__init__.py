"""Where approvals, memory, transcripts and replays live: in an own store, or at a server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hansard._runtime import recorder as _state

if TYPE_CHECKING:
    from hansard._backend.protocol import Backend
    from hansard._config.settings import Settings

_lock = threading.Lock()  # held while the backend is chosen, by the threads that need it first
_made: list[tuple[Settings, Backend]] = []


def backend_of_this_process() -> Backend:
    """Return the backend that `init()` or the environment names: one until it is closed."""
    known = _known()
    if known is not None:
        return known
    with _lock:
        known = _known()  # another thread may have been first
        if known is not None:
            return known
        settings = settings_of_this_process()
        backend = open_backend(settings)
        close_backend()
        _made.append((settings, backend))
        return backend


def _known() -> Backend | None:
    settings, made = _state.settings(), _made[-1:]
    return made[0][1] if made and (settings is None or made[0][0] is settings) else None


def settings_of_this_process() -> Settings:
    """Return the settings of `init()`, or else those of the environment now."""
    settings = _state.settings()
    if settings is not None:
        return settings
    from hansard._config.settings import load_settings

    return load_settings()


def open_backend(settings: Settings) -> Backend:
    """Return the backend that settings name; nothing is opened before a part is used."""
    if settings.embedded:
        from hansard._backend.local import LocalBackend

        return LocalBackend(settings)
    from hansard._backend.http import HttpBackend

    return HttpBackend(settings)


def close_backend() -> None:
    """Close the place that was used; the next call opens it again."""
    while _made:
        _made.pop()[1].close()


_state.before_shutdown.append(close_backend)
