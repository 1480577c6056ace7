"""One warning for each kind of trouble a process has, then silence."""

from __future__ import annotations

import logging

_log = logging.getLogger("hansard")
# Without a lock, which the child of a fork could inherit locked: one call of a dict is atomic.
_told: dict[str, object] = {}


def warn_once(kind: str, message: str, *args: object) -> None:
    """Log a warning unless this kind of trouble was told before. Never raises."""
    mine = object()
    if _told.setdefault(kind, mine) is mine:
        _log.warning(message + " (told once)", *map(_printable, args))


def recovered(kind: str, message: str, *args: object) -> None:
    """Log that a trouble which was told is over, so that it may be told again."""
    if _told.pop(kind, None) is not None:
        _log.warning(message, *map(_printable, args))


def _printable(argument: object) -> object:
    """Escape what a terminal would obey: a collector that is none may have said it."""
    if not isinstance(argument, str) or argument.isprintable():
        return argument
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in argument)
