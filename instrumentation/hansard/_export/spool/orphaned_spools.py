"""Sending what dead processes left: small files of many processes share a request."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from hansard._export.otlp.batches import Courier, items_of
from hansard._export.otlp.results import ACCEPTED, Answer, Outcome
from hansard._export.spool.files import Kind, SpoolFile
from hansard._export.spool.forwarder import Leftover, forward, leftovers
from hansard.errors import SpoolError

_LOOK_S: Final = 60.0  # how often to look again
# Of one request; programs that live for a second leave a folder each, with a few spans in it.
_MAX_FOLDERS: Final = 64
_MAX_ITEMS: Final = 512
_MAX_BYTES: Final = 1 << 20

_Entry: TypeAlias = tuple[Leftover, SpoolFile]


class Replay:
    """Goes through the folders that processes left; used by one thread at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: Iterator[Leftover] = leftovers(root)
        self._held: deque[Leftover] = deque()  # locked; their files are sent in order
        self._singly = 0  # files to send one by one: of a request that was not taken whole
        self.due_s = 0.0  # when there may be something, on the monotonic clock

    def step(self, courier: Courier) -> tuple[Answer, Kind] | None:
        """Send files, or tell what a process lost, or look; None: nothing was sent."""
        self._hold_more()
        if not self._held:
            self._folders = leftovers(self._root)
            self.due_s = time.monotonic() + _LOOK_S
            return None
        first = self._held[0]
        if first.files:
            entries = [] if self._singly else _sent_together(self._held)
            if len(entries) > 1:
                return self._send_together(courier, entries)
            self._singly = max(self._singly - 1, 0)
            file = first.files[0]
            return forward(courier, first, file), file.kind
        if not first.is_told:
            return first.tell(courier), Kind.LOGS
        self._held.popleft().leave()
        return None

    def all(self, courier: Courier) -> Answer:
        """Send everything; returns ACCEPTED, or why the rest is still there."""
        while self.due_s <= time.monotonic():
            sent = self.step(courier)
            if sent is not None and may_do_later(*sent):
                return sent[0]
        return ACCEPTED

    def leave(self) -> None:
        """Let go of the folders that are being sent, whatever is still in them."""
        while self._held:
            self._held.popleft().leave()

    def _hold_more(self) -> None:
        while len(self._held) < _MAX_FOLDERS:
            found = next(self._folders, None)
            if found is None:
                return
            self._held.append(found)

    def _send_together(
        self, courier: Courier, entries: Sequence[_Entry]
    ) -> tuple[Answer, Kind] | None:
        """Send files in one request; where it is not taken whole, they are sent one by one."""
        kind, items = entries[0][1].kind, _items_of(entries)
        if items is not None:
            answer = courier.deliver(kind, items, name=entries[0][1].path).answer
            if answer.outcome is Outcome.ACCEPTED:
                for folder, file in entries:
                    folder.arrived(file)
                return answer, kind
            if may_do_later(answer, kind):
                return answer, kind
        self._singly = len(entries)
        return None


def _sent_together(folders: Sequence[Leftover]) -> list[_Entry]:
    """Return the oldest files of folders, of one kind, that fit into a request.

    In each folder a file goes after those before it, whatever their kind: spans name payloads.
    """
    kind = folders[0].files[0].kind
    found: list[_Entry] = []
    items = size_bytes = 0
    if kind is Kind.OPENS:
        return found
    for folder in folders:
        for file in folder.files:
            items, size_bytes = items + file.items, size_bytes + file.size_bytes
            if items > _MAX_ITEMS or size_bytes > _MAX_BYTES:
                return found
            if file.kind is not kind:
                items, size_bytes = items - file.items, size_bytes - file.size_bytes
                break
            found.append((folder, file))
    return found


def _items_of(entries: Sequence[_Entry]) -> list[Any] | None:
    """Return what is in the files; None where one cannot be read."""
    try:
        return [item for _, file in entries for item in items_of(file)]
    except (SpoolError, ValueError):
        return None


def may_do_later(answer: Answer, kind: Kind) -> bool:
    """Say whether the same batch is worth another attempt."""
    if answer.outcome is Outcome.NOT_RECEIVED:
        return kind is not Kind.LOGS  # an endpoint without logs is one; without traces, a mistake
    return answer.outcome in (Outcome.LATER, Outcome.DOUBTFUL)
