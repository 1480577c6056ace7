"""Two runs, or two steps, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.content.messages import CallRow
from hansard_store.runs.queries import get_run
from hansard_store.steps.queries import StepSkeleton, get_step, steps_by_number
from hansard_web.app.site import SiteDep
from hansard_web.diff.compaction import find_compaction
from hansard_web.diff.lookup import (
    TIMEOUT_MS,
    Comparisons,
    are_steps,
    find_run_diff,
    is_step_id,
)
from hansard_web.diff.neighbours import Neighbours, neighbours_of
from hansard_web.diff.page.state import DiffState, parse_diff_state
from hansard_web.diff.page.view import DiffView, run_diff_view, step_diff_view
from hansard_web.diff.runs import AlignedStep, RunDiff, Trees, compare_focus
from hansard_web.diff.steps import compare_steps
from hansard_web.media.stored import payload_lookup

router = APIRouter()

_MOST_CALLS = 100  # offered to be compared with


@dataclass(frozen=True, slots=True)
class _Other:
    """A step that may be compared with the one at hand."""

    call: CallRow
    about: str
    number: int
    href: str
    summary: str  # how its output begins, which distinguishes calls of one model


@dataclass(frozen=True, slots=True)
class PickPage:
    """The other side is chosen here."""

    left: StepSkeleton
    others: tuple[_Other, ...]
    compaction_href: str | None
    runs_href: str


@router.get("/diff/{left}/{right}")
def diff(request: Request, site: SiteDep, left: str, right: str) -> Response:
    with site.readers.read(timeout_ms=TIMEOUT_MS) as connection:
        state = whole_state(connection, left, right, request.query_params)
        if (state.left, state.right) != (left, right):
            return RedirectResponse(state.href(), 303)
        view = diff_view(
            connection,
            state,
            trees=site.pictures.tree,
            comparisons=site.comparisons,
            now_ns=time.time_ns(),
        )
    return site.renderer.page(request, "diff.html", here="runs", page=view)


@router.get("/diff")
def pick(
    request: Request,
    site: SiteDep,
    left: Annotated[str, Query()] = "",
    right: Annotated[str, Query()] = "",
) -> Response:
    """Choose what to compare with; with both given, compare."""
    left, right = left.strip(), right.strip()
    if left and right:
        return RedirectResponse(DiffState(left, right).path, 303)
    if not left or not is_step_id(left):
        return RedirectResponse(f"/?compare={left}" if left else "/", 303)
    with site.readers.read() as connection:
        page = _pick_page(connection, left)
    return site.renderer.page(request, "diff_pick.html", here="runs", page=page)


def diff_view(
    connection: apsw.Connection,
    state: DiffState,
    *,
    trees: Trees,
    comparisons: Comparisons,
    now_ns: int,
    is_saved: bool = False,
) -> DiffView:
    """Return the comparison that a state asks for; its ids are whole."""
    payloads = payload_lookup(connection)
    if are_steps(state.left, state.right):
        steps = compare_steps(connection, state.left, state.right, now_ns=now_ns)
        return step_diff_view(steps, state, payloads=payloads, is_saved=is_saved)
    runs = find_run_diff(
        connection,
        state.left,
        state.right,
        trees=trees,
        comparisons=comparisons,
        now_ns=now_ns,
    )
    selected = _selected(runs, state)
    focus = compare_focus(connection, selected, now_ns=now_ns)
    return run_diff_view(
        runs, state, selected=selected, focus=focus, payloads=payloads, is_saved=is_saved
    )


def _selected(runs: RunDiff, state: DiffState) -> AlignedStep | None:
    if state.row is not None and state.row < len(runs.steps):
        return runs.steps[state.row]
    return runs.focus


def whole_state(
    connection: apsw.Connection, left: str, right: str, query: Mapping[str, str]
) -> DiffState:
    """Return the state with whole ids; raises NotFoundError, AmbiguousIdError, MixedSidesError."""
    now_ns = time.time_ns()
    if are_steps(left, right):
        found = [get_step(connection, one, now_ns=now_ns).step_id for one in (left, right)]
    else:
        found = [get_run(connection, one, now_ns=now_ns).run_id for one in (left, right)]
    return parse_diff_state(found[0], found[1], query)


def _pick_page(connection: apsw.Connection, step_id: str) -> PickPage:
    now_ns = time.time_ns()
    step = get_step(connection, step_id, now_ns=now_ns)
    run = get_run(connection, step.run_id, now_ns=now_ns)
    found = find_compaction(connection, step, now_ns=now_ns)
    return PickPage(
        left=step,
        others=_others(connection, step, neighbours_of(connection, step, run=run.id)),
        compaction_href=None if found is None else DiffState(found.before, found.after).path,
        runs_href=f"/?compare={run.run_id}",
    )


def _others(
    connection: apsw.Connection, step: StepSkeleton, around: Neighbours
) -> tuple[_Other, ...]:
    """Return the calls of the same run, those next to the step first."""
    at = around.place
    numbered = list(enumerate(around.calls, 1))
    if at is not None:
        numbered.sort(key=lambda pair: abs(pair[0] - 1 - at))
    others = list(islice((pair for pair in numbered if pair[1].span != step.id), _MOST_CALLS))
    spans = [one.span for _, one in others]
    skeletons = steps_by_number(connection, spans, now_ns=time.time_ns())
    summaries = {span: skeleton.summary or "" for span, skeleton in skeletons.items()}
    return tuple(
        _other(step, around, *pair, summary=summaries.get(pair[1].span, "")) for pair in others
    )


def _other(
    step: StepSkeleton, around: Neighbours, number: int, one: CallRow, *, summary: str
) -> _Other:
    # The earlier one is A, whichever was chosen first.
    is_earlier = (one.sort_ns, one.span) <= (step.sort_ns, step.id)
    pair = (one.step_id, step.step_id) if is_earlier else (step.step_id, one.step_id)
    about = {around.before: "the call before it", around.after: "the call after it"}.get(one, "")
    return _Other(one, about, number, DiffState(*pair).path, summary)
