"""One warning for each kind of problem of a process, then silence."""

from __future__ import annotations

import logging

from hansard_compiler.terminal import printable

_log = logging.getLogger("hansard")
# Without a lock, which the child of a fork could inherit locked: one call of a dict is atomic.
_warned: dict[str, object] = {}


def warn_once(kind: str, message: str, *args: object) -> None:
    """Log a warning unless one of this kind was logged before. Never raises."""
    mine = object()
    if _warned.setdefault(kind, mine) is mine:
        _log.warning(
            message + " (further warnings of this kind are suppressed)", *map(_escaped, args)
        )


def recovered(kind: str, message: str, *args: object) -> None:
    """Log that a kind of problem is over, if it was logged, so that it may be logged again."""
    if _warned.pop(kind, None) is not None:
        _log.warning(message, *map(_escaped, args))


def _escaped(argument: object) -> object:
    """Escape what a terminal would obey: a collector that is none may have said it."""
    if isinstance(argument, int | float):
        return argument
    return printable(argument) if isinstance(argument, str) else _Escaped(argument)


class _Escaped:
    """Any other value, an error for one, whose words are escaped when it is logged."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return printable(str(self._value))

    def __repr__(self) -> str:
        return printable(repr(self._value))
