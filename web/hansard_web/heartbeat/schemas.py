"""What the routes of the heartbeat and of diagnostics answer."""

from __future__ import annotations

from hansard_store.bodies import Page
from hansard_store.heartbeat import DiagnosticBody, HeartbeatCycle


class HeartbeatList(Page):
    """Cycles, the newest first."""

    items: list[HeartbeatCycle]


class DiagnosticList(Page):
    """Diagnostics, the newest first."""

    items: list[DiagnosticBody]
