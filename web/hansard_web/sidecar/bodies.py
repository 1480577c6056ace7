"""What programs may send, in JSON; unknown fields are refused with their place."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from hansard._runs.step import StepKind
from hansard_compiler.calls import message_problem
from hansard_compiler.models.json_schema import (
    A_NUMBER,
    TIME,
    Real,
    Schema,
    Whole,
    any_of,
    both,
    having,
    left_out,
)
from hansard_web.api.times import parse_time
from hansard_web.sidecar.published_items import MESSAGE, MESSAGE_ROLES, AnItem

EndStatus = Literal["completed", "failed", "cancelled"]


def _as_ns(text: str) -> str:
    try:
        return str(parse_time(text))
    except ValueError:
        raise ValueError("write it as 2026-01-31T12:00:00.5Z or nanoseconds in a text") from None


Time = Annotated[str, AfterValidator(_as_ns), Field(max_length=64), WithJsonSchema(TIME)]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
CallId = Annotated[str, Field(min_length=1, max_length=512)]


class SidecarBody(BaseModel):
    """`schema_version` says what the client was written for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal["1"] = "1"


class Failure(BaseModel):
    """Why something failed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Name | None = None
    message: str | None = None


class StartRun(SidecarBody):
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
    arguments: Any = None  # of a call that was not recorded before
    result: Any = None
    status: EndStatus | None = None
    error: str | Failure | None = None
    ended_at: Time | None = None
    duration_ms: Annotated[float, Field(ge=0, le=2.592e9), A_NUMBER] | None = None


class AppendStep(SidecarBody):
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


class EndRun(SidecarBody):
    """End a run; what is open in it ends with it."""

    step_id: str | None = None  # of a nested run: its own step
    status: EndStatus | None = None
    output: Any = None
    error: str | Failure | None = None
    ended_at: Time | None = None


class CallTool(ToolCall, SidecarBody):
    """Tell that a tool is called."""

    run_id: Name
    parent_step_id: str | None = None


class AnswerTool(ToolResult, SidecarBody):
    """Tell what a tool gave."""

    run_id: Name
    parent_step_id: str | None = None


# A compile, and a model call.


class CompileInput(SidecarBody):
    """Compile the context of one model call. `context_items` follow the inputs of the step."""

    run_id: Name
    step_id: Name | None = None  # None: the run's own
    context_items: list[Annotated[Any, AnItem(is_compiled=True)]] = Field(
        default=[], max_length=20_000
    )
    provider: Name
    model: Name
    token_budget: Whole
    response_reserve: Whole = 0
    tools: list[dict[str, Any]] = Field(default=[])
    memory_records: list[dict[str, Any]] = Field(default=[])
    policy_rules: list[dict[str, Any]] = Field(default=[])  # beside those in force
    compile_config: dict[str, Any] = Field(default={})
    relevance: str | None = Field(
        default=None, description="the scorer: pieces (the default), embeddings or bm25"
    )
    task_summary: str = ""
    now: str | None = None  # None: the server's clock


_EMPTY: Final[Schema] = {"maxItems": 0}
_ASKS: Final = [
    both(
        having("compilation_id"),
        {"properties": {"messages": _EMPTY, "system": _EMPTY, "tools": _EMPTY}},
    ),
    both(having("provider", "model", messages={"minItems": 1}), left_out("compilation_id")),
]


class ModelInput(SidecarBody):
    """Ask a model for what was compiled (`compilation_id`), or for messages as they are."""

    model_config = ConfigDict(json_schema_extra=any_of(*_ASKS))

    run_id: Name
    step_id: Name | None = None
    compilation_id: Name | None = None
    messages: list[Annotated[dict[str, Any], WithJsonSchema(MESSAGE)]] = Field(
        default=[]
    )  # {role, parts}, as a compile's payload has them
    system: list[str] = Field(default=[])
    tools: list[dict[str, Any]] = Field(default=[])
    provider: Name | None = None  # None: the one that was compiled for
    model: Name | None = None
    script: dict[str, Any] | None = None  # of the scripted provider
    max_output_tokens: Annotated[int, Field(gt=0), A_NUMBER] | None = None
    temperature: Real | None = None
    top_p: Real | None = None
    stop: list[str] | None = None
    seed: Whole | None = None
    effort: str | None = None
    tool_choice: str | None = None
    output_schema: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    previous_response_id: str | None = None
    max_input_tokens: Annotated[int, Field(gt=0), A_NUMBER] | None = None
    extra: dict[str, Any] | None = None
    stream: bool = Field(
        default=False, description="answer with server-sent events: the answer as it comes"
    )
    timeout_s: Annotated[float, Field(gt=0, le=600), A_NUMBER] = 120.0  # of each wait of an attempt
    max_retries: Annotated[int, Field(ge=0, le=5), A_NUMBER] = 2

    @field_validator("messages")
    @classmethod
    def _roles(cls, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for at, message in enumerate(messages):
            if message.get("role", "user") not in MESSAGE_ROLES:
                found = f"{message.get('role')!r:.60}"
                expected = ", ".join(MESSAGE_ROLES)
                raise ValueError(f"[{at}].role is {found}; expected one of {expected}")
            if problem := message_problem(message):
                raise ValueError(f"[{at}]{problem}")
        return messages

    @model_validator(mode="after")
    def _requests_something(self) -> Self:
        if (self.compilation_id is None) == (not self.messages):
            raise ValueError("name a compilation_id, or give messages: one of the two")
        if self.compilation_id is not None and (self.system or self.tools):
            raise ValueError("a compilation brings its own system instructions and tools")
        if self.messages and (self.provider is None or self.model is None):
            raise ValueError("messages need a provider and a model")
        return self


OPTIONS: Final = (
    "max_output_tokens", "temperature", "top_p", "stop", "seed", "effort", "tool_choice",
    "output_schema", "reasoning", "previous_response_id", "max_input_tokens", "extra",
)  # fmt: skip
