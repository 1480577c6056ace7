"""Tool calls and results, recorded one by one, as steps that last from the call to the result."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from opentelemetry.trace import get_current_span

from hansard import semconv
from hansard._runs.step import Step
from hansard._runtime.durations import Duration
from hansard._runtime.recorder import active
from hansard._runtime.warnings import warn_once
from hansard._tracing.attributes import text_of, text_or_none, tool_attributes, tool_name
from hansard._tracing.open_span import Ended, OpenSpan, SpanEnd, outcome_of, quietly
from hansard._tracing.serialization import is_pending

if TYPE_CHECKING:
    from opentelemetry.context import Context


# Tool calls that were recorded and have no result yet, and which result belongs to which.

MAX_OPEN: Final = 1_000
MAX_ANSWERED: Final = 10_000


class _Known(NamedTuple):
    trace: str
    call: Step


class ToolCalls:
    """Open calls by trace. Only single dict operations, so threads need no lock over a fork."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._open: dict[int, _Known] = {}  # in the order of the calls
        self._answered: dict[tuple[str, str], None] = {}  # trace and call id, oldest first

    def add(self, call: Step, *, trace: str) -> Step | None:
        """Note a call; returns the oldest one when there are too many, for the caller to end."""
        self._open[next(self._numbers)] = _Known(trace, call)
        return None if len(self._open) <= MAX_OPEN else self._take(list(self._open.items())[:1])

    def take(self, *, trace: str, call_id: str | None, name: str | None) -> Step | None:
        """Return the call that a result answers, and forget it; None when there is none.

        By id if there is one, else the oldest of this name; with neither, the only one there is.
        Of calls that share an id, as some servers make them, the oldest is taken.
        """
        calls = [one for one in list(self._open.items()) if one[1].trace == trace]
        if call_id is not None:
            calls = [one for one in calls if one[1].call.call_id == call_id]
        elif name is not None:
            calls = [one for one in calls if one[1].call.name == name]
        elif len(calls) > 1:
            calls = []
        return self._take(calls)

    def note_end(self, call: Step, *, trace: str) -> None:
        """A call ended, by its result or by itself: a second answer is to be known as one."""
        for number, known in list(self._open.items()):
            if known.call is call:
                self._open.pop(number, None)
        if call.call_id is not None:
            self._answered[trace, call.call_id] = None
            while len(self._answered) > MAX_ANSWERED:
                # Another thread may add one between the two; then it is tried again.
                with suppress(RuntimeError, StopIteration):
                    self._answered.pop(next(iter(self._answered)), None)

    def is_answered(self, call_id: str | None, *, trace: str) -> bool:
        """Whether a call of this id was answered already."""
        return call_id is not None and (trace, call_id) in self._answered

    def drain(self) -> list[Step]:
        """Return the calls without a result, and forget them."""
        taken = (self._open.pop(number, None) for number in list(self._open))
        return [known.call for known in taken if known is not None]

    def _take(self, calls: list[tuple[int, _Known]]) -> Step | None:
        for number, known in calls:
            if self._open.pop(number, None) is not None:
                return known.call
        return None


_KIND: Final = "tool_call"
_MAX_DURATION_S: Final = 30 * 86_400


class ToolSteps(ABC):
    """What records tool calls: a run, or the current span if there is no run."""

    def __init__(self) -> None:
        self._calls = ToolCalls()

    @abstractmethod
    def context(self) -> Context:
        """Return the context of what comes next."""

    def record_tool_call(
        self,
        name: str,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        type: str | None = None,
        description: str | None = None,
    ) -> Step:
        """Record a call of a tool. The step ends with `record_tool_result`, or its own `end()`.

        As a `with` block it is the parent of what the tool itself records.
        """
        step = Step(text_of(name), _KIND, made=None, call_id=text_or_none(call_id))
        with quietly("tool call"):
            context = self.context()
            step = self._begin(
                step, context, arguments=arguments, type=type, description=description
            )
            if step.is_recorded:
                pushed_out = self._calls.add(step, trace=_trace_of(context))
                if pushed_out is not None:
                    _leave_open(pushed_out, "completed")
        return step

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
        """Record the result of a tool: the end of the call with this id, or else of this name.

        A result without a call is a step of its own, of `duration_s` up to now. A second result
        for a call is an event `hansard.tool.duplicate_result` and changes nothing. What still has
        to be awaited is no result: the call goes on, and the program is warned.
        """
        step = Step(text_or_none(name) or "", _KIND, made=None, call_id=text_or_none(call_id))
        if is_pending(result):
            warn_once(
                f"pending result {step.name}",
                "the result of tool %r is a %s, which was not awaited: it is not recorded; "
                "await it first",
                step.name,
                type(result).__name__,
            )
            return step
        with quietly("tool result"):
            context = self.context()
            trace = _trace_of(context)
            call = self._calls.take(trace=trace, call_id=step.call_id, name=step.name or None)
            if call is None and self._calls.is_answered(step.call_id, trace=trace):
                # Its step has ended, so the parent records it.
                with quietly("result"):
                    get_current_span(context).add_event(
                        semconv.EVENT_DUPLICATE_RESULT, {semconv.TOOL_CALL_ID: step.call_id or ""}
                    )
                return step
            if call is None:
                call = self._begin(step, context, arguments=arguments, start_ns=_ago_ns(duration_s))
                if arguments is None:
                    call.span.set_attribute(semconv.TOOL_RECORDED_PART, "result")
            call.close(outcome_of(status, error), output=result)
            return call
        return step

    def _leave_calls_open(self, outcome: SpanEnd) -> None:
        """End the calls without a result: their run has ended."""
        for call in self._calls.drain():
            _leave_open(call, "completed" if outcome.status == "completed" else "cancelled")

    def _begin(
        self,
        step: Step,
        context: Context,
        *,
        arguments: Any,
        type: str | None = None,
        description: str | None = None,
        start_ns: int | None = None,
    ) -> Step:
        """Return the step with a span, if one is recorded."""
        recorder = active()
        if recorder is None:
            return step
        made = OpenSpan(
            recorder,
            tool_name(step.name),
            context=context,
            attributes=tool_attributes(name=step.name, call_id=step.call_id, type=type),
            start_ns=start_ns,
        )
        if arguments is not None:
            made.keep(semconv.TOOL_CALL_ARGUMENTS, arguments)
        if description is not None:
            made.keep_text(semconv.TOOL_DESCRIPTION, text_of(description))
        trace = _trace_of(context)
        return Step(
            step.name,
            _KIND,
            made=made,
            output_key=semconv.TOOL_CALL_RESULT,
            call_id=step.call_id,
            on_end=lambda step: self._calls.note_end(step, trace=trace),
        )


def _ago_ns(duration_s: Duration | None) -> int | None:
    """Return the start of what took so long and ends now; None where the duration is not usable."""
    kind = type(duration_s)  # never `isinstance`, which calls the object
    if kind is timedelta:
        length_s = cast(timedelta, duration_s).total_seconds()
    elif kind in (int, float):
        length_s = cast(float, duration_s)
    else:
        return None
    return time.time_ns() - round(length_s * 1e9) if 0 < length_s < _MAX_DURATION_S else None


def _leave_open(call: Step, status: Ended) -> None:
    call.span.set_attribute(semconv.TOOL_RECORDED_PART, "call")
    call.close(SpanEnd(status, left_open=True))


def _trace_of(context: Context) -> str:
    return f"{get_current_span(context).get_span_context().trace_id:032x}"
