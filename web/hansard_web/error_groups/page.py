"""Errors: which causes explain the failed runs, and one cause with what was decided about it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import urlencode

import apsw
from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard_store.error_groups import due
from hansard_store.error_groups.changes import Change, read_history
from hansard_store.error_groups.errors import ErrorChangeRefused, InvalidErrorChange
from hansard_store.error_groups.queries import (
    DAY_NS,
    HOUR_NS,
    SORTS,
    ErrorGroup,
    ErrorOccurrence,
    ErrorSums,
    Shown,
    Sort,
    Trend,
    Wanted,
    error_words,
    get_error,
    list_errors,
    task_of_error,
)
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.principals.model import person_text
from hansard_store.runs.filters import RunFilter
from hansard_web.app.site import Site, SiteDep
from hansard_web.error_groups import labels as words
from hansard_web.error_groups.api import ErrorsDep
from hansard_web.runs.filters import ListState, read_state, to_filter
from hansard_web.runs.list import PERIODS
from hansard_web.ui import format as figures
from hansard_web.ui.forms import OwnForm

router = APIRouter()

_ROWS: Final = 25
_HEIGHT: Final = 24  # of a trend, in its own units
_LEAST: Final = 1.5  # of a bar of one error
_NEWEST: Final = 20
_AGENTS: Final = 3  # that a row names
_ORDERS: Final[Mapping[str, tuple[Sort, Sort]]] = {
    "count": ("-count", "count"),
    "first_seen": ("-first_seen", "first_seen"),
    "last_seen": ("-last_seen", "last_seen"),
}


# ---- the address of the list


@dataclass(frozen=True, slots=True)
class ErrorsState:
    """What of the list is shown, as the address says it: conditions on runs, and more."""

    runs: ListState
    shown: Shown = "open"
    sort: Sort = "-count"
    cursor: str = ""

    def url(
        self, path: str = "/errors", *, shown: str = "", sort: str = "", cursor: str = ""
    ) -> str:
        """Return the address with changes, from the first page on."""
        shown, sort = shown or self.shown, sort or self.sort
        pairs = [(key, value) for key, value in self.runs.pairs() if key not in _OWN]
        pairs += [("state", "" if shown == "open" else shown)]
        pairs += [("sort", "" if sort == "-count" else sort), ("cursor", cursor)]
        query = urlencode([(key, value) for key, value in pairs if value])
        return f"{path}?{query}" if query else path

    def narrowed(self, runs: ListState) -> str:
        """Return the address with other conditions."""
        return replace(self, runs=runs).url()


_OWN: Final = ("state", "sort", "cursor", "compare")


def read_errors_state(request: Request) -> ErrorsState:
    """Return what an address means; what it cannot mean is left out."""
    query = request.query_params
    pairs = [(key, value) for key, value in query.multi_items() if key not in _OWN]
    shown, sort = query.get("state", ""), query.get("sort", "")
    return ErrorsState(
        runs=read_state(pairs),
        shown=shown if shown in words.SHOWN else "open",  # type: ignore[arg-type]  # just checked
        sort=sort if sort in SORTS else "-count",
        cursor=query.get("cursor", "")[:200],
    )


# ---- the list


@dataclass(frozen=True, slots=True)
class TrendBar:
    """How often in a piece of time; places are percents and units of the picture."""

    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class TrendChart:
    """A trend as bars, in words and as a table."""

    bars: tuple[TrendBar, ...]
    sentence: str
    unit: str  # hour, day, 3 days
    most: int
    since_ns: int
    rows: tuple[tuple[int, int], ...]  # when a piece begins, and how often; none of zero


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A group as the list shows it."""

    group: ErrorGroup
    href: str
    runs_href: str
    mark: str
    word: str
    icon: str
    message: str
    trend: TrendChart
    agents: tuple[str, ...]
    more_agents: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One part of a switch or menu."""

    label: str
    href: str
    is_on: bool
    count: int = 0


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition that is on, and the address without it."""

    label: str
    shown: str
    without: str


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column that can be sorted by."""

    href: str
    sorting: str  # aria-sort: "ascending", "descending" or ""


@dataclass(frozen=True, slots=True)
class ErrorsPage:
    """Everything errors.html shows."""

    state: ErrorsState
    rows: tuple[ErrorRow, ...]
    sums: ErrorSums
    summary: str
    problems: tuple[str, ...]
    chips: tuple[Chip, ...]
    choices: tuple[Choice, ...]
    period: str
    periods: tuple[Choice, ...]
    columns: Mapping[str, Head]
    hidden: tuple[tuple[str, str], ...]
    more_href: str | None
    first_href: str | None
    is_due: bool
    exports: tuple[tuple[str, str], ...]


@router.get("/errors")
def errors(request: Request, site: SiteDep) -> Response:
    now_ns = time.time_ns()
    state = read_errors_state(request)
    with site.readers.read() as connection:
        page = errors_page(connection, state, now_ns=now_ns)
    return site.renderer.page(request, "errors.html", here="errors", page=page)


def errors_page(connection: apsw.Connection, state: ErrorsState, *, now_ns: int) -> ErrorsPage:
    """Return the whole page of a state; what it cannot mean is named on the page."""
    meant = to_filter(state.runs, now_ns=now_ns)
    wanted = Wanted.of(meant.filter, shown=state.shown, sort=state.sort)
    problems = list(meant.problems)
    counts: Mapping[str, int] = {}
    groups: Sequence[ErrorGroup] = ()
    sums, more = ErrorSums(0, 0, {}), None
    try:
        found, sums = list_errors(
            connection, wanted, now_ns=now_ns, limit=_ROWS, cursor=state.cursor or None
        )
        groups, more = found.items, found.next_cursor
        counts = {str(name): number for name, number in sums.counts.items()}
    except (InvalidCursorError, InvalidQueryError) as error:
        problems.append(str(error))
    return ErrorsPage(
        state=state,
        rows=tuple(_row(state, one) for one in groups),
        sums=sums,
        summary=f"{figures.plural(sums.errors, 'error')} in {figures.plural(sums.groups, 'group')}",
        problems=tuple(problems),
        chips=tuple(_chips(state)),
        choices=tuple(
            Choice(label, state.url(shown=name), name == state.shown, counts.get(name, 0))
            for name, label in words.SHOWN.items()
        ),
        period=PERIODS.get(state.runs.value("since"), "Other time"),
        periods=tuple(_periods(state)),
        columns={name: _head(state, orders) for name, orders in _ORDERS.items()},
        hidden=tuple(_hidden(state)),
        more_href=state.url(cursor=more) if more else None,
        first_href=state.url() if state.cursor else None,
        is_due=due.is_due(connection),
        exports=_exports(state, meant.filter),
    )


def _row(state: ErrorsState, group: ErrorGroup) -> ErrorRow:
    mark, word = words.STATES[group.state]
    return ErrorRow(
        group=group,
        href=f"/errors/{group.error_id}",
        runs_href=_runs_href(state, group),
        mark=mark,
        word=word,
        icon=words.SUBJECTS[group.subject_kind],
        message=error_words(group.error_type, group.message) or words.NO_MESSAGE,
        trend=trend_chart(group.trend),
        agents=group.agents[:_AGENTS],
        more_agents=len(group.agents[_AGENTS:]),
    )


def _runs_href(state: ErrorsState, group: ErrorGroup) -> str:
    """Return the address of the runs that have an error of a group, whatever their kind."""
    runs = state.runs.searching("").without("since", "until")
    return runs.setting("error", group.error_id).setting("kind", "any").url


def _chips(state: ErrorsState) -> list[Chip]:
    chips = [
        Chip(term.label, term.shown, state.narrowed(state.runs.toggled(term.key, term.value)))
        for term in state.runs.terms
        if not (term.key == "since" and term.value in PERIODS)
    ]
    if state.runs.words:
        chips.append(Chip("message", state.runs.words, state.narrowed(state.runs.searching(""))))
    return chips


def _periods(state: ErrorsState) -> list[Choice]:
    now = state.runs.value("since")
    return [
        Choice(
            label,
            state.narrowed(
                state.runs.setting("since", value) if value else state.runs.without("since")
            ),
            is_on=value == now,
        )
        for value, label in PERIODS.items()
    ]


def _head(state: ErrorsState, orders: tuple[Sort, Sort]) -> Head:
    following = orders[1] if state.sort == orders[0] else orders[0]
    sorting = ""
    if state.sort in orders:
        sorting = "descending" if state.sort.startswith("-") else "ascending"
    return Head(state.url(sort=following), sorting)


def _exports(state: ErrorsState, filters: RunFilter) -> tuple[tuple[str, str], ...]:
    """Return the conditions of the list as those of its file, with times that the API reads."""
    runs = state.runs.without("since", "until")
    for key, at_ns in (("since", filters.since_ns), ("until", filters.until_ns)):
        runs = runs if at_ns is None else runs.setting(key, str(at_ns))
    pairs = [pair for pair in runs.pairs() if pair[0] not in _OWN]
    return (*pairs, ("state", state.shown), ("sort", state.sort))


def _hidden(state: ErrorsState) -> list[tuple[str, str]]:
    """Return what the filter form carries along unseen."""
    pairs = [(key, value) for key, value in state.runs.pairs() if key not in ("q", *_OWN)]
    return [
        *pairs,
        *([("state", state.shown)] if state.shown != "open" else []),
        *([("sort", state.sort)] if state.sort != "-count" else []),
    ]


def trend_chart(trend: Trend) -> TrendChart:
    """Return a trend as bars; the table beside has the pieces that are not empty."""
    most, width = max(*trend.counts, 1), 100 / len(trend.counts)
    bars = tuple(
        TrendBar(
            round(at * width, 2),
            round(max(width * 0.8, 0.4), 2),
            round(_HEIGHT - height, 2),
            height,
        )
        for at, count in enumerate(trend.counts)
        if count and (height := round(max(_HEIGHT * count / most, _LEAST), 2))
    )
    unit = {HOUR_NS: "hour", DAY_NS: "day"}.get(trend.bar_ns, f"{trend.bar_ns // DAY_NS} days")
    last = len(trend.counts) - 1 - next(
        (at for at, count in enumerate(reversed(trend.counts)) if count), len(trend.counts) - 1
    )  # fmt: skip
    sentence = (
        f"by {unit} since {figures.day_time(trend.since_ns)}: "
        f"{figures.count(max(trend.counts))} at most, "
        f"{figures.count(trend.counts[last])} in the last {unit} that has any"
    )
    return TrendChart(
        bars=bars,
        sentence=sentence,
        unit=unit,
        most=max(trend.counts),
        since_ns=trend.since_ns,
        rows=tuple(
            (trend.since_ns + at * trend.bar_ns, count)
            for at, count in enumerate(trend.counts)
            if count
        ),
    )


# ---- one group


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A change of a group, in words."""

    icon: str
    word: str
    by: str
    change: Change


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Everything error.html shows."""

    group: ErrorGroup
    mark: str
    word: str
    icon: str
    message: str
    trend: TrendChart
    newest: tuple[ErrorOccurrence, ...]
    history: tuple[HistoryEntry, ...]
    runs_href: str
    task_id: str | None  # the open review about it
    reopened_after_ns: int | None  # from being closed to the return
    problem: str
    note: str
    is_due: bool


@router.get("/errors/{error_id}")
def error(request: Request, site: SiteDep, error_id: str) -> Response:
    return _page(request, site, error_id)


@router.post("/errors/{error_id}", dependencies=[OwnForm])
def change(
    request: Request,
    site: SiteDep,
    service: ErrorsDep,
    error_id: str,
    decision: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "",
) -> Response:
    """Change a group, and come back to it; 409 with how it stands where somebody was first."""
    fields = {"decision": decision, "note": note.strip() or None}
    try:
        made = service.through("page").change_json(error_id, fields, by=by.strip())
    except ErrorChangeRefused as refused:
        is_bad = isinstance(refused, InvalidErrorChange)
        status = HTTPStatus.BAD_REQUEST if is_bad else HTTPStatus.CONFLICT
        return _page(request, site, error_id, problem=str(refused), note=note, status=status)
    return RedirectResponse(f"/errors/{made.error_id}", HTTPStatus.SEE_OTHER)


def _page(
    request: Request,
    site: Site,
    error_id: str,
    *,
    problem: str = "",
    note: str = "",
    status: HTTPStatus = HTTPStatus.OK,
) -> Response:
    with site.readers.read() as connection:
        group = get_error(connection, error_id, now_ns=time.time_ns())
        mark, word = words.STATES[group.state]
        page = ErrorPage(
            group=group,
            mark=mark,
            word=word,
            icon=words.SUBJECTS[group.subject_kind],
            message=error_words(group.error_type, group.message) or words.NO_MESSAGE,
            trend=trend_chart(group.trend),
            newest=group.newest[:_NEWEST],
            history=tuple(_entry(one) for one in read_history(connection, group.key)),
            runs_href=_runs_href(ErrorsState(ListState()), group),
            task_id=task_of_error(connection, group),
            reopened_after_ns=_after_ns(group),
            problem=problem,
            note=note,
            is_due=due.is_due(connection),
        )
    return site.renderer.page(request, "error_group.html", here="errors", page=page, status=status)


def _entry(one: Change) -> HistoryEntry:
    icon, word = words.CHANGES[one.kind]
    by = "Hansard" if one.kind == "reopened" else person_text(one.by, one.method)
    return HistoryEntry(icon, word, by, one)


def _after_ns(group: ErrorGroup) -> int | None:
    if group.state != "reopened" or group.reopened_ns is None or group.closed_ns is None:
        return None
    return max(group.reopened_ns - group.closed_ns, 0)
