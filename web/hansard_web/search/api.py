"""Full text search over everything that was said."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Query
from pydantic import WithJsonSchema

from hansard_store.database.sql_console import MOST_SQL, read_sql
from hansard_store.runs.filters import ANY_KIND, RUN_KINDS, parse_kind
from hansard_store.search.full_text import search_texts
from hansard_web.api.bodies import hit_body
from hansard_web.api.parameters import Cursor, Limit, SearchText, one_of
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep

router = NounRouter("search")


@router.get("/v1/search", "api.bodies.HitList")
def search(
    site: SiteDep,
    limit: Limit,
    q: Annotated[SearchText, Query(description="words to look for")],
    kind: Annotated[
        str | None,
        one_of(*RUN_KINDS, ANY_KIND),
        Query(description="said in a run of this kind: agent, other or any"),
    ] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """Find texts: words must all be there, `"a phrase"`, `prefix*`, `-word`.

    A text is one hit, in the step that carried it first, however often it was sent again.
    """
    with site.readers.read() as connection:
        page = search_texts(
            connection,
            q,
            kind=parse_kind(kind),
            now_ns=time.time_ns(),
            limit=limit,
            cursor=cursor,
        )
    return page_answer(page, hit_body)


# Questions in SQL: one SELECT over the documented views, within limits.

_SELECT = WithJsonSchema({"type": "string", "format": "sql", "maxLength": MOST_SQL})


@router.get("/v1/sql", "api.bodies.SqlRows")
def sql(
    site: SiteDep,
    limit: Limit,
    q: Annotated[str, _SELECT, Query(description=f"one SELECT, up to {MOST_SQL:,} characters")],
) -> ApiResponse:
    """Answer one SELECT over the views of the data model, in two seconds or not at all."""
    found = read_sql(site.folder, q, limit=limit)
    return ApiResponse(
        {
            "columns": list(found.columns),
            "rows": [list(row) for row in found.rows],
            "has_more": found.is_more,
            "truncated_cells": found.cut_cells,
        }
    )
