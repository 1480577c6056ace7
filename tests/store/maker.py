"""Makers of stored spans: the real writer on a real file, fed with small projections."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    InstrumentationScope,
    KeyValue,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from hansard_compiler.calls import Message, TextPart
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.readers import open_reader
from hansard_store.ingest.derived_rows import CallProjection, SpanProjection, TextProjection, Usage
from hansard_store.ingest.logs import ReceivedLog
from hansard_store.ingest.span_input import ReceivedSpan
from hansard_store.ingest.writer import IngestWriter, WriteBatch
from hansard_store.search.attributes import resource_tokens_of, tokens_of
from hansard_store.steps.flags import SpanFlag
from tests.store.empty import empty_store

SECOND = 1_000_000_000
NOW = 1_800_000_000 * SECOND  # when everything is received, unless said


def trace_id(name: str) -> bytes:
    """Return a trace id: that of its hex digits, else one made from a name."""
    if len(name) == 32:
        return bytes.fromhex(name)
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()


def span_id(name: str) -> bytes:
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()[:8]


def message(role: str, text: str) -> Message:
    return Message(role, (TextPart(text),))


def call(
    *,
    input: Sequence[Message] = (),
    output: Sequence[Message] = (),
    model: str = "gpt-4o",
    usage: Usage = Usage(),  # noqa: B008 - frozen
    response_id: str | None = None,
) -> CallProjection:
    return CallProjection(
        usage=usage,
        is_candidate=True,
        operation="chat",
        provider="openai",
        request_model=model,
        response_model=model,
        response_id=response_id,
        finish_reason="stop",
        input=tuple(input),
        output=tuple(output),
        input_is_delta=False,
        cost_source=None,
        first_token_ms=None,
    )


def model_step(
    usage: Usage, *, model: str | None = None, response_id: str | None = None, **fields: Any
) -> SpanProjection:
    """Return a step with one model call; `fields` are those of the projection."""
    made = call(model=model or "gpt-4o", usage=usage, response_id=response_id)
    return SpanProjection(
        role="llm", dialect="gen_ai", model=model, usage=usage, call=made, **fields
    )


class StoreMaker:
    """A store in a folder, with a reader's connection beside the writer's."""

    def __init__(self, path: Path) -> None:
        self.folder = empty_store(path)
        self.ingest = open_for_ingest(self.folder)
        self.writer = IngestWriter(self.ingest, derived_version=1)
        self.db: apsw.Connection = open_reader(self.folder)
        self.now_ns = NOW
        self._batch: WriteBatch | None = None

    def close(self) -> None:
        self.db.close()
        self.ingest.close()

    @contextmanager
    def batch(self) -> Iterator[WriteBatch]:
        """Put all spans made in this block into one transaction."""
        if self._batch is not None:
            yield self._batch
            return
        with self.writer.batch(now_ns=self.now_ns) as batch:
            self._batch = batch
            try:
                yield batch
            finally:
                self._batch = None

    def span(
        self,
        name: str,
        parent: str | None = None,
        *,
        run: str = "run",
        start_s: float = 0,
        duration_s: float | None = 1,
        role: str = "other",
        status: int = 0,
        side: int = 0,
        flags: int = 0,
        service: str = "svc",
        scope_name: str = "",
        attributes: Mapping[str, str | bool | int | float] = {},
        facets: Sequence[tuple[str, str]] = (),
        texts: Sequence[tuple[str, str]] = (),
        links: Sequence[tuple[str, str]] = (),
        projection: SpanProjection | None = None,
        label: str | None = None,
    ) -> int:
        """Store a span that starts `start_s` seconds after NOW - 1 h; returns its span.id."""
        start_ns = NOW - 3600 * SECOND + round(start_s * SECOND)
        end_ns = None if duration_s is None else start_ns + round(duration_s * SECOND)
        made = projection or SpanProjection(role=role, dialect="otel")
        made = made._replace(
            role=role if projection is None else made.role,
            label=label or made.label,
            flags=made.flags | (SpanFlag.ERROR if status == 2 else 0),
            attribute_tokens=f"{made.attribute_tokens} {tokens_of(attributes)} "
            + resource_tokens_of({"service.name": service}),
            facets=(*made.facets, *facets, ("service", service)),
            texts=(*made.texts, *(TextProjection(field, text) for field, text in texts)),
        )
        with self.batch() as batch:
            resource, scope = self._envelopes(service, scope_name)
            span = ReceivedSpan(
                trace_id=trace_id(run),
                span_id=span_id(name),
                side=side,
                parent_span_id=None if parent is None else span_id(parent),
                name=name,
                kind=1,
                start_ns=start_ns,
                end_ns=end_ns,
                sort_ns=start_ns,
                status=status,
                flags=flags,
                mac=hashlib.sha256(
                    repr((run, name, side, start_ns, end_ns, status, attributes)).encode()
                ).digest(),
                received_ns=self.now_ns,
                resource=resource,
                scope=scope,
                attribute_count=len(attributes),
                message=_proto(run, name, parent, start_ns, end_ns or 0, status, attributes),
                large=(),
                links=[(trace_id(to_run), span_id(to)) for to_run, to in links],
            )
            return batch.spans.add(span, made).span

    def log(self, text: str, *, run: str = "run", span: str, at_s: float = 0) -> int:
        """Store a log record that carries the ids of a span; returns its log_record.id."""
        time_ns = NOW - 3600 * SECOND + round(at_s * SECOND)
        with self.batch() as batch:
            resource, scope = self._envelopes("svc")
            log = ReceivedLog(
                mac=hashlib.sha256(repr((run, span, text, time_ns)).encode()).digest(),
                ordinal=0,
                trace_id=trace_id(run),
                span_id=span_id(span),
                time_ns=time_ns,
                received_ns=self.now_ns,
                severity=9,
                event_name="test.event",
                resource=resource,
                scope=scope,
                session=None,
                body_text=text[:80],
                message=LogRecord(
                    time_unix_nano=time_ns,
                    trace_id=trace_id(run),
                    span_id=span_id(span),
                    body=AnyValue(string_value=text),
                ),
                large=(),
            )
            _, number = batch.logs.add(log)
        return number

    def _envelopes(self, service: str, scope_name: str = "") -> tuple[int, int]:
        name = KeyValue(key="service.name", value=AnyValue(string_value=service))
        resource = ResourceSpans(resource=Resource(attributes=[name]))
        scope = (
            ScopeSpans(scope=InstrumentationScope(name=scope_name)) if scope_name else ScopeSpans()
        )
        return self.writer.resource(resource, service), self.writer.scope(scope)


def _proto(
    run: str,
    name: str,
    parent: str | None,
    start_ns: int,
    end_ns: int,
    status: int,
    attributes: Mapping[str, str | bool | int | float],
) -> Span:
    span = Span(
        trace_id=trace_id(run),
        span_id=span_id(name),
        parent_span_id=b"" if parent is None else span_id(parent),
        name=name,
        kind=Span.SpanKind.SPAN_KIND_INTERNAL,
        start_time_unix_nano=start_ns,
        end_time_unix_nano=end_ns,
    )
    if status:
        span.status.CopyFrom(Status(code=status))  # type: ignore[arg-type]  # enum by number
    for key, value in attributes.items():
        span.attributes.append(KeyValue(key=key, value=_any(value)))
    return span


def _any(value: str | bool | int | float) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)
