"""One step of a run: a span with a kind, an input, an output and an end."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from opentelemetry.trace import INVALID_SPAN, Span, get_current_span, set_span_in_context

from hansard import semconv
from hansard._runtime import recorder as _state
from hansard._tracing import context
from hansard._tracing.context import EnteredEitherWay
from hansard._tracing.observation import add_event
from hansard._tracing.open_span import OpenSpan, Outcome, Status, outcome_of, quietly

StepKind: TypeAlias = Literal[
    "model_call", "tool_call", "memory_write", "policy_check", "human_approval", "other",
    "llm", "embedding", "agent", "workflow", "tool", "retriever", "rerank", "memory", "policy",
    "compile", "approval", "guardrail", "evaluator", "prompt", "mcp", "task", "chain",
]  # fmt: skip


class Step(EnteredEitherWay):
    """A step that is open until `end()`, or until its `with` or `async with` block ends.

    An exception that leaves the block makes it failed and goes on; a cancellation makes it
    cancelled. Nothing here raises, and without `hansard.init()` nothing here does anything.
    """

    __module__ = "hansard"  # where programs find it

    __slots__ = (
        "_entered",
        "_made",
        "_on_end",
        "_output_key",
        "_status",
        "call_id",
        "kind",
        "name",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        made: OpenSpan | None,
        output_key: str = semconv.OUTPUT,
        call_id: str | None = None,
        on_end: Callable[[Step], None] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.call_id = call_id  # of a tool call
        self._made = made
        self._output_key = output_key
        self._on_end = on_end
        self._entered: context.EnteredContext | None = None
        self._status: Status = "running"

    @property
    def step_id(self) -> str | None:
        """`<run id>-<span id>`, the step's address in Hansard; None where nothing is recorded."""
        return None if self._made is None else f"{self._made.trace_id}-{self._made.span_id}"

    @property
    def is_recorded(self) -> bool:
        return self._made is not None

    @property
    def span(self) -> Span:
        """The OpenTelemetry span, for further attributes and events."""
        return INVALID_SPAN if self._made is None else self._made.span

    @property
    def status(self) -> Status:
        return self._status

    def enter(self) -> Self:
        """Make the step the parent of what comes next in this thread or task, until it ends."""
        if self._made is not None and self._entered is None:
            with quietly("place"):
                self._entered = context.enter(set_span_in_context(self._made.span))
        return self

    def end(
        self,
        *,
        status: str | None = None,
        output: Any = None,
        error: BaseException | str | None = None,
    ) -> None:
        """End the step: completed, or as `status` or `error` say. A second end does nothing."""
        self.close(outcome_of(status, error), output=output)

    def close(self, outcome: Outcome, *, output: Any = None, end_ns: int | None = None) -> None:
        """End the step with what is known of its outcome."""
        self._leave()
        if self._status != "running":
            return
        if self._made is None:
            self._status = outcome.status
        elif self._made.claim():
            self._status = outcome.status
            if output is not None:
                self._made.keep(self._output_key, output)
            self._made.close(outcome, end_ns=end_ns)
            if self._on_end is not None:
                self._on_end(self)

    def _leave(self) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            context.leave(entered)

    def __enter__(self) -> Self:
        return self.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error=error)


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
