"""The spans and payloads of one request: made by the SDK's code, written by the pipeline."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from hansard import __version__, semconv
from hansard._config.settings import Settings
from hansard._runtime.recorder import Recorder
from hansard._tracing.attributes import text_of
from hansard._tracing.open_span import OpenSpan
from hansard_collector.derivation.rederivation import StoredSpan
from hansard_collector.payloads import store_payload
from hansard_collector.pipeline.requests import (
    Encoding,
    Ingest,
    IngestRequest,
    IngestResult,
    RequestSender,
    Signal,
)
from hansard_collector.receivers.export_response import STORE_WAIT_S
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.payloads import prepare_payload
from hansard_store.content.retention import BINARY, Retention
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreBusyError
from hansard_web.sidecar.errors import RecordingDisabled, RequestRejected

SCOPE: Final = "hansard.sidecar"  # of its spans: they are those it may end
SENDER: Final = RequestSender(
    address="", user_agent=f"hansard-sidecar/{__version__}", transport="sidecar"
)
_UNBOUNDED: Final = SpanLimits.UNSET
_RECORD_BYTES: Final = 1024 * 1024  # a larger payload is stored by itself
_LOG_BYTES: Final = 16 * 1024 * 1024  # of payloads in one request


class _GivenIds(IdGenerator):
    """Returns the ids that it holds; used by one request."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        trace_id, self.trace_id = self.trace_id, 0
        return trace_id or int.from_bytes(os.urandom(16)) or 1

    def generate_span_id(self) -> int:
        span_id, self.span_id = self.span_id, 0
        return span_id or int.from_bytes(os.urandom(8)) or 1


class Payloads:
    """Payloads of one request, held until they are written; the SDK's `PayloadSink`."""

    def __init__(self, retention: Retention) -> None:
        self.found: dict[str, tuple[bytes, str]] = {}  # ref -> bytes, media type
        self._retention = retention

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        """Keep bytes without what retention takes out; return their reference, "" for none."""
        clean = self._retention.payload_to_send(data, media_type, is_clean=is_clean)
        if clean is None:
            return ""
        ref = f"sha256:{hashlib.sha256(clean).hexdigest()}"
        self.found.setdefault(ref, (clean, media_type))
        return ref


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where recordings go: one for an app."""

    folder: DataFolder
    ingest: Ingest
    retention: Retention

    @property
    def mode(self) -> RetentionMode:
        return self.retention.mode

    @property
    def redactor(self) -> Redactor:
        return self.retention.redactor

    def recording(self, resource: ResourceMessage) -> Recording:
        """Return a recording for one request; raises RecordingDisabled where there can be none."""
        return Recording(self, resource)


class _Begun(SpanProcessor):
    """Notes every span that is begun, by anybody; open ones are stored as open."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.spans.append(span)


