"""`/users` and the page of one user."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final
from urllib.parse import quote, urlencode

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from hansard_compiler.errors import NotFoundError
from hansard_store.error_groups.queries import ErrorGroup, Wanted, error_words, list_errors
from hansard_store.runs.conversations import ConversationItem, get_conversation
from hansard_store.runs.filters import RunFilter, RunSort
from hansard_store.runs.queries import list_runs
from hansard_store.runs.users import (
    UserFilter,
    UserItem,
    get_user,
    list_users,
    user_conversations,
    user_days,
)
from hansard_web.app.addresses import address, conversation_href, user_href
from hansard_web.app.site import SiteDep
from hansard_web.runs.columns import COLUMNS, NAME, STATUS, USUAL, RunColumn
from hansard_web.runs.rows import RunRow, run_rows
from hansard_web.ui.charts import Chart
from hansard_web.ui.format import iso_time
from hansard_web.ui.periods import (
    PeriodChoice,
    known_period,
    period_choices,
    period_start_ns,
    period_words,
)
from hansard_web.ui.sorting import SortedColumn, sorted_columns
from hansard_web.users.trend import trend

router = APIRouter()

_ROWS: Final = 50
_RUNS: Final = 25
_TALKS: Final = 10
_ERRORS: Final = 5
_DEFAULT: Final = "30d"
_NEWEST: Final = "-last_seen"
_LONGEST_PREFIX: Final = 512
_COLUMNS: Final = {
    "user": "user",
    "runs": "-runs",
    "errors": "-errors",
    "error_rate": "-error_rate",
    "model_calls": "-model_calls",
    "tokens": "-tokens",
    "cost": "-cost_usd",
    "score": "-score",
    "first_seen": "-first_seen",
    "last_seen": "-last_seen",
}


@dataclass(frozen=True, slots=True)
class UserRow:
    user: UserItem
    url: str
    failed_url: str


@dataclass(frozen=True, slots=True)
class UsersPage:
    rows: tuple[UserRow, ...]
    prefix: str
    period: str
    period_words: str
    periods: tuple[PeriodChoice, ...]
    sort: str
    columns: Mapping[str, SortedColumn]
    more_url: str | None
    export: Mapping[str, str]  # the filters of the list as a file
    all_time_url: str
    has_any: bool  # whether any run of the store names a user


@dataclass(frozen=True, slots=True)
class Talk:
    conversation: ConversationItem
    url: str


@dataclass(frozen=True, slots=True)
class ErrorCause:
    """Failed steps of one cause, with its type and newest message."""

    group: ErrorGroup
    words: str


@dataclass(frozen=True, slots=True)
class UserPage:
    user: UserItem
    period: str
    period_words: str
    empty_period: str  # the period that was wanted, where no run is in it: all time is shown
    periods: tuple[PeriodChoice, ...]
    charts: tuple[Chart, ...]
    talks: tuple[Talk, ...]
    talks_url: str
    rows: tuple[RunRow, ...]
    columns: tuple[RunColumn, ...]  # of those
    errors: tuple[ErrorCause, ...]  # of steps of the runs
    errors_url: str
    runs_url: str
    failed_url: str
    json_url: str


@router.get("/users")
def users(
    request: Request,
    site: SiteDep,
    id: Annotated[str, Query()] = "",
    prefix: Annotated[str, Query(max_length=_LONGEST_PREFIX)] = "",
    since: Annotated[str, Query()] = _DEFAULT,
    sort: Annotated[str, Query()] = _NEWEST,
    cursor: Annotated[str, Query()] = "",
) -> Response:
    if id:
        return user(request, site, id, since=since)
    period = known_period(since, _DEFAULT)
    state = {"prefix": prefix, "since": since, "sort": sort, "cursor": cursor}
    with site.readers.read() as connection:
        page = _users_page(connection, state, period, now_ns=time.time_ns())
    return site.renderer.page(request, "users/list.html", here="users", page=page)


@router.get("/users/{user_id:path}")
def user(
    request: Request, site: SiteDep, user_id: str, since: Annotated[str, Query()] = "all"
) -> Response:
    period = known_period(since, "all")
    with site.readers.read() as connection:
        page = _user_page(connection, user_id, period, now_ns=time.time_ns())
    return site.renderer.page(request, "users/one.html", here="users", page=page)


def _users_page(
    connection: apsw.Connection, state: Mapping[str, str], period: str, *, now_ns: int
) -> UsersPage:
    since_ns = period_start_ns(period, now_ns)
    sort = state["sort"] or _NEWEST
    filters = UserFilter(since_ns, prefix=state["prefix"])
    found = list_users(connection, filters, sort=sort, limit=_ROWS, cursor=state["cursor"] or None)
    has_any = bool(found.items) or bool(list_users(connection, limit=1).items)

    def url(**changes: str) -> str:
        made = {"prefix": state["prefix"], "since": period, "sort": sort, **changes}
        made["since"] = "" if made["since"] == _DEFAULT else made["since"]
        made["sort"] = "" if made["sort"] == _NEWEST else made["sort"]
        return address("/users", made)

    window = {"since": iso_time(since_ns)} if since_ns else {}
    api = {"prefix": state["prefix"], "sort": sort, **window}
    return UsersPage(
        rows=tuple(
            UserRow(
                item,
                url=user_href(item.user_id, **_period_of_user(period)),
                failed_url=_runs_url(item.user_id, window, status="error"),
            )
            for item in found.items
        ),
        prefix=state["prefix"],
        period=period,
        period_words=period_words(period),
        periods=period_choices(period, lambda name: url(since=name)),
        sort=sort,
        columns=sorted_columns(_COLUMNS, sort, lambda order: url(sort=order)),
        more_url=url(cursor=found.next_cursor) if found.next_cursor else None,
        export=api,
        all_time_url=url(since="all"),
        has_any=has_any,
    )


def _period_of_user(period: str) -> dict[str, str]:
    return {} if period == "all" else {"since": period}


def _runs_url(user_id: str, window: Mapping[str, str], **more: str) -> str:
    return f"/?{urlencode({'user': user_id, **window, **more})}"


def _user_page(connection: apsw.Connection, user_id: str, period: str, *, now_ns: int) -> UserPage:
    found = get_user(connection, user_id)
    wanted = period
    since_ns = period_start_ns(period, now_ns)
    if since_ns > found.last_seen_ns:
        period, since_ns = "all", 0
    filters = UserFilter(since_ns)
    if since_ns:
        with suppress(NotFoundError):  # the only runs since may have started before
            found = get_user(connection, user_id, filters)
    days = tuple(user_days(connection, user_id, filters))
    talks = user_conversations(connection, user_id, filters, limit=_TALKS)
    own = RunFilter(user=user_id, since_ns=since_ns or None)
    causes, _ = list_errors(connection, Wanted.of(own, shown="all"), now_ns=now_ns, limit=_ERRORS)
    window = {"since": iso_time(since_ns)} if since_ns else {}
    newest = RunSort()

    def rows(wanted: RunFilter, limit: int) -> tuple[RunRow, ...]:
        runs = list_runs(connection, wanted, now_ns=now_ns, sort=newest, limit=limit)
        return run_rows(connection, runs.items, now_ns=now_ns)

    return UserPage(
        user=found,
        period=period,
        period_words=period_words(period),
        empty_period="" if period == wanted else period_words(wanted),
        periods=period_choices(period, lambda name: user_href(user_id, **_period_of_user(name))),
        charts=trend(
            days,
            today=datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).date(),
            href=lambda since, until: _runs_url(user_id, {"since": since, "until": until}),
        ),
        talks=tuple(
            Talk(get_conversation(connection, talk), conversation_href(talk)) for talk in talks
        ),
        talks_url=address("/conversations", {"user": user_id}),
        rows=rows(own, _RUNS),
        columns=(STATUS, NAME, *(COLUMNS[key] for key in USUAL)),
        errors=tuple(
            ErrorCause(group, error_words(group.error_type, group.message) or "error")
            for group in causes.items
        ),
        errors_url=address("/errors", {"user": user_id}),
        runs_url=_runs_url(user_id, window),
        failed_url=_runs_url(user_id, window, status="error"),
        json_url=f"/v1/users/{quote(user_id, safe='')}",
    )
