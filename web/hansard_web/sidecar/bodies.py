"""What programs may tell a run, in JSON; unknown fields are refused with their place."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from hansard._runs.step import StepKind
from hansard_compiler.models.json_schema import A_NUMBER, TIME
from hansard_web.api.queries import parse_time
from hansard_web.sidecar.published_items import AnItem

EndStatus = Literal["completed", "failed", "cancelled"]


def _as_ns(text: str) -> str:
    try:
        return str(parse_time(text))
    except ValueError:
        raise ValueError("write it as 2026-01-31T12:00:00.5Z or nanoseconds in a text") from None


Time = Annotated[str, AfterValidator(_as_ns), Field(max_length=64), WithJsonSchema(TIME)]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
CallId = Annotated[str, Field(min_length=1, max_length=512)]


class Body(BaseModel):
    """`schema_version` says what the client was written for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal["1"] = "1"


class Failure(BaseModel):
    """Why something failed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Name | None = None
    message: str | None = None


class StartRun(Body):
    """Begin a run."""

    agent_name: Name | None = None
    domain: Name | None = None
    user_goal: str | None = None
    conversation_id: Name | None = None
    user_id: Name | None = None
    tags: list[Name] = Field(default=[], max_length=64)
    metadata: dict[str, Any] = Field(default={}, max_length=64)
    input: Any = None
    service_name: Name | None = None  # None: the agent's name
    nest: bool = False  # in the trace of `traceparent`, as a sub-agent; else a trace of its own
    traceparent: str | None = None  # as the header, which wins
    started_at: Time | None = None


class ToolCall(BaseModel):
    """A tool is called. Without a call id, its step's id names it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    arguments: Any = None
    call_id: CallId | None = None
    type: Name | None = None
    description: str | None = None
    started_at: Time | None = None


class ToolResult(BaseModel):
    """What a tool gave: the end of the call with this id or step id, or the oldest of its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call_id: CallId | None = None
    step_id: str | None = None
    name: Name | None = None
    arguments: Any = None  # of a call that was not told before
    result: Any = None
    status: EndStatus | None = None
    error: str | Failure | None = None
    ended_at: Time | None = None
    duration_ms: Annotated[float, Field(ge=0, le=2.592e9), A_NUMBER] | None = None


class AppendStep(Body):
    """Begin a step, add to an open one (`step_id`), or end it (`status`)."""

    step_id: str | None = None
    parent_step_id: str | None = None  # None: the run's own
    name: Name | None = None
    kind: StepKind = "other"
    metadata: dict[str, Any] = Field(default={}, max_length=64)
    input: Any = None
    # Context items, for a compile.
    inputs: list[Annotated[Any, AnItem(is_compiled=False)]] = Field(default=[], max_length=20_000)
    output: Any = None
    tool_calls: list[ToolCall] = Field(default=[], max_length=1_000)
    tool_results: list[ToolResult] = Field(default=[], max_length=1_000)
    status: Literal["running"] | EndStatus = "running"
    error: str | Failure | None = None
    started_at: Time | None = None
    ended_at: Time | None = None


class EndRun(Body):
    """End a run; what is open in it ends with it."""

    step_id: str | None = None  # of a nested run: its own step
    status: EndStatus | None = None
    output: Any = None
    error: str | Failure | None = None
    ended_at: Time | None = None


class CallTool(ToolCall, Body):
    """Tell that a tool is called."""

    run_id: Name
    parent_step_id: str | None = None


class AnswerTool(ToolResult, Body):
    """Tell what a tool gave."""

    run_id: Name
    parent_step_id: str | None = None
