"""Runs, steps and replay recipes as pydantic models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hansard_compiler.compile.models import Id, Json, TopLevel, Utc

StepKind = Literal[
    "model_call", "tool_call", "memory_write", "policy_check", "human_approval", "other"
]
RunStatus = Literal["running", "completed", "failed", "cancelled"]
StepStatus = Literal["running", "completed", "failed", "cancelled", "blocked"]


class RunRecord(TopLevel):
    """One run of an agent."""

    run_id: Id
    agent_name: str
    domain: str
    user_goal: str
    started_at: Utc
    ended_at: Utc | None = None
    status: RunStatus
    metadata: Json = Field(default_factory=dict)


class StepRecord(TopLevel):
    """One step of a run. `blocked`: it waits for an approval."""

    step_id: Id
    run_id: Id
    step_index: int
    step_kind: StepKind
    started_at: Utc
    ended_at: Utc | None = None
    status: StepStatus
    metadata: Json = Field(default_factory=dict)


class ReplayRecipe(TopLevel):
    """What to run again, and what to change on the way."""

    replay_id: Id
    source_run_id: Id
    source_step_id: Id
    provider_override: str | None = None
    model_override: str | None = None
    compile_overrides: Json = Field(default_factory=dict)
    context_mutations: list[Json] = Field(default_factory=list)
    notes: str | None = None
