"""Runs and steps as programs without the SDK tell them, request by request.

What is open stands in the store as an open span. Each request reads it, adds to it and writes it
again: a server that was stopped meanwhile knows as much as before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Link

from hansard import semconv
from hansard._tracing.attributes import run_attributes, run_name, step_attributes, text_of
from hansard._tracing.open_span import Ended, OpenSpan, Outcome, outcome_of
from hansard_compiler.calls import Json
from hansard_compiler.compile.inputs import check_context_items
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.open_steps import StepPlace, open_steps
from hansard_store.runs.queries import find_trace_id
from hansard_web.app.readers import Readers
from hansard_web.sidecar.addresses import Place, find_place, place_of
from hansard_web.sidecar.bodies import AppendStep, EndRun, Failure, StartRun
from hansard_web.sidecar.recorder import SCOPE, Outlet, Recording, remote

# Ids of new spans: random, or from the idempotency key, so that one request makes one span.

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-[0-9a-f]{2}(?:-.*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Ids:
    """Gives one request its ids; `seed` None makes them random."""

    key: bytes  # of the store
    seed: bytes | None = None

    def trace_id(self) -> str:
        """Return a trace id, 32 hex digits."""
        return self._digits("trace", 16)

    def span_id(self, name: str) -> str:
        """Return a span id, 16 hex digits; `name` tells apart those of one request."""
        return self._digits(f"span {name}", 8)

    def _digits(self, name: str, size: int) -> str:
        if self.seed is None:
            made = secrets.token_bytes(size)
        else:
            made = hmac.digest(self.key, self.seed + b"\0" + name.encode(), hashlib.sha256)[:size]
        # All zeros is no id; the chance of it is 2^-64.
        return made.hex() if any(made) else "1".zfill(size * 2)


def traceparent_of(trace_id: str, span_id: str) -> str:
    """Return the W3C header that makes a span the parent of what another process does."""
    return f"00-{trace_id}-{span_id}-01"


def parse_traceparent(text: str | None) -> tuple[str, str] | None:
    """Return trace id and span id of a `traceparent`; None where it is none (the W3C rule)."""
    found = None if text is None else _TRACEPARENT.fullmatch(text.strip().lower())
    return None if found is None else (found["trace"], found["span"])


INPUTS_TYPE: Final = "application/vnd.hansard.step-inputs+json"
_SERVICE: Final = "hansard-sidecar"  # where a program names neither itself nor its agent
_STRIPES: Final = 64


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What the sidecar's routes share: one for an app.

    Of one run, one request at a time reads and writes: each lock stands for some runs, and is held
    by the worker threads that serve them.
    """

    readers: Readers
    outlet: Outlet
    locks: Sequence[threading.Lock] = field(
        default_factory=lambda: tuple(threading.Lock() for _ in range(_STRIPES))
    )

    def lock(self, trace_id: str) -> threading.Lock:
        """Return the lock of a run."""
        return self.locks[int(trace_id[:8], 16) % _STRIPES]

    def trace_id(self, run_id: str) -> str:
        """Return the whole id of a run; raises NotFoundError or AmbiguousIdError."""
        with self.readers.read() as connection:
            return find_trace_id(connection, run_id).hex()

    def place(self, run_id: str, step_id: str | None) -> Place:
        """Return where a request belongs."""
        with self.readers.read() as connection:
            return find_place(connection, run_id, step_id)


def start_run(sidecar: Sidecar, request: StartRun, ids: Ids, *, traceparent: str | None) -> Json:
    """Begin a run: a trace of its own, linked to its caller, or a part of the caller's trace."""
    caller = parse_traceparent(traceparent or request.traceparent)
    nests = request.nest and caller is not None
    trace_id = caller[0] if caller is not None and nests else ids.trace_id()
    span_id = ids.span_id("run")
    recording = sidecar.outlet.recording(_resource(request.service_name or request.agent_name))
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
        start_ns=ns_of(request.started_at),
    )
    if request.user_goal is not None:
        made.keep_text(semconv.RUN_GOAL, request.user_goal)
    _keep(made, semconv.INPUT, request.input)
    recording.save()
    return _address(trace_id, span_id, status="running")


def append_step(sidecar: Sidecar, run_id: str, request: AppendStep, ids: Ids) -> Json:
    """Begin a step, or go on with one; it may bring tool calls and results, and end.

    Raises InvalidItem for an input that no compile could use.
    """
    from hansard_web.sidecar.tools import add_calls, add_results

    check_context_items(request.inputs, now=datetime.now(UTC), where="inputs")
    trace_id = sidecar.trace_id(run_id)
    with sidecar.lock(trace_id):
        open_step = sidecar.place(trace_id, request.step_id or request.parent_step_id)
        recording = sidecar.outlet.recording(open_step.resource)
        made, refs = _begun(recording, open_step, request, ids)
        _keep(made, semconv.INPUT, request.input)
        if request.inputs:
            refs += _keep_inputs(recording, request.inputs)
            made.span.set_attribute(semconv.STEP_INPUT_REFS, refs)
        calls = add_calls(recording, open_step, request.tool_calls, ids, parent=made)
        results = add_results(
            sidecar, recording, open_step, request.tool_results, ids, parent=made, fresh=calls
        )
        if request.output is not None:
            made.keep(semconv.OUTPUT, request.output)
        if request.status != "running" or request.error is not None:
            ended = None if request.status == "running" else request.status
            close(made, ended, request.error, end_ns_of(made, request.ended_at))
        recording.save()
    status = "running" if made.is_open else _status(request.status, request.error)
    return {
        **_address(trace_id, made.span_id, status=status),
        "input_refs": refs,
        "tool_calls": [one.json() for one in calls],
        "tool_results": results,
    }


