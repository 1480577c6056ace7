"""A run: a trace seen as one agent's work, from `start_run` to `end`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack
from weakref import WeakSet

from opentelemetry import context as otel
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, set_span_in_context

from hansard import semconv
from hansard._runs.step import Step, StepKind
from hansard._runs.tool_steps import ToolSteps
from hansard._runtime.durations import Duration
from hansard._tracing import context as place
from hansard._tracing.attributes import step_attributes
from hansard._tracing.context_managers import EnteredEitherWay
from hansard._tracing.current_agent import with_agent
from hansard._tracing.metadata import text_of
from hansard._tracing.open_span import OpenSpan, quietly
from hansard._tracing.outcome import Ended, Outcome, Status, outcome_of
from hansard._tracing.propagation import with_run

if TYPE_CHECKING:
    from hansard._context.compile import CompileOptions
    from hansard._context.compiled_step import CompiledStep
    from hansard._models.answer import ModelAnswer
    from hansard._models.call import CallModelOptions
    from hansard_compiler.providers.base import RenderInput

_RUN: Final = otel.create_key("hansard-run")
# Held weakly: a run that the program forgot is closed when nothing holds it any more.
_open_runs: WeakSet[Run] = WeakSet()


class Run(EnteredEitherWay):
    """A run that is open until `end()`, or until its `with` or `async with` block ends.

    An exception that leaves the block makes it failed and goes on; a cancellation makes it
    cancelled. Nothing here raises, and without `hansard.init()` nothing here does anything:
    `run_id` is None then. Steps and tool calls may be told from any thread.

    The order of the methods is that of an agent's turn: a step, in it what is compiled for the
    model and the call of the model, then the tools that the model asked for, then the end.
    """

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
        self._made = made
        self._status: Status = "running"
        self._steps: dict[int, Step] = {}  # open ones, by id()
        self._step_numbers = itertools.count()
        self._place: place.Place | None = None
        self._context = base if made is None else self._inner_context(base, made)
        self.tools = ToolSteps(self.context)
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

    @property
    def step_id(self) -> str | None:
        """The address of the run's own span among its steps."""
        return None if self._made is None else f"{self._made.trace_id}-{self._made.span_id}"

    @property
    def span(self) -> Span:
        """The OpenTelemetry span of the run, for further attributes and events."""
        return INVALID_SPAN if self._made is None else self._made.span

    @property
    def status(self) -> Status:
        return self._status

    def context(self) -> Context:
        """Return the context that what comes next belongs to: the current one inside the run."""
        current = place.current_context()
        return current if otel.get_value(_RUN, current) is self else self._context

    # ---- where the run is the current one

    def enter(self) -> Self:
        """Make the run the current one of this thread or task, until it ends."""
        if self._made is not None and self._place is None:
            with quietly("place"):
                self._place = place.enter(self._context)
        return self

    @contextmanager
    def activate(self) -> Iterator[Self]:
        """Make the run the current one for a block, in another thread or task than its own."""
        if self._made is None:
            yield self
            return
        with place.entered(self._context):
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
        name, told = text_of(name), text_of(kind)
        if self._made is not None:
            with quietly("start"):
                made = self._begin_step(name, told, metadata)
        if made is not None and input is not None:
            made.keep(semconv.INPUT, input)
        step = Step(name, told, made=made, on_end=self._note_end)
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

    def record_tool_call(
        self,
        name: str,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        type: str | None = None,
        description: str | None = None,
    ) -> Step:
        """Tell that a tool is called. The step ends with `record_tool_result`, or its own `end()`.

        As a `with` block it is the parent of what the tool itself records.
        """
        return self.tools.call(name, arguments, call_id=call_id, type=type, description=description)

    def record_tool_result(
        self,
        name: str | None = None,
        result: Any = None,
        *,
        call_id: str | None = None,
        arguments: Any = None,
        error: BaseException | str | None = None,
        status: str | None = None,
        duration_s: Duration | None = None,
    ) -> Step:
        """Tell what a tool gave: the end of the call with this id, or else of this name.

        A result without a call is a step of its own, of `duration_s` up to now. A second result
        for a call is told as an event `hansard.tool.duplicate_result` and changes nothing.
        """
        return self.tools.result(
            name,
            result,
            call_id=call_id,
            arguments=arguments,
            error=error,
            status=status,
            duration_s=duration_s,
        )

    # ---- what the model is shown and asked

    def compile_step(
        self, inputs: Iterable[Any], *, step: Step | None = None, **options: Unpack[CompileOptions]
    ) -> CompiledStep:
        """Compile the context of one model call: see `hansard.compile_step`. Raises CompileError.

        It belongs to the step given, else to what is current inside the run.
        """
        from hansard._context.compile import compile_step

        return compile_step(self, step, inputs, **options)

    def call_model(
        self, compiled: CompiledStep | RenderInput, **options: Unpack[CallModelOptions]
    ) -> ModelAnswer:
        """Ask a model: see `hansard.call_model`. Raises RequestRefused and CallFailed."""
        from hansard._models.call import call_model

        with place.entered(self.context()):
            return call_model(compiled, **options)

    async def acall_model(
        self, compiled: CompiledStep | RenderInput, **options: Unpack[CallModelOptions]
    ) -> ModelAnswer:
        """Ask a model without holding up the event loop: see `hansard.acall_model`."""
        from hansard._models.call import acall_model

        with place.entered(self.context()):
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
        told = outcome_of(None, error) if error is not None else Outcome("cancelled")
        self._close(Outcome(told.status, told.error, left_open=True), None)

    def _close(self, outcome: Outcome, output: Any) -> None:
        left: Ended = "completed" if outcome.status == "completed" else "cancelled"
        self.tools.close(outcome)
        for step in reversed(list(self._steps.values())):
            step.close(Outcome(left, left_open=True))
        entered, self._place = self._place, None
        if entered is not None:
            place.leave(entered)
        if self._status == "running" and (self._made is None or self._made.claim()):
            self._status = outcome.status
            if self._made is not None:
                _open_runs.discard(self)
                if output is not None:
                    self._made.keep(semconv.OUTPUT, output)
                self._made.close(outcome)

    def _note_end(self, step: Step) -> None:
        self._steps.pop(id(step), None)

    def __enter__(self) -> Self:
        return self.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error=error)

    def __del__(self) -> None:
        if self._made is not None and self._made.is_open:
            with quietly("end"):
                self.leave_open()


def current_run(context: Context | None = None) -> Run | None:
    """Return the run that this thread or task is in; None where it is in none."""
    run = otel.get_value(_RUN, place.current_context() if context is None else context)
    return run if isinstance(run, Run) else None


def open_runs() -> list[Run]:
    """Return the runs of this process that did not end."""
    return list(_open_runs)
