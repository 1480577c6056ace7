"""Two threads: one takes what waits to the collector, one takes it to disk while that fails.

Healthy, a batch goes from memory to the collector. It goes to disk first when the last attempt
failed, or one has been under way for a second; then everything behind it does too, and is sent in
its order when the collector answers again. What dead processes left is sent in between.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # what the SDK's own processors use: there is no public name
    attach,
    set_value,
)

from hansard.answers import Answer, Outcome
from hansard.backlog import Backlog
from hansard.cargo import Cargo
from hansard.contact import Contact
from hansard.courier import Courier
from hansard.disk import Disk
from hansard.forwarding import forward
from hansard.losses import Losses, Reason
from hansard.pulse import OpenSpans
from hansard.records import loss_records, pulse_records
from hansard.replay import Replay, may_do_later
from hansard.spool import Kind, SpoolFile
from hansard.trouble import warn_once
from hansard.waiting import Batch, Waiting

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard.config import Settings

Prepare = Callable[[Kind, Sequence[Any]], Sequence[Any]]

_STALL_S: Final = 1.0  # an attempt that takes longer has its batch on disk
_RETRY_S: Final = 5.0  # after keeping spans failed
_TELL_S: Final = 5.0  # how often a growing loss is told
_REPLAY_S: Final = 0.5  # at the end of a program, for what dead ones left
_ASK_S: Final = 60.0  # how long a collector is believed not to be Hansard
_log = logging.getLogger("hansard")
_Step = Callable[[], None]


@dataclass(slots=True)
class _Flight:
    """A batch that is being sent from memory."""

    batch: Batch
    since_s: float
    is_ready: bool = False  # cleaned: it may be written down
    file: SpoolFile | None = None  # where it is on disk as well


class Delivery:
    """Everything of one process that is on its way.

    `_lock` guards the fields; the program's threads put, two threads of ours take. `_writing` is
    held while a batch is written to the backlog, so that batches get there in their order.
    """

    def __init__(
        self, settings: Settings, resource: Resource, *, losses: Losses, prepare: Prepare
    ) -> None:
        self._settings = settings
        self._resource = resource
        self._prepare = prepare
        self._delay_s = settings.export_delay_ms / 1000
        self._root = settings.data / "spool"
        self._lock = threading.RLock()
        self._news = threading.Condition(self._lock)
        self._writing = threading.RLock()
        self._waiting = Waiting(
            max_items=settings.max_queue_spans, batch_items=settings.max_batch_spans
        )
        self._backlog = Backlog(self._root, max_bytes=settings.spool_max_bytes, losses=losses)
        self._disk = Disk(self._backlog)
        self._courier = Courier(settings)
        self.open_spans = OpenSpans(
            delay_s=self._delay_s, interval_s=settings.pulse_interval_ms / 1000
        )
        self._flight: _Flight | None = None
        self._cargo: Cargo | None = None
        self._cargo_since_s: float | None = None  # when the attempt under way began
        self._is_keeping = False
        self._contact = Contact(settings.endpoint, self._root)
        self._tell_s = self._ask_s = 0.0
        self._replay = Replay(self._root)
        self._queued = self._settled = 0
        self._flushing = 0
        self._is_closing = self._is_closed = False
        self._threads: list[threading.Thread] = []

    # ---- what the program's threads call

    def start(self) -> None:
        """Start the threads, once."""
        with self._lock:
            if self._threads or self._is_closed:
                return
            loops = (("hansard-send", self._send_loop), ("hansard-keep", self._keep_loop))
            self._threads = [
                threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops
            ]
        for thread in self._threads:
            thread.start()

    def carry(self, cargo: Cargo) -> None:
        """Send what this holds as well, always before spans."""
        cargo.on_loss = partial(self._backlog.lose, "payloads")
        with self._lock:
            self._cargo = cargo
            self._replay.due_s = 0.0  # dead processes may have left some
            self._news.notify_all()

    def put(self, kind: Kind, item: Any, size_bytes: int) -> None:
        """Queue an item; never waits, and counts it as lost when there is no room."""
        with self._lock:
            if self._is_closed:
                return
            was_empty = not len(self._waiting)
            if not self._waiting.put(kind, item, size_bytes):
                is_stuck = self._disk.retry_s > time.monotonic()
                reason = Reason.SPOOL_UNWRITABLE if is_stuck else Reason.QUEUE_FULL
                self._backlog.lose(kind.signal, reason, 1)
                lost = True
            else:
                self._queued += 1
                lost = False
                if was_empty or self._waiting.is_urgent(kind):
                    self._news.notify_all()
        if lost:
            warn_once("full", "%s: spans are lost; they are counted", reason)
        if not self._threads:
            self.start()

    def opened(self) -> None:
        """A first span is open: look when it is due."""
        if not self._threads:
            self.start()
        with self._lock:
            self._news.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued now; False when not all of it was sent in time."""
        self.start()
        until_s = time.monotonic() + timeout_s
        with self._lock:
            wanted = self._queued
            self._flushing += 1
            self._news.notify_all()
            try:
                return self._wait_for(lambda: self._is_flushed(wanted), until_s) and self._is_sent()
            finally:
                self._flushing -= 1

    def close(self, timeout_s: float) -> None:
        """Send what can be sent in this time, keep the rest on disk, and end the threads."""
        until_s = time.monotonic() + timeout_s
        patience_s = timeout_s * 0.75  # the rest of the time is for writing
        with self._lock:
            if self._is_closed:
                return
            self._flushing += 1
            self._news.notify_all()
            self._queue_last_words()
            if self._threads:
                self._is_closing = True
                patient_s = until_s - timeout_s + patience_s
                self._wait_for(self._is_at_rest, patient_s)
                # What dead processes left is worth a moment too: programs may all be short.
                self._wait_for(self._is_replayed, min(patient_s, time.monotonic() + _REPLAY_S))
            self._is_closed = True
            self._news.notify_all()
        self._keep_the_rest(until_s)
        self._replay.leave()
        self._backlog.leave()
        self._courier.close()
        if self._cargo is not None:
            self._cargo.close()

    def forget(self) -> None:
        """In the child of a fork: leave everything to the parent, and touch no lock of its."""
        self._backlog.forget()

    # ---- the sender's thread

    def _send_loop(self) -> None:
        # Instrumented HTTP libraries must not make spans of the sending of spans.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while (step := self._next(self._choose_sending)) is not None:
            try:
                step()
            except Exception as error:  # whatever it was, the thread goes on
                warn_once("internal", "sending failed, and is tried again: %r", error)
                _log.debug("sending failed", exc_info=True)
                self._failed(Answer(Outcome.LATER, "an error of the SDK"))

    def _next(self, choose: Callable[[float], tuple[_Step | None, float | None]]) -> _Step | None:
        """Wait until there is something to do and return it; None at the end."""
        with self._lock:
            while not self._is_closed:
                now_s = time.monotonic()
                step, wake_s = choose(now_s)
                if step is not None:
                    return step
                self._news.wait(None if wake_s is None else max(wake_s - now_s, 0.005))
        return None

    def _choose_sending(self, now_s: float) -> tuple[_Step | None, float | None]:
        if self._contact.is_ill and now_s < self._contact.retry_s:
            return None, self._contact.retry_s
        due_s = self._waiting.due_s(self._delay_s)
        # Spans that wait in memory have nowhere else to be; payloads are on disk.
        is_late = due_s is not None and due_s + _STALL_S <= now_s and not self._is_keeping
        if self._cargo is not None and self._cargo.waiting and not is_late:
            return partial(self._send_cargo, self._cargo), None
        if (file := self._backlog.first()) is not None:
            return partial(self._send_file, file), None
        if due_s is not None and not self._is_keeping and (self._flushing or due_s <= now_s):
            batch = self._waiting.take()
            assert batch is not None  # something is due
            self._flight = _Flight(batch, now_s)
            self._news.notify_all()
            return partial(self._send_flight, self._flight), None
        tell_s = self._tell_s if self._backlog.untold() else None
        if tell_s is not None and (self._flushing or tell_s <= now_s):
            return self._send_losses, None
        open_s = None if self._contact.is_ill else self.open_spans.next_due_s()
        open_s = None if open_s is None else max(open_s, self._ask_s)
        if open_s is not None and open_s <= now_s:
            return self._send_open, None
        if self._replay.due_s <= now_s and (self._is_closing or not self._flushing):
            return self._send_leftover, None
        times = [one for one in (due_s, tell_s, open_s, self._replay.due_s) if one is not None]
        return None, min(times)

    def _send_flight(self, flight: _Flight) -> None:
        batch = flight.batch
        batch.items = self._prepare(batch.kind, batch.items)
        with self._lock:
            flight.is_ready = True
            self._news.notify_all()
        delivered = self._courier.deliver(batch.kind, batch.items)
        answer = delivered.answer
        is_done = not may_do_later(answer, batch.kind)
        if not is_done:
            self._failed(answer)
            self._keep_flight(flight)
        elif answer.outcome is Outcome.NOT_RECEIVED:
            self._not_received(batch)
        else:
            self._disk.refuse(answer, batch.kind, delivered.refused)
            self._arrived()
        self._land(flight, is_done=is_done)

    def _land(self, flight: _Flight, *, is_done: bool) -> None:
        """The attempt is over: the batch arrived, or is on disk, or goes back to memory."""
        with self._lock:
            if self._flight is flight:
                self._flight = None
            if is_done and flight.file is not None:
                self._backlog.arrived(flight.file)
            if is_done or flight.file is not None:
                self._settled += len(flight.batch.items)
            elif not self._is_closed:
                self._waiting.put_back(flight.batch)
            self._news.notify_all()

    def _send_cargo(self, cargo: Cargo) -> None:
        with self._lock:
            self._cargo_since_s = time.monotonic()
            self._news.notify_all()
        try:
            answer = cargo.send_next(self._courier, self._resource)
        finally:
            with self._lock:
                self._cargo_since_s = None
                self._news.notify_all()
        self._after(answer, Kind.LOGS)

    def _send_file(self, file: SpoolFile) -> None:
        answer = forward(self._courier, self._backlog, file)
        self._backlog.release()
        self._after(answer, file.kind)

    def _after(self, answer: Answer, kind: Kind) -> None:
        """Note how the collector is, by its answer."""
        if may_do_later(answer, kind):
            self._failed(answer)
        else:
            self._arrived()

    def _send_losses(self) -> None:
        losses = self._backlog.untold()
        answer = self._courier.deliver(Kind.LOGS, loss_records(losses)).answer
        self._tell_s = time.monotonic() + _TELL_S
        self._after(answer, Kind.LOGS)
        if not may_do_later(answer, Kind.LOGS):
            self._backlog.tell(losses)  # nobody takes them there: then nobody can be told

    def _send_open(self) -> None:
        if not self._contact.is_known:
            self._after(self._courier.deliver(Kind.TRACES, ()).answer, Kind.TRACES)
            return
        if not self._courier.is_hansard():
            self._ask_s = time.monotonic() + _ASK_S
            self._courier.lost_touch()
            return
        spans = self.open_spans.take_due()
        if spans:
            prepared = self._prepare(Kind.OPENS, spans)
            answer = self._courier.deliver(Kind.OPENS, prepared).answer
            self._after(answer, Kind.TRACES)
            if self._contact.is_ill:
                self.open_spans.untell(spans)
                return
        pulses = self.open_spans.take_pulse(at_once=bool(spans))
        if pulses:
            records = pulse_records(self._resource, pulses)
            self._after(self._courier.deliver(Kind.LOGS, records).answer, Kind.LOGS)

    def _send_leftover(self) -> None:
        """Send one file of a dead process, or tell what it lost, or look for the next one."""
        if self._cargo is not None:
            self._cargo.look()
        sent = self._replay.step(self._courier)
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

    def _failed(self, answer: Answer) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._contact.failed(answer)
            self._courier.lost_touch()
            self._news.notify_all()
        self._contact.complain(answer.reason)

    def _not_received(self, batch: Batch) -> None:
        lost = [one for one in batch.items if not _is_own_news(one)]
        self._backlog.lose(batch.kind.signal, Reason.NOT_RECEIVED, len(lost))
        self._arrived()

    # ---- the keeper's thread

    def _keep_loop(self) -> None:
        while (step := self._next(self._choose_keeping)) is not None:
            try:
                step()
            except Exception as error:  # as in the sender's thread
                warn_once("internal", "keeping spans failed, and is tried again: %r", error)
                _log.debug("keeping failed", exc_info=True)
                with self._lock:
                    self._is_keeping = False
                    self._disk.retry_s = time.monotonic() + _RETRY_S

    def _choose_keeping(self, now_s: float) -> tuple[_Step | None, float | None]:
        flight = self._flight
        times: list[float] = []
        if now_s < self._disk.retry_s:
            return None, self._disk.retry_s
        if flight is not None and flight.is_ready and flight.file is None:
            if flight.since_s + _STALL_S <= now_s:
                return partial(self._keep_flight, flight), None
            times.append(flight.since_s + _STALL_S)
        is_stalled = flight is not None and flight.file is not None
        if self._cargo_since_s is not None:
            stalls_s = self._cargo_since_s + _STALL_S
            is_stalled = is_stalled or stalls_s <= now_s
            times.append(stalls_s)
        if self._contact.is_ill or is_stalled or len(self._backlog):
            due_s = self._waiting.due_s(self._delay_s)
            if due_s is not None and (self._flushing or due_s <= now_s):
                self._is_keeping = True
                return self._keep_batch, None
            open_s = self.open_spans.next_due_s() if self._contact.is_ill else None
            if open_s is not None and open_s <= now_s:
                return self._keep_open, None
            times += [one for one in (due_s, open_s) if one is not None]
        return None, min(times, default=None)

    def _keep_flight(self, flight: _Flight) -> None:
        """Have the batch under way on disk, before anything that came after it."""
        with self._writing:
            with self._lock:
                if flight.file is not None or self._flight is not flight or self._is_closed:
                    return
            file = self._disk.write(flight.batch.kind, flight.batch.items)
            with self._lock:
                flight.file = file
                self._news.notify_all()

    def _keep_batch(self) -> None:
        with self._writing:
            with self._lock:
                batch = None if self._is_closed else self._waiting.take()
            if batch is not None:
                batch.items = self._prepare(batch.kind, batch.items)
                file = self._disk.write(batch.kind, batch.items)
                with self._lock:
                    if file is None and not self._is_closed:
                        self._waiting.put_back(batch)
                    elif file is None:
                        self._backlog.lose(
                            batch.kind.signal, Reason.SPOOL_UNWRITABLE, len(batch.items)
                        )
                    else:
                        self._settled += len(batch.items)
        with self._lock:
            self._is_keeping = False
            self._news.notify_all()

    def _keep_open(self) -> None:
        """Keep start records too: a process that is killed now has no other trace of them."""
        with self._writing:
            spans = self.open_spans.take_due()
            if spans and self._disk.write(Kind.OPENS, self._prepare(Kind.OPENS, spans)) is None:
                self.open_spans.untell(spans)
            self.open_spans.take_pulse()  # nobody hears it now; the next one is due later

    # ---- the end

    def _queue_last_words(self) -> None:
        """Say that spans that are open now will not end; only where that is understood."""
        words = self.open_spans.last_words()
        if words and self._contact.is_known and not self._contact.is_ill:
            for record in pulse_records(self._resource, words):
                self.put(Kind.LOGS, record, 1024)

    def _keep_the_rest(self, until_s: float) -> None:
        """Write to disk what was not sent, as long as there is time for it."""
        with self._writing:
            with self._lock:
                flight = self._flight
                rest: list[Batch] = []
                if flight is not None and flight.file is None:
                    rest.append(flight.batch)
                while (batch := self._waiting.take()) is not None:
                    rest.append(batch)
            if rest or (flight is not None and flight.file is not None):
                self._contact.complain("it did not take everything before the program ended")
            for batch in rest:
                items = [one for one in batch.items if not _is_own_news(one)]
                if time.monotonic() > until_s:
                    self._backlog.lose(batch.kind.signal, Reason.ENDED, len(items))
                elif items:
                    items = list(self._prepare(batch.kind, items))
                    if self._disk.write(batch.kind, items) is None:
                        self._backlog.lose(batch.kind.signal, Reason.SPOOL_UNWRITABLE, len(items))

    # ---- waiting, under the lock

    def _wait_for(self, is_so: Callable[[], bool], until_s: float) -> bool:
        while not is_so():
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._news.wait(left_s)
        return True

    def _is_flushed(self, wanted: int) -> bool:
        return self._settled >= wanted and (self._contact.is_ill or not self._is_left())

    def _is_sent(self) -> bool:
        return not self._contact.is_ill and not self._is_left()

    def _is_left(self) -> bool:
        """Something waits on disk."""
        return bool(len(self._backlog) or (self._cargo is not None and self._cargo.waiting))

    def _is_replayed(self) -> bool:
        return self._contact.is_ill or self._replay.due_s > time.monotonic()

    def _is_at_rest(self) -> bool:
        """Nothing is to be sent any more, or nothing can be."""
        if self._contact.is_ill:
            return True
        is_empty = not len(self._waiting) and self._flight is None and not self._is_left()
        return is_empty and not self._is_keeping and not self._backlog.untold()


def _is_own_news(item: Any) -> bool:
    """Say whether an item is of no use later: a pulse, which nobody misses."""
    record = getattr(item, "log_record", None)
    return record is not None and record.event_name == "hansard.pulse"
