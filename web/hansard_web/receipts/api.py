"""Receipts across runs: what compiles did with items, and why."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, Query

from hansard_store.compilations.receipts import ReceiptFilter, list_receipts
from hansard_web.api.parameters import Cursor, Limit, TimeText
from hansard_web.api.router import ApiResponse, NounRouter, page_answer
from hansard_web.app.site import SiteDep
from hansard_web.context.compilation_bodies import compilation_body
from hansard_web.receipts.bodies import found_body, receipt_filter

router = NounRouter("receipts")


def read_receipt_filter(
    item: Annotated[str | None, Query(description="id of an item")] = None,
    reason: Annotated[str | None, Query(description="reason code: over_budget, …")] = None,
    rule: Annotated[str | None, Query(description="id of a policy rule")] = None,
    pass_: Annotated[
        str | None, Query(alias="pass", description="pass that decided: budget, …")
    ] = None,
    decision: Annotated[
        str | None, Query(description="include, exclude, compress or redact")
    ] = None,
    kind: Annotated[str | None, Query(description="kind of item: file, memory, …")] = None,
    source: Annotated[
        str | None, Query(description="where it came from: `file`, `docs/a.md`, `file docs/a.md`")
    ] = None,
    run: Annotated[str | None, Query(description="run, or a unique beginning of its id")] = None,
    since: Annotated[
        TimeText | None, Query(description="compiled at or after: RFC 3339 or ns")
    ] = None,
    until: Annotated[TimeText | None, Query(description="compiled before: RFC 3339 or ns")] = None,
) -> ReceiptFilter:
    """Return the filter of a list of receipts; an empty value means that it was not given."""
    return receipt_filter(**locals())


@router.get("/v1/receipts", "receipts.bodies.ReceiptList")
def receipts(
    site: SiteDep,
    limit: Limit,
    filters: Annotated[ReceiptFilter, Depends(read_receipt_filter)],
    cursor: Cursor = None,
) -> ApiResponse:
    """List what compiles did with items, newest compile first: `?source=a.py&reason=over_budget`.

    All filters must be met. Within a compile the order is that of its candidates.
    """
    with site.readers.read() as connection:
        page = list_receipts(connection, filters, limit=limit, cursor=cursor)
    return page_answer(page, found_body)


# One compile, whole: what was weighed, what went in, and why.


@router.get("/v1/compilations/{compilation_id}", "context.compilation_bodies.CompilationBody")
def one_compilation(site: SiteDep, compilation_id: str) -> ApiResponse:
    """Show a compile by its id, or a unique beginning of it of 8 characters or more.

    Score terms, notes, passes and the hashes of sections stand in the stored result; where that
    is missing or withheld they are null, and `result.state` says so.
    """
    with site.readers.read() as connection:
        return ApiResponse(compilation_body(connection, compilation_id, now_ns=time.time_ns()))
