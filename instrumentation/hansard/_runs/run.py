"""A run: a trace seen as one agent's work, from `start_run` to `end`."""

from __future__ import annotations

import atexit
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, Unpack
from weakref import WeakSet

from opentelemetry import baggage
from opentelemetry import context as otel
from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from hansard import semconv
from hansard._runs.step import Open, Step, StepKind
from hansard._runs.tool_steps import ToolSteps
from hansard._runtime import recorder as _state
from hansard._runtime.durations import Duration
from hansard._runtime.recorder import active
from hansard._tracing.attributes import (
    run_attributes,
    run_name,
    step_attributes,
    text_of,
    text_or_none,
)
from hansard._tracing.context import (
    current_context,
    entered,
    remote_step,
    with_agent,
)
from hansard._tracing.open_span import Ended, OpenSpan, SpanEnd, outcome_of, quietly
from hansard._tracing.propagation import MAX_BAGGAGE_CHARS, with_run
from hansard._tracing.serialization import to_json

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from hansard._context.compile import CompileOptions
    from hansard._context.compiled_step import CompiledStep
    from hansard._models.answer import ModelAnswer
    from hansard._models.call import CallModelOptions
    from hansard_compiler.providers.base import RenderInput

_RUN: Final = otel.create_key("hansard-run")
# Held weakly: a run that the program forgot is closed when nothing holds it any more.
_open_runs: WeakSet[Run] = WeakSet()


