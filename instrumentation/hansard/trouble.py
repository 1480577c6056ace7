"""One warning for each kind of trouble a process has, then silence."""

from __future__ import annotations

import logging
import threading

_log = logging.getLogger("hansard")
_told: set[str] = set()
# Protects `_told`: any thread of the traced program may have trouble first.
_lock = threading.Lock()


def warn_once(kind: str, message: str, *args: object) -> None:
    """Log a warning unless this kind of trouble was told before. Never raises."""
    with _lock:
        if kind in _told:
            return
        _told.add(kind)
    _log.warning(message + " (told once)", *args)


def recovered(kind: str, message: str, *args: object) -> None:
    """Log that a trouble which was told is over, so that it may be told again."""
    with _lock:
        if kind not in _told:
            return
        _told.discard(kind)
    _log.warning(message, *args)
