"""Runs: lists, one run, its steps in the order of the tree; as the OTLP they came in."""

from __future__ import annotations

import time
from typing import Annotated

import apsw
from fastapi import Depends, Path, Query
from starlette.responses import Response, StreamingResponse

from hansard_store.annotations.queries import standing_json
from hansard_store.annotations.rows import AnnotationTarget
from hansard_store.bodies import body_of
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.errors import InvalidCursorError, StaleCursorError
from hansard_store.runs.filters import (
    INDEXED_SORTS,
    NEWEST_FIRST,
    RUN_SORTS,
    SORTED_RUNS,
    RunFilter,
    parse_sort,
)
from hansard_store.runs.queries import RunItem, get_run, list_runs, run_facets
from hansard_store.runs.usage import run_usage, silent_calls
from hansard_store.runs.values import VALUE_KEYS, filter_values
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.queries import (
    RunTree,
    links_from,
    links_to_run,
    tree_rows,
)
from hansard_store.steps.tree import TreeMark
from hansard_store.steps.usage_sums import SubtreeUsage
from hansard_web.api.bodies import (
    ModelUse,
    RunLinks,
    RunNote,
    RunTotals,
    StepItem,
    cache_breaks_body,
    graph_body,
    link_body,
    loop_bodies,
    row_body,
    run_body,
    skeleton_body,
    tokens_body,
)
from hansard_web.api.parameters import Cursor, one_of, read_limit, read_run_filter
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.run_page.cache_breaks import find_breaks
from hansard_web.runs.export import FORMATS, JSON, LINES, PROTOBUF, open_export, open_raw
from hansard_web.runs.records import by_start, run_record, step_records

router = NounRouter("runs")
export_router = NounRouter("export")

_MOST_ROOTS = 100  # of a run that arrived without its root, every span is one
_MOST_LINKS = 100

Limit = Annotated[int, Depends(read_limit)]
RunFilterDep = Annotated[RunFilter, Depends(read_run_filter)]


@router.get("/v1/runs", "api.bodies.RunList")
def list_of_runs(
    site: SiteDep,
    filters: RunFilterDep,
    limit: Limit,
    sort: Annotated[
        str,
        one_of(*(f"{sign}{key}" for key in RUN_SORTS for sign in ("-", ""))),
        Query(
            description=f"{', '.join(RUN_SORTS)}; - for falling. Those without an index "
            f"({', '.join(RUN_SORTS[len(INDEXED_SORTS) :])}) sort the newest {SORTED_RUNS:,} runs"
        ),
    ] = NEWEST_FIRST.text,
    cursor: Cursor = None,
) -> ApiResponse:
    """List the runs that meet all filters, the one seen last first."""
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        page = list_runs(
            connection, filters, now_ns=now_ns, sort=parse_sort(sort), limit=limit, cursor=cursor
        )
    items = [run_body(item) for item in page.items]
    return ApiResponse({"items": items, "next_cursor": page.next_cursor})


@router.get("/v1/facets", "api.bodies.Facets")
def facets_of_runs(site: SiteDep, filters: RunFilterDep) -> ApiResponse:
    """Count the values by which the runs that meet all filters can be narrowed further."""
    with site.readers.read() as connection:
        facets = run_facets(connection, filters, now_ns=time.time_ns())
    counts = {
        kind: [{"value": one.value, "runs": one.runs} for one in values]
        for kind, values in facets.counts.items()
    }
    return ApiResponse({"runs": facets.runs, "is_complete": facets.is_complete, "facets": counts})


@router.get("/v1/facets/{key}", "api.bodies.FilterValueList")
def values_of_filter(
    site: SiteDep,
    limit: Limit,
    key: Annotated[str, one_of(*VALUE_KEYS), Path(description=", ".join(VALUE_KEYS))],
    like: Annotated[str, Query(description="letters of the value", max_length=200)] = "",
) -> ApiResponse:
    """List the values of a filter in the whole store, those of most runs first."""
    with site.readers.read() as connection:
        found = filter_values(connection, key, like=like, limit=limit)
    items = [{"value": one.value, "runs": one.runs} for one in found.items]
    return ApiResponse({"items": items, "is_complete": found.is_complete})


@router.get("/v1/runs/{run_id}", "api.bodies.Run")
def one_run(site: SiteDep, run_id: str) -> ApiResponse:
    """Show a run by its id, or by its first eight digits or more."""
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        run = get_run(connection, run_id, now_ns=now_ns)
        shown = site.pictures.get(connection, run.run_id)
        tree = shown.tree
        breaks = find_breaks(connection, shown, run)
        return ApiResponse(
            {
                **run_body(run),
                "loops": loop_bodies(connection, tree, shown.loops, now_ns=now_ns),
                "cache_breaks": cache_breaks_body(breaks, tree),
                "totals": _totals(connection, run, tree),
                "roots": _roots(connection, tree, shown.sums(connection), now_ns=now_ns),
                "links": _links(connection, tree, now_ns=now_ns),
                "notes": _notes(run, tree),
                "annotations": standing_json(
                    connection, AnnotationTarget(bytes.fromhex(run.run_id))
                ),
            }
        )


@router.get("/v1/runs/{run_id}/steps", "api.bodies.StepList")
def steps_of_run(site: SiteDep, run_id: str, limit: Limit, after: Cursor = None) -> ApiResponse:
    """List the steps of a run depth-first by start.

    `after` takes `next_cursor`. When the run has changed since, the answer is 409 `cursor_stale`.
    """
    with site.readers.read() as connection:
        shown = site.pictures.get(connection, run_id)
        tree, sums = shown.tree, shown.sums(connection)
        first = _first_row(tree, after) if after else 0
        window = tree.tree.window(first=first, count=limit)
        rows = tree_rows(connection, tree, window, now_ns=time.time_ns())
    end, total = window.stop, len(tree.tree)
    cursor = encode_cursor("steps", tree.run, tree.version, end) if end < total else None
    return ApiResponse(
        {"items": [row_body(row, sums) for row in rows], "next_cursor": cursor, "total": total}
    )


