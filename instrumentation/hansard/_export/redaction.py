"""What the retention mode does not keep is taken out before spans are sent or written to disk.

Whoever made them: other instrumentation's spans go the same way. One scan of their texts usually
proves that there is nothing to do, and then the spans go as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hansard import semconv
from hansard._export.otlp.batches import encode
from hansard._export.otlp.spans import remade, spans_of
from hansard._export.secret_prefilter import Suspicion
from hansard._export.spool.files import Kind
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from hansard_compiler.redaction.otlp import MessageCleaner
    from hansard_compiler.redaction.redactor import Redactor


class BatchCleaner:
    """Makes batches fit to leave the process. Safe to use from several threads, one at a time."""

    def __init__(self, mode: RetentionMode, redactor: Redactor, *, instance_id: str) -> None:
        self._mode = mode
        self._redactor = redactor
        self._instance_id = instance_id
        self._suspicion = Suspicion(redactor)
        self._cleaner: MessageCleaner | None = None
        self._resources: dict[int, tuple[Resource, Resource]] = {}

    def __call__(self, kind: Kind, items: Sequence[Any]) -> Sequence[Any]:
        """Return the items as they may leave the process; doing it twice changes nothing."""
        if kind is Kind.LOGS:
            return items  # made by the SDK itself, after redaction
        named = [self._named(span) for span in items]
        if self._mode is RetentionMode.FULL_PAYLOADS:
            return named
        return self._cleaned(named)

    def _named(self, span: Any) -> Any:
        """Give a span the instance it is of, if its provider does not tell, or tells a parent's."""
        if span.resource.attributes.get(semconv.SERVICE_INSTANCE_ID) == self._instance_id:
            return span
        return remade(span, resource=self.resource_of(span.resource))

    def resource_of(self, resource: Resource) -> Resource:
        """Return the resource with `service.instance.id`; the same object for the same one."""
        from opentelemetry.sdk.resources import Resource

        from hansard._runtime.resources import KnownResource

        known = self._resources.get(id(resource))
        if known is None:
            named = resource.merge(Resource({semconv.SERVICE_INSTANCE_ID: self._instance_id}))
            known = self._resources[id(resource)] = (resource, KnownResource(named))
        return known[1]

    def _cleaned(self, spans: Sequence[Any]) -> Sequence[Any]:
        if self._mode is not RetentionMode.METADATA_ONLY and not self._suspicion.falls_on(spans):
            return spans
        try:
            data = encode(Kind.TRACES, spans)
        except Exception:  # one of them has no form on the wire: each for itself
            if len(spans) == 1:
                return spans  # it cannot leave the process anyway; whoever encodes it counts it
            return [clean for span in spans for clean in self._cleaned([span])]
        return self._without(data)

    def _without(self, data: bytes) -> Sequence[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        from hansard_compiler.redaction.otlp import SPAN_LEVELS, MessageCleaner, clean_items

        if self._cleaner is None:
            self._cleaner = MessageCleaner(self._redactor)
        request = ExportTraceServiceRequest.FromString(data)
        is_strict = self._mode is RetentionMode.METADATA_ONLY
        part = self._cleaner.withhold if is_strict else self._cleaner.redact
        clean_items(request, SPAN_LEVELS, part)
        return spans_of(request.SerializeToString())
