"""The requests of a compile and of a model call, in JSON."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from hansard_compiler.calls import message_problem
from hansard_compiler.models.json_schema import (
    A_NUMBER,
    Real,
    Schema,
    Whole,
    any_of,
    both,
    having,
    left_out,
)
from hansard_web.sidecar.bodies import Body, Name
from hansard_web.sidecar.published_items import MESSAGE, MESSAGE_ROLES, AnItem


class CompileInput(Body):
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


class ModelInput(Body):
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
    def _asks_something(self) -> Self:
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
