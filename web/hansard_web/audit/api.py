"""The audit log over HTTP: read it, its head, verify it, and tell what it cannot see itself."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Query
from pydantic import WithJsonSchema

from hansard_store.approvals.json import event_json, head_json, report_json
from hansard_store.audit.event_types import Actor, EventFilter, EventType
from hansard_store.audit.external_events import note_event
from hansard_web.api.parameters import Cursor, Limit, TimeText, one_of
from hansard_web.api.queries import trace_id_of
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.approvals.bodies import NoteEvent
from hansard_web.approvals.worker import AccountsDep
from hansard_web.audit.filters import event_filter, events_page, read_anchor

router = NounRouter("events", route_class=JsonRoute)


def read_event_filter(
    site: SiteDep,
    accounts: AccountsDep,
    type: Annotated[
        str | None, one_of(*EventType), Query(description="one of the closed list")
    ] = None,
    actor: Annotated[
        str | None, one_of(*Actor), Query(description="agent, me, tool or system")
    ] = None,
    who: Annotated[str | None, Query(description="name of the actor")] = None,
    action: Annotated[str | None, Query()] = None,
    source: Annotated[str | None, Query()] = None,
    subject: Annotated[str | None, Query()] = None,
    approval: Annotated[str | None, Query(description="id, or its beginning")] = None,
    run: Annotated[str | None, Query(description="id of a run, or its beginning")] = None,
    since: Annotated[TimeText | None, Query(description="at or after: RFC 3339 or ns")] = None,
    until: Annotated[TimeText | None, Query(description="before: RFC 3339 or ns")] = None,
    seals: Annotated[
        bool, Query(description="seals as well, which are left out unless asked for by type")
    ] = False,
) -> EventFilter:
    """Return the filter of a list of events; an empty value means that it was not given."""
    return event_filter(
        find_approval=lambda text: accounts.store.approval(text).key,
        find_run=lambda text: trace_id_of(text, site.readers.read),
        approval=approval,
        run=run,
        since=since,
        until=until,
        type=type,
        actor=actor,
        who=who,
        action=action,
        source=source,
        subject=subject,
        with_seals=seals,
    )


@router.get("/v1/events", "approvals.bodies.Events")
def list_events(
    accounts: AccountsDep,
    filters: Annotated[EventFilter, Depends(read_event_filter)],
    limit: Limit,
    cursor: Cursor = None,
) -> ApiResponse:
    """List events, the newest first."""
    return page_answer(events_page(accounts.store, filters, cursor, limit=limit), event_json)


@router.post("/v1/events", "approvals.bodies.Noted", status=201)
def note(accounts: AccountsDep, body: NoteEvent) -> ApiResponse:
    """Log a message, a tool call, a result, a block or a failure; it is on disk when answered."""
    fields = body.model_dump(exclude={"schema_version"}, exclude_none=True)
    return ApiResponse({"seq": note_event(accounts.store, fields)}, status_code=HTTPStatus.CREATED)


@router.get("/v1/events/head", "approvals.bodies.HeadBody")
def head(accounts: AccountsDep) -> ApiResponse:
    """Return the end of the chain: kept elsewhere, it proves that nothing before it changed."""
    return ApiResponse(head_json(accounts.store.head()))


@router.get("/v1/events/verify", "approvals.bodies.Verified")
def verify(
    accounts: AccountsDep,
    anchor: Annotated[
        str | None,
        WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,18}:[0-9a-f]{64}$"}),
        Query(description="a head that was kept: SEQ:HASH"),
    ] = None,
) -> ApiResponse:
    """Check the whole chain, and name the first row that was altered, removed or inserted."""
    return ApiResponse(report_json(accounts.store.verify(anchor=read_anchor(anchor))))
