"""Sending what dead processes left, one request at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hansard.answers import ACCEPTED, Answer, Outcome
from hansard.courier import Courier
from hansard.forwarding import Leftover, forward, leftovers
from hansard.spool import Kind

_LOOK_S: Final = 60.0  # how often to look again


class Replay:
    """Goes through the folders that processes left; used by one thread at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: Iterator[Leftover] = leftovers(root)
        self._folder: Leftover | None = None
        self.due_s = 0.0  # when there may be something, on the monotonic clock

    def step(self, courier: Courier) -> tuple[Answer, Kind] | None:
        """Send one file, or tell what a process lost, or look; None: nothing was sent."""
        if self._folder is None:
            self._folder = next(self._folders, None)
        found = self._folder
        if found is None:
            self._folders = leftovers(self._root)
            self.due_s = time.monotonic() + _LOOK_S
        elif found.files:
            file = found.files[0]
            return forward(courier, found, file), file.kind
        elif not found.is_told:
            return found.tell(courier), Kind.LOGS
        else:
            self.leave()
        return None

    def all(self, courier: Courier) -> Answer:
        """Send everything; returns ACCEPTED, or why the rest is still there."""
        while self.due_s <= time.monotonic():
            sent = self.step(courier)
            if sent is not None and may_do_later(*sent):
                return sent[0]
        return ACCEPTED

    def leave(self) -> None:
        """Let go of the folder that is being sent, whatever is still in it."""
        found, self._folder = self._folder, None
        if found is not None:
            found.leave()


def may_do_later(answer: Answer, kind: Kind) -> bool:
    """Say whether the same batch is worth another attempt."""
    if answer.outcome is Outcome.NOT_RECEIVED:
        return kind is not Kind.LOGS  # an endpoint without logs is one; without traces, a mistake
    return answer.outcome in (Outcome.LATER, Outcome.DOUBTFUL)
