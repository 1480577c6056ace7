"""Two threads: one takes what waits to the collector, one takes it to disk while that fails.

Healthy, a batch goes from memory to the collector. It goes to disk first when the last attempt
failed, or one has been under way for a second; then everything behind it does too, and is sent in
its order when the collector answers again. What dead processes left is sent in between.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from hansard._export.delivery_parts import Cargo
from hansard._export.dropped import Losses, Reason
from hansard._export.heartbeat import OpenSpans
from hansard._export.otlp.batches import Courier
from hansard._export.otlp.log_records import pulse_records
from hansard._export.queue import Put
from hansard._export.sending_thread import SendingLoop
from hansard._export.spool.files import Kind
from hansard._export.spooling_thread import KeepingLoop
from hansard._export.worker_state import Prepare, Transit
from hansard._runtime.warnings import warn_once

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings


class Delivery:
    """Everything of one process that is on its way."""

    def __init__(
        self, settings: Settings, resource: Resource, *, losses: Losses, prepare: Prepare
    ) -> None:
        self._resource = resource
        self._at = Transit(settings, losses=losses, prepare=prepare)
        self._courier = Courier(settings)
        self._sending = SendingLoop(self._at, self._courier, resource)
        self._keeping = KeepingLoop(self._at)
        self._threads: list[threading.Thread] = []

    @property
    def open_spans(self) -> OpenSpans:
        """The spans that have not ended."""
        return self._at.open_spans

    def start(self) -> None:
        """Start the threads, once."""
        with self._at.lock:
            if self._threads or self._at.is_closed:
                return
            loops = (("hansard-send", self._sending.run), ("hansard-keep", self._keeping.run))
            self._threads = [
                threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops
            ]
        for thread in self._threads:
            thread.start()

    def carry(self, cargo: Cargo) -> None:
        """Send what this holds as well, always before spans."""
        cargo.on_loss = partial(self._at.backlog.lose, "payloads")
        with self._at.lock:
            self._at.cargo = cargo
            self._at.replay.due_s = 0.0  # dead processes may have left some
            self._at.news.notify_all()

    def put(self, kind: Kind, item: Any, size_bytes: int) -> None:
        """Queue an item; never waits, and counts it as lost when there is no room."""
        with self._at.lock:
            if self._at.is_closed:
                return
            became = self._at.waiting.put(kind, item, size_bytes)
            if became is Put.REFUSED:
                is_stuck = self._at.disk.retry_s > time.monotonic()
                reason = Reason.SPOOL_UNWRITABLE if is_stuck else Reason.QUEUE_FULL
                self._at.backlog.lose(kind.signal, reason, 1)
            else:
                self._at.queued += 1
                if became is Put.NEWS:
                    self._at.news.notify_all()
        if became is Put.REFUSED:
            warn_once("full", "%s: spans are lost; they are counted", reason)
        if not self._threads:
            self.start()

    def opened(self) -> None:
        """A span is open: look when it is due."""
        if not self._threads:
            self.start()
        with self._at.lock:
            self._at.news.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued now; False when not all of it was sent in time."""
        self.start()
        until_s = time.monotonic() + timeout_s
        with self._at.lock:
            wanted = self._at.queued
            self._at.flushing += 1
            self._at.news.notify_all()
            try:
                return (
                    self._at.wait_for(lambda: self._at.is_flushed(wanted), until_s)
                    and self._at.is_sent()
                )
            finally:
                self._at.flushing -= 1

    def close(self, timeout_s: float) -> None:
        """Send what can be sent in this time, keep the rest on disk, and end the threads."""
        until_s = time.monotonic() + timeout_s
        patience_s = timeout_s * 0.75  # the rest of the time is for writing
        with self._at.lock:
            if self._at.is_closed:
                return
            self._at.flushing += 1
            self._at.news.notify_all()
            self._queue_last_words()
            if self._threads:
                self._at.is_closing = True
                patient_s = until_s - timeout_s + patience_s
                self._at.wait_for(self._at.is_at_rest, patient_s)
                # Programs may all be short: what dead ones left has the rest of the time.
                self._at.wait_for(self._at.is_replayed, patient_s)
            self._at.is_closed = True
            self._at.news.notify_all()
        self._keeping.keep_the_rest(until_s)
        self._at.replay.leave()
        self._at.backlog.leave()
        self._courier.close()
        if self._at.cargo is not None:
            self._at.cargo.close()

    def forget(self) -> None:
        """In the child of a fork: leave everything to the parent, and touch no lock of its."""
        self._at.backlog.forget()

    def _queue_last_words(self) -> None:
        """Say that spans that are open now will not end; only where that is understood."""
        words = self._at.open_spans.last_words()
        if words and self._at.contact.is_known and not self._at.contact.is_ill:
            for record in pulse_records(self._resource, words):
                self.put(Kind.LOGS, record, 1024)
