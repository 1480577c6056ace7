"""Runs, steps and tool calls as programs without the SDK tell them, request by request.

What is open stands in the store as an open span. Each request reads it, adds to it and writes it
again: a server that was stopped meanwhile knows as much as before.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Link

from hansard import semconv
from hansard._tracing.attributes import (
    run_attributes,
    run_name,
    step_attributes,
    text_of,
    tool_attributes,
    tool_name,
)
from hansard._tracing.open_span import Ended, OpenSpan, SpanEnd, outcome_of
from hansard_compiler.compile.inputs import check_context_items
from hansard_store.bodies import Answer, Body, BodyT, body_of
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.open_steps import StepPlace, find_answer, open_steps
from hansard_web.sidecar.bodies import (
    AnswerTool,
    AppendStep,
    CallTool,
    EndRun,
    Failure,
    StartRun,
    ToolCall,
    ToolResult,
)
from hansard_web.sidecar.errors import ResultExists
from hansard_web.sidecar.idempotency import Ids
from hansard_web.sidecar.recorder import SCOPE, Recording, remote, resource_of
from hansard_web.sidecar.request import Place, SidecarService, find_place, place_of

INPUTS_TYPE: Final = "application/vnd.hansard.step-inputs+json"
_SERVICE: Final = "hansard-sidecar"  # where a program names neither itself nor its agent
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-[0-9a-f]{2}(?:-.*)?",
    re.ASCII,
)


class _Named(Body):
    """How a run or step is named from now on."""

    run_id: str
    step_id: str
    span_id: str
    status: str
    traceparent: str
    url: str


class StartedRun(_Named, Answer):
    """A run that was begun; its `traceparent` makes what others do a part of it."""


class ResultTaken(Body):
    """A tool's result in a step."""

    call_id: str | None
    step_id: str
    status: str


class CallMade(ResultTaken):
    """A tool call of a step."""

    traceparent: str


class StepInput(_Named, Answer):
    """A step as it stands now; `input_refs` are the payloads of the inputs it was given."""

    input_refs: list[str]
    tool_calls: list[CallMade]
    tool_results: list[ResultTaken]


class EndedRun(_Named, Answer):
    """A run that was ended; `unended_steps` are the steps that ended with it."""

    unended_steps: list[str]


class CalledTool(Answer, CallMade):
    """A tool call that was recorded."""

    run_id: str


class AnsweredTool(Answer, ResultTaken):
    """A tool call that has its result."""

    run_id: str


def traceparent_of(trace_id: str, span_id: str) -> str:
    """Return the W3C header that makes a span the parent of what another process does."""
    return f"00-{trace_id}-{span_id}-01"


def parse_traceparent(text: str | None) -> tuple[str, str] | None:
    """Return trace id and span id of a `traceparent`; None where it is none (the W3C rule)."""
    found = None if text is None else _TRACEPARENT.fullmatch(text.strip().lower())
    return None if found is None else (found["trace"], found["span"])


def start_run(
    service: SidecarService, request: StartRun, ids: Ids, *, traceparent: str | None
) -> StartedRun:
    """Begin a run: a trace of its own, linked to its caller, or a part of the caller's trace."""
    caller = parse_traceparent(traceparent or request.traceparent)
    nests = request.nest and caller is not None
    trace_id = caller[0] if caller is not None and nests else ids.trace_id()
    span_id = ids.span_id("run")
    recording = service.outlet.recording(
        resource_of(request.service_name or request.agent_name or _SERVICE)
    )
    made = recording.begin(
        run_name(request.agent_name),
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=caller[1] if caller is not None and nests else None,
        attributes=run_attributes(
            recording.recorder,
            agent_name=request.agent_name,
            domain=request.domain,
            conversation_id=request.conversation_id,
            user_id=request.user_id,
            tags=request.tags,
            metadata=request.metadata,
        ),
        links=() if nests else _links(caller),
        start_ns=_ns_of(request.started_at),
    )
    if request.user_goal is not None:
        made.keep_text(semconv.RUN_GOAL, request.user_goal)
    _keep(made, semconv.INPUT, request.input)
    recording.save()
    return _body(StartedRun, trace_id, span_id, status="running")


