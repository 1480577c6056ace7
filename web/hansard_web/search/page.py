"""Search over messages, tools, errors and logs, hits together by run."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Query
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.errors import InvalidQueryError
from hansard_store.runs.queries import RunItem, get_run
from hansard_store.search.full_text import USES_COUNTED, SearchHit, Snippet, search_texts
from hansard_web.app.site import SiteDep
from hansard_web.ui import format as figures

router = APIRouter()

_HITS: Final = 50
_LONGEST_QUERY: Final = 1000
_FIELDS: Final = {
    "message": "message",
    "span_name": "name",
    "error": "error",
    "tool_arguments": "arguments",
    "tool_result": "result",
    "input": "input",
    "output": "output",
    "log": "log record",
}
_ROLES: Final = {"assistant": "answer", "user": "user", "system": "system prompt", "tool": "result"}
_RUN_ID: Final = re.compile(r"[0-9a-fA-F]{8,32}(?:-[0-9a-fA-F]*)?")


@dataclass(frozen=True, slots=True)
class HitRow:
    url: str
    role: str
    name: str
    field: str
    text: Markup  # escaped, with the found words marked
    at_ns: int
    also: str  # where else the text was used, "" if nowhere


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Hits in one run that follow each other."""

    run: RunItem
    hits: tuple[HitRow, ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    q: str
    groups: tuple[HitGroup, ...]
    run: RunItem | None  # the words are the id of this one
    problem: str
    summary: str
    more_url: str | None


@router.get("/search")
def search(
    request: Request,
    site: SiteDep,
    q: Annotated[str, Query()] = "",
    cursor: Annotated[str, Query()] = "",
) -> Response:
    q = " ".join(q[:_LONGEST_QUERY].split())
    with site.readers.read() as connection:
        page = _search(connection, q, cursor=cursor)
    return site.renderer.page(request, "search.html", here="search", page=page)


def _search(connection: apsw.Connection, q: str, *, cursor: str) -> SearchPage:
    if not q:
        return SearchPage("", (), None, "", "", None)
    now_ns, started = time.time_ns(), time.perf_counter()
    run = _run_named(connection, q, now_ns=now_ns)
    try:
        found = search_texts(connection, q, now_ns=now_ns, limit=_HITS, cursor=cursor or None)
    except InvalidQueryError as error:
        return SearchPage(q, (), run, str(error), "", None)
    groups = _groups(connection, found.items, now_ns=now_ns)
    took_ms = (time.perf_counter() - started) * 1000
    hits = figures.plural(len(found.items), "hit")
    runs = figures.plural(len({group.run.run_id for group in groups}), "run")
    more = urlencode({"q": q, "cursor": found.next_cursor}) if found.next_cursor else ""
    return SearchPage(
        q=q,
        groups=tuple(groups),
        run=run,
        problem="",
        summary=f"{'the newest ' if more and not cursor else ''}{hits} in {runs}, {took_ms:.0f} ms",
        more_url=f"/search?{more}" if more else None,
    )


def _run_named(connection: apsw.Connection, q: str, *, now_ns: int) -> RunItem | None:
    """Return the run whose id, or the beginning of it, was typed."""
    if not _RUN_ID.fullmatch(q):
        return None
    try:
        return get_run(connection, q.partition("-")[0], now_ns=now_ns)
    except (NotFoundError, AmbiguousIdError):
        return None  # then it is a word like any other


def _groups(
    connection: apsw.Connection, hits: Sequence[SearchHit], *, now_ns: int
) -> list[HitGroup]:
    runs: dict[str, RunItem] = {}
    groups = []
    for run_id, of_run in itertools.groupby(hits, key=lambda hit: hit.step.run_id):
        if run_id not in runs:
            runs[run_id] = get_run(connection, run_id, now_ns=now_ns)
        groups.append(HitGroup(runs[run_id], tuple(_row(hit) for hit in of_run)))
    return groups


def _row(hit: SearchHit) -> HitRow:
    step = hit.step
    span = step.step_id.partition("-")[2]
    return HitRow(
        url=f"/runs/{step.run_id}?{urlencode({'span': span})}",
        role=step.role,
        name=step.name,
        field=_ROLES.get(hit.role or "", hit.role or "") or _FIELDS.get(hit.field, hit.field),
        text=_marked(hit.snippet),
        at_ns=step.sort_ns,
        also=_also(hit),
    )


def _also(hit: SearchHit) -> str:
    if hit.uses < 2:
        return ""
    uses = f"{USES_COUNTED} or more" if hit.uses >= USES_COUNTED else str(hit.uses)
    return f"in {uses} calls" if hit.field == "message" else f"in {uses} runs"


def _marked(snippet: Snippet) -> Markup:
    """Escape the pieces one by one: the text is hostile, only the marks are ours."""
    pieces, at = [], 0
    for start, end in snippet.highlights:
        if start < at:
            continue  # overlaps the mark before it
        pieces.append(escape(snippet.text[at:start]))
        pieces.append(Markup("<mark>{}</mark>").format(snippet.text[start:end]))
        at = end
    pieces.append(escape(snippet.text[at:]))
    return Markup("").join(pieces)
