"""The heartbeat over HTTP: its cycles, and what components report of their own work."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query

from hansard_store.bodies import Page
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.heartbeat import (
    DiagnosticBody,
    HeartbeatCycle,
    cycle_json,
    diagnostic_json,
    list_cycles,
    list_diagnostics,
)
from hansard_web.api.parameters import Cursor, Limit
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep


class HeartbeatList(Page):
    """Cycles, the newest first."""

    items: list[HeartbeatCycle]


class DiagnosticList(Page):
    """Diagnostics, the newest first."""

    items: list[DiagnosticBody]


router = NounRouter("heartbeat")
_ABOVE_ALL: Final = (1 << 63) - 1


@router.get("/v1/heartbeat", "heartbeat.api.HeartbeatList")
def cycles(site: SiteDep, limit: Limit, cursor: Cursor = None) -> ApiResponse:
    """List cycles of the heartbeat with their phases, the newest first."""
    before = decode_cursor("heartbeat", cursor, count=1)[0] if cursor else _ABOVE_ALL
    with site.readers.read() as connection:
        found = list_cycles(connection, limit=limit + 1, before=before)
    more = encode_cursor("heartbeat", found[limit - 1].id) if len(found) > limit else None
    return ApiResponse({"items": [cycle_json(one) for one in found[:limit]], "next_cursor": more})


@router.get("/v1/diagnostics", "heartbeat.api.DiagnosticList")
def diagnostics(
    site: SiteDep,
    limit: Limit,
    component: Annotated[str | None, Query(description="such as heartbeat.evaluation")] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List what components of Hansard reported of their own work, the newest first.

    What tools of agents did is in their steps; the SQL view `diagnostics` has both.
    """
    before = decode_cursor("diagnostics", cursor, count=1)[0] if cursor else _ABOVE_ALL
    with site.readers.read() as connection:
        found = list_diagnostics(connection, component=component, limit=limit + 1, before=before)
    more = encode_cursor("diagnostics", found[limit - 1].id) if len(found) > limit else None
    items = [diagnostic_json(one) for one in found[:limit]]
    return ApiResponse({"items": items, "next_cursor": more})