def append_step(service: SidecarService, run_id: str, request: AppendStep, ids: Ids) -> StepInput:
    """Begin a step, or go on with one; it may bring tool calls and results, and end.

    Raises InvalidItem for an input that no compile could use.
    """
    check_context_items(request.inputs, now=datetime.now(UTC), where="inputs")
    status = "running"
    step_id = request.step_id or request.parent_step_id
    with service.adding_to(run_id, step_id) as (open_step, recording):
        made, refs = _begun(recording, open_step, request, ids)
        _keep(made, semconv.INPUT, request.input)
        if request.inputs:
            refs += _keep_inputs(recording, request.inputs)
            made.span.set_attribute(semconv.STEP_INPUT_REFS, refs)
        steps = _ToolSteps(service, recording, open_step, ids, made.span_id)
        calls = [steps.begin(one, number=number) for number, one in enumerate(request.tool_calls)]
        results = [
            steps.answer(one, number=number, fresh=calls)
            for number, one in enumerate(request.tool_results)
        ]
        _keep(made, semconv.OUTPUT, request.output)
        if request.status != "running" or request.error is not None:
            ended = None if request.status == "running" else request.status
            outcome = _outcome(ended, request.error)
            status = outcome.status
            _close(made, outcome, _end_ns_of(made, request.ended_at))
    return _body(
        StepInput, open_step.trace_id, made.span_id, status=status,
        input_refs=refs, tool_calls=[one.json() for one in calls], tool_results=results,
    )  # fmt: skip


def end_run(service: SidecarService, run_id: str, request: EndRun) -> EndedRun:
    """End a run, and with it what is open below it."""
    with service.adding_to(run_id, request.step_id) as (open_step, recording):
        root = recording.go_on(open_step.stored)
        outcome = _outcome(request.status, request.error)
        end_ns = _end_ns_of(root, request.ended_at)
        left = _left_open(service, open_step)
        for one in left:
            _leave_open(recording, one, outcome, end_ns)
        _keep(root, semconv.OUTPUT, request.output)
        _close(root, outcome, end_ns)
    return _body(
        EndedRun, open_step.trace_id, root.span_id, status=outcome.status,
        unended_steps=[one.step_id for one in left],
    )  # fmt: skip


def call_tool(service: SidecarService, request: CallTool, ids: Ids) -> CalledTool:
    """Tell that a tool is called, in a step or in the run itself."""
    with service.adding_to(request.run_id, request.parent_step_id) as (open_step, recording):
        steps = _ToolSteps(service, recording, open_step, ids, open_step.span_id)
        called = steps.begin(request)
    return body_of(CalledTool, run_id=open_step.trace_id, **called.json())


def answer_tool(service: SidecarService, request: AnswerTool, ids: Ids) -> AnsweredTool:
    """Tell what a tool gave."""
    with service.adding_to(request.run_id, request.parent_step_id) as (open_step, recording):
        steps = _ToolSteps(service, recording, open_step, ids, open_step.span_id)
        answered = steps.answer(request)
    return body_of(AnsweredTool, run_id=open_step.trace_id, **answered)


def _close(made: OpenSpan, outcome: SpanEnd, end_ns: int | None) -> None:
    if made.claim():
        made.close(outcome, end_ns=end_ns)


def _begun(
    recording: Recording, open_step: Place, request: AppendStep, ids: Ids
) -> tuple[OpenSpan, list[str]]:
    """Return the step of a request, begun or gone on with, and its inputs so far."""
    if request.step_id is not None:
        return recording.go_on(open_step.stored), input_refs(open_step)
    index = max(open_step.run.span_count - 1, 0)
    attributes = step_attributes(
        recording.recorder, kind=request.kind, index=index, metadata=request.metadata
    )
    attributes[semconv.CONVERSATION_ID] = open_step.run.conversation_id
    made = recording.begin(
        text_of(request.name or request.kind.replace("_", " ")),
        trace_id=open_step.trace_id,
        span_id=ids.span_id("step"),
        parent_span_id=open_step.span_id,
        attributes=attributes,
        start_ns=_ns_of(request.started_at),
    )
    return made, []