class Run(Open, ToolSteps):
    """A run that is open until `end()`, or until its `with` or `async with` block ends.

    An exception that leaves the block makes it failed and goes on; a cancellation makes it
    cancelled. Nothing here raises, and without `hansard.init()` nothing here does anything:
    `run_id` is None then. Steps and tool calls may be recorded from any thread.

    The order of the methods is that of an agent's turn: a step, in it what is compiled for the
    model and the call of the model, then the tools that the model called, then the end.
    """

    __module__ = "hansard"  # where programs find it

    def __init__(
        self,
        made: OpenSpan | None,
        *,
        agent_name: str | None,
        conversation_id: str | None,
        base: Context,
    ) -> None:
        self.agent_name = agent_name
        self.conversation_id = conversation_id
        Open.__init__(self, made)
        ToolSteps.__init__(self)
        self._steps: dict[int, Step] = {}  # open ones, by id()
        self._step_numbers = itertools.count()
        self._context = base if made is None else self._inner_context(base, made)
        if made is not None:
            _open_runs.add(self)

    def _inner_context(self, base: Context, made: OpenSpan) -> Context:
        context = set_span_in_context(made.span, base)
        context = with_run(context, run_id=made.trace_id, conversation_id=self.conversation_id)
        if self.agent_name:
            context = with_agent(self.agent_name, context)
        return otel.set_value(_RUN, self, context)

    @property
    def run_id(self) -> str | None:
        """The trace id, 32 hex digits; None where nothing is recorded."""
        return None if self._made is None else self._made.trace_id

    def context(self) -> Context:
        """Return the context of what comes next: the current one inside the run."""
        current = current_context()
        return current if otel.get_value(_RUN, current) is self else self._context

    # ---- where the run is the current one

    def _inside(self, made: OpenSpan) -> Context:
        return self._context

    @contextmanager
    def activate(self) -> Iterator[Self]:
        """Make the run the current one for a block, in another thread or task than its own."""
        if self._made is None:
            yield self
            return
        with entered(self._context):
            yield self

    # ---- what happens in it

    def step(
        self,
        name: str,
        kind: StepKind = "other",
        *,
        input: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Step:
        """Begin a step; what is recorded in this thread or task until its end nests in it."""
        made = None
        name, step_kind = text_of(name), text_of(kind)
        if self._made is not None:
            with quietly("start"):
                made = self._begin_step(name, step_kind, metadata)
        if made is not None and input is not None:
            made.keep(semconv.INPUT, input)
        step = Step(name, step_kind, made=made, on_end=lambda step: self._steps.pop(id(step), None))
        if made is not None:
            self._steps[id(step)] = step
        return step.enter()

    def _begin_step(self, name: str, kind: str, metadata: Mapping[str, Any] | None) -> OpenSpan:
        assert self._made is not None
        recorder = self._made.recorder
        index = next(self._step_numbers)
        return OpenSpan(
            recorder,
            name,
            context=self.context(),
            attributes=step_attributes(recorder, kind=kind, index=index, metadata=metadata),
        )

    # ---- the model's context and call

    def compile_step(
        self, inputs: Iterable[Any], *, step: Step | None = None, **options: Unpack[CompileOptions]
    ) -> CompiledStep:
        """Compile the context of one model call: see `hansard.compile_step`. Raises CompileError.

        It belongs to `step`, else to the current step of the run.
        """
        from hansard._context.compile import compile_step

        return compile_step(self, step, inputs, **options)

    def call_model(
        self, compiled: CompiledStep | RenderInput, **options: Unpack[CallModelOptions]
    ) -> ModelAnswer:
        """Call a model: see `hansard.call_model`. Raises RequestRefused and CallFailed."""
        from hansard._models.call import call_model

        with entered(self.context()):
            return call_model(compiled, **options)

    async def acall_model(
        self, compiled: CompiledStep | RenderInput, **options: Unpack[CallModelOptions]
    ) -> ModelAnswer:
        """Ask a model without holding up the event loop: see `hansard.acall_model`."""
        from hansard._models.call import acall_model

        with entered(self.context()):
            return await acall_model(compiled, **options)

    # ---- its end

    def end(
        self,
        *,
        status: str | None = None,
        output: Any = None,
        error: BaseException | str | None = None,
    ) -> None:
        """End the run: completed, or as `status` or `error` say. A second end does nothing.

        Steps and tool calls that are still open end with it, marked `hansard.unended`. In a
        forked child the run is its parent's to end.
        """
        self._close(outcome_of(status, error), output)

    def leave_open(self, error: BaseException | None = None) -> None:
        """End the run because the program ends, or forgot it."""
        outcome = outcome_of(None, error) if error is not None else SpanEnd("cancelled")
        self._close(SpanEnd(outcome.status, outcome.error, left_open=True), None)

    def _close(self, outcome: SpanEnd, output: Any) -> None:
        left: Ended = "completed" if outcome.status == "completed" else "cancelled"
        self._leave_calls_open(outcome)
        for step in reversed(list(self._steps.values())):
            step.close(SpanEnd(left, left_open=True))
        if self._finish(outcome, semconv.OUTPUT, output):
            _open_runs.discard(self)

    def __del__(self) -> None:
        if self._made is not None and self._made.is_open:
            with quietly("end"):
                self.leave_open()


def current_run(context: Context | None = None) -> Run | None:
    """Return the run that this thread or task is in; None where it is in none."""
    run = otel.get_value(_RUN, current_context() if context is None else context)
    return run if isinstance(run, Run) else None


def open_runs() -> list[Run]:
    """Return the runs of this process that did not end."""
    return list(_open_runs)


def context_of(run: Run | str | None, step: Step | str | None) -> Context:
    """Return the context of a step: the parent of spans that belong to it.

    A run or step by its id may be another process's. What is named by no id that we know belongs to
    the current run, else to the span that is current here.
    """
    found = _run_of(run)
    base = current_context() if found is None else found.context()
    if isinstance(step, Step):
        return set_span_in_context(step.span, base) if step.is_recorded else base
    flags = get_current_span(base).get_span_context().trace_flags | TraceFlags.SAMPLED
    remote = remote_step(step, flags)
    return base if remote is None else set_span_in_context(NonRecordingSpan(remote), base)


def _run_of(run: Run | str | None) -> Run | None:
    if isinstance(run, Run):
        return run
    if run is None:
        return current_run()
    return next((one for one in open_runs() if one.run_id == run), None)


class _Outside(ToolSteps):
    """Where no run is current: in a decorated agent, or in a span of someone else."""

    def context(self) -> Context:
        return current_context()


_outside = _Outside()
_registered = False


def start_run(
    agent_name: str | None = None,
    domain: str | None = None,
    user_goal: str | None = None,
    *,
    conversation_id: str | None = None,
    user_id: str | None = None,
    tags: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    nest: bool = False,
) -> Run:
    """Begin a run and make it the current one of this thread or task. Never raises.

    It is a trace of its own, linked to the span that is current here; with `nest` it is a child of
    that span, as a sub-agent is. Without a `conversation_id` it takes the one of the run it began
    in. End it with `end()`, `end_run()`, or a `with` or `async with` block.
    """
    recorder = active()
    outer = current_context()
    agent_name = text_or_none(agent_name)
    conversation_id = text_or_none(conversation_id) or _conversation_of(outer)
    if conversation_id is not None:
        conversation_id = conversation_id[:MAX_BAGGAGE_CHARS]
    made = None
    if recorder is not None:
        with quietly("start"):
            made = OpenSpan(
                recorder,
                run_name(agent_name),
                context=outer if nest else set_span_in_context(INVALID_SPAN, outer),
                links=() if nest else _links_to(outer),
                attributes=run_attributes(
                    recorder,
                    agent_name=agent_name,
                    domain=domain,
                    conversation_id=conversation_id,
                    user_id=user_id,
                    tags=tags,
                    metadata=metadata,
                ),
            )
    if made is not None and user_goal is not None:
        # A goal of any length; of a value that is no text, its JSON.
        goal = user_goal if type(user_goal) is str else to_json(user_goal)
        made.keep_text(semconv.RUN_GOAL, goal)
    _register_once()
    run = Run(made, agent_name=agent_name, conversation_id=conversation_id, base=outer)
    return run.enter()


def record_tool_call(
    name: str,
    arguments: Any = None,
    *,
    call_id: str | None = None,
    type: str | None = None,
    description: str | None = None,
) -> Step:
    """Record the call of a tool: see `Run.record_tool_call`."""
    return _tools().record_tool_call(
        name, arguments, call_id=call_id, type=type, description=description
    )


def record_tool_result(
    name: str | None = None,
    result: Any = None,
    *,
    call_id: str | None = None,
    arguments: Any = None,
    error: BaseException | str | None = None,
    status: str | None = None,
    duration_s: Duration | None = None,
) -> Step:
    """Record the result of a tool: see `Run.record_tool_result`."""
    return _tools().record_tool_result(
        name,
        result,
        call_id=call_id,
        arguments=arguments,
        error=error,
        status=status,
        duration_s=duration_s,
    )


def end_run(
    *,
    status: str | None = None,
    output: Any = None,
    error: BaseException | str | None = None,
) -> None:
    """End the current run: see `Run.end`. Where there is none, nothing happens."""
    run = current_run()
    if run is not None:
        run.end(status=status, output=output, error=error)


def close_open_runs() -> None:
    """End the runs that the program left open: failed with what ended the program, else cancelled.

    In an interactive session the last exception is not the end of the program.
    """
    error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
    for run in open_runs():
        run.leave_open(error)
    _outside._leave_calls_open(SpanEnd("cancelled"))


def _tools() -> ToolSteps:
    run = current_run()
    return _outside if run is None else run


def _conversation_of(context: Context) -> str | None:
    conversation_id = baggage.get_baggage(semconv.CONVERSATION_ID, context)
    return conversation_id if isinstance(conversation_id, str) else None


def _links_to(context: Context) -> Sequence[Link]:
    caller = get_current_span(context).get_span_context()
    return (Link(caller, {semconv.LINK_TYPE: "caller"}),) if caller.is_valid else ()


def _register_once() -> None:
    global _registered
    if not _registered:
        _registered = True
        # After `init()` registered its own: called before it, so that the spans are still sent.
        atexit.register(close_open_runs)
        _state.before_shutdown.append(close_open_runs)
