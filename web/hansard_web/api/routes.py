"""All routes of the API: one router a noun."""

from __future__ import annotations

from fastapi.routing import APIRoute

from hansard_web.api import (
    approvals,
    compilations,
    compile,
    diff,
    evaluations,
    events,
    export,
    heartbeat,
    ledger,
    memory,
    payloads,
    policy,
    receipts,
    replay,
    reports,
    runs,
    saved,
    search,
    sidecar_runs,
    sql,
    steps,
    tasks,
    transcripts,
    usage,
)
from hansard_web.api.annotations import router as annotations_router

ROUTERS = (
    runs.router,
    steps.router,
    export.router,
    search.router,
    sql.router,
    usage.router,
    payloads.router,
    policy.router,
    approvals.router,
    events.router,
    tasks.router,
    evaluations.router,
    heartbeat.router,
    reports.router,
    memory.router,
    annotations_router,
    sidecar_runs.router,
    compile.router,
    ledger.router,
    compilations.router,
    diff.router,
    saved.router,
    receipts.router,
    transcripts.router,
    replay.router,
)


def api_routes() -> list[APIRoute]:
    """Return all routes of the API."""
    routes = (route for router in ROUTERS for route in router.routes)
    return [route for route in routes if isinstance(route, APIRoute)]
