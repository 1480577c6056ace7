"""All routes of the API: one router a noun."""

from __future__ import annotations

from fastapi.routing import APIRoute

from hansard_web.annotations.api import router as annotations_router
from hansard_web.approvals import api as approvals
from hansard_web.audit import api as events
from hansard_web.context import api as compile
from hansard_web.diff import api as diff
from hansard_web.evaluation import api as evaluations
from hansard_web.health import api as ledger
from hansard_web.heartbeat import api as heartbeat
from hansard_web.memory import api as memory
from hansard_web.payloads import api as payloads
from hansard_web.policy import api as policy
from hansard_web.receipts import api as receipts
from hansard_web.replay_page import api as replay
from hansard_web.reports import api as reports
from hansard_web.runs import api as runs
from hansard_web.search import api as search
from hansard_web.sidecar import api as sidecar_runs
from hansard_web.steps import api as steps
from hansard_web.tasks import api as tasks
from hansard_web.transcripts import api as transcripts
from hansard_web.usage import api as usage

ROUTERS = (
    runs.router,
    steps.router,
    runs.export_router,
    search.router,
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
    diff.router,
    receipts.router,
    transcripts.router,
    replay.router,
)


def api_routes() -> list[APIRoute]:
    """Return all routes of the API."""
    routes = (route for router in ROUTERS for route in router.routes)
    return [route for route in routes if isinstance(route, APIRoute)]
