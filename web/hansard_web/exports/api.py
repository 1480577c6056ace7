"""Lists as files, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hansard_web.api.parameters import one_of
from hansard_web.api.queries import read_word
from hansard_web.api.router import NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.approvals.worker import AccountsDep
from hansard_web.exports.formats import FORMATS, MEDIA_TYPES, file_name, write_rows
from hansard_web.exports.registry import NAMES, find_table
from hansard_web.exports.table import Source

router = NounRouter("tables")
_OWN = ("format", "schema_version")
# No page of this server frames or runs what a file holds, and a browser saves it.
_SAVED = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


@router.get(
    "/v1/tables/{table}",
    responses={
        200: {
            "content": {media.partition(";")[0]: {} for media in MEDIA_TYPES.values()},
            "description": "The rows of the list, as a file; 100,000 at most.",
        }
    },
    response_class=Response,
    any_query=True,
)
def table(
    request: Request,
    site: SiteDep,
    accounts: AccountsDep,
    table: Annotated[str, one_of(*NAMES), Path(description=", ".join(NAMES))],
    format: Annotated[
        str, one_of(*FORMATS), Query(description="csv, json, markdown or html")
    ] = "csv",
) -> Response:
    """Save a list as a file. Further parameters are the filters of the list's own route.

    In CSV a text that a spreadsheet could take for a formula begins with an apostrophe.
    """
    found = find_table(table)
    chosen = read_word("format", format, FORMATS) or "csv"
    query = request.query_params
    filters = {name: "\n".join(query.getlist(name)) for name in query if name not in _OWN}
    source = Source(site.folder, site.readers, accounts.store)
    body = write_rows(chosen, found.name, found.columns, found.read(source, filters))
    name = file_name(found.name, chosen)
    return StreamingResponse(
        body,
        media_type=MEDIA_TYPES[chosen],
        headers={**_SAVED, "Content-Disposition": f'attachment; filename="{name}"'},
    )
