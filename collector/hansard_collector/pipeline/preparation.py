"""What can be done with an item before the transaction: everything but giving ids.

Prepared items hold the protobuf message as it will be stored, its large values cut, and the rows
derived from it. Preparing is pure but for the caches that it is given.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rows import annotations_of, derive
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import LogView, SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import normalise, normalise_scores
from hansard_collector.otlp.any_value import attributes_and_leaves, attributes_dict, span_view
from hansard_collector.pipeline.validation import USUAL_LIMITS, ItemLimits, repair_span, span_times
from hansard_store.annotations.rows import SpanAnnotation
from hansard_store.content.contents import ContentCutter, CutValue
from hansard_store.content.json_chunks import (
    MOST_CONTAINERS,
    MOST_ELEMENTS,
    MOST_PIECES_OF_ITEM,
    is_crowded,
)
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.otlp_records import LargeValue, large_values
from hansard_store.ingest.redactions import RemovedSecret
from hansard_store.steps.flags import SpanFlag

_SERVER = 2
_MAC_BYTES = 16
_CACHE_BYTES = 24 * 2**20  # of texts, and as much of messages


@dataclass(frozen=True, slots=True)
class Envelope:
    """The resource and scope that items share, as they are stored and as a dialect reads them."""

    resource_record: Any  # ResourceSpans with only resource and schema_url
    scope_record: Any  # ScopeSpans with only scope and schema_url
    resource: Mapping[str, Any]
    resource_tokens: str  # what its items can be found by, computed once
    scope_name: str
    scope_version: str

    @property
    def service_name(self) -> str | None:
        name = self.resource.get("service.name")
        return name if isinstance(name, str) else None


class PreparedSpan(NamedTuple):
    """A span ready to be written, but for the ids that a transaction gives."""

    envelope: Envelope
    message: Span
    large: Sequence[LargeValue]
    fields: Mapping[str, Any]  # of ReceivedSpan, but for resource and scope
    projection: SpanProjection
    removed: Sequence[RemovedSecret]
    view: SpanView | None = None  # only of a span that names payloads: read again with them


class Preparer:
    """Turns messages into prepared items; holds the caches that make resent text cheap.

    Used by one thread only, of which each has its own.
    """

    def __init__(
        self, *, key: bytes, limits: ItemLimits = USUAL_LIMITS, cache_bytes: int = _CACHE_BYTES
    ) -> None:
        self._key = key
        self.limits = limits
        self._cutter = ContentCutter(cache_bytes)
        self.messages = MessageCache(cache_bytes)

    def mac(self, *parts: bytes) -> bytes:
        """Return what identifies an item as received: 16 bytes of HMAC-SHA256."""
        return hmac.digest(self._key, b"".join(parts), hashlib.sha256)[:_MAC_BYTES]

    def span(
        self,
        span: Span,
        envelope: Envelope,
        *,
        mac: bytes,
        received_ns: int,
        removed: Sequence[RemovedSecret] = (),
    ) -> PreparedSpan:
        """Return a valid span with all its rows; never raises for what the span holds."""
        flags, notes = repair_span(span)
        times = span_times(span, received_ns=received_ns)
        cuts: list[tuple[str, str, Sequence[str]]] = []
        elements: dict[str, Sequence[str]] = {}
        attributes, leaves = attributes_and_leaves(span.attributes)
        cutting = self._cutting(span.trace_id, cuts)
        large = large_values(span, cutting, attribute_leaves=leaves)
        view = span_view(
            span,
            envelope.resource,
            scope_name=envelope.scope_name,
            scope_version=envelope.scope_version,
            elements=elements,
            attributes=attributes,
        )
        # An event, a link or a map inside an attribute may hold a value under the same key.
        elements |= {key: found for key, text, found in cuts if view.attributes.get(key) == text}
        flags |= times.flags | (SpanFlag.REDACTED if removed else 0)
        if span.links:
            flags |= SpanFlag.HAS_LINKS
        notes += [_crowded_note(key) for key, _, text in leaves if is_crowded(text)]
        fields = {
            "trace_id": view.trace_id,
            "span_id": view.span_id,
            "side": int(view.kind == _SERVER),
            "parent_span_id": view.parent_span_id or None,
            "name": view.name,
            "kind": view.kind,
            "start_ns": times.start_ns,
            "end_ns": times.end_ns,
            "sort_ns": times.sort_ns,
            "status": view.status_code,
            "flags": flags,
            "mac": mac,
            "received_ns": received_ns,
            "attribute_count": len(span.attributes),
            "links": [(link.trace_id, link.span_id) for link in span.links],
            "notes": notes,
        }
        projection = project(view, self.messages, resource_tokens=envelope.resource_tokens)
        return PreparedSpan(
            envelope,
            span,
            large,
            fields,
            projection,
            removed,
            view if projection.payloads else None,
        )

    def _cutting(
        self, trace_id: bytes, cuts: list[tuple[str, str, Sequence[str]]]
    ) -> Callable[[str, str], CutValue | None]:
        left = MOST_PIECES_OF_ITEM

        def cut(key: str, text: str) -> CutValue | None:
            nonlocal left
            value = self._cutter.cut(trace_id, key, text) if left > 0 else None
            if value is not None:
                left -= len(value.pieces)
                found = value.elements()
                if found is not None:
                    cuts.append((key, text, found))
            return value

        return cut

    def log_cutting(self) -> Callable[[str, str], CutValue | None]:
        """Return what cuts the texts of one log record; logs share no prefix with one another."""
        return self._cutting(b"", [])


def _crowded_note(key: str) -> str:
    return (
        f"{key[:100]} holds more than {MOST_CONTAINERS:,} lists and objects, or {MOST_ELEMENTS:,}"
        " elements: it is stored whole, and shown as the text it is"
    )


def project(
    view: SpanView,
    messages: MessageCache,
    *,
    resource_tokens: str | None = None,
    meant: SpanView | None = None,
) -> SpanProjection:
    """Return the derived rows of a span, whatever it holds.

    `meant` is the span with the content it only refers to, where that is at hand.

    One of the three borders where everything is caught (house style §6): a dialect that fails
    costs the span its meaning, never its record, and the note says so.
    """
    try:
        normal = normalise(meant or view, messages)
        return derive(view, normal, resource_tokens=resource_tokens)
    except Exception as error:
        note = f"a dialect could not read this span ({type(error).__name__}): shown as it came"
        return derive(view, Normalised(notes=(note,)), resource_tokens=resource_tokens)


def annotations_with_results(
    view: SpanView, messages: MessageCache, *, meant: SpanView | None = None
) -> tuple[SpanAnnotation, ...] | None:
    """Return the annotations of a span whose log records are results of evaluations.

    None where these change more of the span than its scores. Part of the border that `project` is.
    """
    try:
        return annotations_of(view, normalise_scores(meant or view, messages))
    except Exception:
        return None


def view_of(
    span: Span,
    resource: Mapping[str, Any],
    *,
    scope_name: str,
    scope_version: str,
    logs: Sequence[LogView],
) -> SpanView:
    """Return a stored span as a dialect reads it, with the log records of its ids."""
    return span_view(span, resource, scope_name=scope_name, scope_version=scope_version, logs=logs)


def resource_dict(envelope: Any) -> dict[str, Any]:
    """Return the attributes of an envelope's resource."""
    return attributes_dict(envelope.resource.attributes)
