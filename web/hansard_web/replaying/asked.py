"""What is asked of a replay; the same fields in the API, the SDK and on the command line."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hansard_compiler.models import Id, Json, Model
from hansard_compiler.replay.mutations import MOST

MOST_REPEATS = 50
Mode = Literal["exact", "mutated", "forward"]


class AskReplay(Model):
    """One replay. `mode` left out: exact, or mutated where there are changes."""

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
    n: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = Field(
        default=1, description="how often to ask; each answer is paid for"
    )
    preview: bool = Field(default=False, description="show what would be sent, and send nothing")
    notes: Annotated[str, Field(max_length=10_000)] | None = None
    elsewhere: bool = Field(
        default=False,
        description="send to the address configured here although the call went to another",
    )
    script: Json | None = Field(default=None, description="lines of the scripted model")
    wait_s: Annotated[float, Field(ge=0, le=60)] = Field(
        default=0, description="answer when it has ended, at the latest after so many seconds"
    )
    timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 600.0
    max_retries: Annotated[int, Field(ge=0, le=10)] = 2

    @property
    def kind(self) -> Mode:
        return self.mode or ("mutated" if self.mutations else "exact")
