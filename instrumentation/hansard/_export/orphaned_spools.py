"""Sending what is on disk: files of this process, and those that dead ones left.

Small files of many dead processes share a request.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from hansard import semconv
from hansard._export.backoff import may_retry
from hansard._export.dropped import DropReason, Losses, Sender, load_losses
from hansard._export.keepalive import keepalives
from hansard._export.otlp.batches import Courier, encode, items_of
from hansard._export.otlp.exporter import ACCEPTED, ExportOutcome, ExportResponse
from hansard._export.otlp.log_records import drop_records, keepalive_records
from hansard._export.spool import Spool, SpoolFile, SpoolFolder, SpoolKind, abandoned, remove
from hansard._runtime.warnings import warn_once
from hansard.errors import SpoolError

_LOOK_S: Final = 60.0  # how often to look again
# Of one request; programs that live for a second leave a folder each, with a few spans in it.
_MAX_FOLDERS: Final = 64
_MAX_ITEMS: Final = 512
_MAX_BYTES: Final = 1 << 20


def forward(courier: Courier, shelf: Spool | OrphanedSpool, file: SpoolFile) -> ExportResponse:
    """Send one file and settle it; it stays where it is only when it may do later.

    `shelf` is where the file is, and counts its outcome.
    """
    try:
        items = items_of(file)
    except (SpoolError, ValueError) as error:
        warn_once("torn", "a file of the spool cannot be read and is dropped: %s", error)
        shelf.give_up(file, DropReason.UNREADABLE)
        return ACCEPTED
    if file.kind is SpoolKind.PAYLOADS:
        shelf.lose(file.kind.signal, DropReason.UNREADABLE, file.items - len(items))
        file.known_items = len(items)
        if not items:
            shelf.arrived(file)
            return ACCEPTED
    if file.kind is SpoolKind.OPENS:
        # Only Hansard takes spans that have not ended; so first of all, is anybody there?
        reached = courier.deliver(SpoolKind.TRACES, ()).response
        if reached.outcome is not ExportOutcome.ACCEPTED:
            return reached
        if not courier.is_hansard():
            shelf.arrived(file)
            return ACCEPTED
    delivered = courier.deliver(file.kind, items, name=file.path)
    outcome = delivered.response.outcome
    if outcome is ExportOutcome.REFUSED:
        if delivered.refused and file.lost_items:
            report_refused(delivered.response, file.kind, len(delivered.refused))
            # Of payloads none are set aside: one may have 64 MiB.
            data = b"" if file.kind is SpoolKind.PAYLOADS else encode(file.kind, delivered.refused)
            shelf.refuse(file.kind, len(delivered.refused), data)
        shelf.arrived(file)
    elif outcome is ExportOutcome.NOT_RECEIVED and not may_retry(delivered.response, file.kind):
        if file.kind is SpoolKind.PAYLOADS:
            warn_once(
                "payloads not received",
                "%d payloads (%d bytes) did not arrive: %s",
                file.items,
                file.size_bytes,
                delivered.response.reason,
            )
        shelf.give_up(file, DropReason.NOT_RECEIVED)
    elif outcome is ExportOutcome.ACCEPTED:
        shelf.arrived(file)
    return delivered.response


def report_refused(response: ExportResponse, kind: SpoolKind, items: int) -> None:
    """Warn the program, once, that something will never be accepted."""
    stored = "" if kind is SpoolKind.PAYLOADS else "; they are kept in the spool's folder `refused`"
    warn_once(
        "refused",
        "the collector will not take %d %s: %s%s",
        items,
        kind.signal,
        response.reason,
        stored,
    )


class OrphanedSpool:
    """The folder of an ended process, being sent; its lock is held."""

    def __init__(self, folder: SpoolFolder) -> None:
        self.path = folder.path
        self.files = folder.files()
        self._folder = folder
        self._losses = load_losses(folder.path) or Losses(sender_of(folder))
        self._open: dict[int, Any] = {}  # trace id -> resource of a span that had not ended
        self.is_reported = False

    def arrived(self, file: SpoolFile) -> None:
        if file.kind is SpoolKind.OPENS:
            with contextlib.suppress(SpoolError, ValueError):
                self._open |= {one.context.trace_id: one.resource for one in items_of(file)}
        remove(file)
        self.files.remove(file)

    def give_up(self, file: SpoolFile, reason: DropReason) -> None:
        self._losses.add(file.kind.signal, reason, file.lost_items)
        remove(file)
        self.files.remove(file)

    def refuse(self, kind: SpoolKind, items: int, data: bytes) -> None:
        self._losses.add(kind.signal, DropReason.REFUSED, items)
        if data:
            self._folder.set_aside(kind, data, items=items)

    def lose(self, signal: str, reason: DropReason, items: int) -> None:
        self._losses.add(signal, reason, items)

    def report(self, courier: Courier) -> ExportResponse:
        """Report its dropped items, and that its open spans will not end. Safe to call twice."""
        losses = self._losses.unreported()
        if losses:
            response = courier.deliver(SpoolKind.LOGS, drop_records(losses)).response
            if response.outcome in (ExportOutcome.LATER, ExportOutcome.DOUBTFUL):
                return response
            self._losses.note_reported(losses)
        if self._open and courier.is_hansard():
            for resource in self._open.values():
                traces = {trace for trace, other in self._open.items() if other == resource}
                last = keepalive_records(resource, keepalives(traces, interval_s=1, is_last=True))
                response = courier.deliver(SpoolKind.LOGS, last).response
                if response.outcome in (ExportOutcome.LATER, ExportOutcome.DOUBTFUL):
                    return response
        self.is_reported = True
        return ACCEPTED

    def leave(self) -> None:
        """Let go of it, sent or not."""
        with contextlib.suppress(OSError):
            self._losses.save(self.path)
        self._folder.leave()


def sender_of(folder: SpoolFolder) -> Sender:
    """Return whose folder it is, from the first file in it that can be read."""
    for file in (one for one in folder.files() if one.kind is not SpoolKind.PAYLOADS):
        with contextlib.suppress(SpoolError, ValueError, IndexError):
            attributes = items_of(file)[0].resource.attributes
            service = str(attributes.get(semconv.SERVICE_NAME, ""))
            instance = str(attributes.get(semconv.SERVICE_INSTANCE_ID, folder.path.name))
            return Sender(service, instance)
    return Sender("", folder.path.name)


_Entry: TypeAlias = tuple[OrphanedSpool, SpoolFile]


class OrphanedSpools:
    """Goes through the folders that processes left; used by one thread at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # Those of ended processes, one after the other, each locked.
        self._folders: Iterator[OrphanedSpool] = map(OrphanedSpool, abandoned(root))
        self._held: deque[OrphanedSpool] = deque()  # locked; their files are sent in order
        self._singly = 0  # files to send one by one: of a request that was not taken whole
        self.due_s = 0.0  # when there may be something, on the monotonic clock

    def step(self, courier: Courier) -> tuple[ExportResponse, SpoolKind] | None:
        """Send files, or report what a process lost, or look; None: nothing was sent."""
        self._hold_more()
        if not self._held:
            self._folders = map(OrphanedSpool, abandoned(self._root))
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
        if not first.is_reported:
            return first.report(courier), SpoolKind.LOGS
        self._held.popleft().leave()
        return None

    def all(self, courier: Courier) -> ExportResponse:
        """Send all files; returns ACCEPTED, or why the rest is still there."""
        while self.due_s <= time.monotonic():
            sent = self.step(courier)
            if sent is not None and may_retry(*sent):
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
    ) -> tuple[ExportResponse, SpoolKind] | None:
        """Send files in one request; where it is not taken whole, they are sent one by one."""
        kind, items = entries[0][1].kind, _items_of(entries)
        if items is not None:
            response = courier.deliver(kind, items, name=entries[0][1].path).response
            if response.outcome is ExportOutcome.ACCEPTED:
                for folder, file in entries:
                    folder.arrived(file)
                return response, kind
            if may_retry(response, kind):
                return response, kind
        self._singly = len(entries)
        return None


def _sent_together(folders: Sequence[OrphanedSpool]) -> list[_Entry]:
    """Return the oldest files of folders, of one kind, that fit into a request.

    In each folder a file goes after those before it, whatever their kind: spans name payloads.
    """
    kind = folders[0].files[0].kind
    found: list[_Entry] = []
    items = size_bytes = 0
    if kind is SpoolKind.OPENS:
        return found
    for folder in folders:
        for file in folder.files:
            if file.kind is not kind:
                break
            items, size_bytes = items + file.items, size_bytes + file.size_bytes
            if items > _MAX_ITEMS or size_bytes > _MAX_BYTES:
                return found
            found.append((folder, file))
    return found


def _items_of(entries: Sequence[_Entry]) -> list[Any] | None:
    """Return what is in the files; None where one cannot be read, or not all of it."""
    try:
        items = [item for _, file in entries for item in items_of(file)]
    except (SpoolError, ValueError):
        return None
    return items if len(items) == sum(file.items for _, file in entries) else None
