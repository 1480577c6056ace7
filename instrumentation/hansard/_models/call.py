"""Asking a model for what was compiled, with the exact bytes of both directions on record.

Like compiling this is a function of the program: what goes wrong between the compiled context and
the answer is raised, typed. Recording it fails open; without `hansard.init()` nothing is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import get_current_span

from hansard._clients.call import quiet_clients
from hansard._context.compiled_step import CompiledStep
from hansard._gate.flow import in_thread
from hansard._models.answer import ModelAnswer
from hansard._models.call_span import CallSpan
from hansard._runtime.recorder import active
from hansard._tracing.context import current_context, entered
from hansard._tracing.observation import is_cancellation
from hansard.errors import refuse_async
from hansard_compiler.calls import Json
from hansard_compiler.errors import ConfigError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.base import OnEvent, RenderInput, Sampling
from hansard_compiler.providers.registry import adapter_for
from hansard_compiler.providers.transport.exchange import watching

if TYPE_CHECKING:
    from hansard._runtime.recorder import Recorder

_SAMPLING = frozenset(one.name for one in fields(Sampling))


class CallOptions(TypedDict, total=False):
    """How to ask; what a provider's API has no form for is refused, never lost."""

    model: str  # another than the context was compiled for
    max_output_tokens: int
    temperature: float
    top_p: float
    stop: tuple[str, ...]
    seed: int
    effort: str
    tool_choice: str  # auto, none, required, or a tool's name
    output_schema: Json
    reasoning: Json
    previous_response_id: str
    held_messages: int
    max_input_tokens: int  # more is refused before anything is sent
    extra: Json  # fields of the request, as they are


class CallModelOptions(CallOptions, total=False):
    """All that `call_model` takes by name."""

    provider: str | Adapter | None
    stream: bool
    on_event: OnEvent | None


def call_model(
    compiled: CompiledStep | RenderInput,
    *,
    provider: str | Adapter | None = None,
    stream: bool = False,
    on_event: OnEvent | None = None,
    **options: Unpack[CallOptions],
) -> ModelAnswer:
    """Call the model, return its response. Raises RequestRefused before sending, CallFailed after.

    `provider` is an adapter, or the name of one that is set up from the environment; left out, the
    one the context was compiled for. With `stream`, `on_event` gets each event as it arrives; what
    it raises closes the stream and is raised here.
    """
    refuse_async("on_event=", on_event)
    calling = _Calling(compiled, provider, stream=stream, options=options, recorder=active())
    return calling.answer(on_event)


async def acall_model(
    compiled: CompiledStep | RenderInput,
    *,
    provider: str | Adapter | None = None,
    stream: bool = False,
    on_event: OnEvent | None = None,
    **options: Unpack[CallOptions],
) -> ModelAnswer:
    """Call the model without holding up the event loop: see `call_model`.

    The call has a thread of its own, where `on_event` is called too. A task that is cancelled does
    not wait: the call counts as cancelled, and a stream is closed at its next event.
    """
    refuse_async("on_event=", on_event)
    calling = _Calling(compiled, provider, stream=stream, options=options, recorder=active())
    try:
        return await in_thread(lambda: calling.answer(on_event))
    except BaseException as error:
        if is_cancellation(error):
            calling.abandon()
        raise


def call_into(
    recorder: Recorder,
    compiled: CompiledStep | RenderInput,
    *,
    provider: Adapter,
    on_begin: Callable[[str], object],
    stream: bool = False,
    on_event: OnEvent | None = None,
    **options: Unpack[CallOptions],
) -> ModelAnswer:
    """Call the model for another program, and let this recorder keep it: see `call_model`.

    `on_begin` is called with the call's step id when its span is open and nothing was sent yet.
    """
    refuse_async("on_event=", on_event)
    calling = _Calling(compiled, provider, stream=stream, options=options, recorder=recorder)
    on_begin(calling.step_id)
    return calling.answer(on_event)


def adapter_of(
    provider: str | Adapter | None, compiled: CompiledStep | RenderInput | None = None
) -> Adapter:
    """Return the adapter to ask; ConfigError where none is named."""
    if isinstance(provider, str):
        return _adapter_named(provider, os.getpid())
    if provider is not None:
        return provider
    if isinstance(compiled, CompiledStep):
        return compiled.adapter or _adapter_named(compiled.provider, os.getpid())
    raise ConfigError("call_model needs a provider: an adapter, or the name of one")


@lru_cache(maxsize=16)
def _adapter_named(name: str, pid: int) -> Adapter:
    """Return one adapter a name and process: connections are reused, and not shared by forks."""
    return adapter_for(name)


def render_input_of(
    compiled: CompiledStep | RenderInput, *, stream: bool = False, **options: Any
) -> RenderInput:
    """Return what an adapter renders. A RenderInput stays as it is: it is complete."""
    if isinstance(compiled, RenderInput):
        if options:
            raise TypeError(f"a RenderInput has its own {', '.join(sorted(options))}")
        return compiled
    unknown = options.keys() - CallOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"call_model has no option {', '.join(sorted(unknown))}")
    sampling = {name: options.pop(name) for name in _SAMPLING & options.keys()}
    if isinstance(sampling.get("stop"), str | list):
        stop = sampling["stop"]
        sampling["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    return compiled.render_input(sampling=Sampling(**sampling), stream=stream, **options)


class _Abandoned(BaseException):
    """The call was abandoned: it ends at the next event."""


class _Calling:
    """One call while it is made."""

    def __init__(
        self,
        compiled: CompiledStep | RenderInput,
        provider: str | Adapter | None,
        *,
        stream: bool,
        options: CallOptions,
        recorder: Recorder | None,
    ) -> None:
        self._adapter = adapter_of(provider, compiled)
        self._request = render_input_of(compiled, stream=stream, **options)
        self._compiled = compiled if isinstance(compiled, CompiledStep) else None
        self._outside = _place_of(self._compiled)
        self._is_abandoned = False
        with entered(self._outside):
            self._span = CallSpan.begin(recorder, self._request, self._adapter, self._compiled)

    @property
    def step_id(self) -> str:
        """The step of the call; "" where it is not recorded."""
        return self._span.step_id

    def answer(self, on_event: OnEvent | None) -> ModelAnswer:
        try:
            with self._span.running(), quiet_clients(), watching(self._span):
                raw = self._adapter.call(self._request, on_event=self._on_delta(on_event))
                continuation = self._adapter.format.continuation(raw.response)
        except BaseException as error:
            self._span.fail(error)
            raise
        return ModelAnswer(raw, continuation, self._span.finish(raw))

    def abandon(self) -> None:
        """End the record now: the program does not wait for the response."""
        self._is_abandoned = True
        self._span.cancel()

    def _on_delta(self, on_event: OnEvent | None) -> OnEvent:
        def report(event: Json) -> None:
            if self._is_abandoned:
                raise _Abandoned
            if on_event is not None:
                token = otel_context.attach(self._outside)  # what the program does is not the call
                try:
                    on_event(event)
                finally:
                    otel_context.detach(token)

        return report


def _place_of(compiled: CompiledStep | None) -> Context:
    """Return the parent of the call: what is current, else the step that was compiled for."""
    here = current_context()
    if compiled is None or compiled.otel_context is None:
        return here
    return here if get_current_span(here).get_span_context().is_valid else compiled.otel_context
