"""Tool calls and results as programs without the SDK tell them: steps from the one to the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hansard import semconv
from hansard._tracing.attributes import text_of, tool_attributes, tool_name
from hansard._tracing.open_span import OpenSpan
from hansard_compiler.calls import Json
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.open_steps import find_answer, open_steps
from hansard_web.sidecar.addresses import Place, find_place, place_of
from hansard_web.sidecar.bodies import AnswerTool, CallTool, ToolCall, ToolResult
from hansard_web.sidecar.errors import ResultExists
from hansard_web.sidecar.recorder import SCOPE, Recording
from hansard_web.sidecar.runs import Ids, Sidecar, close, end_ns_of, ns_of, traceparent_of


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of this request."""

    tool_call: ToolCall
    made: OpenSpan

    def json(self) -> Json:
        return {
            "call_id": self.tool_call.call_id,
            "step_id": _step_id(self.made),
            "status": "running" if self.made.is_open else "ended",
            "traceparent": traceparent_of(self.made.trace_id, self.made.span_id),
        }


def call_tool(sidecar: Sidecar, request: CallTool, ids: Ids) -> Json:
    """Tell that a tool is called, in a step or in the run itself."""
    trace_id = sidecar.trace_id(request.run_id)
    with sidecar.lock(trace_id):
        open_step = sidecar.place(trace_id, request.parent_step_id)
        recording = sidecar.outlet.recording(open_step.resource)
        called = _begin(
            recording, open_step, request, ids, number=0, parent_span_id=open_step.span_id
        )
        recording.save()
    return {"run_id": trace_id, **called.json()}


def answer_tool(sidecar: Sidecar, request: AnswerTool, ids: Ids) -> Json:
    """Tell what a tool gave."""
    trace_id = sidecar.trace_id(request.run_id)
    with sidecar.lock(trace_id):
        open_step = sidecar.place(trace_id, request.parent_step_id)
        recording = sidecar.outlet.recording(open_step.resource)
        answered = _answer(
            sidecar,
            recording,
            open_step,
            request,
            ids,
            number=0,
            parent_span_id=open_step.span_id,
            fresh=(),
        )
        recording.save()
    return {"run_id": trace_id, **answered}


def add_calls(
    recording: Recording, open_step: Place, calls: Sequence[ToolCall], ids: Ids, *, parent: OpenSpan
) -> list[Called]:
    """Begin the tool calls of a step."""
    return [
        _begin(recording, open_step, one, ids, number=number, parent_span_id=parent.span_id)
        for number, one in enumerate(calls)
    ]


def add_results(
    sidecar: Sidecar,
    recording: Recording,
    open_step: Place,
    results: Sequence[ToolResult],
    ids: Ids,
    *,
    parent: OpenSpan,
    fresh: Sequence[Called],
) -> list[Json]:
    """End the tool calls that a step answers; `fresh` are those of the same request."""
    return [
        _answer(
            sidecar,
            recording,
            open_step,
            one,
            ids,
            number=number,
            parent_span_id=parent.span_id,
            fresh=fresh,
        )
        for number, one in enumerate(results)
    ]


def _begin(
    recording: Recording,
    open_step: Place,
    call: ToolCall,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
    start_ns: int | None = None,
) -> Called:
    attributes = tool_attributes(name=text_of(call.name), call_id=call.call_id, type=call.type)
    attributes[semconv.CONVERSATION_ID] = open_step.run.conversation_id
    made = recording.begin(
        tool_name(text_of(call.name)),
        trace_id=open_step.trace_id,
        span_id=ids.span_id(f"tool {number} {call.call_id}"),
        parent_span_id=parent_span_id,
        attributes=attributes,
        start_ns=ns_of(call.started_at) if start_ns is None else start_ns,
    )
    if call.arguments is not None:
        made.keep(semconv.TOOL_CALL_ARGUMENTS, call.arguments)
    if call.description is not None:
        made.keep_text(semconv.TOOL_DESCRIPTION, call.description)
    return Called(call, made)


def _answer(
    sidecar: Sidecar,
    recording: Recording,
    open_step: Place,
    result: ToolResult,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
    fresh: Sequence[Called],
) -> Json:
    made = _of_this_request(result, fresh)
    if made is None:
        stored = _stored_call(sidecar, open_step, result)
        made = None if stored is None else recording.go_on(stored.stored)
    if made is None:
        made = _untold(
            recording, open_step, result, ids, number=number, parent_span_id=parent_span_id
        )
    if result.result is not None:
        made.keep(semconv.TOOL_CALL_RESULT, result.result)
    close(made, result.status, result.error, end_ns_of(made, result.ended_at))
    return {"call_id": result.call_id, "step_id": _step_id(made), "status": "ended"}


def _of_this_request(result: ToolResult, fresh: Sequence[Called]) -> OpenSpan | None:
    for one in fresh:
        if one.made.is_open and (
            one.tool_call.call_id == result.call_id
            if result.call_id is not None
            else result.step_id is None and one.tool_call.name == result.name
        ):
            return one.made
    return None


def _stored_call(sidecar: Sidecar, open_step: Place, result: ToolResult) -> Place | None:
    """Return the open call that a result answers; None where there is none."""
    with sidecar.readers.read() as connection:
        if result.step_id is not None:
            return find_place(connection, open_step.trace_id, result.step_id)
        for one in open_steps(connection, bytes.fromhex(open_step.trace_id), scope=SCOPE):
            named = (
                one.tool_call_id == result.call_id
                if result.call_id is not None
                else result.name is not None and one.tool_name == result.name
            )
            if named and one.tool_name is not None:
                return place_of(connection, open_step.trace_id, open_step.run, one)
        known = (
            None
            if result.call_id is None
            else find_answer(connection, open_step.run.id, result.call_id)
        )
    if known is not None and not known.is_open:
        raise ResultExists(result.call_id or "", f"{open_step.trace_id}-{known.span_id.hex()}")
    return None


def _untold(
    recording: Recording,
    open_step: Place,
    result: ToolResult,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
) -> OpenSpan:
    """Begin a call that only its result tells of."""
    if result.name is None:
        raise InvalidQueryError(
            "call_id", "no open tool call has this call_id; with a name, it is told as one"
        )
    end_ns = ns_of(result.ended_at) or time.time_ns()
    call = ToolCall(name=result.name, call_id=result.call_id, arguments=result.arguments)
    made = _begin(
        recording,
        open_step,
        call,
        ids,
        number=number,
        parent_span_id=parent_span_id,
        start_ns=max(end_ns - round((result.duration_ms or 0) * 1e6), 0),
    ).made
    if result.arguments is None:
        made.span.set_attribute(semconv.TOOL_RECORDED_PART, "result")
    return made


def _step_id(made: OpenSpan) -> str:
    return f"{made.trace_id}-{made.span_id}"