class Recording:
    """What one request tells, until `save` writes all of it at once."""

    def __init__(self, outlet: Outlet, resource: ResourceMessage) -> None:
        self._outlet = outlet
        self._resource = resource
        self._ids = _GivenIds()
        self._begun = _Begun()
        self._stored: dict[bytes, SpanMessage] = {}  # by span id: what is gone on with
        self.payloads = Payloads(outlet.retention)
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource({}),
            shutdown_on_exit=False,
            id_generator=self._ids,
            span_limits=SpanLimits(
                max_span_attributes=_UNBOUNDED, max_events=_UNBOUNDED, max_links=_UNBOUNDED,
                max_event_attributes=_UNBOUNDED, max_link_attributes=_UNBOUNDED,
                max_span_attribute_length=_UNBOUNDED, max_attribute_length=_UNBOUNDED,
            ),
        )  # fmt: skip
        provider.add_span_processor(self._begun)
        tracer = provider.get_tracer(SCOPE, __version__, semconv.SCHEMA_URL)
        self.recorder = Recorder(
            settings=Settings(data=outlet.folder.path, retention=outlet.mode),
            provider=provider,
            tracer=tracer,
            redactor=outlet.redactor,
            instance_id="",
            payloads=self.payloads,
        )

    def begin(
        self,
        name: str,
        *,
        trace_id: str,
        span_id: str,
        parent_span_id: str | None,
        attributes: Mapping[str, AttributeValue | None],
        links: Sequence[Link] = (),
        start_ns: int | None = None,
    ) -> OpenSpan:
        """Begin a span under given ids; unless it is closed, it is stored as an open one."""
        self._ids.trace_id = int(trace_id, 16) if parent_span_id is None else 0
        self._ids.span_id = int(span_id, 16)
        parent = INVALID_SPAN if parent_span_id is None else remote(trace_id, parent_span_id)
        made = OpenSpan(
            self.recorder,
            name,
            context=set_span_in_context(parent),
            attributes=attributes,
            links=links,
            start_ns=start_ns,
        )
        if not made.span.is_recording():
            raise RecordingDisabled(
                "OpenTelemetry is switched off in the server (OTEL_SDK_DISABLED): nothing is kept"
            )
        return made

    def go_on(self, stored: StoredSpan) -> OpenSpan:
        """Return a stored open span to add to, and perhaps to close."""
        message = stored.message
        self._stored[message.span_id] = message
        return self.begin(
            message.name,
            trace_id=message.trace_id.hex(),
            span_id=message.span_id.hex(),
            parent_span_id=message.parent_span_id.hex() or None,
            attributes={},
            start_ns=message.start_time_unix_nano,
        )

    def save(self) -> None:
        """Write payloads, then spans, and return when they are committed.

        Raises StoreBusyError when that cannot be now; what was written of it is known when it is
        sent again.
        """
        waiting = [self._submit(Signal.LOGS, body) for body in self._payload_requests()]
        self.payloads.found.clear()  # a recording may be saved more than once
        traces = self._traces()
        if traces.resource_spans:
            waiting.append(self._submit(Signal.TRACES, traces.SerializeToString()))
        deadline = time.monotonic() + STORE_WAIT_S
        for one in waiting:
            try:
                result = one.result(max(0.0, deadline - time.monotonic()))
            except NotInTime:
                raise StoreBusyError("the store did not answer in time; send it again") from None
            if result.rejected:
                raise RequestRejected(result.message)

    def _submit(self, signal: Signal, body: bytes) -> Future[IngestResult]:
        return self._outlet.ingest.submit(
            IngestRequest(signal, Encoding.PROTOBUF, body, SENDER, time.time_ns())
        )

    def _payload_requests(self) -> list[bytes]:
        """Return the payloads as requests; large ones are stored here."""
        requests: list[bytes] = []
        request, size = ExportLogsServiceRequest(), 0
        for ref, (data, media_type) in self.payloads.found.items():
            if len(data) > _RECORD_BYTES:
                self._store_large(ref, data, media_type)
                continue
            if size + len(data) > _LOG_BYTES:
                requests.append(request.SerializeToString())
                request, size = ExportLogsServiceRequest(), 0
            if not request.resource_logs:
                level = request.resource_logs.add()
                level.resource.CopyFrom(self._resource)
                level.scope_logs.add().scope.name = SCOPE
            _add_record(request, ref, data, media_type)
            size += len(data)
        if size or request.resource_logs:
            requests.append(request.SerializeToString())
        return requests

    def _store_large(self, ref: str, data: bytes, media_type: str) -> None:
        made = prepare_payload(
            data,
            expected=bytes.fromhex(ref.removeprefix("sha256:")),
            media_type=media_type or BINARY,
            received_ns=time.time_ns(),
            retain=self._outlet.retention.payload,
        )
        if made is not None:
            store_payload(self._outlet.folder, made)

    def _traces(self) -> ExportTraceServiceRequest:
        request = encode_spans(self._begun.spans)
        for level in request.resource_spans:
            level.resource.CopyFrom(self._resource)
            for scope in level.scope_spans:
                for span in scope.spans:
                    if span.span_id in self._stored:
                        _merge(self._stored[span.span_id], span)
        return request


def remote(trace_id: str, span_id: str) -> NonRecordingSpan:
    """Return a span that is somewhere else, to be a parent."""
    context = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(1)
    )
    return NonRecordingSpan(context)


def _merge(stored: SpanMessage, news: SpanMessage) -> None:
    """Make `news` the whole span: what was stored, and what is new over it."""
    keys = {one.key for one in news.attributes}
    whole = SpanMessage()
    whole.CopyFrom(stored)
    del whole.attributes[:]
    whole.attributes.extend(one for one in stored.attributes if one.key not in keys)
    whole.attributes.extend(news.attributes)
    whole.events.extend(news.events)
    whole.end_time_unix_nano = news.end_time_unix_nano
    whole.status.CopyFrom(news.status)
    news.CopyFrom(whole)


def resource_of(service: str) -> ResourceMessage:
    """Return the resource of spans that a service tells."""
    return ResourceMessage(attributes=[_attribute(semconv.SERVICE_NAME, text_of(service))])


def _attribute(key: str, text: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=text))


def _add_record(request: ExportLogsServiceRequest, ref: str, data: bytes, media_type: str) -> None:
    request.resource_logs[0].scope_logs[0].log_records.add(
        event_name=semconv.EVENT_PAYLOAD,
        time_unix_nano=time.time_ns(),
        body=AnyValue(bytes_value=data),
        attributes=[
            _attribute(semconv.PAYLOAD_DIGEST, ref),
            _attribute(semconv.PAYLOAD_MEDIA_TYPE, media_type),
        ],
    )
