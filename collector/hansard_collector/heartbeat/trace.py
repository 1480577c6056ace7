"""A cycle as a trace: its spans and evaluation results, stored in the folder that it examines.

The spans are made by OpenTelemetry's SDK with a provider of their own, so that they mix with no
spans of the program, and are stored by the same ingest as everything else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from hansard_collector.evaluation.words import verdict_words
from hansard_collector.heartbeat.phase import EvaluationResult
from hansard_collector.judges.recording import call_recorder, provider_of_own
from hansard_collector.pipeline.embedded import EmbeddedIngest, open_embedded
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.evaluation.verdicts import VerdictRow

SERVICE: Final = "hansard.heartbeat"
_CLAIM: Final = "claim"  # the name of the results of verdicts
_EVENT: Final = "gen_ai.evaluation.result"
_AT_ONCE: Final = 500  # items of one request


class CycleTrace:
    """The trace of one cycle; used by one thread. `close` stores what is left."""

    def __init__(self, folder: DataFolder, mode: RetentionMode) -> None:
        """Open the store. Raises StoreError."""
        self._provider, self._ended = provider_of_own(SERVICE)
        self.tracer: Tracer = self._provider.get_tracer(SERVICE)
        # Of the calls of models that judge something: steps below their phase.
        self.recorder = call_recorder(folder, mode, self._provider, self.tracer)
        self._ingest: EmbeddedIngest = open_embedded(folder.path, retention=mode, sender=SERVICE)
        self._root = self.tracer.start_span("heartbeat", context=set_span_in_context(INVALID_SPAN))
        self.cycle_id = format(self._root.get_span_context().trace_id, "032x")

    @contextmanager
    def phase(self, name: str) -> Iterator[Span]:
        """Open the span of a phase, current in the block."""
        context = set_span_in_context(self._root)
        with self.tracer.start_as_current_span(
            f"heartbeat {name}",
            context=context,
            attributes={"hansard.heartbeat.phase": name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    def step_id(self, span: Span) -> str:
        """Return the id of a span's step."""
        return f"{self.cycle_id}-{span.get_span_context().span_id:016x}"

    def store(self, evaluations: Sequence[EvaluationResult] = ()) -> None:
        """Store the spans that have ended, and evaluation results on the spans that they judge."""
        if spans := self._ended.get_finished_spans():
            self._ended.clear()
            self._ingest.export("traces", encode_spans(spans).SerializeToString())
        _store(self._ingest, evaluations)

    def end(self, *, failed: Sequence[str]) -> None:
        """End the trace: an error where phases failed."""
        if failed:
            self._root.set_status(Status(StatusCode.ERROR, f"failed: {', '.join(failed)}"))
        else:
            self._root.set_status(Status(StatusCode.OK))
        self._root.end()
        self.store()

    def close(self) -> None:
        """Close the store."""
        self._provider.shutdown()
        self._ingest.close()


def results_of(rows: Sequence[VerdictRow]) -> list[EvaluationResult]:
    """Return the verdicts that are known as results of the steps that they judge."""
    return [
        EvaluationResult(
            step_id=one.step_id,
            name=_CLAIM,
            label=one.verdict,
            explanation=verdict_words(one),
        )
        for one in rows
        if one.step_id is not None and one.verdict != "unknown"
    ]


def store_evaluations(
    folder: DataFolder, mode: RetentionMode, evaluations: Sequence[EvaluationResult]
) -> None:
    """Store evaluation results on the spans that they judge, without a cycle. Raises StoreError."""
    ingest = open_embedded(folder.path, retention=mode, sender=SERVICE)
    try:
        _store(ingest, evaluations)
    finally:
        ingest.close()


def _store(ingest: EmbeddedIngest, evaluations: Sequence[EvaluationResult]) -> None:
    for at in range(0, len(evaluations), _AT_ONCE):
        ingest.export("logs", _request(evaluations[at : at + _AT_ONCE]).SerializeToString())


def set_outcome(span: Span, *, status: str, summary: str, figures: Mapping[str, Any]) -> None:
    """Write a phase's result on its span: one attribute a figure that is a number or a text."""
    span.set_attribute("hansard.heartbeat.status", status)
    span.set_attribute("hansard.heartbeat.summary", summary)
    for name, value in figures.items():
        if isinstance(value, bool | int | float | str):
            span.set_attribute(f"hansard.heartbeat.{name}", value)
    is_failed = status == "failed"
    span.set_status(Status(StatusCode.ERROR, summary) if is_failed else Status(StatusCode.OK))


def _request(evaluations: Sequence[EvaluationResult]) -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.append(_text("service.name", SERVICE))
    scope = resource.scope_logs.add()
    scope.scope.name = SERVICE
    now_ns = time.time_ns()
    scope.log_records.extend(_record(one, now_ns) for one in evaluations)
    return request


def _record(one: EvaluationResult, now_ns: int) -> LogRecord:
    attributes = [
        _text("event.name", _EVENT),
        _text("gen_ai.evaluation.name", one.name),
        _text("gen_ai.evaluation.score.label", one.label),
        _text("gen_ai.evaluation.explanation", one.explanation),
    ]
    if one.score is not None:
        value = AnyValue(double_value=one.score)
        attributes.append(KeyValue(key="gen_ai.evaluation.score.value", value=value))
    return LogRecord(
        time_unix_nano=now_ns,
        observed_time_unix_nano=now_ns,
        event_name=_EVENT,
        trace_id=bytes.fromhex(one.step_id[:32]),
        span_id=bytes.fromhex(one.step_id[33:49]),
        attributes=attributes,
    )


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
