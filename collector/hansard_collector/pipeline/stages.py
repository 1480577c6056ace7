"""The stages of ingest: what is done with a request between the queue and the transaction.

`STAGES` lists them in their order, each with the thread that runs it. The last three work item by
item, when the next item is wanted: a request may hold 100,000 of them, and others take turns with
it (`group_commit.py`). What they make is written by `writing.py`.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from hansard_collector.keepalives import PreparedDrops, PreparedKeepalive, read_report
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.payloads import PayloadStage, SentPayload
from hansard_collector.pipeline.decoding import decode_request
from hansard_collector.pipeline.preparation import (
    Envelope,
    PreparedItem,
    PreparedLog,
    PreparedPoint,
    PreparedSpan,
    Preparer,
    prepare_point,
    single_points,
)
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import IngestRequest, Signal
from hansard_collector.pipeline.validation import (
    MOST_NAME_BYTES,
    ItemLimits,
    over_limits,
    refuse_span,
)
from hansard_store.content.payloads import PreparedPayload
from hansard_store.ingest.redactions import RemovedSecret
from hansard_store.search.attributes import resource_tokens_of

Prepared = (
    PreparedSpan | PreparedLog | PreparedPoint | PreparedPayload | PreparedKeepalive | PreparedDrops
)

_MAX_MESSAGE_CHARS = 1000
_HEAVY_BYTES = 256 * 1024  # an item that takes longer to prepare than others should wait
_HEAVY_COUNT = 512  # attributes, events and links, which take longer than their bytes
_COUNTED = ("attributes", "events", "links")
_log = logging.getLogger("hansard.pipeline")
_T = TypeVar("_T")


class BatchMark(Enum):
    """What replaces an item among those of a batch."""

    HEAVY = "the next item takes long"


@dataclass(frozen=True, slots=True)
class Worker:
    """What a thread runs the stages with; the policy and the preparer are its own."""

    retention: RetentionPolicy
    preparer: Preparer
    payloads: PayloadStage
    helpers: Executor
    marks_heavy: bool = False  # a mark stands before each item that takes long


@dataclass(slots=True)
class Batch:
    """A request on its way through the stages: its items, and why some of them are rejected.

    Used by one thread at a time, whose worker it has. Where iterators have None for an item, time
    passed without one, and others may be waiting.
    """

    request: IngestRequest  # without its body, once that is decoded
    worker: Worker
    stages_run: int = 0
    message: Any = None  # an ExportRequest, from `decode` to `split`
    payloads: Sequence[SentPayload] = ()
    is_clean: Future[bool] = field(default_factory=Future)
    macs: Sequence[bytes] = ()  # of the items as received, where secrets are removed from them
    removed: Mapping[int, Sequence[RemovedSecret]] = field(default_factory=dict)  # by item
    items: Iterator[PreparedItem | BatchMark | None] = field(default_factory=lambda: iter(()))
    prepared: Iterator[Prepared | BatchMark | None] = field(default_factory=lambda: iter(()))
    ordinals: Counter[bytes] = field(default_factory=Counter)  # mac -> items that had it
    reasons: Counter[str] = field(default_factory=Counter)  # why items are rejected -> how many
    warnings: list[str] = field(default_factory=list)
    services: Counter[str] = field(default_factory=Counter)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values())

    @property
    def limits(self) -> ItemLimits:
        return self.worker.preparer.limits

    def next_ordinal(self, mac: bytes) -> int:
        """Return how many items of the request had this mac before."""
        ordinal = self.ordinals[mac]
        self.ordinals[mac] += 1
        return ordinal

    def rejection(self) -> str:
        """Return the sentences for the sender, short enough for a response."""
        listed = [f"{count} rejected: {reason}" for reason, count in self.reasons.most_common(5)]
        return "; ".join([*listed, *self.warnings[:5]])[:_MAX_MESSAGE_CHARS]


# ------------------------------------------------------------------------------ the whole request
def decode(batch: Batch) -> Batch:
    """Parse the body, and let go of it: it is as large as the message.

    Raises MalformedRequest, or RequestTooLarge where it would take too much memory.
    """
    decoded = decode_request(batch.request)
    batch.message, batch.warnings = decoded.message, list(decoded.warnings)
    batch.request = replace(batch.request, body=b"")
    return batch


def extract_payloads(batch: Batch) -> Batch:
    """Take the payloads out of log records: redaction would change what their digests are of."""
    if batch.request.signal is Signal.LOGS:
        batch.payloads = batch.worker.payloads.take_out(batch.message)
    return batch


def scan(batch: Batch) -> Batch:
    """Begin to look for secrets. It takes as long as all other stages, without Python's lock."""
    batch.is_clean = batch.worker.retention.begin_scan(batch.message, batch.worker.helpers)
    return batch


