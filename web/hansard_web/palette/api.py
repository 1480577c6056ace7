"""Names over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from hansard_store.runs.queries import find_trace_id
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.palette.results import find_names

router = NounRouter("find")


@router.get("/v1/find", "palette.results.FoundNames")
def find(
    site: SiteDep,
    q: Annotated[str, Query(description="part of a name, or the beginning of an id")] = "",
    run: Annotated[str, Query(description="a run whose steps are looked through")] = "",
) -> ApiResponse:
    """Find pages, runs, steps, users, conversations, saved views and settings by name.

    Looked through are the 2,000 newest runs and the 4,000 newest steps, or those of `run`.
    """
    with site.readers.read() as connection:
        run_id = find_trace_id(connection, run).hex() if run else ""
        found = find_names(connection, q, run_id=run_id, values=site.settings.values)
        return ApiResponse({"items": found})
