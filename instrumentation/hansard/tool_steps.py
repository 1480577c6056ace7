"""Tool calls and results, told one by one, as steps that last from the one to the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Span, get_current_span

from hansard import semconv
from hansard._state import active
from hansard.open_span import OpenSpan, quietly
from hansard.outcome import Ended, Outcome, outcome_of
from hansard.step import Step
from hansard.tool_calls import ToolCalls

if TYPE_CHECKING:
    from opentelemetry.context import Context

_KIND = "tool_call"


class ToolSteps:
    """Tells the tool steps of one run, or of whatever span is current where there is no run."""

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context  # where a step begins
        self._calls = ToolCalls()

    def call(
        self,
        name: str,
        arguments: Any,
        *,
        call_id: str | None,
        type: str | None,
        description: str | None,
    ) -> Step:
        """Begin a step; it ends with its result, or by its own `end()`."""
        context = self._context()
        step = self._begin(
            name, context, call_id=call_id, type=type, description=description, arguments=arguments
        )
        trace = _trace_of(context)
        if step.is_recorded:
            pushed_out = self._calls.add(step, trace=trace)
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
        """End the step of the call this answers, or tell a step of its own."""
        context = self._context()
        trace = _trace_of(context)
        outcome = outcome_of(status, error)
        call = self._calls.take(trace=trace, call_id=call_id, name=name)
        if call is None and self._calls.is_answered(call_id, trace=trace):
            _tell_again(get_current_span(context), call_id)
            return Step(name or "", _KIND, made=None, call_id=call_id)
        if call is None:
            now_ns = time.time_ns()
            start_ns = now_ns - round(max(duration_ms or 0, 0) * 1e6)
            call = self._begin(
                name or "", context, call_id=call_id, arguments=arguments, start_ns=start_ns
            )
            if arguments is None:
                call.span.set_attribute(semconv.TOOL_TOLD, "result")
        call.close(outcome, output=result)
        return call

    def close(self, outcome: Outcome) -> None:
        """End the calls that nobody answered: their run has ended."""
        for call in self._calls.drain():
            _leave_open(call, "completed" if outcome.status == "completed" else "cancelled")

    def _begin(
        self,
        name: str,
        context: Context,
        *,
        call_id: str | None,
        arguments: Any,
        type: str | None = None,
        description: str | None = None,
        start_ns: int | None = None,
    ) -> Step:
        recorder = active()
        made = None
        if recorder is not None:
            with quietly("start"):
                made = OpenSpan(
                    recorder,
                    f"{semconv.OP_EXECUTE_TOOL} {name}".rstrip(),
                    context=context,
                    attributes={
                        semconv.OPERATION_NAME: semconv.OP_EXECUTE_TOOL,
                        semconv.TOOL_NAME: name or None,
                        semconv.TOOL_CALL_ID: call_id,
                        semconv.TOOL_TYPE: type,
                    },
                    start_ns=start_ns,
                )
        if made is not None and arguments is not None:
            made.keep(semconv.TOOL_CALL_ARGUMENTS, arguments)
        if made is not None and description is not None:
            made.keep_text(semconv.TOOL_DESCRIPTION, description)
        trace = _trace_of(context)
        return Step(
            name,
            _KIND,
            made=made,
            output_key=semconv.TOOL_CALL_RESULT,
            call_id=call_id,
            on_end=lambda step: self._calls.note_end(step, trace=trace),
        )


def _leave_open(call: Step, status: Ended) -> None:
    call.span.set_attribute(semconv.TOOL_TOLD, "call")
    call.close(Outcome(status, left_open=True))


def _tell_again(span: Span, call_id: str | None) -> None:
    """A result for a call that has one: its step has ended, so the one above says it."""
    with quietly("result"):
        span.add_event(semconv.EVENT_RESULT_AGAIN, {semconv.TOOL_CALL_ID: call_id or ""})


def _trace_of(context: Context) -> str:
    return f"{get_current_span(context).get_span_context().trace_id:032x}"
