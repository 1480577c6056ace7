"""A tracer that makes no span of a call that has one already."""

from __future__ import annotations

from typing import Any

from opentelemetry.trace import NonRecordingSpan

from hansard.clients.call import current_call


class QuietTracer:
    """Stands before a client's own tracer.

    Inside a recorded call it gives out the identity of the recorded span: what the client passes on
    to its server (`traceparent`) then names that span, and nothing is recorded twice.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def start_span(self, *args: Any, **kwargs: Any) -> Any:
        call = current_call()
        if call is None:
            return self.inner.start_span(*args, **kwargs)
        return NonRecordingSpan(call.span.get_span_context())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