def input_refs(open_step: Place) -> list[str]:
    """Return the references of a step's inputs, in the order of the requests."""
    found = open_step.stored.view().attributes.get(semconv.STEP_INPUT_REFS)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _keep_inputs(recording: Recording, inputs: Sequence[object]) -> list[str]:
    """Keep context items, and return where; in metadata_only nowhere."""
    data = json.dumps(list(inputs), ensure_ascii=False, separators=(",", ":")).encode()
    ref = recording.payloads.put(data, media_type=INPUTS_TYPE)
    return [ref] if ref else []


def _left_open(service: SidecarService, open_step: Place) -> list[Place]:
    """Return what is open below a step, children first."""
    with service.site.readers.read() as connection:
        trace = bytes.fromhex(open_step.trace_id)
        steps = open_steps(connection, trace, scope=SCOPE)
        below = _below(open_step.step, steps)
        return [
            place_of(connection, open_step.trace_id, open_step.run, one) for one in reversed(below)
        ]


def _leave_open(
    recording: Recording, open_step: Place, outcome: SpanEnd, end_ns: int | None
) -> None:
    """End a step that nobody ended, with its run."""
    step = recording.go_on(open_step.stored)
    ended: Ended = "completed" if outcome.status == "completed" else "cancelled"
    if open_step.step.tool_name is not None:
        step.span.set_attribute(semconv.TOOL_RECORDED_PART, "call")
    start_ns = open_step.stored.message.start_time_unix_nano
    last_ns = None if end_ns is None else max(end_ns, start_ns)
    _close(step, SpanEnd(ended, left_open=True), last_ns)


def _below(step: StepPlace, steps: Sequence[StepPlace]) -> list[StepPlace]:
    by_parent: dict[bytes | None, list[StepPlace]] = {}
    for one in steps:
        by_parent.setdefault(one.parent_span_id, []).append(one)
    found: list[StepPlace] = []
    due = [step]
    while due:
        children = by_parent.pop(due.pop().span_id, [])
        found += children
        due += children
    return found