@router.get("/v1/runs/{run_id}/graph", "api.bodies.RunGraph")
def graph_of_run(site: SiteDep, run_id: str) -> ApiResponse:
    """Show who called what in a run: agents, tools and models, with calls, errors and cost."""
    with site.readers.read() as connection:
        shown = site.pictures.get(connection, run_id)
        graph = shown.graph(connection)
    return ApiResponse(graph_body(graph, shown.tree))


@router.get("/v1/runs/{run_id}/record", "api.bodies.RunAndSteps")
def record_of_run(site: SiteDep, run_id: str, limit: Limit, cursor: Cursor = None) -> ApiResponse:
    """Return a run as a RunRecord and its steps as StepRecords, the first to begin first.

    When the run has changed since a page, the next one is 409 `cursor_stale`.
    """
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        run = get_run(connection, run_id, now_ns=now_ns)
        tree = site.pictures.tree(connection, run.run_id)
        order = by_start(tree)
        first = _first_row(tree, cursor, kind="record", name="cursor") if cursor else 0
        places = order[first : first + limit]
        steps = step_records(connection, tree, places, first=first, now_ns=now_ns)
        record = run_record(connection, run, tree)
    end = first + len(places)
    more = end < len(order)
    following = encode_cursor("record", tree.run, tree.version, end) if more else None
    return ApiResponse(
        {"run": record, "steps": steps, "total": len(order), "next_cursor": following}
    )


# Runs and steps as the OTLP they came in, streamed.


@export_router.get(
    "/v1/steps/{step_id}/raw",
    responses={200: {"content": {JSON: {}}, "description": "OTLP/JSON of this span"}},
    response_class=Response,
)
def raw_step(site: SiteDep, step_id: str) -> Response:
    """Give one span, and the log records that carry its ids, as they came in."""
    return StreamingResponse(open_raw(site.readers, step_id), media_type=JSON)


@export_router.get(
    "/v1/runs/{run_id}/export",
    responses={
        200: {
            "content": {JSON: {}, PROTOBUF: {}, LINES: {}, "text/html": {}},
            "description": "otlp-json: one object with resourceSpans and resourceLogs. "
            "otlp-proto: TracesData, the spans only. jsonl: a line a slice of otlp-json. "
            "html: one self-contained file to read, 2,000 steps at most.",
        }
    },
    response_class=Response,
)
def export_run(
    site: SiteDep,
    run_id: str,
    format: Annotated[
        str, one_of(*FORMATS), Query(description="otlp-json, otlp-proto, jsonl or html")
    ] = "otlp-json",
) -> Response:
    """Give a run as it came in; sent to any OTLP receiver, it is the same run there."""
    export = open_export(site.readers, run_id, format)
    headers = {"Content-Disposition": f'attachment; filename="{export.name}"'}
    return StreamingResponse(export.body, media_type=export.media_type, headers=headers)


def _first_row(tree: RunTree, after: str, *, kind: str = "steps", name: str = "after") -> int:
    run, version, row = decode_cursor(kind, after, count=3, name=name)
    if run != tree.run or row < 0:
        raise InvalidCursorError(name)
    if version != tree.version:
        raise StaleCursorError
    return row


def _totals(connection: apsw.Connection, run: RunItem, tree: RunTree) -> RunTotals:
    roles: dict[str, int] = {}
    for node in tree.tree.nodes:
        roles[node.role] = roles.get(node.role, 0) + 1
    by_model = [
        body_of(ModelUse, row, model=row.key, tokens=tokens_body(row.tokens))
        for row in run_usage(connection, run.id)
    ]
    silent = silent_calls(connection, run.id)
    return RunTotals(
        steps_by_role=roles,
        by_model=by_model,
        calls_without_tokens=silent.tokens,
        calls_without_cost=silent.cost,
    )


def _roots(
    connection: apsw.Connection, tree: RunTree, sums: SubtreeUsage, *, now_ns: int
) -> list[StepItem]:
    tops = [row for row, depth in enumerate(tree.tree.depths) if depth == 0][:_MOST_ROOTS]
    return [row_body(row, sums) for row in tree_rows(connection, tree, tops, now_ns=now_ns)]


def _links(connection: apsw.Connection, tree: RunTree, *, now_ns: int) -> RunLinks:
    spans = [node.id for node in tree.tree.nodes if node.flags & SpanFlag.HAS_LINKS]
    ends = links_from(connection, spans, now_ns=now_ns, limit=_MOST_LINKS)
    sources = links_to_run(connection, tree.run_id, now_ns=now_ns, limit=_MOST_LINKS)
    return {
        "to": [link_body(end) for end in ends],
        "from": [skeleton_body(step) for step in sources],
    }


def _notes(run: RunItem, tree: RunTree) -> list[RunNote]:
    """Return what was repaired, refused or is missing, each with how many steps it is about."""
    marks = tree.tree.marks
    seen_now = {
        "parent not received: shown at the top": sum(bool(m & TreeMark.ORPHAN) for m in marks),
        "is its own ancestor: the loop was cut": sum(bool(m & TreeMark.LOOP) for m in marks),
    }
    notes = {**run.notes, **{note: count for note, count in seen_now.items() if count}}
    return [RunNote(note=note, count=count) for note, count in notes.items()]
