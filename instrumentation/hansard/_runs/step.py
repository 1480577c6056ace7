"""One step of a run: a span with a kind, an input, an output and an end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, get_current_span, set_span_in_context

from hansard import semconv
from hansard._runtime import recorder as _state
from hansard._tracing.context import EnteredContext, EnteredEitherWay, enter, leave
from hansard._tracing.observation import add_event
from hansard._tracing.open_span import OpenSpan, SpanEnd, Status, outcome_of, quietly

StepKind: TypeAlias = Literal[
    "model_call", "tool_call", "memory_write", "policy_check", "human_approval", "other",
    "llm", "embedding", "agent", "workflow", "tool", "retriever", "rerank", "memory", "policy",
    "compile", "approval", "guardrail", "evaluator", "prompt", "mcp", "task", "chain",
]  # fmt: skip


class Open(EnteredEitherWay):
    """What runs and steps have in common: a span that is open, and where it is the current one."""

    __slots__ = ("_entered", "_made", "_status")

    def __init__(self, made: OpenSpan | None) -> None:
        self._made = made
        self._entered: EnteredContext | None = None
        self._status: Status = "running"

    @property
    def step_id(self) -> str | None:
        """`<run id>-<span id>`, its address among the steps; None where nothing is recorded."""
        return None if self._made is None else self._made.step_id

    @property
    def span(self) -> Span:
        """The OpenTelemetry span, for further attributes and events."""
        return INVALID_SPAN if self._made is None else self._made.span

    @property
    def status(self) -> Status:
        return self._status

    def enter(self) -> Self:
        """Make it the parent of what comes next in this thread or task, until it ends."""
        if self._made is not None and self._entered is None:
            with quietly("place"):
                self._entered = enter(self._inside(self._made))
        return self

    @abstractmethod
    def _inside(self, made: OpenSpan) -> Context:
        """Return the context of what comes next in it."""

    @abstractmethod
    def end(self, *, error: BaseException | str | None = None) -> None:
        """End it: completed, or as the error says."""

    def _finish(
        self, outcome: SpanEnd, output_key: str, output: Any, end_ns: int | None = None
    ) -> bool:
        """Leave it and end the span; returns whether there was one, and this ended it."""
        entered, self._entered = self._entered, None
        if entered is not None:
            leave(entered)
        made = self._made
        if self._status != "running" or (made is not None and not made.claim()):
            return False
        self._status = outcome.status
        if made is None:
            return False
        if output is not None:
            made.keep(output_key, output)
        made.close(outcome, end_ns=end_ns)
        return True

    def __enter__(self) -> Self:
        return self.enter()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error=error)


class Step(Open):
    """A step that is open until `end()`, or until its `with` or `async with` block ends.

    An exception that leaves the block makes it failed and goes on; a cancellation makes it
    cancelled. Nothing here raises, and without `hansard.init()` nothing here does anything.
    """

    __module__ = "hansard"  # where programs find it

    __slots__ = ("_on_end", "_output_key", "call_id", "kind", "name")

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        made: OpenSpan | None,
        output_key: str = semconv.OUTPUT,
        call_id: str | None = None,
        on_end: Callable[[Step], object] | None = None,
    ) -> None:
        super().__init__(made)
        self.name = name
        self.kind = kind
        self.call_id = call_id  # of a tool call
        self._output_key = output_key
        self._on_end = on_end

    @property
    def is_recorded(self) -> bool:
        return self._made is not None

    def _inside(self, made: OpenSpan) -> Context:
        return set_span_in_context(made.span)

    def end(
        self,
        *,
        status: str | None = None,
        output: Any = None,
        error: BaseException | str | None = None,
    ) -> None:
        """End the step: completed, or as `status` or `error` say. A second end does nothing."""
        self.close(outcome_of(status, error), output=output)

    def close(self, outcome: SpanEnd, *, output: Any = None, end_ns: int | None = None) -> None:
        """End the step with what is known of its outcome."""
        if self._finish(outcome, self._output_key, output, end_ns) and self._on_end is not None:
            self._on_end(self)


def score(
    name: str,
    value: float | None = None,
    *,
    label: str | None = None,
    explanation: str | None = None,
) -> None:
    """Score the open step: adds the event `gen_ai.evaluation.result` on its span.

    `value` is a number on whatever scale `name` has, `label` a word such as "pass"; give one or
    both. `explanation` gives the reason. The page of the step shows the score with its notes.
    Without `init()`, or where no step is open, nothing happens. A step that has ended is scored
    through the API, the command line or its page: docs/annotations.md.
    """
    recorder = _state.active()
    span = get_current_span()
    if recorder is None or not span.is_recording():
        return
    attributes = {
        semconv.EVALUATION_NAME: name,
        semconv.EVALUATION_VALUE: float(value) if isinstance(value, int) else value,
        semconv.EVALUATION_LABEL: label,
        semconv.EVALUATION_EXPLANATION: explanation,
    }
    present = {key: one for key, one in attributes.items() if one is not None}
    add_event(recorder, span, semconv.EVENT_EVALUATION, present)
