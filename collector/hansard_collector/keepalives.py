"""What a process reports of itself, that it is alive and what it dropped; and silent runs.

Both come as log records, so they pass any collector in between: `hansard.keepalive` and
`hansard.dropped`. They are not stored as logs.
"""

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
from hansard_compiler.renamed import current_attributes, current_event
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.ingest.liveness import silent_runs, touch_runs
from hansard_store.ledger import DropCount

BAD_KEEPALIVE: Final = (
    f"a keepalive without {semconv.KEEPALIVE_TRACES} and {semconv.KEEPALIVE_INTERVAL_MS}"
)
BAD_DROPPED: Final = "a count of dropped items without its signal, its reason and its count"
_MISSED: Final = 3  # keepalives that may be missing before their process counts as gone
_GRACE_NS: Final = 5_000_000_000
_LONGEST_MS: Final = 300_000
_MOST_TRACES: Final = 1000
_MOST_CHARS: Final = 100
_MOST_ITEMS: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class PreparedKeepalive:
    """A keepalive; its resource is the process."""

    envelope: Envelope
    traces: tuple[bytes, ...]
    alive_until_ns: int


@dataclass(frozen=True, slots=True)
class PreparedDrops:
    """A count of what was dropped."""

    envelope: Envelope
    count: DropCount
    received_ns: int


def read_report(
    record: LogRecord, envelope: Envelope, *, received_ns: int
) -> PreparedKeepalive | PreparedDrops | str | None:
    """Return what a record reports of its process; None for any other, a sentence for a bad one."""
    event = current_event(record.event_name)
    if event == semconv.EVENT_KEEPALIVE:
        keepalive = _keepalive(_attributes(record), received_ns=received_ns)
        return BAD_KEEPALIVE if keepalive is None else PreparedKeepalive(envelope, *keepalive)
    if event == semconv.EVENT_DROPPED:
        count = _drops(_attributes(record), envelope)
        return BAD_DROPPED if count is None else PreparedDrops(envelope, count, received_ns)
    return None


def _attributes(record: LogRecord) -> Mapping[str, Any]:
    return current_attributes(attributes_dict(record.attributes))


def _keepalive(
    found: Mapping[str, Any], *, received_ns: int
) -> tuple[tuple[bytes, ...], int] | None:
    traces, interval_ms = (
        found.get(semconv.KEEPALIVE_TRACES),
        found.get(semconv.KEEPALIVE_INTERVAL_MS),
    )
    if not isinstance(traces, list | tuple) or type(interval_ms) is not int or interval_ms <= 0:
        return None
    if found.get(semconv.KEEPALIVE_LAST) is True:
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


def _drops(found: Mapping[str, Any], envelope: Envelope) -> DropCount | None:
    signal, reason = found.get(semconv.DROPPED_SIGNAL), found.get(semconv.DROPPED_REASON)
    items = found.get(semconv.DROPPED_ITEMS)
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


# Watching for runs whose process ended: only time changes what they are.
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
            put_off="runs without a keepalive are marked later",
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
            report_silence(connection, since_ns=self._since_ns, now_ns=now_ns)
        self._since_ns = now_ns


def report_silence(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> int:
    """Have runs looked at again that fell silent in this time; return how many they are."""
    silent = silent_runs(connection, since_ns=since_ns, now_ns=now_ns)
    if silent:
        with transaction(connection):
            touch_runs(connection, silent)
    return len(silent)
