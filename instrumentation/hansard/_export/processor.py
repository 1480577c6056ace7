"""The span processors: the one that sends, and one a provider that hands spans to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from hansard import semconv
from hansard._export.batch_queue import span_bytes
from hansard._export.dropped import Losses, Sender
from hansard._export.redaction import BatchCleaner
from hansard._export.spool import FOLDER, Spool
from hansard._export.worker import BatchExportWorker
from hansard._runtime.recorder import active
from hansard._runtime.warnings import warn_once
from hansard._tracing.propagation import inherit

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, Span

    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor

# What the child of a fork inherits and must not take apart: connections of the parent.
_of_parents: list[BatchExportWorker] = []


class SpanPipeline(SpanProcessor):
    """Follows open spans and sends finished ones, never in the way of the program."""

    def __init__(
        self,
        settings: Settings,
        resource: Resource,
        *,
        instance_id: str,
        redactor: Redactor,
    ) -> None:
        # Its import makes threads, which a program that is ending already does not allow.
        import opentelemetry.sdk._logs  # noqa: F401

        self._settings = settings
        self._redactor = redactor
        # Payloads are written to it directly, by `PayloadWriter`.
        self.spool = Spool(
            settings.data / FOLDER,
            max_bytes=settings.spool_max_bytes,
            losses=_losses_of(resource, instance_id),
        )
        self._begin(resource, instance_id)
        self._worker.start()

    def _begin(self, resource: Resource, instance_id: str) -> None:
        cleaner = BatchCleaner(self._settings.retention, self._redactor, instance_id=instance_id)
        self._resource = cleaner.resource_of(resource)
        self._worker = BatchExportWorker(
            self._settings, self._resource, spool=self.spool, prepare=cleaner
        )

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Follow a span, so that it can be shown while it runs."""
        if _is_sampled(span) and self._worker.open_spans.start(span):
            self._worker.opened()

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span. Never raises and never waits."""
        if not _is_sampled(span):
            return
        try:
            self._worker.open_spans.end(span)
            self._worker.put(span, span_bytes(span))
        except Exception as error:  # observing must not harm the program
            warn_once("queue", "a span could not be queued: %s", error)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is queued now; False when not all of it was sent in time."""
        return self._worker.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send what can be sent within `exit_timeout_ms`, and keep the rest on disk."""
        self.close(self._settings.exit_timeout_ms)

    def close(self, timeout_millis: int) -> None:
        """Send what can be sent in this time, keep the rest on disk, and end every thread."""
        self._worker.close(timeout_millis / 1000)

    def after_fork(self, resource: Resource, instance_id: str) -> None:
        """Begin afresh in the child of a fork: no threads, and nothing of the parent's queue."""
        _of_parents.append(self._worker)
        self.spool.after_fork(_losses_of(resource, instance_id))
        self._begin(resource, instance_id)


def _losses_of(resource: Resource, instance_id: str) -> Losses:
    return Losses(Sender(str(resource.attributes.get(semconv.SERVICE_NAME, "")), instance_id))


def _is_sampled(span: Any) -> bool:
    context = span.get_span_context()
    return context is not None and bool(context.trace_flags.sampled)


# ---- one a provider, however often the SDK starts and stops

# Processors cannot be taken off a provider again, so each provider gets one and keeps it.
_registered: WeakSet[TracerProvider] = WeakSet()


class DelegatingSpanProcessor(SpanProcessor):
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


def register(provider: TracerProvider, *, stop: Callable[[], None]) -> None:
    """Add the processor to a provider that has none yet."""
    if provider not in _registered:
        _registered.add(provider)
        provider.add_span_processor(DelegatingSpanProcessor(stop))


def _pipeline() -> SpanPipeline | None:
    recorder = active()
    return None if recorder is None else recorder.exporter
