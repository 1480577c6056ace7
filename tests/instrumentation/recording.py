"""A recorder whose spans stay in memory: the stock SDK with its in-memory exporter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from hansard._config.settings import Settings
from hansard._runtime import recorder as _state
from hansard._runtime.recorder import Recorder
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode


@dataclass
class Recorded:
    """What was recorded so far."""

    recorder: Recorder
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Every span that ended, in the order of ending."""
        return list(self.exporter.get_finished_spans())

    def only(self) -> ReadableSpan:
        """The one span there is."""
        [span] = self.spans
        return span

    def named(self, name: str) -> ReadableSpan:
        """The one span of this name."""
        [span] = [span for span in self.spans if span.name == name]
        return span


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return a span's attributes as plain data."""
    return dict(span.attributes or {})


def content(span: ReadableSpan, key: str) -> Any:
    """Return content that was captured, its JSON opened."""
    return json.loads(attributes(span)[key])


@contextmanager
def recording(
    *,
    retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
    sampler: Sampler | None = None,
) -> Iterator[Recorded]:
    """Record in this process until the block ends; content of any length stands by value."""
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    recorder = Recorder(
        settings=Settings(data=Path("/nonexistent"), retention=retention),
        provider=provider,
        tracer=provider.get_tracer("hansard"),
        redactor=Redactor(b"key"),
        instance_id="instance",
    )
    before = _state.active()
    _state.install(recorder)
    try:
        yield Recorded(recorder, exporter)
    finally:
        _state.install(before)
