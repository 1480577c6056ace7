"""Verdicts on claims over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from hansard_collector.evaluation.words import ClaimEvaluation, verdict_json
from hansard_store.bodies import Page
from hansard_store.evaluation.verdicts import (
    VERDICTS,
    VerdictFilter,
    list_verdicts,
    memory_ids,
)
from hansard_store.memory.rows import find_number
from hansard_store.runs.queries import find_trace_id
from hansard_web.api.parameters import Cursor, Limit, one_of
from hansard_web.api.queries import read_word
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep


class EvaluationList(Page):
    """Verdicts, the last found first."""

    items: list[ClaimEvaluation]


router = NounRouter("evaluations")


@router.get("/v1/evaluations", "evaluation.api.EvaluationList")
def evaluations(
    site: SiteDep,
    limit: Limit,
    run: Annotated[str | None, Query(description="that said it: an id, or its beginning")] = None,
    verdict: Annotated[
        str | None,
        one_of(*VERDICTS),
        Query(description="confirmed, contradicted, claimed (no evidence), unknown"),
    ] = None,
    tool: Annotated[
        str | None, Query(description="what is spoken of, or the tool that decided")
    ] = None,
    memory: Annotated[str | None, Query(description="the record that says it")] = None,
    cursor: Cursor = None,
) -> ApiResponse:
    """List what agents claimed about their tools, with the record's verdict.

    Claims come from the answers of runs, transcripts and memory; a cycle of the heartbeat or
    `hansard evaluate` judges them.
    """
    with site.readers.read() as connection:
        filters = VerdictFilter(
            run=None if run is None else find_trace_id(connection, run),
            verdict=read_word("verdict", verdict, VERDICTS),
            tool=tool or None,
            memory=None if memory is None else find_number(connection, memory),
        )
        page = list_verdicts(connection, filters, limit=limit, cursor=cursor)
        names = memory_ids(connection, page.items)
    return page_answer(page, lambda one: verdict_json(one, names))