def _links(caller: tuple[str, str] | None) -> Sequence[Link]:
    if caller is None:
        return ()
    return (Link(remote(*caller).get_span_context(), {semconv.LINK_TYPE: "caller"}),)


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of this request."""

    tool_call: ToolCall
    made: OpenSpan

    def json(self) -> CallMade:
        return {
            "call_id": self.tool_call.call_id,
            "step_id": _step_id(self.made),
            "status": "running" if self.made.is_open else "ended",
            "traceparent": traceparent_of(self.made.trace_id, self.made.span_id),
        }


@dataclass(frozen=True, slots=True)
class _ToolSteps:
    """Tool calls of one request and their results: steps below one that is open."""

    service: SidecarService
    recording: Recording
    open_step: Place
    ids: Ids
    parent_span_id: str

    def begin(self, call: ToolCall, *, number: int = 0, start_ns: int | None = None) -> Called:
        """Begin a call, the request's nth; without `start_ns` when the call says."""
        attributes = tool_attributes(name=text_of(call.name), call_id=call.call_id, type=call.type)
        attributes[semconv.CONVERSATION_ID] = self.open_step.run.conversation_id
        made = self.recording.begin(
            tool_name(text_of(call.name)),
            trace_id=self.open_step.trace_id,
            span_id=self.ids.span_id(f"tool {number} {call.call_id}"),
            parent_span_id=self.parent_span_id,
            attributes=attributes,
            start_ns=_ns_of(call.started_at) if start_ns is None else start_ns,
        )
        _keep(made, semconv.TOOL_CALL_ARGUMENTS, call.arguments)
        if call.description is not None:
            made.keep_text(semconv.TOOL_DESCRIPTION, call.description)
        return Called(call, made)

    def answer(
        self, result: ToolResult, *, number: int = 0, fresh: Sequence[Called] = ()
    ) -> ResultTaken:
        """End the call that a result answers; `fresh` are those of the same request."""
        made = _of_this_request(result, fresh)
        if made is None:
            stored = self._stored_call(result)
            made = None if stored is None else self.recording.go_on(stored.stored)
        if made is None:
            made = self._untold(result, number=number)
        _keep(made, semconv.TOOL_CALL_RESULT, result.result)
        _close(made, _outcome(result.status, result.error), _end_ns_of(made, result.ended_at))
        return {"call_id": result.call_id, "step_id": _step_id(made), "status": "ended"}

    def _stored_call(self, result: ToolResult) -> Place | None:
        """Return the open call that a result answers; None where there is none."""
        trace_id, run = self.open_step.trace_id, self.open_step.run
        known = None
        with self.service.site.readers.read() as connection:
            if result.step_id is not None:
                return find_place(connection, trace_id, result.step_id)
            for one in open_steps(connection, bytes.fromhex(trace_id), scope=SCOPE):
                named = (
                    one.tool_call_id == result.call_id
                    if result.call_id is not None
                    else result.name is not None and one.tool_name == result.name
                )
                if named and one.tool_name is not None:
                    return place_of(connection, trace_id, run, one)
            if result.call_id is not None:
                known = find_answer(connection, run.id, result.call_id)
        if known is not None and not known.is_open:
            raise ResultExists(result.call_id or "", f"{trace_id}-{known.span_id.hex()}")
        return None

    def _untold(self, result: ToolResult, *, number: int) -> OpenSpan:
        """Begin a call that only its result tells of."""
        if result.name is None:
            raise InvalidQueryError(
                "call_id", "no open tool call has this call_id; with a name, it is recorded as one"
            )
        end_ns = _ns_of(result.ended_at) or time.time_ns()
        start_ns = max(end_ns - round((result.duration_ms or 0) * 1e6), 0)
        call = ToolCall(name=result.name, call_id=result.call_id, arguments=result.arguments)
        made = self.begin(call, number=number, start_ns=start_ns).made
        if result.arguments is None:
            made.span.set_attribute(semconv.TOOL_RECORDED_PART, "result")
        return made


def _of_this_request(result: ToolResult, fresh: Sequence[Called]) -> OpenSpan | None:
    for one in fresh:
        if one.made.is_open and (
            one.tool_call.call_id == result.call_id
            if result.call_id is not None
            else result.step_id is None and one.tool_call.name == result.name
        ):
            return one.made
    return None


def _step_id(made: OpenSpan) -> str:
    return f"{made.trace_id}-{made.span_id}"


def _body(kind: type[BodyT], trace_id: str, span_id: str, **made: object) -> BodyT:
    """Return how a run or step is named from now on, and what else is said of it."""
    return body_of(
        kind,
        run_id=trace_id,
        step_id=f"{trace_id}-{span_id}",
        span_id=span_id,
        traceparent=traceparent_of(trace_id, span_id),
        url=f"/steps/{trace_id}-{span_id}",
        **made,
    )


def _keep(made: OpenSpan, key: str, value: object) -> None:
    if value is not None:
        made.keep(key, value)


def _outcome(status: str | None, error: str | Failure | None) -> SpanEnd:
    if isinstance(error, Failure):
        outcome = outcome_of(status or "failed", error.message)
        return replace(outcome, error_type=error.type)
    return outcome_of(status, error)


def _end_ns_of(made: OpenSpan, text: str | None) -> int | None:
    """Return when a span ended; None is now.

    Raises InvalidQueryError for a time before its start.
    """
    end_ns = _ns_of(text)
    assert isinstance(made.span, ReadableSpan)  # every span of the SDK that records is one
    if end_ns is not None and end_ns < (made.span.start_time or 0):
        raise InvalidQueryError("ended_at", "ended_at is before the start")
    return end_ns


def _ns_of(text: str | None) -> int | None:
    return None if text is None else int(text)
