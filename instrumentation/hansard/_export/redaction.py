"""What the retention mode does not keep is taken out before spans are sent or written to disk.

Of any origin: other instrumentation's spans go the same way. One scan of their texts usually
proves that there is nothing to do, and then the spans go as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from hansard import semconv
from hansard._export.batch_queue import items_of
from hansard._export.otlp.batches import encode
from hansard._export.otlp.spans import remade, spans_of
from hansard._export.spool import SpoolKind
from hansard_compiler.redaction.checks import is_sensitive_key
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

    from hansard_compiler.redaction.otlp import MessageCleaner
    from hansard_compiler.redaction.redactor import Redactor

_MOST_NAMES: Final = 10_000
_BETWEEN: Final = "\0\n"  # so that two JSON texts do not look like lines of a stream
_REF: Final = re.compile(r"sha256:[0-9a-f]{64}")  # a payload's, which no rule takes for a secret
_REF_CHARS: Final = 71
_SAFE: Final = (bool, int, float, type(None))


class BatchCleaner:
    """Makes batches fit to leave the process. Safe to use from several threads, one at a time."""

    def __init__(self, mode: RetentionMode, redactor: Redactor, *, instance_id: str) -> None:
        self._mode = mode
        self._redactor = redactor
        self._instance_id = instance_id
        self._suspicion = Suspicion(redactor)
        self._cleaner: MessageCleaner | None = None
        self._resources: dict[int, tuple[Resource, Resource]] = {}

    def __call__(self, spans: Sequence[Any]) -> Sequence[Any]:
        """Return spans as they may leave the process; doing it twice changes nothing."""
        named = [self._named(span) for span in spans]
        if self._mode is RetentionMode.FULL_PAYLOADS:
            return named
        return self._cleaned(named)

    def _named(self, span: Any) -> Any:
        """Give a span the instance it is of, if its provider has none, or a parent's."""
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
            data = encode(SpoolKind.TRACES, spans)
        except Exception:  # one of them has no form on the wire: each for itself
            if len(spans) == 1:
                return spans  # it cannot leave the process anyway; the encoder counts it
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


class _Doubt(Exception):
    """Something that is worth a close look."""


class Suspicion:
    """Tells whether a batch of spans may hold a secret: of all at once, without encoding any.

    Doubt is enough to look closely: what is unusual in form is suspicious. The look itself is the
    same as the collector's (`hansard_compiler.redaction.otlp`): a value is cleaned when its name
    announces a secret, or when its text looks like one. Remembers names of attributes that
    announce nothing. Used by one thread at a time.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._plain_names: set[str] = set()
        self._plain_scopes: dict[int, Any] = {}  # resources and scopes, by id and held alive

    def falls_on(self, spans: Sequence[ReadableSpan]) -> bool:
        """Return whether any of these spans may hold a secret; False is certain."""
        try:
            texts: list[str] = []
            for span in spans:
                self._gather(span, texts)
            raw = _BETWEEN.join(texts).encode()
        except (_Doubt, UnicodeEncodeError, RuntimeError):
            return True
        return self._redactor.scan_bytes(raw)

    def _gather(self, span: ReadableSpan, texts: list[str]) -> None:
        context = span.get_span_context()
        texts.append(span.name)
        self._gather_of(span.attributes, texts)
        for event in span.events:
            texts.append(event.name)
            self._gather_of(event.attributes, texts)
        for link in span.links:
            texts += link.context.trace_state.values()
            self._gather_of(link.attributes, texts)
        if span.status.description:
            texts.append(span.status.description)
        if context is not None and context.trace_state:
            texts += context.trace_state.values()
        for shared in (span.resource, span.instrumentation_scope):
            if id(shared) not in self._plain_scopes:
                self._look_at_shared(shared)

    def _look_at_shared(self, shared: Any) -> None:
        """Look at a resource or scope, once: spans share them."""
        if shared is None:
            return
        texts = [shared.schema_url or ""]
        self._gather_of(shared.attributes, texts)
        texts += [getattr(shared, "name", None) or "", getattr(shared, "version", None) or ""]
        if self._redactor.scan_bytes(_BETWEEN.join(texts).encode()):
            raise _Doubt
        self._plain_scopes[id(shared)] = shared

    def _gather_of(self, attributes: Mapping[str, Any] | None, texts: list[str]) -> None:
        for key, value in items_of(attributes):
            if key not in self._plain_names:
                self._learn(key)
            if isinstance(value, str):
                # The automaton has no states for random digits: each costs it a hundred letters.
                if not (len(value) == _REF_CHARS and _REF.fullmatch(value)):
                    texts.append(value)
            elif isinstance(value, Sequence) and not isinstance(value, bytes):
                for one in value:
                    # A flag in a list announces what follows it: `--api-key`, `...`.
                    if isinstance(one, str) and not one.startswith("--"):
                        texts.append(one)
                    elif not isinstance(one, _SAFE):
                        raise _Doubt
            elif not isinstance(value, _SAFE):
                raise _Doubt

    def _learn(self, key: str) -> None:
        raw = key.encode()
        if is_sensitive_key(raw) or self._redactor.scan_bytes(raw):
            raise _Doubt
        if len(self._plain_names) < _MOST_NAMES:
            self._plain_names.add(key)
