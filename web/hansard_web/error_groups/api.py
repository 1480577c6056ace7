"""Groups of errors over HTTP: listed, shown, watched, noted, closed."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, Query

from hansard_compiler.models.error_groups import ChangeError
from hansard_store.error_groups import due
from hansard_store.error_groups.json import error_detail_json, error_json
from hansard_store.error_groups.queries import (
    SHOWN,
    SORTS,
    Wanted,
    get_error,
    list_errors,
)
from hansard_store.error_groups.service import ErrorGroupService
from hansard_store.runs.filters import RunFilter
from hansard_web.api.parameters import Cursor, Limit, one_of, read_run_filter
from hansard_web.api.queries import read_word
from hansard_web.api.request_bodies import JsonRoute
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.principals.dependencies import of_app

ErrorsDep = Annotated[ErrorGroupService, of_app("errors", is_acting=True)]

router = NounRouter("errors", route_class=JsonRoute)


def read_wanted(
    filters: Annotated[RunFilter, Depends(read_run_filter)],
    state: Annotated[
        str,
        one_of(*SHOWN),
        Query(description="open (also those that opened again), closed, watched or all"),
    ] = "open",
    sort: Annotated[
        str, one_of(*SORTS), Query(description="count, last_seen or first_seen; - for falling")
    ] = "-count",
) -> Wanted:
    """Return which errors are wanted; the filters are of the runs that have them."""
    return Wanted.of(
        filters,
        shown=read_word("state", state, SHOWN) or "open",
        sort=read_word("sort", sort, SORTS) or "-count",
    )


WantedDep = Annotated[Wanted, Depends(read_wanted)]


@router.get("/v1/errors", "error_groups.bodies.ErrorList")
def list_of_errors(
    site: SiteDep, wanted: WantedDep, limit: Limit, cursor: Cursor = None
) -> ApiResponse:
    """List groups of errors: failed steps of one tool, model or name with messages alike.

    Filters are those of runs, and narrow the runs whose errors are counted; `since` and `until` are
    of the errors themselves, and `q` is words of their messages. An error that goes up through its
    callers counts once.
    """
    with site.readers.read() as connection:
        page, sums = list_errors(
            connection, wanted, now_ns=time.time_ns(), limit=limit, cursor=cursor
        )
        is_complete = not due.is_due(connection)
    return ApiResponse(
        {
            "items": [error_json(one) for one in page.items],
            "next_cursor": page.next_cursor,
            "totals": {"groups": sums.groups, "errors": sums.errors},
            "is_complete": is_complete,
        }
    )


@router.get("/v1/errors/{error_id}", "error_groups.bodies.ErrorAnswer")
def error(site: SiteDep, error_id: str) -> ApiResponse:
    """Show a group by its id, or by its first eight digits or more."""
    with site.readers.read() as connection:
        found = get_error(connection, error_id, now_ns=time.time_ns())
        return ApiResponse({"error": error_detail_json(connection, found)})


@router.post("/v1/errors/{error_id}/decide", "error_groups.bodies.ErrorAnswer")
def decide(site: SiteDep, errors: ErrorsDep, error_id: str, body: ChangeError) -> ApiResponse:
    """Watch, unwatch, note, close or open a group.

    A closed group opens again by itself when a step fails in the same way after it was closed. The
    same change again changes nothing; each note is one of its own.
    """
    made = errors.change(error_id, body)
    with site.readers.read() as connection:
        return ApiResponse({"error": error_detail_json(connection, made)})
