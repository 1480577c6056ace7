"""All routes of the API: one router a noun."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from hansard_web.api import (
    approvals,
    compilations,
    compile,
    diff,
    events,
    export,
    ledger,
    memory,
    models,
    payloads,
    policy,
    receipts,
    replay,
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
from hansard_web.api.params import check_schema_version

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


def api_router() -> APIRouter:
    """Return all routes of the API."""
    router = APIRouter(
        dependencies=[Depends(check_schema_version)],
        responses={"4XX": {"model": models.Error}, "5XX": {"model": models.Error}},
    )
    for one in ROUTERS:
        router.include_router(one)
    return router
