"""Any two steps, or any two runs, compared (DESIGN §11)."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import Depends, Query
from starlette.responses import Response

from hansard_store.bodies import body_of
from hansard_store.database.cursors import decode_cursor, encode_cursor
from hansard_store.errors import InvalidCursorError, InvalidQueryError, StaleCursorError
from hansard_web.api.parameters import Cursor, one_of, read_limit
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep
from hansard_web.diff.bodies import CompactionSides, run_diff_body, step_diff_body
from hansard_web.diff.compaction import compaction_sides
from hansard_web.diff.lookup import TIMEOUT_MS, find_run_diff
from hansard_web.diff.runs import RunDiff, compare_focus
from hansard_web.diff.steps import compare_steps
from hansard_web.html_export import MEDIA_TYPE, saved_diff

router = NounRouter("diff")

_KIND = "diff"

Limit = Annotated[int, Depends(read_limit)]


@router.get("/v1/diff/steps/{left}/{right}", "diff.bodies.StepDiffAnswer")
def diff_steps(site: SiteDep, left: str, right: str) -> ApiResponse:
    """Compare two steps of one run or of two, by id or unique beginning.

    `cause` names the cause of each flip: `verified` where taking it back and compiling again
    undid the flip, `evidence` where only the receipts speak. Times differ always and count for
    nothing: `is_empty` is about everything else.
    """
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        diff = compare_steps(connection, left, right, now_ns=time.time_ns())
        return ApiResponse(step_diff_body(diff))


@router.get("/v1/diff/runs/{left}/{right}", "diff.bodies.RunDiffAnswer")
def diff_runs(
    site: SiteDep,
    left: str,
    right: str,
    limit: Limit,
    cursor: Cursor = None,
    only: Annotated[
        str,
        one_of("", "changes"),
        Query(description="changes: leave out the steps that are the same"),
    ] = "",
) -> ApiResponse:
    """Compare two runs by id or unique beginning: figures, aligned steps, where they part.

    `cursor` takes `next_cursor`; when a run has changed since, the answer is 409 `cursor_stale`.
    `detail` is the comparison of the first compile or call that differs, on the first page only.
    """
    if only not in ("", "changes"):
        raise InvalidQueryError("only", f"only is {only!r}; it can be changes")
    now_ns = time.time_ns()
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        diff = find_run_diff(
            connection,
            left,
            right,
            trees=site.pictures.tree,
            comparisons=site.comparisons,
            now_ns=now_ns,
        )
        steps = [one for one in diff.steps if not only or one.state != "same"]
        first = _first(diff, cursor) if cursor else 0
        focus = None if cursor else compare_focus(connection, diff.focus, now_ns=now_ns)
    end = first + limit
    following = _cursor(diff, end) if end < len(steps) else None
    return ApiResponse(run_diff_body(diff, steps[first:end], next_cursor=following, focus=focus))


@router.get("/v1/diff/compaction/{step_id}", "diff.bodies.CompactionSides")
def diff_compaction(site: SiteDep, step_id: str) -> ApiResponse:
    """Compare what the model was sent before a compaction with what it was sent after it.

    The step is the compaction or checkpoint itself, or a call whose context fell back. 404
    `no_compaction` for any other.
    """
    now_ns = time.time_ns()
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        found = compaction_sides(connection, step_id, now_ns=now_ns)
        diff = compare_steps(connection, found.before, found.after, now_ns=now_ns)
        body = step_diff_body(diff)
    return ApiResponse(body_of(CompactionSides, found, diff=body))


@router.get(
    "/v1/diff/saved/{left}/{right}",
    responses={200: {"content": {"text/html": {}}, "description": "one self-contained file"}},
    response_class=Response,
)
def save_diff(site: SiteDep, left: str, right: str) -> Response:
    """Give a comparison of two runs or two steps as one HTML file; it opens offline, unscripted."""
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        file = saved_diff(connection, left, right, trees=site.pictures.tree, now_ns=time.time_ns())
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.body, media_type=MEDIA_TYPE, headers=headers)


def _cursor(diff: RunDiff, row: int) -> str:
    left, right = diff.left, diff.right
    return encode_cursor(_KIND, left.id, left.version, right.id, right.version, row)


def _first(diff: RunDiff, cursor: str) -> int:
    left, left_version, right, right_version, row = decode_cursor(_KIND, cursor, count=5)
    if (left, right) != (diff.left.id, diff.right.id) or row < 0:
        raise InvalidCursorError("cursor")
    if (left_version, right_version) != (diff.left.version, diff.right.version):
        raise StaleCursorError
    return row
