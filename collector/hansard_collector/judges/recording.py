"""Where calls of models are recorded that judge something: in the store that they are about."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import INVALID_SPAN, Tracer, set_span_in_context

from hansard._config.settings import Settings
from hansard._runtime.recorder import Recorder
from hansard_collector.payloads import store_payload
from hansard_collector.pipeline.embedded import open_embedded
from hansard_compiler.errors import HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.payloads import prepare_payload
from hansard_store.content.retention import BINARY, Retention
from hansard_store.database.data_folder import DataFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger("hansard.judges")
_MOST_ATTRIBUTES: Final = 1_000


class FolderPayloads:
    """Stores payloads in a data folder at once; the SDK's `PayloadSink`. Never raises."""

    def __init__(self, folder: DataFolder, retention: Retention) -> None:
        self._folder = folder
        self._retention = retention

    def put(self, data: bytes, *, media_type: str, is_clean: bool = False) -> str:
        """Keep bytes without what retention takes out; return their reference, "" for none."""
        clean = self._retention.payload_to_send(data, media_type, is_clean=is_clean)
        if clean is None:
            return ""
        digest = hashlib.sha256(clean)
        try:
            made = prepare_payload(
                clean,
                expected=digest.digest(),
                media_type=media_type or BINARY,
                received_ns=time.time_ns(),
                retain=self._retention.payload,
            )
            if made is None:
                return ""
            store_payload(self._folder, made)
        except (HansardError, OSError) as error:
            _log.warning("a payload of a call was not stored: %s", error)
            return ""
        return f"sha256:{digest.hexdigest()}"


def provider_of_own(service: str) -> tuple[TracerProvider, InMemorySpanExporter]:
    """Return a provider whose spans mix with none of the program, and what holds ended ones."""
    ended = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": service}),
        span_limits=SpanLimits(max_span_attributes=_MOST_ATTRIBUTES),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(SimpleSpanProcessor(ended))
    return provider, ended


def call_recorder(
    folder: DataFolder, mode: RetentionMode, provider: TracerProvider, tracer: Tracer
) -> Recorder:
    """Return a recorder of model calls: spans by this tracer, payloads into the folder."""
    retention = Retention.of(folder, mode)
    return Recorder(
        settings=Settings(data=folder.path, retention=mode),
        provider=provider,
        tracer=tracer,
        redactor=retention.redactor,
        instance_id="",
        payloads=FolderPayloads(folder, retention),
    )


class CallTrace:
    """A trace of its own for a command that may call models; stored when it ends."""

    def __init__(self, folder: DataFolder, mode: RetentionMode, service: str) -> None:
        self._folder, self._mode, self._service = folder, mode, service
        self._provider, self._ended = provider_of_own(service)
        tracer = self._provider.get_tracer(service)
        self.recorder = call_recorder(folder, mode, self._provider, tracer)
        self.step_id = ""

    @contextmanager
    def span(self, name: str, *, always: bool) -> Iterator[None]:
        """Make one span current for the block, and store it with what was called in it.

        Without `always` nothing is stored where no model was called.
        """
        root = self.recorder.tracer.start_as_current_span(
            name, context=set_span_in_context(INVALID_SPAN)
        )
        try:
            with root as made:
                context = made.get_span_context()
                self.step_id = f"{context.trace_id:032x}-{context.span_id:016x}"
                yield
        finally:
            spans = self._ended.get_finished_spans()
            if always or len(spans) > 1:
                self._store(spans)
            self._provider.shutdown()

    def _store(self, spans: Sequence[ReadableSpan]) -> None:
        ingest = open_embedded(self._folder.path, retention=self._mode, sender=self._service)
        try:
            ingest.export("traces", encode_spans(spans).SerializeToString())
        finally:
            ingest.close()
