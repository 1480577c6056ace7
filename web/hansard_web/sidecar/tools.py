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

    told: ToolCall
    made: OpenSpan

    def json(self) -> Json:
        return {
            "call_id": self.told.call_id,
            "step_id": _step_id(self.made),
            "status": "running" if self.made.is_open else "ended",
            "traceparent": traceparent_of(self.made.trace_id, self.made.span_id),
        }


def call_tool(sidecar: Sidecar, told: CallTool, ids: Ids) -> Json:
    """Tell that a tool is called, in a step or in the run itself."""
    trace_id = sidecar.trace_id(told.run_id)
    with sidecar.lock(trace_id):
        place = sidecar.place(trace_id, told.parent_step_id)
        recording = sidecar.outlet.recording(place.resource)
        called = _begin(recording, place, told, ids, number=0, parent_span_id=place.span_id)
        recording.save()
    return {"run_id": trace_id, **called.json()}


def answer_tool(sidecar: Sidecar, told: AnswerTool, ids: Ids) -> Json:
    """Tell what a tool gave."""
    trace_id = sidecar.trace_id(told.run_id)
    with sidecar.lock(trace_id):
        place = sidecar.place(trace_id, told.parent_step_id)
        recording = sidecar.outlet.recording(place.resource)
        answered = _answer(
            sidecar, recording, place, told, ids, number=0, parent_span_id=place.span_id, fresh=()
        )
        recording.save()
    return {"run_id": trace_id, **answered}


def add_calls(
    recording: Recording, place: Place, told: Sequence[ToolCall], ids: Ids, *, parent: OpenSpan
) -> list[Called]:
    """Begin the tool calls of a step."""
    return [
        _begin(recording, place, one, ids, number=number, parent_span_id=parent.span_id)
        for number, one in enumerate(told)
    ]


def add_results(
    sidecar: Sidecar,
    recording: Recording,
    place: Place,
    told: Sequence[ToolResult],
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
            place,
            one,
            ids,
            number=number,
            parent_span_id=parent.span_id,
            fresh=fresh,
        )
        for number, one in enumerate(told)
    ]


def _begin(
    recording: Recording,
    place: Place,
    told: ToolCall,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
    start_ns: int | None = None,
) -> Called:
    attributes = tool_attributes(name=text_of(told.name), call_id=told.call_id, type=told.type)
    attributes[semconv.CONVERSATION_ID] = place.run.conversation_id
    made = recording.begin(
        tool_name(text_of(told.name)),
        trace_id=place.trace_id,
        span_id=ids.span_id(f"tool {number} {told.call_id}"),
        parent_span_id=parent_span_id,
        attributes=attributes,
        start_ns=ns_of(told.started_at) if start_ns is None else start_ns,
    )
    if told.arguments is not None:
        made.keep(semconv.TOOL_CALL_ARGUMENTS, told.arguments)
    if told.description is not None:
        made.keep_text(semconv.TOOL_DESCRIPTION, told.description)
    return Called(told, made)


def _answer(
    sidecar: Sidecar,
    recording: Recording,
    place: Place,
    told: ToolResult,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
    fresh: Sequence[Called],
) -> Json:
    made = _of_this_request(told, fresh)
    if made is None:
        stored = _stored_call(sidecar, place, told)
        made = None if stored is None else recording.go_on(stored.stored)
    if made is None:
        made = _untold(recording, place, told, ids, number=number, parent_span_id=parent_span_id)
    if told.result is not None:
        made.keep(semconv.TOOL_CALL_RESULT, told.result)
    close(made, told.status, told.error, end_ns_of(made, told.ended_at))
    return {"call_id": told.call_id, "step_id": _step_id(made), "status": "ended"}


def _of_this_request(told: ToolResult, fresh: Sequence[Called]) -> OpenSpan | None:
    for one in fresh:
        if one.made.is_open and (
            one.told.call_id == told.call_id
            if told.call_id is not None
            else told.step_id is None and one.told.name == told.name
        ):
            return one.made
    return None


def _stored_call(sidecar: Sidecar, place: Place, told: ToolResult) -> Place | None:
    """Return the open call that a result answers; None where it was never told."""
    with sidecar.readers.read() as connection:
        if told.step_id is not None:
            return find_place(connection, place.trace_id, told.step_id)
        for one in open_steps(connection, bytes.fromhex(place.trace_id), scope=SCOPE):
            named = (
                one.tool_call_id == told.call_id
                if told.call_id is not None
                else told.name is not None and one.tool_name == told.name
            )
            if named and one.tool_name is not None:
                return place_of(connection, place.trace_id, place.run, one)
        known = (
            None if told.call_id is None else find_answer(connection, place.run.id, told.call_id)
        )
    if known is not None and not known.is_open:
        raise ResultExists(told.call_id or "", f"{place.trace_id}-{known.span_id.hex()}")
    return None


def _untold(
    recording: Recording,
    place: Place,
    told: ToolResult,
    ids: Ids,
    *,
    number: int,
    parent_span_id: str,
) -> OpenSpan:
    """Begin a call that only its result tells of."""
    if told.name is None:
        raise InvalidQueryError(
            "call_id", "no open tool call has this call_id; with a name, it is told as one"
        )
    end_ns = ns_of(told.ended_at) or time.time_ns()
    call = ToolCall(name=told.name, call_id=told.call_id, arguments=told.arguments)
    made = _begin(
        recording,
        place,
        call,
        ids,
        number=number,
        parent_span_id=parent_span_id,
        start_ns=max(end_ns - round((told.duration_ms or 0) * 1e6), 0),
    ).made
    if told.arguments is None:
        made.span.set_attribute(semconv.TOOL_RECORDED_PART, "result")
    return made


def _step_id(made: OpenSpan) -> str:
    return f"{made.trace_id}-{made.span_id}"
