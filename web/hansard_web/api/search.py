"""Full text search over everything that was said."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends

from hansard_store.search import search_texts
from hansard_web.api.answers import Answer
from hansard_web.api.bodies import hit_body
from hansard_web.api.described import answers
from hansard_web.api.params import read_limit
from hansard_web.api.routing import noun_router
from hansard_web.site import SiteDep

router = noun_router("search")


@router.get("/v1/search", response_class=Answer, responses=answers("models.HitList"))
def search(
    site: SiteDep,
    limit: Annotated[int, Depends(read_limit)],
    q: str = "",
    cursor: str | None = None,
) -> Answer:
    """Find texts: words must all be there, `"a phrase"`, `prefix*`, `-word`.

    A text is one hit, in the step that carried it first, however often it was sent again.
    """
    with site.readers.read() as connection:
        page = search_texts(connection, q, now_ns=time.time_ns(), limit=limit, cursor=cursor)
    return Answer({"items": [hit_body(hit) for hit in page.items], "next_cursor": page.next_cursor})
