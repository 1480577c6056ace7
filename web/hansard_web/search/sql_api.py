"""Questions in SQL: one SELECT over the documented views, within limits."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from pydantic import WithJsonSchema

from hansard_store.database.sql_console import MOST_SQL, read_sql
from hansard_web.api.openapi import answers
from hansard_web.api.parameters import read_limit
from hansard_web.api.responses import Answer
from hansard_web.api.router import noun_router
from hansard_web.app.site import SiteDep

_SELECT = WithJsonSchema({"type": "string", "format": "sql", "maxLength": MOST_SQL})

router = noun_router("search")


@router.get("/v1/sql", response_class=Answer, responses=answers("api.schemas.SqlRows"))
def sql(
    site: SiteDep,
    limit: Annotated[int, Depends(read_limit)],
    q: Annotated[str, _SELECT, Query(description=f"one SELECT, up to {MOST_SQL:,} characters")],
) -> Answer:
    """Answer one SELECT over the views of the data model, in two seconds or not at all."""
    found = read_sql(site.folder, q, limit=limit)
    return Answer(
        {
            "columns": list(found.columns),
            "rows": [list(row) for row in found.rows],
            "has_more": found.is_more,
            "truncated_cells": found.cut_cells,
        }
    )
