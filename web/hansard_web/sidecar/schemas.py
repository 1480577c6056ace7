"""What the sidecar's routes answer."""

from __future__ import annotations

from hansard_store.bodies import Answer, Body


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


class CallMade(Body):
    """A tool call of a step."""

    call_id: str | None
    step_id: str
    status: str
    traceparent: str


class ResultTaken(Body):
    """A tool's result in a step."""

    call_id: str | None
    step_id: str
    status: str


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
