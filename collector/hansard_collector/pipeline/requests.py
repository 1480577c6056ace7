"""A request taken apart: decode, validate, redact, prepare, item by item.

The stages stand in `open_request` and `take_apart`, in their order. What comes out is a list of
items to be written and the count of those refused, with the reasons that the sender is told.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, repeat
from typing import Any, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from hansard_collector.liveness.heartbeats import PreparedLoss, PreparedPulse, read_presence
from hansard_collector.otlp.any_value import attributes_dict
from hansard_collector.payloads.records import PayloadStage, SentPayload
from hansard_collector.pipeline.decoding import DecodedRequest
from hansard_collector.pipeline.log_preparation import (
    PreparedLog,
    PreparedPoint,
    prepare_log,
    prepare_point,
    single_points,
)
from hansard_collector.pipeline.preparation import Envelope, PreparedSpan, Preparer
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.submission import Signal
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
    PreparedSpan | PreparedLog | PreparedPoint | PreparedPayload | PreparedPulse | PreparedLoss
)

_MAX_MESSAGE_CHARS = 1000
_HEAVY_BYTES = 256 * 1024  # an item that takes longer to prepare than others should wait
_HEAVY_COUNT = 512  # attributes, events and links, which take longer than their bytes
_MANY_MESSAGES = 512
_log = logging.getLogger("hansard.pipeline")
_Removed = tuple[RemovedSecret, ...]


class Mark(Enum):
    """What stands among the items of a request in the place of one."""

    HEAVY = "the next item takes long"


@dataclass(slots=True)
class TakenApart:
    """The items of one request, prepared lazily: a request may hold 100,000 of them.

    `preparer` prepares what is still to come; another thread that goes on puts its own there.
    """

    items: Iterator[Prepared | Mark | None]  # None: time passed, and others may be waiting
    preparer: Preparer
    tells_heavy: bool = False  # a mark stands before each item that takes long
    reasons: Counter[str] = field(default_factory=Counter)  # why items were refused -> how many
    warnings: list[str] = field(default_factory=list)
    services: Counter[str] = field(default_factory=Counter)

    @property
    def rejected(self) -> int:
        return sum(self.reasons.values())

    def message(self) -> str:
        """Return the sentences that the sender is told, short enough for a response."""
        told = [f"{count} rejected: {reason}" for reason, count in self.reasons.most_common(5)]
        return "; ".join([*told, *self.warnings[:5]])[:_MAX_MESSAGE_CHARS]


class _Item(NamedTuple):
    """One span, log record or metric of a request, before anything was changed in it."""

    message: Any
    envelope: Envelope
    mac: bytes


@dataclass(frozen=True, slots=True)
class OpenedRequest:
    """A request that was decoded, while secrets are looked for in it."""

    signal: Signal
    received_ns: int
    decoded: DecodedRequest
    sent: Sequence[SentPayload]
    is_clean: Future[bool]


def open_request(
    decoded: DecodedRequest,
    retention: RetentionPolicy,
    helpers: Executor,
    payloads: PayloadStage | None = None,
    *,
    signal: Signal,
    received_ns: int,
) -> OpenedRequest:
    """Begin to look for secrets in a decoded request, whose body is let go by now.

    One of the helpers does: that takes as long as all else that is done with a request here, and
    holds no lock of Python's.
    """
    sent: Sequence[SentPayload] = ()
    if payloads is not None and signal is Signal.LOGS:
        sent = payloads.take_out(decoded.message)
    is_clean = retention.begin_scan(decoded.message, helpers)
    return OpenedRequest(signal, received_ns, decoded, sent, is_clean)


def take_apart(
    opened: OpenedRequest,
    preparer: Preparer,
    retention: RetentionPolicy,
    payloads: PayloadStage | None = None,
) -> TakenApart:
    """Return the items of a request.

    Identity is judged before redaction (`mac`), so that a re-sent span is known again even when
    its secrets were replaced by markers.
    """
    signal, decoded, sent = opened.signal, opened.decoded, opened.sent
    taken = TakenApart(iter(()), preparer, warnings=list(decoded.warnings))
    is_clean = opened.is_clean.result()
    macs: Iterator[bytes | None] = repeat(None)
    removed: Mapping[int, _Removed] = {}
    if not is_clean:
        macs = iter(_macs(signal, decoded.message, preparer, taken))
        removed = retention.apply(signal, decoded.message)
    placed = _placed(signal, decoded.message, taken, preparer.limits)
    taken.items = _prepared(opened, placed, macs, removed, taken=taken)
    if sent and payloads is not None:
        found = payloads.prepared(sent, taken.reasons, received_ns=opened.received_ns)
        taken.items = chain(found, taken.items)
    return taken


_LEVELS = {
    Signal.TRACES: ("resource_spans", "scope_spans", "spans"),
    Signal.LOGS: ("resource_logs", "scope_logs", "log_records"),
    Signal.METRICS: ("resource_metrics", "scope_metrics", "metrics"),
}
_ITEM_NAMES = {Signal.TRACES: "a span", Signal.LOGS: "a log record", Signal.METRICS: "a metric"}


class _Placed(NamedTuple):
    """An item of a request under its resource and scope."""

    envelope: Envelope
    context: bytes  # of its identity
    message: Any


def _context(signal: Signal, resource_level: Any, scope_level: Any) -> bytes:
    """Return what identifies an item beside its own bytes.

    A span has ids, so its own bytes suffice; a log record or metric is the same one only under
    the same resource and scope.
    """
    if signal is Signal.TRACES:
        return b""
    resource = resource_level.resource.SerializeToString()
    return hashlib.sha256(resource + b"\0" + scope_level.scope.SerializeToString()).digest()


def _macs(signal: Signal, message: Any, preparer: Preparer, taken: TakenApart) -> list[bytes]:
    """Return the mac of every item, in order, as received; items over a limit are taken out."""
    outer, inner, leaf = _LEVELS[signal]
    found = []
    for resource_level in getattr(message, outer):
        for scope_level in getattr(resource_level, inner):
            items = getattr(scope_level, leaf)
            if reason := _why_over(resource_level, scope_level, preparer.limits):
                taken.reasons[reason] += len(items)
                del items[:]
                continue
            context = _context(signal, resource_level, scope_level)
            dropped = []
            for index, item in enumerate(items):
                raw = item.SerializeToString()
                if _is_over(item, signal, taken, preparer.limits, size_bytes=len(raw)):
                    dropped.append(index)
                else:
                    found.append(preparer.mac(context, raw))
            for index in reversed(dropped):
                del items[index]
    return found


def _is_over(
    item: Any, signal: Signal, taken: TakenApart, limits: ItemLimits, *, size_bytes: int
) -> bool:
    reason = over_limits(item, limits, size_bytes=size_bytes)
    if reason is not None:
        taken.reasons[f"{_ITEM_NAMES[signal]} with {reason}"] += 1
    return reason is not None


def _placed(
    signal: Signal, message: Any, taken: TakenApart, limits: ItemLimits
) -> Iterator[_Placed | None]:
    """Yield every item with the resource and scope it stands under, and None for each of those."""
    outer, inner, leaf = _LEVELS[signal]
    for resource_level in getattr(message, outer):
        yield None
        if not _holds_items(resource_level, inner, leaf):
            continue
        resource_record = ResourceSpans(schema_url=resource_level.schema_url)
        if resource_level.HasField("resource"):
            resource_record.resource.CopyFrom(resource_level.resource)
        is_over = _over(resource_level.resource, limits, "a resource") is not None
        resource = {} if is_over else attributes_dict(resource_level.resource.attributes)
        tokens = resource_tokens_of(resource)
        for scope_level in getattr(resource_level, inner):
            yield None
            scope = scope_level.scope
            items = getattr(scope_level, leaf)
            if reason := _why_over(resource_level, scope_level, limits):
                taken.reasons[reason] += len(items)
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
            )
            taken.services[envelope.service_name or ""] += len(items)
            context = _context(signal, resource_level, scope_level)
            for item in items:
                yield _Placed(envelope, context, item)


def _holds_items(resource_level: Any, inner: str, leaf: str) -> bool:
    return any(getattr(scope_level, leaf) for scope_level in getattr(resource_level, inner))


def _why_over(resource_level: Any, scope_level: Any, limits: ItemLimits) -> str | None:
    """Return why items cannot be taken under this resource and scope, or None."""
    for level in (resource_level, scope_level):
        if len(level.schema_url.encode()) > MOST_NAME_BYTES:
            return f"a schema url of more than {MOST_NAME_BYTES:,} bytes"
    return _over(resource_level.resource, limits, "a resource") or _over(
        scope_level.scope, limits, "a scope"
    )


def _over(holder: Any, limits: ItemLimits, name: str) -> str | None:
    reason = over_limits(holder, limits, size_bytes=len(holder.SerializeToString()))
    return reason and f"{name} with {reason}"


def _prepared(
    opened: OpenedRequest,
    places: Iterator[_Placed | None],
    macs: Iterator[bytes | None],
    removed: Mapping[int, _Removed],
    *,
    taken: TakenApart,
) -> Iterator[Prepared | Mark | None]:
    """Yield every item that can be stored, and None where time passed without one."""
    prepare = _PREPARE[opened.signal]
    ordinals: Counter[bytes] = Counter()
    index = -1
    for place in places:
        if place is None:
            yield None
            continue
        index += 1
        try:
            mac = next(macs)
            size = 0
            if mac is None:
                raw = place.message.SerializeToString()
                size = len(raw)
                limits = taken.preparer.limits
                if _is_over(place.message, opened.signal, taken, limits, size_bytes=size):
                    yield None
                    continue
                mac = taken.preparer.mac(place.context, raw)
                del raw  # of an item of 64 MiB as much again
            if taken.tells_heavy and _is_heavy(place.message, size_bytes=size):
                yield Mark.HEAVY
            made = prepare(
                taken.preparer,
                _Item(place.message, place.envelope, mac),
                taken=taken,
                ordinals=ordinals,
                received_ns=opened.received_ns,
                removed=removed.get(index, ()),
            )
            yield from made or (None,)
        except Exception as error:  # a stage must not end the thread: this item is refused
            _log.exception("an item could not be prepared and is refused")
            taken.reasons[f"internal error ({type(error).__name__})"] += 1


def _is_heavy(item: Any, *, size_bytes: int) -> bool:
    """Return whether an item takes long; of one with secrets the size is not known, and 0."""
    if (size_bytes or item.ByteSize()) > _HEAVY_BYTES:
        return True
    return sum(len(getattr(item, name, ())) for name in _COUNTED) > _HEAVY_COUNT


_COUNTED = ("attributes", "events", "links")


def _prepare_span(
    preparer: Preparer,
    item: _Item,
    *,
    taken: TakenApart,
    ordinals: Counter[bytes],
    received_ns: int,
    removed: _Removed,
) -> Sequence[PreparedSpan]:
    reason = refuse_span(item.message)
    if reason is not None:
        taken.reasons[reason] += 1
        return ()
    made = preparer.span(
        item.message, item.envelope, mac=item.mac, received_ns=received_ns, removed=removed
    )
    call = made.projection.call
    if call is not None and len(call.input) > _MANY_MESSAGES:
        for message in call.input:  # remembered by it, and not computed in the transaction
            _ = message.hash, message.match_hash
    return (made,)


def _prepare_log(
    preparer: Preparer,
    item: _Item,
    *,
    taken: TakenApart,
    ordinals: Counter[bytes],
    received_ns: int,
    removed: _Removed,
) -> Sequence[PreparedLog | PreparedPulse | PreparedLoss]:
    told = read_presence(item.message, item.envelope, received_ns=received_ns)
    if isinstance(told, str):
        taken.reasons[told] += 1
        return ()
    if told is not None:
        return (told,)
    ordinal = ordinals[item.mac]
    ordinals[item.mac] += 1
    made = prepare_log(
        preparer,
        item.message,
        item.envelope,
        mac=item.mac,
        ordinal=ordinal,
        received_ns=received_ns,
        removed=removed,
    )
    return (made,)


def _prepare_metric(
    preparer: Preparer,
    item: _Item,
    *,
    taken: TakenApart,
    ordinals: Counter[bytes],
    received_ns: int,
    removed: _Removed,
) -> Iterator[PreparedPoint | None]:
    """Yield the points of a metric one by one: one may have a million."""
    for metric, point in single_points(item.message):
        ordinal = ordinals[item.mac]
        ordinals[item.mac] += 1
        reason = None if point is None else _over(point, preparer.limits, "a data point")
        if reason is not None:
            taken.reasons[reason] += 1
            yield None
            continue
        yield prepare_point(
            metric,
            point,
            item.envelope,
            mac=item.mac,
            ordinal=ordinal,
            received_ns=received_ns,
            removed=removed,
        )


_PREPARE: Mapping[Signal, Callable[..., Iterable[Prepared | None]]] = {
    Signal.TRACES: _prepare_span,
    Signal.LOGS: _prepare_log,
    Signal.METRICS: _prepare_metric,
}
