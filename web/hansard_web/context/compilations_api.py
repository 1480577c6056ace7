"""One compile, whole: what was weighed, what went in, and why."""

from __future__ import annotations

import time

from hansard_web.api.openapi import answers
from hansard_web.api.responses import Answer
from hansard_web.api.router import noun_router
from hansard_web.app.site import SiteDep
from hansard_web.context.compilation_bodies import compilation_body

router = noun_router("receipts")


@router.get(
    "/v1/compilations/{compilation_id}",
    response_class=Answer,
    responses=answers("receipts.schemas.Compilation"),
)
def one_compilation(site: SiteDep, compilation_id: str) -> Answer:
    """Show a compile by its id, or a unique beginning of it of 8 characters or more.

    Score terms, notes, passes and the hashes of sections stand in the stored result; where that
    is missing or withheld they are null, and `result.state` says so.
    """
    with site.readers.read() as connection:
        return Answer(compilation_body(connection, compilation_id, now_ns=time.time_ns()))
