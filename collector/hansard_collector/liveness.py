"""What a process says of itself: that it lives, and what it lost; and runs that fell silent.

Both come as log records, so they pass any collector in between: `hansard.pulse` and
`hansard.loss`. They are not stored as logs."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import apsw
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard import semconv
from hansard_collector.background import Background
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.pipeline.preparation import Envelope
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.ingest.liveness import silent_runs, touch_runs
from hansard_store.ledger.sender_drops import DropCount

BAD_PULSE: Final = f"a pulse without {semconv.PULSE_TRACES} and {semconv.PULSE_INTERVAL_MS}"
BAD_LOSS: Final = "a loss without its signal, its reason and its count"
_MISSED: Final = 3  # pulses that may fail to come before their process is held to be gone
_GRACE_NS: Final = 5_000_000_000
_LONGEST_MS: Final = 300_000
_MOST_TRACES: Final = 1000
_MOST_CHARS: Final = 100
_MOST_ITEMS: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class PreparedKeepalive:
    """A pulse; its resource is the process."""

    envelope: Envelope
    traces: tuple[bytes, ...]
    alive_until_ns: int


@dataclass(frozen=True, slots=True)
class PreparedDrops:
    """A count of what never came."""

    envelope: Envelope
    count: DropCount
    received_ns: int


def read_presence(
    record: LogRecord, envelope: Envelope, *, received_ns: int
) -> PreparedKeepalive | PreparedDrops | str | None:
    """Return what a record says of its process; None for any other, a sentence for a bad one."""
    if record.event_name == semconv.EVENT_PULSE:
        pulse = _pulse(attributes_dict(record.attributes), received_ns=received_ns)
        return BAD_PULSE if pulse is None else PreparedKeepalive(envelope, *pulse)
    if record.event_name == semconv.EVENT_LOSS:
        loss = _loss(attributes_dict(record.attributes), envelope)
        return BAD_LOSS if loss is None else PreparedDrops(envelope, loss, received_ns)
    return None


def _pulse(told: Mapping[str, Any], *, received_ns: int) -> tuple[tuple[bytes, ...], int] | None:
    traces, interval_ms = told.get(semconv.PULSE_TRACES), told.get(semconv.PULSE_INTERVAL_MS)
    if not isinstance(traces, list | tuple) or type(interval_ms) is not int or interval_ms <= 0:
        return None
    if told.get(semconv.PULSE_LAST) is True:
        until_ns = received_ns - 1
    else:
        wait_ns = _MISSED * min(interval_ms, _LONGEST_MS) * 1_000_000
        until_ns = received_ns + wait_ns + min(_GRACE_NS, wait_ns)
    return tuple(_trace_ids(traces[:_MOST_TRACES])), until_ns


def _trace_ids(texts: Iterable[Any]) -> Iterable[bytes]:
    for text in texts:
        try:
            trace_id = bytes.fromhex(text)
        except (TypeError, ValueError):
            continue
        if len(trace_id) == 16:
            yield trace_id


def _loss(told: Mapping[str, Any], envelope: Envelope) -> DropCount | None:
    signal, reason = told.get(semconv.LOSS_SIGNAL), told.get(semconv.LOSS_REASON)
    items = told.get(semconv.LOSS_ITEMS)
    if not isinstance(signal, str) or not isinstance(reason, str) or type(items) is not int:
        return None
    if not 0 < items <= _MOST_ITEMS:
        return None
    instance = envelope.resource.get(semconv.SERVICE_INSTANCE_ID)
    return DropCount(
        service=(envelope.service_name or "")[:_MOST_CHARS],
        instance=str(instance or "")[:_MOST_CHARS],
        signal=signal[:_MOST_CHARS],
        reason=reason[:_MOST_CHARS],
        items=items,
    )


# Watching for runs that nobody is alive for any more: only time changes what they are.
#
# Pages follow changes of the store. A process that was killed makes none, so this makes one for it.


_EVERY_S = 2.0
_log = logging.getLogger("hansard.silence")


class SilenceWatch:
    """Looks every two seconds, in a thread of its own; writes only when a run fell silent."""

    def __init__(self, folder: DataFolder, *, every_s: float = _EVERY_S) -> None:
        self._folder = folder
        self._since_ns = 0
        self._background = Background(
            "hansard-silence",
            self._look,
            every_s=every_s,
            log=_log,
            put_off="runs without a pulse are marked later",
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Watch for as long as the block lasts, for what falls silent in it."""
        self._since_ns = time.time_ns()
        with self._background.working():
            yield

    def _look(self, _: threading.Event) -> None:
        now_ns = time.time_ns()
        with contextlib.closing(open_for_maintenance(self._folder)) as connection:
            tell_silence(connection, since_ns=self._since_ns, now_ns=now_ns)
        self._since_ns = now_ns


def tell_silence(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> int:
    """Have runs looked at again that fell silent in this time; return how many they are."""
    silent = silent_runs(connection, since_ns=since_ns, now_ns=now_ns)
    if silent:
        with transaction(connection):
            touch_runs(connection, silent)
    return len(silent)
