"""The worker that exports: a queue in memory, a spool on disk, and the two threads between them.

One thread sends batches to the collector, one writes them to the spool while sending fails. A
batch goes from the queue to the collector as long as that works. It goes to the spool first when
the last attempt failed, or one has been under way for a second; then everything behind it does too,
and is sent in its order when the collector answers again. Payloads are in the spool from the first,
and are sent before the spans that may name them. What dead processes left in the spool is sent in
between.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # what the SDK's own processors use: there is no public name
    attach,
    set_value,
)

from hansard._export.backoff import Contact, may_retry
from hansard._export.batch_queue import ExportBatch, PendingBatches, Put
from hansard._export.dropped import DropReason
from hansard._export.keepalive import OpenSpans
from hansard._export.orphaned_spools import OrphanedSpools, forward, report_refused
from hansard._export.otlp.batches import Courier, encode
from hansard._export.otlp.exporter import ExportOutcome, ExportResponse
from hansard._export.otlp.log_records import drop_records, keepalive_records
from hansard._export.spool import FOLDER, Spool, SpoolFile, SpoolKind
from hansard._runtime.forks import apart_from_forks
from hansard._runtime.warnings import warn_once
from hansard.errors import SpoolError

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard._config.settings import Settings

Prepare = Callable[[Sequence[Any]], Sequence[Any]]
_Step = Callable[[], None]
_Choose = Callable[[float], tuple[_Step | None, float | None]]

_STALL_S: Final = 1.0  # an attempt that takes longer has its batch in the spool
_REPORT_S: Final = 5.0  # how often a growing count of dropped items is reported
_ASK_S: Final = 60.0  # how long a collector is believed not to be Hansard
_SPOOL_WAIT_S: Final = 5.0  # after the spool could not be written
_log = logging.getLogger("hansard")


@dataclass(slots=True)
class _Flight:
    """A batch that is being sent from memory."""

    batch: ExportBatch
    is_ready: bool = False  # cleaned: it may be written down
    file: SpoolFile | None = None  # where it is on disk as well
    is_settled: bool = False  # it arrived, or is counted


class BatchExportWorker:
    """Owns all that one process has to export.

    `_lock` guards the fields: the program's threads put, two threads of the worker take. `_writing`
    is held while a batch is written to the spool, so that batches get there in their order.
    """

    def __init__(
        self, settings: Settings, resource: Resource, *, spool: Spool, prepare: Prepare
    ) -> None:
        root = settings.data / FOLDER
        self._resource = resource
        self._prepare = prepare
        self._delay_s = settings.export_delay_ms / 1000
        self._lock = threading.RLock()
        self._news = threading.Condition(self._lock)
        self._writing = threading.RLock()
        self._waiting = PendingBatches(
            max_items=settings.max_queue_spans, batch_items=settings.max_batch_spans
        )
        self._words: list[Any] = []  # records of spans that will not end, at the end of the program
        self._spool = spool
        self._spool_retry_s = 0.0  # when writing is worth another attempt, on the monotonic clock
        self._courier = Courier(settings, resource)
        self._contact = Contact(settings.destination, root)
        self._orphans = OrphanedSpools(root)
        self._flight: _Flight | None = None
        self._attempt_since_s: float | None = None  # when the sender began what it does now
        self._is_spooling = False  # a batch is between memory and disk
        self._queued = self._settled = self._flushing = 0
        self._is_closing = self._is_closed = False
        self._report_s = self._ask_s = 0.0
        self._threads: list[threading.Thread] = []
        # The spans that have not ended; the program's threads add to it and take from it.
        self.open_spans = OpenSpans(
            delay_s=self._delay_s, interval_s=settings.keepalive_interval_ms / 1000
        )

    def start(self) -> None:
        """Start the threads, once."""
        with self._lock:
            if self._threads or self._is_closed:
                return
            loops = (("hansard-send", self._run_sender), ("hansard-keep", self._run_keeper))
            self._threads = [
                threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops
            ]
        for thread in self._threads:
            thread.start()

    def put(self, span: Any, size_bytes: int) -> None:
        """Queue a span; never waits, and counts it as lost when there is no room."""
        with self._lock:
            if self._is_closed:
                return
            became = self._waiting.put(span, size_bytes)
            if became is Put.REFUSED:
                is_stuck = self._spool_retry_s > time.monotonic()
                reason = DropReason.SPOOL_UNWRITABLE if is_stuck else DropReason.QUEUE_FULL
                self._spool.lose(SpoolKind.TRACES.signal, reason, 1)
            else:
                self._queued += 1
                if became is Put.NEWS:
                    self._news.notify_all()
        if became is Put.REFUSED:
            warn_once("full", "%s: spans are lost; they are counted", reason)
        if not self._threads:
            self.start()

    def opened(self) -> None:
        """A span is open: look when it is due."""
        if not self._threads:
            self.start()
        with self._lock:
            self._news.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued now; False when not all of it was sent in time."""
        self.start()
        until_s = time.monotonic() + timeout_s
        with self._lock:
            target = self._queued
            self._flushing += 1
            self._news.notify_all()
            try:
                is_flushed = self._wait_for(lambda: self._is_flushed(target), until_s)
                return is_flushed and not self._contact.is_ill and self._spool.is_empty
            finally:
                self._flushing -= 1

    def close(self, timeout_s: float) -> None:
        """Send what can be sent in this time, keep the rest on disk, and end the threads."""
        patient_s = time.monotonic() + timeout_s * 0.75  # the rest of the time is for writing
        with self._lock:
            if self._is_closed:
                return
            self._flushing += 1
            self._news.notify_all()
            words = self.open_spans.last_words()
            if self._contact.is_known and not self._contact.is_ill:  # where that is understood
                self._words = keepalive_records(self._resource, words)
            if self._threads:
                self._is_closing = True
                self._wait_for(self._is_at_rest, patient_s)
                # Programs may all be short: what dead ones left has the rest of the time.
                self._wait_for(self._are_orphans_sent, patient_s)
            # From here on a batch that is not sent goes nowhere but to disk, by this thread.
            self._is_closed = True
            flight, rest = self._flight, list(iter(self._waiting.take, None))
            self._news.notify_all()
        self._keep_the_rest(flight, rest)
        self._orphans.leave()
        self._spool.leave()
        self._courier.close()

    # ---- what both threads do

    def _ready(self, kind: SpoolKind, items: Sequence[Any]) -> Sequence[Any]:
        """Return items as they may leave the process; none of them when that cannot be made."""
        try:
            with apart_from_forks():
                return self._prepare(items)
        except Exception as error:  # not cleaned, they may hold anything: they are counted instead
            warn_once("cleaning", "spans could not be made fit to be sent: %r", error)
            lost = 0 if kind is SpoolKind.OPENS else len(items)
            self._spool.lose(kind.signal, DropReason.BROKEN, lost)
            return []

    def _next(self, choose: _Choose) -> _Step | None:
        """Wait until there is something to do and return it; None at the end."""
        with self._lock:
            while not self._is_closed:
                now_s = time.monotonic()
                step, wake_s = choose(now_s)
                if step is not None:
                    return step
                self._news.wait(None if wake_s is None else max(wake_s - now_s, 0.005))
        return None

    def _keep_flight(self, flight: _Flight) -> None:
        """Have the batch under way on disk, before anything that came after it."""
        with self._writing:
            with self._lock:
                if flight.file is not None or self._flight is not flight or self._is_closed:
                    return
            file = self._write(SpoolKind.TRACES, flight.batch.items)
            with self._lock:
                flight.file = file
                self._news.notify_all()

    # ---- waiting, under the lock

    def _wait_for(self, is_so: Callable[[], bool], until_s: float) -> bool:
        while not is_so():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._news.wait(left_s)
        return True

    def _is_flushed(self, target: int) -> bool:
        return self._settled >= target and (self._contact.is_ill or self._spool.is_empty)

    def _are_orphans_sent(self) -> bool:
        return self._contact.is_ill or self._orphans.due_s > time.monotonic()

    def _is_at_rest(self) -> bool:
        """Nothing is to be sent any more, or nothing can be."""
        if self._contact.is_ill:
            return True
        is_sent = not len(self._waiting) and self._flight is None and not self._words
        is_empty = is_sent and self._spool.is_empty
        return is_empty and not self._is_spooling and not self._spool.unreported()

    # ---- the thread that sends

    def _run_sender(self) -> None:
        # Instrumented HTTP libraries must not make spans of the sending of spans.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while (step := self._next(self._choose_to_send)) is not None:
            try:
                with self._under_way():
                    step()
            except Exception as error:  # whatever it was, the thread goes on
                warn_once("internal", "sending failed, and is tried again: %r", error)
                _log.debug("sending failed", exc_info=True)
                self._failed(ExportResponse(ExportOutcome.LATER, "an error of the SDK"))

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Let the keeper know since when: what hangs must not hold spans in memory."""
        with self._lock:
            self._attempt_since_s = time.monotonic()
            self._news.notify_all()
        try:
            yield
        finally:
            with self._lock:
                self._attempt_since_s = None

    def _choose_to_send(self, now_s: float) -> tuple[_Step | None, float | None]:
        if self._contact.is_ill and now_s < self._contact.retry_s:
            return None, self._contact.retry_s
        due_s = self._waiting.due_s(self._delay_s)
        open_s = None if self._contact.is_ill else self.open_spans.next_due_s()
        open_s = None if open_s is None else max(open_s, self._ask_s)
        payloads_s = self._spool.payloads_due_s(self._delay_s)
        if payloads_s is not None:
            # Spans that go now may name what waits there: it goes before them.
            first_s = min(one for one in (payloads_s, due_s, open_s) if one is not None)
            is_due = first_s <= now_s or self._flushing or len(self._spool)
            # Spans that wait in memory have nowhere else to be; payloads are on disk.
            is_late = due_s is not None and due_s + _STALL_S <= now_s and not self._is_spooling
            if is_due and not is_late and (pack := self._spool.first_pack()) is not None:
                return partial(self._send_file, pack), None
        if (file := self._spool.first()) is not None:
            return partial(self._send_file, file), None
        if due_s is not None and not self._is_spooling and (self._flushing or due_s <= now_s):
            batch = self._waiting.take()
            assert batch is not None  # something is due
            self._flight = _Flight(batch)
            return partial(self._send_flight, self._flight), None
        if self._words:
            return self._send_words, None
        tell_s = self._report_s if self._spool.unreported() else None
        if tell_s is not None and (self._flushing or tell_s <= now_s):
            return self._send_losses, None
        if open_s is not None and open_s <= now_s:
            return self._send_open, None
        if self._orphans.due_s <= now_s and (self._is_closing or not self._flushing):
            return self._send_orphans, None
        times = (due_s, payloads_s, tell_s, open_s, self._orphans.due_s)
        return None, min(one for one in times if one is not None)

    def _send_flight(self, flight: _Flight) -> None:
        is_done = False
        try:
            is_done = self._deliver(flight)
        finally:  # an error of ours must not lose it either
            self._land(flight, is_done=is_done)

    def _deliver(self, flight: _Flight) -> bool:
        """Send the batch once; return whether nothing is left to do for it."""
        batch = flight.batch
        batch.items = self._ready(SpoolKind.TRACES, batch.items)
        with self._lock:
            flight.is_ready = True
            self._news.notify_all()
        delivered = self._courier.deliver(SpoolKind.TRACES, batch.items)
        if may_retry(delivered.response, SpoolKind.TRACES):
            self._failed(delivered.response)
            self._keep_flight(flight)
            return False
        if delivered.response.outcome is ExportOutcome.NOT_RECEIVED:
            self._spool.lose(SpoolKind.TRACES.signal, DropReason.NOT_RECEIVED, len(batch.items))
        else:
            self._refuse(delivered.response, SpoolKind.TRACES, delivered.refused)
        self._arrived()
        return True

    def _send_words(self) -> None:
        """Say that spans will not end; it is on disk for the next start where that fails."""
        delivered = self._courier.deliver(SpoolKind.LOGS, self._words)
        if may_retry(delivered.response, SpoolKind.LOGS):
            with self._writing:
                if not self._is_closed:
                    self._write(SpoolKind.LOGS, self._words)
        else:
            self._refuse(delivered.response, SpoolKind.LOGS, delivered.refused)
        with self._lock:
            self._words = []
        self._after(delivered.response, SpoolKind.LOGS)

    def _land(self, flight: _Flight, *, is_done: bool) -> None:
        """The attempt is over: the batch arrived, or is on disk, or goes back to memory."""
        with self._lock:
            if self._flight is flight:
                self._flight = None
            flight.is_settled = is_done
            if is_done and flight.file is not None:
                self._spool.arrived(flight.file)
            if is_done or flight.file is not None:
                self._settled += flight.batch.taken
            elif not self._is_closed:
                self._waiting.put_back(flight.batch)
            self._news.notify_all()

    def _send_file(self, file: SpoolFile) -> None:
        response = forward(self._courier, self._spool, file)
        self._spool.release()
        self._after(response, file.kind)

    def _after(self, response: ExportResponse, kind: SpoolKind) -> None:
        """Note the collector's state, by its response."""
        if may_retry(response, kind):
            self._failed(response)
        else:
            self._arrived()

    def _send_losses(self) -> None:
        losses = self._spool.unreported()
        response = self._courier.deliver(SpoolKind.LOGS, drop_records(losses)).response
        self._report_s = time.monotonic() + _REPORT_S
        self._after(response, SpoolKind.LOGS)
        if not may_retry(response, SpoolKind.LOGS):
            self._spool.note_reported(losses)  # refused there: they are not reported again

    def _send_open(self) -> None:
        if not self._contact.is_known:
            self._after(self._courier.deliver(SpoolKind.TRACES, ()).response, SpoolKind.TRACES)
            return
        if not self._courier.is_hansard():
            self._ask_s = time.monotonic() + _ASK_S
            self._courier.lost_touch()
            return
        spans = self.open_spans.take_due()
        if spans:
            prepared = self._ready(SpoolKind.OPENS, spans)
            response = self._courier.deliver(SpoolKind.OPENS, prepared).response
            self._after(response, SpoolKind.TRACES)
            if self._contact.is_ill:
                self.open_spans.untell(spans)
                return
        keepalives = self.open_spans.take_keepalives(at_once=bool(spans))
        if keepalives:
            records = keepalive_records(self._resource, keepalives)
            self._after(self._courier.deliver(SpoolKind.LOGS, records).response, SpoolKind.LOGS)

    def _send_orphans(self) -> None:
        """Send one file of a dead process, or report what it lost, or look for the next one."""
        sent = self._orphans.step(self._courier)
        if sent is not None:
            self._after(*sent)
        with self._lock:
            self._news.notify_all()

    def _arrived(self) -> None:
        with self._lock:
            is_news = self._contact.arrived()
            self._ask_s = 0.0 if is_news else self._ask_s
            self._news.notify_all()
        if is_news:
            self._contact.rejoice()

    def _failed(self, response: ExportResponse) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._contact.failed(response)
            self._courier.lost_touch()
            self._news.notify_all()
        self._contact.complain(response.reason)

    # ---- the thread that writes to the spool

    def _run_keeper(self) -> None:
        while (step := self._next(self._choose_to_keep)) is not None:
            try:
                step()
            except Exception as error:  # as in the sender's thread
                warn_once("internal", "keeping spans failed, and is tried again: %r", error)
                _log.debug("keeping failed", exc_info=True)
                with self._lock:
                    self._is_spooling = False
                    self._spool_retry_s = time.monotonic() + _SPOOL_WAIT_S

    def _choose_to_keep(self, now_s: float) -> tuple[_Step | None, float | None]:
        flight, since_s = self._flight, self._attempt_since_s
        if now_s < self._spool_retry_s:
            return None, self._spool_retry_s
        is_stalled = since_s is not None and since_s + _STALL_S <= now_s
        times = [] if since_s is None or is_stalled else [since_s + _STALL_S]
        if flight is not None and flight.file is None:
            if is_stalled and flight.is_ready:
                return partial(self._keep_flight, flight), None
            is_stalled = False  # what came after it goes to disk after it
        if self._contact.is_ill or is_stalled or len(self._spool):
            due_s = self._waiting.due_s(self._delay_s)
            if due_s is not None and (self._flushing or due_s <= now_s):
                self._is_spooling = True
                return self._keep_batch, None
            open_s = self.open_spans.next_due_s() if self._contact.is_ill else None
            if open_s is not None and open_s <= now_s:
                return self._keep_open, None
            times += [one for one in (due_s, open_s) if one is not None]
        return None, min(times, default=None)

    def _keep_batch(self) -> None:
        with self._writing:
            with self._lock:
                batch = None if self._is_closed else self._waiting.take()
            if batch is not None:
                batch.items = self._ready(SpoolKind.TRACES, batch.items)
                file = self._write(SpoolKind.TRACES, batch.items)
                with self._lock:
                    if file is None and not self._is_closed:
                        self._waiting.put_back(batch)
                    elif file is None:
                        self._spool.lose(
                            SpoolKind.TRACES.signal, DropReason.SPOOL_UNWRITABLE, len(batch.items)
                        )
                    else:
                        self._settled += batch.taken
        with self._lock:
            self._is_spooling = False
            self._news.notify_all()

    def _keep_open(self) -> None:
        """Keep start records too: a process that is killed now has no other trace of them."""
        with self._writing:
            spans = self.open_spans.take_due()
            if spans and self._write(SpoolKind.OPENS, self._ready(SpoolKind.OPENS, spans)) is None:
                self.open_spans.untell(spans)
            self.open_spans.take_keepalives()  # nothing hears it now; the next one is due later

    def _keep_the_rest(self, flight: _Flight | None, rest: list[ExportBatch]) -> None:
        """Write to disk what was not sent, however late it is: nothing else has it."""
        with self._writing:
            if flight is not None and flight.file is None and not flight.is_settled:
                rest.insert(0, flight.batch)
            if rest or not self._spool.is_empty:
                self._contact.complain("it did not take everything before the program ended")
            for batch in rest:
                items = self._ready(SpoolKind.TRACES, batch.items)
                if items and self._write(SpoolKind.TRACES, items) is None:
                    self._spool.lose(
                        SpoolKind.TRACES.signal, DropReason.SPOOL_UNWRITABLE, len(items)
                    )

    def _write(self, kind: SpoolKind, items: Sequence[Any]) -> SpoolFile | None:
        """Write items behind all others; None when nothing can be written now."""
        data, count = self._encode(kind, items)
        try:
            return self._spool.add(kind, data, items=count)
        except SpoolError as error:
            self._spool_retry_s = time.monotonic() + _SPOOL_WAIT_S
            warn_once("spool", "%s: what cannot be sent is lost, and counted", error)
            return None

    def _refuse(self, response: ExportResponse, kind: SpoolKind, refused: Sequence[Any]) -> None:
        """Count what the collector will never take, and keep it for people to look at."""
        if refused:
            report_refused(response, kind, len(refused))
            data, count = self._encode(kind, refused)
            if count:
                self._spool.refuse(kind, count, data)

    def _encode(self, kind: SpoolKind, items: Sequence[Any]) -> tuple[bytes, int]:
        """Return the bytes of items, and of how many; what has none is counted as lost."""
        try:
            return encode(kind, items), len(items)
        except Exception:  # one of them holds something that has no form on the wire
            sound = [item for item in items if _has_form(kind, item)]
            self._spool.lose(kind.signal, DropReason.BROKEN, len(items) - len(sound))
            return encode(kind, sound), len(sound)


def _has_form(kind: SpoolKind, item: Any) -> bool:
    try:
        encode(kind, [item])
    except Exception:  # whatever the encoder raises
        return False
    return True
