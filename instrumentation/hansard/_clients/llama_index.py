"""What OpenInference's spans of LlamaIndex lack: whose stream a request is, which model served.

LlamaIndex sends a stream's request when its first chunk is requested. The step that made the
stream is over by then, so its span does not surround the request, and what is recorded of that
would be a trace of its own. Which stream a request belongs to is no guess: the generator that
LlamaIndex handed out is running then, further up in the stack, in whatever thread or task.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import AsyncGeneratorType, FrameType, GeneratorType
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span

from hansard import semconv
from hansard._clients.guard import observing
from hansard_compiler.providers.formats.fields import text

LIBRARIES: Final = ("llama_index", "llamaindex")
# What OpenAI, Anthropic and others, and what Gemini call the model that served.
_SERVED: Final = ("model", "model_version", "modelVersion")


@dataclass(slots=True, eq=False)
class _Stream:
    """A generator that a model's step handed out, and the span of the step."""

    generator: weakref.ref[Any]
    span: Span

    def runs_in(self, frame: FrameType) -> bool:
        """Whether this frame is the generator's: the address of one that ended is used again."""
        made = self.generator()
        return made is not None and _frame_of(made) is frame


@dataclass(slots=True)
class _Followed:
    """Our handler among the dispatcher's; None: LlamaIndex is not followed."""

    handler: Any = None


_followed: Final = _Followed()
_streams: Final[dict[int, _Stream]] = {}  # by the address of the generator's frame


@observing
def follow() -> None:
    """Look, from now on, at what LlamaIndex's models return."""
    handlers = _handlers()
    if _followed.handler is None:
        _followed.handler = _handler()
    if all(one is not _followed.handler for one in handlers):
        handlers.insert(0, _followed.handler)  # before those that forget their span at its end


@observing
def follow_no_more() -> None:
    """Undo `follow`."""
    if _followed.handler is not None:
        handlers = _handlers()
        handlers[:] = [one for one in handlers if one is not _followed.handler]
        _streams.clear()


@observing
def stream_span() -> Span | None:
    """Return the span of the step whose stream is being read by the running code; else None."""
    frame: FrameType | None = sys._getframe() if _streams else None
    while frame is not None:
        made = _streams.get(id(frame))
        if made is not None and made.runs_in(frame):
            return made.span
        frame = frame.f_back
    return None


def stream_place() -> Span | None:
    """Return the parent of a client's span, where a stream sends its request."""
    span = stream_span()
    if span is None or is_below(span):
        return span
    repeat(span)
    return None


def is_below(span: Span) -> bool:
    """Whether what is begun here can be placed below a stream's step: in its trace, or in none."""
    current = trace.get_current_span().get_span_context()
    return not current.is_valid or current.trace_id == span.get_span_context().trace_id


def repeat(span: Span) -> None:
    """Say of a stream's step that the call it made has a span of its own."""
    if span.is_recording():
        span.set_attribute(semconv.DUPLICATE, True)


def _frame_of(generator: Any) -> FrameType | None:
    """Return the frame of a generator, the same one as long as it has not ended."""
    name = "gi_frame" if isinstance(generator, GeneratorType) else "ag_frame"
    frame: FrameType | None = getattr(generator, name)
    return frame


@observing
def _keep(id_: str, result: Any) -> None:
    """Remember a stream until it is deleted."""
    frame, span = _frame_of(result), _span_of(id_)
    if frame is None or span is None or not span.get_span_context().trace_flags.sampled:
        return
    key = id(frame)

    def forget(generator: weakref.ref[Any]) -> None:
        stream = _streams.get(key)
        if stream is not None and stream.generator is generator:
            del _streams[key]

    _streams[key] = _Stream(weakref.ref(result, forget), span)


@observing
def _name_server(id_: str, response: Any) -> None:
    """Name the model that served, from the provider's own response, where nothing else does.

    OpenInference's span names the requested one.
    """
    fields = response if isinstance(response, Mapping) else getattr(response, "__dict__", {})
    served = next((text(fields[name]) for name in _SERVED if name in fields), None)
    span = _span_of(id_) if served else None
    if span is not None and span.is_recording():
        span.set_attribute(semconv.RESPONSE_MODEL, served or "")


def _span_of(id_: str) -> Span | None:
    """Return the span of OpenTelemetry that another handler made for a step that is open.

    Handlers keep something of their own for each step; the span is one of its attributes.
    """
    for handler in _handlers():
        span = handler.open_spans.get(id_)
        private = getattr(span, "__pydantic_private__", None) or {}
        for value in (*getattr(span, "__dict__", {}).values(), *private.values()):
            if isinstance(value, Span):
                return value
    return None


def _handlers() -> list[Any]:
    dispatcher = import_module("llama_index.core.instrumentation").get_dispatcher()
    handlers: list[Any] = dispatcher.span_handlers
    return handlers


def _handler() -> Any:
    base: Any = import_module("llama_index.core.instrumentation.span_handlers").BaseSpanHandler
    model: type = import_module("llama_index.core.base.llms.base").BaseLLM

    class StepsOfModels(base):  # type: ignore[misc]  # a class of a package that may be missing
        """Sees what each step of a model returns; it keeps no spans of its own."""

        def new_span(self, *_: Any, **__: Any) -> None:
            """Not one of ours."""

        def prepare_to_exit_span(
            self, id_: str, *_: Any, instance: Any = None, result: Any = None, **__: Any
        ) -> None:
            if not isinstance(instance, model):
                return
            if isinstance(result, GeneratorType | AsyncGeneratorType):
                _keep(id_, result)
            else:
                _name_server(id_, getattr(result, "raw", None))

        def prepare_to_drop_span(self, *_: Any, **__: Any) -> None:
            """Nothing was returned."""

    return StepsOfModels()
