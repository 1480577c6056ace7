"""The steps of LangChain that the running code is inside of.

LangChain hands its steps on in a context of its own, and OpenInference, which makes a span of each,
does not make them current: what is recorded below such a step would be a trace of its own. A
handler of LangChain's callbacks remembers here which model is being called; of chains and tools
LangChain itself knows it.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span

from hansard._clients.guard import observing
from hansard._tracing import context

LIBRARIES: Final = ("langchain", "langgraph")


@dataclass(slots=True, eq=False)
class _ModelRun:
    """A model that LangChain is about to ask: once."""

    run_id: Any
    current: int  # the id of OpenTelemetry's current span when it began
    unclaimed: list[bool] = field(default_factory=lambda: [True])  # popped by the call that is it


@dataclass(slots=True)
class _Followed:
    """The instrumentor whose spans are looked for; None: LangChain is not followed."""

    instrumentor: Any = None
    handler: Any = None

    def get(self) -> Any:
        """Return the handler, as the context variable of a configure hook would."""
        return None if self.instrumentor is None else self.handler


_running: ContextVar[tuple[_ModelRun, ...]] = ContextVar("hansard-langchain-models", default=())
_followed: Final = _Followed()


@observing
def follow(instrumentor: Any) -> None:
    """Place what is recorded from now on below the spans of this instrumentor of LangChain.

    One that does not tell its spans by LangChain's runs makes them current, and needs nothing.
    """
    if not hasattr(instrumentor, "get_span") or not hasattr(instrumentor, "get_ancestors"):
        return
    if _followed.handler is None:
        handler = _handler()
        import_module("langchain_core.tracers.context").register_configure_hook(_followed, True)
        _followed.handler = handler
        context.inside_of(step_span)
    _followed.instrumentor = instrumentor


def follow_no_more() -> None:
    """Undo `follow`."""
    _followed.instrumentor = None


@observing
def model_span() -> Span | None:
    """Return the span of the model step that a call of a model is, once for each; else None."""
    if _followed.instrumentor is None:
        return None
    current = _span_id(trace.get_current_span())
    for run in _running.get():
        span: Span | None = _followed.instrumentor.get_span(run.run_id)
        # With another span current than when it began, something else was begun inside of it.
        if span is None or not span.is_recording() or run.current != current:
            continue
        try:
            run.unclaimed.pop()
        except IndexError:
            continue
        return span
    return None


@observing
def step_span() -> Span | None:
    """Return the span of the chain or tool that runs this code, unless it began another since."""
    if _followed.instrumentor is None:
        return None
    config = sys.modules["langchain_core.runnables.config"].var_child_runnable_config.get()
    callbacks = config.get("callbacks") if isinstance(config, dict) else None
    run_id = getattr(callbacks, "parent_run_id", None)
    span: Span | None = _followed.instrumentor.get_span(run_id) if run_id else None
    if span is None or not span.is_recording():
        return None
    current = _span_id(trace.get_current_span())
    around = [span, *_followed.instrumentor.get_ancestors(run_id)]
    parent = getattr(around[-1], "parent", None)
    return span if current in (0, *map(_span_id, around), parent and parent.span_id) else None


def _span_id(span: Span) -> int:
    return span.get_span_context().span_id


def _begin(run_id: Any, batch_size: int) -> None:
    run = _ModelRun(run_id, _span_id(trace.get_current_span()))
    # Those of a batch begin together, and are called after that.
    batch = [one for one in _running.get() if one.unclaimed] if batch_size > 1 else []
    _running.set((*batch[1 - batch_size :], run) if batch else (run,))


def _handler() -> Any:
    base: Any = import_module("langchain_core.callbacks").BaseCallbackHandler

    class ModelRuns(base):  # type: ignore[misc]  # a class of a package that may be missing
        """Remembers in the caller's context which model run begins there."""

        run_inline = True  # an asynchronous manager would call it in another context
        ignore_chain = ignore_agent = ignore_retriever = ignore_retry = True
        ignore_custom_event = True

        def on_chat_model_start(self, *_: Any, run_id: Any, **more: Any) -> None:
            _begin(run_id, int(more.get("batch_size") or 1))

        def on_llm_start(self, *_: Any, run_id: Any, **more: Any) -> None:
            _begin(run_id, int(more.get("batch_size") or 1))

        def on_interrupt(self, *_: Any, **__: Any) -> None:
            """LangGraph gives its own events to every handler."""

        def on_resume(self, *_: Any, **__: Any) -> None:
            """LangGraph gives its own events to every handler."""

    return ModelRuns()
