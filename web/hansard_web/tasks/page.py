"""Reviews: what goes wrong again and again, and deciding about it by plain forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Final, Literal

import apsw
from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.database.cursors import Page
from hansard_store.detection.rules import rule_text, span_of_time
from hansard_store.error_groups.queries import error_of_step
from hansard_store.errors import InvalidCursorError
from hansard_store.memory.maintenance.reviewed_supersessions import Supersession, of_task
from hansard_store.memory.rows import get_memory
from hansard_store.principals.model import CLAIMED, person_text
from hansard_store.steps.queries import get_step
from hansard_store.tasks.errors import InvalidDecision, TaskRefused
from hansard_store.tasks.json import sample_of
from hansard_store.tasks.rows import (
    OPEN,
    Task,
    TaskRunEvidence,
    count_tasks,
    get_task,
    list_tasks,
)
from hansard_web.app.addresses import address
from hansard_web.app.site import Site, SiteDep
from hansard_web.memory.labels import text_of, title_of
from hansard_web.tasks import labels as words
from hansard_web.tasks.api import TasksDep
from hansard_web.ui.format import agent_words, plural
from hansard_web.ui.forms import OwnForm

# One task as the page shows it: what repeats, how often, since when, and where.

_HEIGHT: Final = 24  # of the picture, in its own units
_WORDS_CHARS: Final = 600


@dataclass(frozen=True, slots=True)
class _Bar:
    """How often in a part of the window; places are percents and units of the picture."""

    x: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class _Place:
    """One time that it happened."""

    kind: str
    href: str  # of what may be gone with its run
    short_id: str
    name: str  # of a step or a memory that is here; else its short id
    at_ns: int
    is_first: bool
    says: str


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A supersession that approving the task applies."""

    supersession: Supersession
    older_text: str
    newer_text: str
    judge: str  # with its score


@dataclass(frozen=True, slots=True)
class _Detail:
    """Everything to the right of the list."""

    task: Task
    mark: str
    word: str
    rule: str  # what was looked for, and the numbers in force
    says: str
    says_title: str
    places: tuple[_Place, ...]
    more: str  # what the places leave out
    bars: tuple[_Bar, ...]
    bars_sentence: str
    window: str
    decided_by: str
    done_by: str
    error_id: str | None  # the group of errors that it is about
    proposals: tuple[_Proposal, ...]  # none: approving it changes nothing by itself


def read_detail(connection: apsw.Connection, task_id: str) -> _Detail:
    """Read a task with the words of its evidence, as far as they are stored.

    Raises NotFoundError or AmbiguousIdError.
    """
    task = get_task(connection, task_id)
    mark, word = words.STATES[task.state]
    window = span_of_time(task.window_ns)
    places = _places(connection, task.evidence)
    left_out, newest = task.count - len(places), task.evidence[-1]
    return _Detail(
        task=task,
        mark=mark,
        word=word,
        rule=rule_text(task.rule, threshold=task.threshold, window_ns=task.window_ns),
        says=places[0].says,
        says_title=words.SAYS[places[0].kind],
        places=tuple(places),
        more=f"{plural(left_out, 'other')} between the first one and these" if left_out else "",
        bars=tuple(_bars(task.activity)),
        bars_sentence=f"how often in each part of the {window} before the last look: "
        + ", ".join(map(str, task.activity)),
        window=window,
        decided_by=person_text(task.decided_by, task.decided_method or CLAIMED.method),
        done_by=person_text(task.done_by, task.done_method or CLAIMED.method),
        error_id=error_of_step(connection, newest.id) if newest.kind == "step" else None,
        proposals=tuple(_proposal(connection, one) for one in of_task(connection, task.task_id)),
    )


def _proposal(connection: apsw.Connection, one: Supersession) -> _Proposal:
    score = "" if one.score is None else f", score {one.score:.2f}"
    return _Proposal(
        supersession=one,
        older_text=_content(connection, one.older_id),
        newer_text=_content(connection, one.newer_id),
        judge=f"{one.judge}{score}",
    )


def _content(connection: apsw.Connection, memory_id: str | None) -> str:
    """Return what a record says; "" where it is gone."""
    if memory_id is None:
        return ""
    found = get_memory(connection, memory_id, now_ns=0)
    return text_of(found.content)[:_WORDS_CHARS]


def _places(connection: apsw.Connection, evidence: Sequence[TaskRunEvidence]) -> list[_Place]:
    """Return the newest first, and the very first one at the end."""
    return [_place(connection, one, is_first=one is evidence[0]) for one in reversed(evidence)]


def _place(connection: apsw.Connection, one: TaskRunEvidence, *, is_first: bool) -> _Place:
    short_id = _short_id(one)
    says = sample_of(connection, one) or ""
    return _Place(
        kind=one.kind,
        href=_href(one),
        short_id=short_id,
        name=_name(connection, one) or short_id,
        at_ns=one.at_ns,
        is_first=is_first,
        says=says[:_WORDS_CHARS],
    )


def _href(one: TaskRunEvidence) -> str:
    """Return where the evidence is shown; "" for a figure, which says all there is."""
    folders = {"memory": "memory", "figure": ""}
    folder = folders.get(one.kind, f"{one.kind}s")
    return f"/{folder}/{one.id}" if folder else ""


def _short_id(one: TaskRunEvidence) -> str:
    if one.kind in ("figure", "report"):
        return one.id
    trace, _, rest = one.id.rpartition("-")
    return f"{trace[:8]}-{rest[:8]}" if trace else one.id[:8]