def redact(batch: Batch) -> Batch:
    """Wait for the scan, and remove secrets and what the retention mode withholds.

    Items are identified before (`macs`), so that a span that is sent again is known, although its
    secrets were replaced by markers.
    """
    if not batch.is_clean.result():
        batch.macs = _identify(batch)
        batch.removed = batch.worker.retention.apply(batch.request.signal, batch.message)
    return batch


# ---------------------------------------------------------------------------------- item by item
def split(batch: Batch) -> Batch:
    """Have the items with the resource and scope that they are under."""
    message, batch.message = batch.message, None  # let go with its last item
    batch.items = _split(batch, message)
    return batch


def validate(batch: Batch) -> Batch:
    """Reject items with invalid ids or over a limit, and identify the others."""
    batch.items = _each(batch, batch.items, _validate)
    return batch


def prepare(batch: Batch) -> Batch:
    """Make what is to be written: first of payloads, then of the other items."""
    sent, batch.payloads = batch.payloads, ()
    items, batch.items = batch.items, iter(())
    payloads = batch.worker.payloads.prepared(
        sent, batch.reasons, received_ns=batch.request.received_ns
    )
    batch.prepared = chain(payloads, _each(batch, items, _PREPARE[batch.request.signal]))
    return batch


class Thread(StrEnum):
    """Which thread runs a stage."""

    PIPELINE = "hansard-pipeline"  # of a large request a helper, which has its own worker
    HELPER = "hansard-ingest"  # of a request of some size, while others are decoded


class _Stage(NamedTuple):
    run: Callable[[Batch], Batch]
    thread: Thread


STAGES: Final = (
    _Stage(decode, Thread.PIPELINE),
    _Stage(extract_payloads, Thread.PIPELINE),
    _Stage(scan, Thread.HELPER),
    _Stage(redact, Thread.PIPELINE),
    _Stage(split, Thread.PIPELINE),
    _Stage(validate, Thread.PIPELINE),
    _Stage(prepare, Thread.PIPELINE),
)
_OPENING: Final = 1 + [stage.thread for stage in STAGES].index(Thread.HELPER)


def open_batch(batch: Batch) -> Batch:
    """Run the stages up to the one of a helper: meanwhile the next batch can be opened."""
    return run_stages(batch, until=_OPENING)


def run_stages(batch: Batch, *, until: int = len(STAGES)) -> Batch:
    """Run the stages that have not run yet."""
    for stage in STAGES[batch.stages_run : until]:
        batch = stage.run(batch)
        batch.stages_run += 1
    return batch


# ---------------------------------------------------------------------- what the stages consist of
def _each(
    batch: Batch,
    items: Iterator[PreparedItem | BatchMark | None],
    run: Callable[[Batch, PreparedItem], Iterable[_T | BatchMark | None]],
) -> Iterator[_T | BatchMark | None]:
    """Yield what a stage makes of each item, and None where it makes nothing."""
    for item in items:
        if not isinstance(item, PreparedItem):
            yield item
            continue
        try:
            yield from run(batch, item)
        except Exception as error:  # a stage must not end the thread: this item is rejected
            _log.exception("an item could not be prepared and is refused")
            batch.reasons[f"internal error ({type(error).__name__})"] += 1


def _identify(batch: Batch) -> list[bytes]:
    """Return the mac of every item, in order, as received; items over a limit are taken out."""
    outer, inner, leaf = CONTRACTS[batch.request.signal].levels
    found = []
    for resource_level in getattr(batch.message, outer):
        for scope_level in getattr(resource_level, inner):
            items = getattr(scope_level, leaf)
            if reason := _why_over(resource_level, scope_level, batch.limits):
                batch.reasons[reason] += len(items)
                del items[:]
                continue
            context = _context(batch, resource_level, scope_level)
            dropped = []
            for index, item in enumerate(items):
                raw = item.SerializeToString()
                if _is_over(batch, item, size_bytes=len(raw)):
                    dropped.append(index)
                else:
                    found.append(batch.worker.preparer.mac(context, raw))
            for index in reversed(dropped):
                del items[index]
    return found


def _split(batch: Batch, message: Any) -> Iterator[PreparedItem | None]:
    """Yield every item, and None for each resource and scope."""
    outer, inner, leaf = CONTRACTS[batch.request.signal].levels
    limits, received_ns = batch.limits, batch.request.received_ns
    macs, removed = batch.macs, batch.removed
    number = 0
    for resource_level in getattr(message, outer):
        yield None
        scope_levels = getattr(resource_level, inner)
        if not any(getattr(scope_level, leaf) for scope_level in scope_levels):
            continue
        resource_record = ResourceSpans(schema_url=resource_level.schema_url)
        if resource_level.HasField("resource"):
            resource_record.resource.CopyFrom(resource_level.resource)
        is_over = _why_holder_over(resource_level.resource, limits, "a resource") is not None
        resource = {} if is_over else attributes_dict(resource_level.resource.attributes)
        tokens = resource_tokens_of(resource)
        for scope_level in scope_levels:
            yield None
            scope, items = scope_level.scope, getattr(scope_level, leaf)
            if reason := _why_over(resource_level, scope_level, limits):
                batch.reasons[reason] += len(items)
                number += len(items)
                continue
            scope_record = ScopeSpans(schema_url=scope_level.schema_url)
            if scope_level.HasField("scope"):
                scope_record.scope.CopyFrom(scope)
            envelope = Envelope(
                resource_record,
                scope_record,
                resource,
                resource_tokens=tokens,
                scope_name=scope.name,
                scope_version=scope.version,
                context=_context(batch, resource_level, scope_level),
            )
            batch.services[envelope.service_name or ""] += len(items)
            for item in items:
                mac = macs[number] if macs else b""
                yield PreparedItem(item, envelope, received_ns, mac, removed.get(number, ()))
                number += 1


