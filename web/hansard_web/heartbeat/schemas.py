"""Cycles of the heartbeat and diagnostics as the API describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_web.api.bodies import Body, Page


class HeartbeatPhase(Body):
    """How one phase of a cycle ended."""

    name: str
    status: Literal["done", "failed", "skipped"]
    step_id: str = Field(description="the phase's span in the cycle's trace")
    started_at: str
    duration_ns: str
    summary: str = Field(description="of a failed phase the error, of a skipped one the reason")
    figures: dict[str, Any]


class HeartbeatCycle(Body):
    """One cycle: a trace with a span for each phase."""

    run_id: str
    origin: Literal["command", "server"]
    started_at: str
    ended_at: str | None = Field(description="null: it is under way, or its process was killed")
    phases: list[HeartbeatPhase]


class HeartbeatList(Page):
    """Cycles, the newest first."""

    items: list[HeartbeatCycle]


class Diagnostic(Body):
    """What a component of Hansard reported of its own work."""

    time: str
    component: str
    level: Literal["info", "warning", "error"]
    signature: str = Field(description="what equal diagnostics share")
    message: str
    run_id: str | None
    step_id: str | None


class DiagnosticList(Page):
    """Diagnostics, the newest first."""

    items: list[Diagnostic]
