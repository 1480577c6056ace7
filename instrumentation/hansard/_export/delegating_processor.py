"""The span processor that is added to a provider once, however often the SDK starts and stops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakSet

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from hansard._runtime.recorder import Pipeline, active
from hansard._runtime.warnings import warn_once
from hansard._tracing.propagation import inherit

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

# Processors cannot be taken off a provider again, so each provider gets one and keeps it.
_joined: WeakSet[TracerProvider] = WeakSet()


class Relay(SpanProcessor):
    """Hands each span to the pipeline of the recorder in force; to none when there is none."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop  # the provider of the application ends: so does the recorder

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        try:
            if active() is not None:
                inherit(span, parent_context)
            pipeline = _pipeline()
            if pipeline is not None:
                pipeline.on_start(span, parent_context)
        except Exception as error:  # it would come out of the application's own `start_span`
            warn_once("relay start", "a span that began was not followed: %r", error)

    def on_end(self, span: ReadableSpan) -> None:
        try:
            pipeline = _pipeline()
            if pipeline is not None:
                pipeline.on_end(span)
        except Exception as error:
            warn_once("relay end", "a span that ended was not sent: %r", error)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        pipeline = _pipeline()
        return True if pipeline is None else pipeline.force_flush(timeout_millis)

    def shutdown(self) -> None:
        self._stop()


def join(provider: TracerProvider, *, stop: Callable[[], None]) -> None:
    """Add the relay to a provider that has none yet."""
    if provider not in _joined:
        _joined.add(provider)
        provider.add_span_processor(Relay(stop))


def _pipeline() -> Pipeline | None:
    recorder = active()
    return None if recorder is None else recorder.exporter
