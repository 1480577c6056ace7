"""Status reports over HTTP: listed, read, acknowledged."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request

from hansard_compiler.models.tasks import AcknowledgeReport
from hansard_store.bodies import Answer, Description
from hansard_store.principals.authority import Authority
from hansard_store.reports.files import Reports, StatusReport
from hansard_web.api.parameters import Limit
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.principals.dependencies import principal_of
from hansard_web.reports.service import ReportService


class ReportAnswer(Answer):
    """One report with its text."""

    report: StatusReport


class ReportList(Answer):
    """Reports, the newest first."""

    items: list[StatusReport]
    total: Annotated[int, Description("how many there are, beyond the limit too")]


router = NounRouter("reports", route_class=JsonRoute)


# async: see `site_of`.
async def reports_of_app(request: Request, site: SiteDep) -> ReportService:
    """Return the reports of the app, as the principal of a request uses them."""
    settings = site.settings
    authority = Authority.of(settings.decide_mode).acting(principal_of(request))
    return ReportService(
        Reports(site.folder, source="api"),
        authority,
        settings.recipients,
        settings.report_escalation_ns,
    )


ReportsDep = Annotated[ReportService, Depends(reports_of_app)]


@router.get("/v1/reports", "reports.api.ReportList")
def list_of_reports(
    service: ReportsDep,
    limit: Limit,
    pending: Annotated[
        bool, Query(description="only those that wait for somebody to acknowledge them")
    ] = False,
) -> ApiResponse:
    """List status reports, the newest first, with who has acknowledged each."""
    found = service.listed(only_pending=pending)
    items = [service.json(one) for one in found[:limit]]
    return ApiResponse({"items": items, "total": len(found)})


@router.get("/v1/reports/{name}", "reports.api.ReportAnswer")
def report(service: ReportsDep, name: str) -> ApiResponse:
    """Read a status report: at most 60 lines of Markdown."""
    return ApiResponse({"report": service.json(service.reports.get(name), with_text=True)})


@router.post("/v1/reports/{name}/ack", "reports.api.ReportAnswer")
def acknowledge(service: ReportsDep, name: str, body: AcknowledgeReport) -> ApiResponse:
    """Say that a person has read a report. A second time changes nothing.

    The name is that of the credential; `by` counts where anyone may decide.
    """
    made = service.acknowledge(name, by=body.by or "")
    return ApiResponse({"report": service.json(made, with_text=True)})
