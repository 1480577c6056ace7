"""Tracers that wrap those of clients, and of their instrumentors: each span is a call."""

from __future__ import annotations

from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan

from hansard import semconv
from hansard._clients import langchain, llama_index
from hansard._clients.call import current_call

_MODEL: Final = "llm.model_name"  # OpenInference: what was requested, until the answer comes


class _Wrapper:
    """Stands before an object, and is like it but for some methods."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class QuietTracer(_Wrapper):
    """Stands before a client's own tracer, and makes no span of a call that has one already.

    Inside a recorded call it gives out the identity of the recorded span: what the client passes on
    to its server (`traceparent`) then names that span, and nothing is recorded twice.
    """

    def start_span(self, *args: Any, **kwargs: Any) -> Any:
        call = current_call()
        if call is None:
            return self.inner.start_span(*args, **kwargs)
        return NonRecordingSpan(call.span.get_span_context())


class PlacedProvider(_Wrapper):
    """Spans of its tracers, begun for a framework's step that is not current, are its children.

    The model that a span names when it begins is the one that was requested: nothing is served yet.
    An instrumentor may replace it by the version that served.
    """

    def get_tracer(self, *args: Any, **kwargs: Any) -> Any:
        return _PlacedTracer(self.inner.get_tracer(*args, **kwargs))


class _PlacedTracer(_Wrapper):
    def start_span(self, name: str, context: Context | None = None, *args: Any, **kw: Any) -> Any:
        span = self.inner.start_span(name, context or _call_context(), *args, **kw)
        attributes = getattr(span, "attributes", None) or {}
        if _MODEL in attributes and semconv.REQUEST_MODEL not in attributes:
            span.set_attribute(semconv.REQUEST_MODEL, attributes[_MODEL])
        return span

    def start_as_current_span(
        self, name: str, context: Context | None = None, *args: Any, **kw: Any
    ) -> Any:
        return self.inner.start_as_current_span(name, context or _call_context(), *args, **kw)


def _call_context() -> Context | None:
    outer = langchain.model_span() or llama_index.stream_place() or langchain.step_span()
    return None if outer is None else trace.set_span_in_context(outer)