def end_run(sidecar: Sidecar, run_id: str, request: EndRun) -> Json:
    """End a run, and with it what is open below it."""
    trace_id = sidecar.trace_id(run_id)
    with sidecar.lock(trace_id):
        open_step = sidecar.place(trace_id, request.step_id)
        recording = sidecar.outlet.recording(open_step.resource)
        root = recording.go_on(open_step.stored)
        outcome = _outcome(request.status, request.error)
        end_ns = end_ns_of(root, request.ended_at)
        left = _left_open(sidecar, open_step)
        for one in left:
            _leave_open(recording, one, outcome, end_ns)
        if request.output is not None:
            root.keep(semconv.OUTPUT, request.output)
        close(root, request.status, request.error, end_ns)
        recording.save()
    return {
        **_address(trace_id, root.span_id, status=outcome.status),
        "unended_steps": [one.step_id for one in left],
    }


def close(
    made: OpenSpan, status: str | None, error: str | Failure | None, end_ns: int | None
) -> None:
    """End a span as the request says."""
    if made.claim():
        made.close(_outcome(status, error), end_ns=end_ns)


def step_name(request: AppendStep) -> str:
    """Return what a step is called: its name, else its kind."""
    return request.name or request.kind.replace("_", " ")


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
        text_of(step_name(request)),
        trace_id=open_step.trace_id,
        span_id=ids.span_id("step"),
        parent_span_id=open_step.span_id,
        attributes=attributes,
        start_ns=ns_of(request.started_at),
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


def _left_open(sidecar: Sidecar, open_step: Place) -> list[Place]:
    """Return what is open below a step, children first."""
    with sidecar.readers.read() as connection:
        trace = bytes.fromhex(open_step.trace_id)
        steps = open_steps(connection, trace, scope=SCOPE)
        below = _below(open_step.step, steps)
        return [
            place_of(connection, open_step.trace_id, open_step.run, one) for one in reversed(below)
        ]


def _leave_open(
    recording: Recording, open_step: Place, outcome: Outcome, end_ns: int | None
) -> None:
    """End a step that nobody ended, with its run."""
    step = recording.go_on(open_step.stored)
    ended: Ended = "completed" if outcome.status == "completed" else "cancelled"
    if open_step.step.tool_name is not None:
        step.span.set_attribute(semconv.TOOL_RECORDED_PART, "call")
    if step.claim():
        start_ns = open_step.stored.message.start_time_unix_nano
        last_ns = None if end_ns is None else max(end_ns, start_ns)
        step.close(Outcome(ended, left_open=True), end_ns=last_ns)


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


def _resource(service: str | None) -> ResourceMessage:
    resource = ResourceMessage()
    for key, value in ((semconv.SERVICE_NAME, service or _SERVICE),):
        attribute = resource.attributes.add()
        attribute.key = key
        attribute.value.string_value = text_of(value)
    return resource


def _links(caller: tuple[str, str] | None) -> Sequence[Link]:
    if caller is None:
        return ()
    return (Link(remote(*caller).get_span_context(), {semconv.LINK_TYPE: "caller"}),)


def _address(trace_id: str, span_id: str, *, status: str) -> Json:
    """Return how a run or step is named from now on."""
    return {
        "run_id": trace_id,
        "step_id": f"{trace_id}-{span_id}",
        "span_id": span_id,
        "status": status,
        "traceparent": traceparent_of(trace_id, span_id),
        "url": f"/steps/{trace_id}-{span_id}",
    }


def _keep(made: OpenSpan, key: str, value: object) -> None:
    if value is not None:
        made.keep(key, value)


def _status(status: str, error: str | Failure | None) -> str:
    return _outcome(None if status == "running" else status, error).status


def _outcome(status: str | None, error: str | Failure | None) -> Outcome:
    if isinstance(error, Failure):
        outcome = outcome_of(status or "failed", error.message)
        return replace(outcome, error_type=error.type)
    return outcome_of(status, error)


def end_ns_of(made: OpenSpan, text: str | None) -> int | None:
    """Return when a span ended; None is now.

    Raises InvalidQueryError for a time before its start.
    """
    end_ns = ns_of(text)
    assert isinstance(made.span, ReadableSpan)  # every span of the SDK that records is one
    if end_ns is not None and end_ns < (made.span.start_time or 0):
        raise InvalidQueryError("ended_at", "ended_at is before the start")
    return end_ns


def ns_of(text: str | None) -> int | None:
    return None if text is None else int(text)
