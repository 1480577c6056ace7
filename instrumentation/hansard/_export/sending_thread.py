"""The thread that takes to the collector what waits, in memory and on disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # what the SDK's own processors use: there is no public name
    attach,
    set_value,
)

from hansard._export.delivery_parts import Cargo
from hansard._export.dropped import Reason
from hansard._export.otlp.batches import Courier
from hansard._export.otlp.log_records import loss_records, pulse_records
from hansard._export.otlp.results import Answer, Outcome
from hansard._export.queue import Batch
from hansard._export.spool.files import Kind, SpoolFile
from hansard._export.spool.forwarder import forward
from hansard._export.spool.orphaned_spools import may_do_later
from hansard._export.spooling_thread import is_own_news
from hansard._export.worker_state import STALL_S, Flight, Step, Transit
from hansard._runtime.warnings import warn_once

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

_TELL_S: Final = 5.0  # how often a growing loss is told
_ASK_S: Final = 60.0  # how long a collector is believed not to be Hansard
_log = logging.getLogger("hansard")


class SendingLoop:
    """Owns the way to the collector."""

    def __init__(self, transit: Transit, courier: Courier, resource: Resource) -> None:
        self._at = transit
        self._courier = courier
        self._resource = resource
        self._tell_s = self._ask_s = 0.0

    def run(self) -> None:
        # Instrumented HTTP libraries must not make spans of the sending of spans.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        while (step := self._at.next(self._choose)) is not None:
            try:
                with self._under_way():
                    step()
            except Exception as error:  # whatever it was, the thread goes on
                warn_once("internal", "sending failed, and is tried again: %r", error)
                _log.debug("sending failed", exc_info=True)
                self._failed(Answer(Outcome.LATER, "an error of the SDK"))

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Let the keeper know since when: what hangs must not hold spans in memory."""
        with self._at.lock:
            self._at.attempt_since_s = time.monotonic()
            self._at.news.notify_all()
        try:
            yield
        finally:
            with self._at.lock:
                self._at.attempt_since_s = None

    def _choose(self, now_s: float) -> tuple[Step | None, float | None]:
        if self._at.contact.is_ill and now_s < self._at.contact.retry_s:
            return None, self._at.contact.retry_s
        due_s = self._at.waiting.due_s(self._at.delay_s)
        open_s = None if self._at.contact.is_ill else self._at.open_spans.next_due_s()
        open_s = None if open_s is None else max(open_s, self._ask_s)
        cargo = self._at.cargo
        cargo_s = None if cargo is None else cargo.due_s(self._at.delay_s)
        if cargo is not None and cargo_s is not None:
            # Spans that go now may name what waits there: it goes before them.
            first_s = min(one for one in (cargo_s, due_s, open_s) if one is not None)
            is_due = first_s <= now_s or self._at.flushing or len(self._at.backlog)
            # Spans that wait in memory have nowhere else to be; payloads are on disk.
            is_late = due_s is not None and due_s + STALL_S <= now_s and not self._at.is_keeping
            if is_due and not is_late:
                return partial(self._send_cargo, cargo), None
        if (file := self._at.backlog.first()) is not None:
            return partial(self._send_file, file), None
        if due_s is not None and not self._at.is_keeping and (self._at.flushing or due_s <= now_s):
            batch = self._at.waiting.take()
            assert batch is not None  # something is due
            self._at.flight = Flight(batch)
            return partial(self._send_flight, self._at.flight), None
        tell_s = self._tell_s if self._at.backlog.untold() else None
        if tell_s is not None and (self._at.flushing or tell_s <= now_s):
            return self._send_losses, None
        if open_s is not None and open_s <= now_s:
            return self._send_open, None
        if self._at.replay.due_s <= now_s and (self._at.is_closing or not self._at.flushing):
            return self._send_leftover, None
        times = (due_s, cargo_s, tell_s, open_s, self._at.replay.due_s)
        return None, min(one for one in times if one is not None)

    def _send_flight(self, flight: Flight) -> None:
        batch = flight.batch
        batch.items = self._at.ready(batch.kind, batch.items)
        with self._at.lock:
            flight.is_ready = True
            self._at.news.notify_all()
        delivered = self._courier.deliver(batch.kind, batch.items)
        answer = delivered.answer
        is_done = not may_do_later(answer, batch.kind)
        if not is_done:
            self._failed(answer)
            self._at.keep_flight(flight)
        elif answer.outcome is Outcome.NOT_RECEIVED:
            self._not_received(batch)
        else:
            self._at.disk.refuse(answer, batch.kind, delivered.refused)
            self._arrived()
        self._land(flight, is_done=is_done)

    def _land(self, flight: Flight, *, is_done: bool) -> None:
        """The attempt is over: the batch arrived, or is on disk, or goes back to memory."""
        with self._at.lock:
            if self._at.flight is flight:
                self._at.flight = None
            if is_done and flight.file is not None:
                self._at.backlog.arrived(flight.file)
            if is_done or flight.file is not None:
                self._at.settled += flight.batch.taken
            elif not self._at.is_closed:
                self._at.waiting.put_back(flight.batch)
            self._at.news.notify_all()

    def _send_cargo(self, cargo: Cargo) -> None:
        self._after(cargo.send_next(self._courier, self._resource), Kind.LOGS)
        with self._at.lock:
            self._at.news.notify_all()

    def _send_file(self, file: SpoolFile) -> None:
        answer = forward(self._courier, self._at.backlog, file)
        self._at.backlog.release()
        self._after(answer, file.kind)

    def _after(self, answer: Answer, kind: Kind) -> None:
        """Note how the collector is, by its answer."""
        if may_do_later(answer, kind):
            self._failed(answer)
        else:
            self._arrived()

    def _send_losses(self) -> None:
        losses = self._at.backlog.untold()
        answer = self._courier.deliver(Kind.LOGS, loss_records(losses)).answer
        self._tell_s = time.monotonic() + _TELL_S
        self._after(answer, Kind.LOGS)
        if not may_do_later(answer, Kind.LOGS):
            self._at.backlog.tell(losses)  # nobody takes them there: then nobody can be told

    def _send_open(self) -> None:
        if not self._at.contact.is_known:
            self._after(self._courier.deliver(Kind.TRACES, ()).answer, Kind.TRACES)
            return
        if not self._courier.is_hansard():
            self._ask_s = time.monotonic() + _ASK_S
            self._courier.lost_touch()
            return
        spans = self._at.open_spans.take_due()
        if spans:
            prepared = self._at.ready(Kind.OPENS, spans)
            answer = self._courier.deliver(Kind.OPENS, prepared).answer
            self._after(answer, Kind.TRACES)
            if self._at.contact.is_ill:
                self._at.open_spans.untell(spans)
                return
        pulses = self._at.open_spans.take_pulse(at_once=bool(spans))
        if pulses:
            records = pulse_records(self._resource, pulses)
            self._after(self._courier.deliver(Kind.LOGS, records).answer, Kind.LOGS)

    def _send_leftover(self) -> None:
        """Send one file of a dead process, or tell what it lost, or look for the next one."""
        cargo = self._at.cargo
        if cargo is not None:
            cargo.look()
        sent = self._at.replay.step(self._courier)
        if sent is not None:
            self._after(*sent)
        with self._at.lock:
            if self._at.cargo is not cargo:
                self._at.replay.due_s = 0.0  # came meanwhile, and has not looked yet
            self._at.news.notify_all()

    def _arrived(self) -> None:
        with self._at.lock:
            is_news = self._at.contact.arrived()
            self._ask_s = 0.0 if is_news else self._ask_s
            self._at.news.notify_all()
        if is_news:
            self._at.contact.rejoice()

    def _failed(self, answer: Answer) -> None:
        with self._at.lock:
            if self._at.is_closed:
                return
            self._at.contact.failed(answer)
            self._courier.lost_touch()
            self._at.news.notify_all()
        self._at.contact.complain(answer.reason)

    def _not_received(self, batch: Batch) -> None:
        lost = [one for one in batch.items if not is_own_news(one)]
        self._at.backlog.lose(batch.kind.signal, Reason.NOT_RECEIVED, len(lost))
        self._arrived()
