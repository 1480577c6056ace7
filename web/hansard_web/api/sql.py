"""Questions in SQL: one SELECT over the documented views, within limits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from hansard_store.sql_reading import MOST_SQL, read_sql
from hansard_web.api import models
from hansard_web.api.answers import Answer
from hansard_web.api.params import read_limit
from hansard_web.site import SiteDep

router = APIRouter(tags=["search"])


class SqlRows(models.Answer):
    """`cut_cells`: values that were too long and are cut; `is_more`: there are further rows."""

    columns: list[str]
    rows: list[list[Any]]
    is_more: bool
    cut_cells: int


@router.get("/v1/sql", response_class=Answer, responses={200: {"model": SqlRows}})
def sql(
    site: SiteDep,
    limit: Annotated[int, Depends(read_limit)],
    q: Annotated[str, Query(description=f"one SELECT, up to {MOST_SQL:,} characters")] = "",
) -> Answer:
    """Answer one SELECT over the views of the data model, in two seconds or not at all."""
    found = read_sql(site.folder, q, limit=limit)
    return Answer(
        {
            "columns": list(found.columns),
            "rows": [list(row) for row in found.rows],
            "is_more": found.is_more,
            "cut_cells": found.cut_cells,
        }
    )
