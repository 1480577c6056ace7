"""A recorder whose spans and payloads a test can look at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hansard import semconv
from hansard._config.settings import load_settings
from hansard._export.dropped import Losses, Sender
from hansard._export.payload_writer import PayloadWriter
from hansard._export.processor import register
from hansard._export.spool import FOLDER, Spool, SpooledPayload, files_of, process_folders
from hansard._runtime import recorder as _state
from hansard._runtime.recorder import Recorder
from hansard_compiler.redaction.redactor import Redactor

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Recorded:
    """What was recorded."""

    recorder: Recorder
    exporter: InMemorySpanExporter
    writer: PayloadWriter
    data: Path

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    @property
    def span(self) -> ReadableSpan:
        [span] = self.spans
        return span

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self.span.attributes or {})

    def await_span(self) -> ReadableSpan:
        """Return the one span, as soon as another thread has ended it."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.spans and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.span

    def payload(self, ref: str) -> bytes:
        """Return the bytes that a reference names."""
        [found] = [one for one in self._payloads() if one.ref == ref]
        return found.data

    def _payloads(self) -> Iterator[SpooledPayload]:
        for folder in process_folders(self.data / FOLDER):
            for file in files_of(folder):
                yield from file.read_payloads()


@contextmanager
def recording(data: Path, *, retention: str = "redacted_payloads") -> Iterator[Recorded]:
    """Record, without sending, until the block ends."""
    settings = load_settings({"data": data, "retention": retention})
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    register(provider, stop=lambda: None)
    redactor = Redactor(b"k" * 32)
    spool = Spool(data / FOLDER, max_bytes=1 << 28, losses=Losses(Sender("test", "test")))
    writer = PayloadWriter(settings, redactor, spool)
    recorder = Recorder(
        settings=settings,
        provider=provider,
        tracer=provider.get_tracer(semconv.SCOPE_NAME),
        redactor=redactor,
        instance_id="test",
        payloads=writer,
    )
    before = _state.active()
    _state.install(recorder)
    try:
        yield Recorded(recorder, exporter, writer, data)
    finally:
        _state.install(before)
