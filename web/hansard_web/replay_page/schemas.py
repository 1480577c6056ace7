"""Replays as OpenAPI describes them; see `models.py`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_web.api.schemas import Answer, Body, Page


class ReplaySource(Body):
    run_id: str
    step_id: str


class ReplaySummary(Body):
    """A replay in one line; `reason` is set where it was refused or failed."""

    replay_id: str
    short_id: str
    state: Literal["running", "done", "diverged", "waiting", "refused", "failed"]
    reason: str | None
    reason_text: str | None
    mode: Literal["exact", "mutated", "forward"]
    recorded: bool
    n: int
    source: ReplaySource
    run_id: str | None = Field(description="the run it made; null where it was refused")
    step_ids: list[str] = Field(description="its model calls, in order")
    request_hash: str | None
    started_at: str
    ended_at: str | None
    duration_ms: float | None
    labels: list[str] = Field(description="what must be said of it wherever it is shown")
    url: str


class ReplayBranch(ReplaySummary):
    """A replay with the replays of the steps it made."""

    replays: list[ReplayBranch]


class ReplayList(Page):
    items: list[ReplaySummary]


class Replay(ReplaySummary, Answer):
    """Everything about a replay."""

    recorded_request_hash: str | None
    same_request: bool | None
    steps: list[dict[str, Any]]
    recipe: dict[str, Any] | None = Field(description="null in metadata_only")
    mutations: list[dict[str, Any]]
    changes: list[str] = Field(description="what was changed, in words")
    user_notes: str | None
    notes: list[str] = Field(description="what could not be the same")
    error: dict[str, Any] | None
    divergence: dict[str, Any] | None = Field(description="where a fork parted, and how")
    continuation: dict[str, Any] | None = Field(description="what it takes to go on from there")
    live: dict[str, Any] | None = Field(
        description="of a fork that went on live: turns, money, and where each result came from"
    )
    spread: dict[str, Any] | None = Field(description="of n > 1 answers")
    comparison: dict[str, Any] | None = Field(description="as `GET /v1/diff/steps` tells it")
    replays: list[ReplayBranch]


class Preview(Answer):
    """What would be sent; `refusal` says why it cannot be, `cost` is null for unknown prices."""

    preview: Literal[True]
    mode: Literal["exact", "mutated", "forward"]
    recorded: bool
    n: int
    source: ReplaySource
    provider: str
    model: str
    address: str
    recorded_address: str | None = Field(description="of the recorded call, as far as it is known")
    is_exact: bool
    is_rebuilt: bool
    basis: Literal["recorded", "edited", "compiled", "continued", "telemetry"] = Field(
        description="what the request is made of"
    )
    sends: bool
    provider_side_effects: list[dict[str, Any]] = Field(
        description="tools that the provider runs itself, and state that it keeps"
    )
    needs_approval: bool = Field(description="it waits for an approval before it is sent")
    refusal: dict[str, Any] | None
    mutations: list[dict[str, Any]]
    request: dict[str, Any]
    compile: dict[str, Any] | None = None
    tokens: dict[str, Any]
    cost: dict[str, Any] | None
    notes: list[str]
    omitted: list[str]
