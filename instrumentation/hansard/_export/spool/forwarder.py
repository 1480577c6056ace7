"""Sending what is on disk: files of this process, and those that dead ones left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from hansard import semconv
from hansard._export.dropped import Losses, Reason, Sender, load_losses
from hansard._export.heartbeat import pulses
from hansard._export.otlp.batches import Courier, encode, items_of
from hansard._export.otlp.log_records import loss_records, pulse_records
from hansard._export.otlp.results import ACCEPTED, Answer, Outcome
from hansard._export.spool.files import Kind, SpoolFile, SpoolFolder, abandoned, remove
from hansard._runtime.warnings import warn_once
from hansard.errors import SpoolError


class Shelf(Protocol):
    """Where a file lies, and who counts what becomes of it."""

    def arrived(self, file: SpoolFile) -> None: ...

    def give_up(self, file: SpoolFile, reason: Reason) -> None: ...

    def refuse(self, kind: Kind, items: int, data: bytes) -> None: ...


def forward(courier: Courier, shelf: Shelf, file: SpoolFile) -> Answer:
    """Send one file and settle it; it stays where it is only when it may do later."""
    try:
        items = items_of(file)
    except (SpoolError, ValueError) as error:
        warn_once("torn", "a file of the spool cannot be read and is dropped: %s", error)
        shelf.give_up(file, Reason.UNREADABLE)
        return ACCEPTED
    if file.kind is Kind.OPENS:
        # Only Hansard takes spans that have not ended; so first of all, is anybody there?
        reached = courier.deliver(Kind.TRACES, ()).answer
        if reached.outcome is not Outcome.ACCEPTED:
            return reached
        if not courier.is_hansard():
            shelf.arrived(file)
            return ACCEPTED
    delivered = courier.deliver(file.kind, items, name=file.path)
    outcome = delivered.answer.outcome
    if outcome is Outcome.REFUSED:
        if delivered.refused and file.lost_items:
            tell_refused(delivered.answer, file.kind, len(delivered.refused))
            data = encode(file.kind, delivered.refused)
            shelf.refuse(file.kind, len(delivered.refused), data)
        shelf.arrived(file)
    elif outcome is Outcome.NOT_RECEIVED and file.kind is Kind.LOGS:
        shelf.give_up(file, Reason.NOT_RECEIVED)
    elif outcome is Outcome.ACCEPTED:
        shelf.arrived(file)
    return delivered.answer


def tell_refused(answer: Answer, kind: Kind, items: int) -> None:
    """Tell the program, once, that something will never be taken."""
    warn_once(
        "refused",
        "the collector will not take %d %s: %s; they are kept in the spool's folder `refused`",
        items,
        kind.signal,
        answer.reason,
    )


class Leftover:
    """The folder of a process that is gone, being sent; its lock is held."""

    def __init__(self, folder: SpoolFolder) -> None:
        self.path = folder.path
        self.files = folder.files()
        self._folder = folder
        self._losses = load_losses(folder.path) or Losses(sender_of(folder))
        self._open: dict[int, Any] = {}  # trace id -> resource of a span that had not ended
        self.is_told = False

    def arrived(self, file: SpoolFile) -> None:
        if file.kind is Kind.OPENS:
            with contextlib.suppress(SpoolError, ValueError):
                self._open |= {one.context.trace_id: one.resource for one in items_of(file)}
        remove(file)
        self.files.remove(file)

    def give_up(self, file: SpoolFile, reason: Reason) -> None:
        self._losses.add(file.kind.signal, reason, file.lost_items)
        remove(file)
        self.files.remove(file)

    def refuse(self, kind: Kind, items: int, data: bytes) -> None:
        self._losses.add(kind.signal, Reason.REFUSED, items)
        self._folder.set_aside(kind, data, items=items)

    def tell(self, courier: Courier) -> Answer:
        """Tell what it lost, and that its open spans will not end. Safe to tell twice."""
        losses = self._losses.untold()
        if losses:
            answer = courier.deliver(Kind.LOGS, loss_records(losses)).answer
            if answer.outcome in (Outcome.LATER, Outcome.DOUBTFUL):
                return answer
            self._losses.tell(losses)
        if self._open and courier.is_hansard():
            for resource in self._open.values():
                traces = {trace for trace, other in self._open.items() if other == resource}
                last = pulse_records(resource, pulses(traces, interval_s=1, is_last=True))
                answer = courier.deliver(Kind.LOGS, last).answer
                if answer.outcome in (Outcome.LATER, Outcome.DOUBTFUL):
                    return answer
        self.is_told = True
        return ACCEPTED

    def leave(self) -> None:
        """Let go of it, sent or not."""
        with contextlib.suppress(OSError):
            self._losses.save(self.path)
        self._folder.leave()


def sender_of(folder: SpoolFolder) -> Sender:
    """Return whose folder it is, from the first file in it that can be read."""
    for file in folder.files():
        with contextlib.suppress(SpoolError, ValueError, IndexError):
            attributes = items_of(file)[0].resource.attributes
            service = str(attributes.get(semconv.SERVICE_NAME, ""))
            instance = str(attributes.get(semconv.SERVICE_INSTANCE_ID, folder.path.name))
            return Sender(service, instance)
    return Sender("", folder.path.name)


def leftovers(root: Path) -> Iterator[Leftover]:
    """Yield the folders of processes that are gone, one after the other, each locked."""
    for folder in abandoned(root):
        yield Leftover(folder)
