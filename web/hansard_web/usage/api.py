"""Tokens and cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from hansard_store.runs.usage import USAGE_GROUPS, list_usage
from hansard_web.api.bodies import usage_body
from hansard_web.api.parameters import Limit, one_of, read_window
from hansard_web.api.queries import Window
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep

router = NounRouter("usage")


@router.get("/v1/usage", "api.bodies.UsageList")
def usage(
    site: SiteDep,
    limit: Limit,
    window: Annotated[Window, Depends(read_window)],
    by: Annotated[str, one_of(*USAGE_GROUPS), Query(description="what is summed")] = "day",
) -> ApiResponse:
    """Sum what the runs that started in a window used; days are of UTC."""
    with site.readers.read() as connection:
        rows = list_usage(
            connection, by, since_ns=window.since_ns, until_ns=window.until_ns, limit=limit
        )
    return ApiResponse({"by": by, "items": [usage_body(row) for row in rows], "next_cursor": None})