def _name(connection: apsw.Connection, one: TaskRunEvidence) -> str:
    """Return what people call the evidence; "" where it is gone or has only an id."""
    try:
        if one.kind == "step":
            return agent_words(get_step(connection, one.id, now_ns=0).name)
        if one.kind == "memory":
            return title_of(get_memory(connection, one.id, now_ns=0))
    except (NotFoundError, AmbiguousIdError):
        pass
    return ""


def _bars(activity: Sequence[int]) -> list[_Bar]:
    most, width = max(*activity, 1), 100 / len(activity)
    return [
        _Bar(round(at * width, 2), round(_HEIGHT - height, 2), round(height, 2))
        for at, count in enumerate(activity)
        if (height := _HEIGHT * count / most)
    ]


# The list of the page of tasks, and what its address says.

_ROWS: Final = 50
# What can be shown, in the order of the switch; the first unless stated.
SHOWN: Final = {"open": "Open", "all": "All"}


@dataclass(frozen=True, slots=True)
class TasksState:
    """What of the list is shown, as the address says it."""

    state: str = "open"  # one of SHOWN
    cursor: str = ""

    def address(self, task_id: str = "", **changes: str) -> str:
        """Return the address of the list, with a task beside it."""
        changed = replace(self, **changes)
        path = f"/tasks/{task_id}" if task_id else "/tasks"
        state = "" if changed.state == "open" else changed.state
        return address(path, {"state": state, "cursor": changed.cursor})


@dataclass(frozen=True, slots=True)
class _Choice:
    """One part of the switch."""

    label: str
    count: int
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """A task as the list shows it."""

    task: Task
    href: str
    mark: str
    word: str
    says: str  # the newest one, as far as it is stored


@dataclass(frozen=True, slots=True)
class _Listing:
    """Everything to the left of the task."""

    state: TasksState
    choices: tuple[_Choice, ...]
    rows: tuple[_Row, ...]
    first_href: str | None
    more_href: str | None
    is_bare: bool  # there never was a task
    problem: str

    @property
    def first_id(self) -> str | None:
        """Return what is shown when nothing was chosen."""
        return self.rows[0].task.task_id if self.rows else None


def read_state(query: Mapping[str, str]) -> TasksState:
    """Return what an address asks for; what it cannot mean is left out."""
    state = query.get("state", "")
    return TasksState(state if state in SHOWN else "open", query.get("cursor", "")[:200])


def read_listing(connection: apsw.Connection, state: TasksState) -> _Listing:
    """Read the list; an invalid cursor is shown as a message over an empty list."""
    counts, problem = count_tasks(connection), ""
    try:
        found = _found(connection, state)
    except InvalidCursorError as error:
        found, problem = Page((), None), str(error)
    more = found.next_cursor
    return _Listing(
        state=state,
        choices=tuple(_choices(state, counts)),
        rows=tuple(_row(connection, state, task) for task in found.items),
        first_href=state.address(cursor="") if state.cursor else None,
        more_href=state.address(cursor=more) if more else None,
        is_bare=not any(counts.values()),
        problem=problem,
    )


def _found(connection: apsw.Connection, state: TasksState) -> Page[Task]:
    cursor = state.cursor or None
    chosen: Literal["open"] | None = "open" if state.state == "open" else None
    return list_tasks(connection, state=chosen, limit=_ROWS, cursor=cursor)


def _choices(state: TasksState, counts: Mapping[str, int]) -> list[_Choice]:
    sums = {"open": sum(counts[one] for one in OPEN), "all": sum(counts.values())}
    return [
        _Choice(label, sums[name], TasksState(name).address(), is_on=name == state.state)
        for name, label in SHOWN.items()
    ]


def _row(connection: apsw.Connection, state: TasksState, task: Task) -> _Row:
    mark, word = words.STATES[task.state]
    return _Row(
        task=task,
        href=state.address(task.task_id),
        mark=mark,
        word=word,
        says=sample_of(connection, task.evidence[-1]) or "",
    )


router = APIRouter()


@dataclass(frozen=True, slots=True)
class TasksPage:
    """The list, and beside it the task that was chosen or stands first."""

    listing: _Listing
    detail: _Detail | None
    problem: str  # why a decision was not taken
    note: str  # what was written with it


@router.get("/tasks")
def tasks(request: Request, site: SiteDep) -> Response:
    return _page(request, site)


@router.get("/tasks/{task_id}")
def task(request: Request, site: SiteDep, task_id: str) -> Response:
    return _page(request, site, task_id)


@router.post("/tasks/{task_id}", dependencies=[OwnForm])
def decide(
    request: Request,
    site: SiteDep,
    service: TasksDep,
    task_id: str,
    decision: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
) -> Response:
    """Decide, and come back to the task; 409 with how it stands where somebody was first."""
    changed = {"decision": decision, "note": note.strip() or None}
    try:
        made = service.through("page").decide_json(task_id, changed, by=by.strip())
    except TaskRefused as error:
        is_bad = isinstance(error, InvalidDecision)
        status = HTTPStatus.BAD_REQUEST if is_bad else HTTPStatus.CONFLICT
        return _page(request, site, task_id, problem=str(error), note=note, status=status)
    there = read_state(request.query_params).address(made.task_id)
    return RedirectResponse(there, HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    task_id: str = "",
    *,
    problem: str = "",
    note: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    with site.readers.read() as connection:
        listing = read_listing(connection, read_state(request.query_params))
        selected = task_id or listing.first_id
        detail = read_detail(connection, selected) if selected else None
    page = TasksPage(listing, detail, problem, note)
    return site.renderer.page(request, "tasks.html", here="tasks", page=page, status=status)