def _validate(batch: Batch, item: PreparedItem) -> Sequence[PreparedItem | BatchMark | None]:
    size_bytes = 0
    if not item.mac:
        raw = item.message.SerializeToString()
        size_bytes = len(raw)
        if _is_over(batch, item.message, size_bytes=size_bytes):
            return (None,)
        mac = batch.worker.preparer.mac(item.envelope.context, raw)
        item = PreparedItem(item.message, item.envelope, item.received_ns, mac, item.removed)
    if batch.request.signal is Signal.TRACES and (reason := refuse_span(item.message)):
        batch.reasons[reason] += 1
        return (None,)
    if batch.worker.marks_heavy and _is_heavy(item.message, size_bytes=size_bytes):
        return (BatchMark.HEAVY, item)
    return (item,)


def _context(batch: Batch, resource_level: Any, scope_level: Any) -> bytes:
    """Return what identifies an item beside its own bytes.

    A span has ids, so its own bytes suffice; a log record or metric is the same one only under
    the same resource and scope.
    """
    if batch.request.signal is Signal.TRACES:
        return b""
    resource = resource_level.resource.SerializeToString()
    return hashlib.sha256(resource + b"\0" + scope_level.scope.SerializeToString()).digest()


def _is_over(batch: Batch, item: Any, *, size_bytes: int) -> bool:
    reason = over_limits(item, batch.limits, size_bytes=size_bytes)
    if reason is not None:
        batch.reasons[f"{CONTRACTS[batch.request.signal].item} with {reason}"] += 1
    return reason is not None


def _why_over(resource_level: Any, scope_level: Any, limits: ItemLimits) -> str | None:
    """Return why items cannot be taken under this resource and scope, or None."""
    for level in (resource_level, scope_level):
        if len(level.schema_url.encode()) > MOST_NAME_BYTES:
            return f"a schema url of more than {MOST_NAME_BYTES:,} bytes"
    return _why_holder_over(resource_level.resource, limits, "a resource") or _why_holder_over(
        scope_level.scope, limits, "a scope"
    )


def _why_holder_over(holder: Any, limits: ItemLimits, name: str) -> str | None:
    reason = over_limits(holder, limits, size_bytes=len(holder.SerializeToString()))
    return reason and f"{name} with {reason}"


def _is_heavy(item: Any, *, size_bytes: int) -> bool:
    """Return whether an item takes long; of one with secrets the size is not known, and 0."""
    if (size_bytes or item.ByteSize()) > _HEAVY_BYTES:
        return True
    return sum(len(getattr(item, name, ())) for name in _COUNTED) > _HEAVY_COUNT


def _prepare_span(batch: Batch, item: PreparedItem) -> Sequence[PreparedSpan]:
    return (batch.worker.preparer.span(item),)


def _prepare_log(
    batch: Batch, item: PreparedItem
) -> Sequence[PreparedLog | PreparedKeepalive | PreparedDrops | None]:
    presence = read_report(item.message, item.envelope, received_ns=item.received_ns)
    if isinstance(presence, str):
        batch.reasons[presence] += 1
        return (None,)
    if presence is not None:
        return (presence,)
    return (batch.worker.preparer.log(item, ordinal=batch.next_ordinal(item.mac)),)


def _prepare_metric(batch: Batch, item: PreparedItem) -> Iterator[PreparedPoint | None]:
    """Yield the points of a metric one by one: one may have a million."""
    for metric, point in single_points(item.message):
        ordinal = batch.next_ordinal(item.mac)
        reason = None if point is None else _why_holder_over(point, batch.limits, "a data point")
        if reason is not None:
            batch.reasons[reason] += 1
            yield None
            continue
        yield prepare_point(item, metric, point, ordinal=ordinal)


_PREPARE: Mapping[Signal, Callable[[Batch, PreparedItem], Iterable[Prepared | None]]] = {
    Signal.TRACES: _prepare_span,
    Signal.LOGS: _prepare_log,
    Signal.METRICS: _prepare_metric,
}
