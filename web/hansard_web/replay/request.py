"""The request of a replay; the same fields in the API, the SDK and on the command line."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from hansard_compiler.compile.models import Id, Json, Model
from hansard_compiler.models.json_schema import A_NUMBER, Schema, any_of
from hansard_compiler.replay.live import TURNS, USD
from hansard_compiler.replay.mutations import MOST

MOST_REPEATS = 50
MOST_LIVE = 200  # turns, and results sent at once
Mode = Literal["exact", "mutated", "forward"]


LiveTurns = Annotated[int, Field(ge=1, le=MOST_LIVE), A_NUMBER]
LiveUsd = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False), A_NUMBER]


_ALLOWS = (
    "tools that the provider runs itself, and state that it keeps, are allowed for this replay: it "
    "then waits for an approval before anything is sent; refused otherwise"
)


_LIVE: Final[list[Schema]] = [
    {"properties": {"live": {"const": False}}},
    {"properties": {"recorded": {"const": False}, "mode": {"enum": [None, "forward"]}}},
]


class ReplayInput(Model):
    """One replay. `mode` left out: exact, or mutated where there are changes."""

    model_config = ConfigDict(json_schema_extra=any_of(*_LIVE))

    schema_version: Literal["1"] = "1"
    step_id: Id
    mode: Mode | None = None
    recorded: bool = Field(
        default=False,
        description="answer from the recording: nothing is sent, no key or network is needed",
    )
    mutations: list[Any] = Field(
        default_factory=list, max_length=MOST, description="changes, in the order they apply"
    )
    n: Annotated[int, Field(ge=1, le=MOST_REPEATS), A_NUMBER] = Field(
        default=1, description="how often to ask; each answer is paid for"
    )
    live: bool = Field(
        default=False,
        description="a fork: go on past the first divergence. Calls that were recorded have their "
        "recorded results; for every other it waits until a result is given",
    )
    max_turns: LiveTurns = Field(default=TURNS, description="live turns at most")
    max_usd: LiveUsd = Field(default=USD, description="what live turns may cost at most")
    preview: bool = Field(default=False, description="show what would be sent, and send nothing")
    notes: Annotated[str, Field(max_length=10_000)] | None = None
    allow_other_address: bool = Field(
        default=False,
        description="send to the address configured here although the call went to another",
    )
    allow_provider_side_effects: bool = Field(default=False, description=_ALLOWS)
    script: Json | None = Field(default=None, description="lines of the scripted model")
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = Field(
        default=0, description="answer when it has ended, at the latest after so many seconds"
    )
    timeout_s: Annotated[float, Field(gt=0, le=3_600), A_NUMBER] = 600.0
    max_retries: Annotated[int, Field(ge=0, le=10), A_NUMBER] = 2

    @model_validator(mode="after")
    def _live_is_a_fork(self) -> Self:
        if self.live and (self.recorded or self.mode not in (None, "forward")):
            raise ValueError("live goes on from a fork (mode forward), and not from a recording")
        return self

    @property
    def kind(self) -> Mode:
        if self.live:
            return "forward"
        return self.mode or ("mutated" if self.mutations else "exact")


class ResultInput(Model):
    """What a tool call of a live fork came to."""

    call_id: Id
    result: Any = Field(description="as the model receives it: text or JSON")
    is_error: bool = False
    origin: Literal["gate", "hand"] = Field(
        default="hand", description="gate: the program's own tool ran, behind its gate"
    )
    approval_id: Id | None = None


class HeldCall(Model):
    """A call that has no result yet, and why."""

    call_id: Id
    reason: Annotated[str, Field(min_length=1, max_length=100)] = Field(
        description="pending, rejected, expired, or a code of the gate's"
    )
    approval_id: Id | None = None
    message: Annotated[str, Field(max_length=2_000)] | None = None


class GoOn(Model):
    """A fork that stopped goes on live: with results, and bounds where they are to be others."""

    schema_version: Literal["1"] = "1"
    results: Annotated[list[ResultInput], Field(max_length=MOST_LIVE)] = Field(
        default_factory=list, description="of tool calls that wait; each is given once"
    )
    pending_calls: Annotated[list[HeldCall], Field(max_length=MOST_LIVE)] = Field(
        default_factory=list
    )
    after: Id | None = Field(
        default=None,
        description="`step_id` of the `continuation` that this answers; refused where it went on",
    )
    max_turns: LiveTurns | None = Field(default=None, description="further live turns from here")
    max_usd: LiveUsd | None = Field(default=None, description="what they may cost from here")
    by: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    script: Json | None = Field(default=None, description="lines of the scripted model")
    allow_other_address: bool = False
    allow_provider_side_effects: bool = Field(default=False, description=_ALLOWS)
    wait_s: Annotated[float, Field(ge=0, le=60), A_NUMBER] = 0
    timeout_s: Annotated[float, Field(gt=0, le=3_600), A_NUMBER] = 600.0
    max_retries: Annotated[int, Field(ge=0, le=10), A_NUMBER] = 2
