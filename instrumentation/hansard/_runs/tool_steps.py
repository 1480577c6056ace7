"""Tool calls and results, told one by one, as steps that last from the one to the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Span, get_current_span

from hansard import semconv
from hansard._runs.step import Step
from hansard._runs.tool_calls import ToolCalls
from hansard._runtime.recorder import active
from hansard._runtime.warnings import warn_once
from hansard._tracing.attributes import tool_attributes, tool_name
from hansard._tracing.metadata import text_of, text_or_none
from hansard._tracing.open_span import OpenSpan, quietly
from hansard._tracing.outcome import Ended, Outcome, outcome_of
from hansard._tracing.serialization import is_pending

if TYPE_CHECKING:
    from opentelemetry.context import Context

_KIND: Final = "tool_call"
MAX_DURATION_MS: Final = 30 * 86_400_000


class ToolSteps:
    """Tells the tool steps of one run, or of whatever span is current where there is no run."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context  # where a step begins
        self._calls = ToolCalls()

    def call(self, name: str, arguments: Any, *, call_id: str | None, **about: Any) -> Step:
        """Begin a step; it ends with its result, or by its own `end()`."""
        step = Step(text_of(name), _KIND, made=None, call_id=text_or_none(call_id))
        with quietly("tool call"):
            context = self._context()
            step = self._begin(step, context, arguments=arguments, **about)
            if step.is_recorded:
                pushed_out = self._calls.add(step, trace=_trace_of(context))
                if pushed_out is not None:
                    _leave_open(pushed_out, "completed")
        return step

    def result(
        self,
        name: str | None,
        result: Any,
        *,
        call_id: str | None,
        arguments: Any,
        error: BaseException | str | None,
        status: str | None,
        duration_ms: float | None,
    ) -> Step:
        """End the step of the call this answers, or tell a step of its own.

        What still has to be awaited is no result: the call goes on, and the program is warned.
        """
        step = Step(text_or_none(name) or "", _KIND, made=None, call_id=text_or_none(call_id))
        if is_pending(result):
            warn_once(
                f"pending result {step.name}",
                "the result of tool %r is a %s, which nobody has awaited: it is not recorded; "
                "await it first",
                step.name,
                type(result).__name__,
            )
            return step
        with quietly("tool result"):
            context = self._context()
            trace = _trace_of(context)
            call = self._calls.take(trace=trace, call_id=step.call_id, name=step.name or None)
            if call is None and self._calls.is_answered(step.call_id, trace=trace):
                _tell_again(get_current_span(context), step.call_id)
                return step
            if call is None:
                call = self._begin(
                    step, context, arguments=arguments, start_ns=_ago_ns(duration_ms)
                )
                if arguments is None:
                    call.span.set_attribute(semconv.TOOL_RECORDED_PART, "result")
            call.close(outcome_of(status, error), output=result)
            return call
        return step

    def close(self, outcome: Outcome) -> None:
        """End the calls that nobody answered: their run has ended."""
        for call in self._calls.drain():
            _leave_open(call, "completed" if outcome.status == "completed" else "cancelled")

    def _begin(
        self,
        told: Step,
        context: Context,
        *,
        arguments: Any,
        type: str | None = None,
        description: str | None = None,
        start_ns: int | None = None,
    ) -> Step:
        """Return the step that was told, with a span where one is recorded."""
        recorder = active()
        if recorder is None:
            return told
        made = OpenSpan(
            recorder,
            tool_name(told.name),
            context=context,
            attributes=tool_attributes(name=told.name, call_id=told.call_id, type=type),
            start_ns=start_ns,
        )
        if arguments is not None:
            made.keep(semconv.TOOL_CALL_ARGUMENTS, arguments)
        if description is not None:
            made.keep_text(semconv.TOOL_DESCRIPTION, text_of(description))
        trace = _trace_of(context)
        return Step(
            told.name,
            _KIND,
            made=made,
            output_key=semconv.TOOL_CALL_RESULT,
            call_id=told.call_id,
            on_end=lambda step: self._calls.note_end(step, trace=trace),
        )


def _ago_ns(duration_ms: float | None) -> int | None:
    """Return when something began that took so long; None where that is not known."""
    if type(duration_ms) not in (int, float) or duration_ms is None:
        return None
    if not 0 < duration_ms < MAX_DURATION_MS:
        return None
    return time.time_ns() - round(duration_ms * 1e6)


def _leave_open(call: Step, status: Ended) -> None:
    call.span.set_attribute(semconv.TOOL_RECORDED_PART, "call")
    call.close(Outcome(status, left_open=True))


def _tell_again(span: Span, call_id: str | None) -> None:
    """A result for a call that has one: its step has ended, so the one above says it."""
    with quietly("result"):
        span.add_event(semconv.EVENT_DUPLICATE_RESULT, {semconv.TOOL_CALL_ID: call_id or ""})


def _trace_of(context: Context) -> str:
    return f"{get_current_span(context).get_span_context().trace_id:032x}"
