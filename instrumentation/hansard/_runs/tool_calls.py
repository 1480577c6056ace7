"""Tool calls that were told and are not answered yet, and which answer belongs to which."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Final, NamedTuple

from hansard._runs.step import Step

MAX_OPEN: Final = 1_000
MAX_ANSWERED: Final = 10_000


class _Known(NamedTuple):
    trace: str
    call: Step


class ToolCalls:
    """Open calls by trace. Only single dict operations, so threads need no lock over a fork."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._open: dict[int, _Known] = {}  # in the order of the calls
        self._answered: dict[tuple[str, str], None] = {}  # trace and call id, oldest first

    def add(self, call: Step, *, trace: str) -> Step | None:
        """Note a call; returns the oldest one when there are too many, for the caller to end."""
        self._open[next(self._numbers)] = _Known(trace, call)
        return None if len(self._open) <= MAX_OPEN else self._take(list(self._open.items())[:1])

    def take(self, *, trace: str, call_id: str | None, name: str | None) -> Step | None:
        """Return the call that a result answers, and forget it; None when there is none.

        By id if one is given, else the oldest of this name; with neither, the only one there is.
        Of calls that share an id, as some servers make them, the oldest is taken.
        """
        calls = [one for one in list(self._open.items()) if one[1].trace == trace]
        if call_id is not None:
            calls = [one for one in calls if one[1].call.call_id == call_id]
        elif name is not None:
            calls = [one for one in calls if one[1].call.name == name]
        elif len(calls) > 1:
            calls = []
        return self._take(calls)

    def note_end(self, call: Step, *, trace: str) -> None:
        """A call ended, by its result or by itself: a second answer is to be known as one."""
        for number, known in list(self._open.items()):
            if known.call is call:
                self._open.pop(number, None)
        if call.call_id is not None:
            self._answered[trace, call.call_id] = None
            while len(self._answered) > MAX_ANSWERED:
                self._forget_oldest()

    def is_answered(self, call_id: str | None, *, trace: str) -> bool:
        """Whether a call of this id was answered already."""
        return call_id is not None and (trace, call_id) in self._answered

    def drain(self) -> list[Step]:
        """Return the calls that nobody answered, and forget them."""
        taken = (self._open.pop(number, None) for number in list(self._open))
        return [known.call for known in taken if known is not None]

    def _forget_oldest(self) -> None:
        # Another thread may add one between the two; then it is tried again.
        with suppress(RuntimeError, StopIteration):
            self._answered.pop(next(iter(self._answered)), None)

    def _take(self, calls: list[tuple[int, _Known]]) -> Step | None:
        for number, known in calls:
            if self._open.pop(number, None) is not None:
                return known.call
        return None
