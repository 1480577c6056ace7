"""What is on its way in one process: the state that its threads share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hansard._export.backoff import Contact
from hansard._export.delivery_parts import Cargo
from hansard._export.dropped import Losses, Reason
from hansard._export.heartbeat import OpenSpans
from hansard._export.queue import Batch, Waiting
from hansard._export.spool.backlog import Backlog
from hansard._export.spool.files import FOLDER, Kind, SpoolFile
from hansard._export.spool.orphaned_spools import Replay
from hansard._export.spool.writer import Disk
from hansard._runtime.forks import apart_from_forks
from hansard._runtime.warnings import warn_once

if TYPE_CHECKING:
    from hansard._config.settings import Settings

Prepare = Callable[[Kind, Sequence[Any]], Sequence[Any]]
Step = Callable[[], None]
Choose = Callable[[float], tuple[Step | None, float | None]]

STALL_S: Final = 1.0  # an attempt that takes longer has its batch on disk


@dataclass(slots=True)
class Flight:
    """A batch that is being sent from memory."""

    batch: Batch
    is_ready: bool = False  # cleaned: it may be written down
    file: SpoolFile | None = None  # where it is on disk as well


class Transit:
    """`lock` guards the fields: the program's threads put, two threads of ours take.

    `writing` is held while a batch is written to the backlog, so that batches get there in their
    order.
    """

    def __init__(self, settings: Settings, *, losses: Losses, prepare: Prepare) -> None:
        root = settings.data / FOLDER
        self._prepare = prepare
        self.delay_s = settings.export_delay_ms / 1000
        self.lock = threading.RLock()
        self.news = threading.Condition(self.lock)
        self.writing = threading.RLock()
        self.waiting = Waiting(
            max_items=settings.max_queue_spans, batch_items=settings.max_batch_spans
        )
        self.backlog = Backlog(root, max_bytes=settings.spool_max_bytes, losses=losses)
        self.disk = Disk(self.backlog)
        self.open_spans = OpenSpans(
            delay_s=self.delay_s, interval_s=settings.pulse_interval_ms / 1000
        )
        self.contact = Contact(settings.destination, root)
        self.replay = Replay(root)
        self.flight: Flight | None = None
        self.cargo: Cargo | None = None
        self.attempt_since_s: float | None = None  # when the sender began what it does now
        self.is_keeping = False  # a batch is between memory and disk
        self.queued = self.settled = 0
        self.flushing = 0
        self.is_closing = self.is_closed = False

    def ready(self, kind: Kind, items: Sequence[Any]) -> Sequence[Any]:
        """Return items as they may leave the process; none of them when that cannot be made."""
        try:
            with apart_from_forks():
                return self._prepare(kind, items)
        except Exception as error:  # not cleaned, they may hold anything: they are counted instead
            warn_once("cleaning", "spans could not be made fit to be sent: %r", error)
            lost = 0 if kind is Kind.OPENS else len(items)
            self.backlog.lose(kind.signal, Reason.BROKEN, lost)
            return []

    def next(self, choose: Choose) -> Step | None:
        """Wait until there is something to do and return it; None at the end."""
        with self.lock:
            while not self.is_closed:
                now_s = time.monotonic()
                step, wake_s = choose(now_s)
                if step is not None:
                    return step
                self.news.wait(None if wake_s is None else max(wake_s - now_s, 0.005))
        return None

    def keep_flight(self, flight: Flight) -> None:
        """Have the batch under way on disk, before anything that came after it."""
        with self.writing:
            with self.lock:
                if flight.file is not None or self.flight is not flight or self.is_closed:
                    return
            file = self.disk.write(flight.batch.kind, flight.batch.items)
            with self.lock:
                flight.file = file
                self.news.notify_all()

    # ---- waiting, under the lock

    def wait_for(self, is_so: Callable[[], bool], until_s: float) -> bool:
        while not is_so():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            self.news.wait(left_s)
        return True

    def is_flushed(self, wanted: int) -> bool:
        return self.settled >= wanted and (self.contact.is_ill or not self.is_left())

    def is_sent(self) -> bool:
        return not self.contact.is_ill and not self.is_left()

    def is_left(self) -> bool:
        """Something waits on disk."""
        return bool(len(self.backlog) or (self.cargo is not None and self.cargo.waiting))

    def is_replayed(self) -> bool:
        return self.contact.is_ill or self.replay.due_s > time.monotonic()

    def is_at_rest(self) -> bool:
        """Nothing is to be sent any more, or nothing can be."""
        if self.contact.is_ill:
            return True
        is_empty = not len(self.waiting) and self.flight is None and not self.is_left()
        return is_empty and not self.is_keeping and not self.backlog.untold()
