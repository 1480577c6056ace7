"""Groups of errors as programs read them: one JSON for the API and the commands."""

from __future__ import annotations

from typing import Annotated, Literal

import apsw

from hansard_store.bodies import Body, Description, body_of
from hansard_store.error_groups.changes import ChangeKind, State, read_history
from hansard_store.error_groups.queries import (
    ErrorGroup,
    ErrorOccurrence,
    Trend,
    task_of_error,
)
from hansard_store.principals.model import Method
from hansard_store.times import time_text


class ErrorSubject(Body):
    """What fails."""

    kind: Literal["tool", "model", "step"]
    name: str


class ErrorTrend(Body):
    """How often in each piece of the time that was requested."""

    since_at: str
    since_ns: str
    bar_s: Annotated[int, Description("length of a piece: an hour, a day or several days")]
    counts: Annotated[list[int], Description("the oldest first")]


class ErrorOccurrenceBody(Body):
    """One step that failed."""

    step_id: str
    run_id: str
    run_name: str
    at: str
    ns: str
    agent_name: str | None
    error_type: str | None
    message: str | None


class ErrorChangeBody(Body):
    """Something that was decided or noted; `reopened` is Hansard's own."""

    kind: ChangeKind
    note: str | None
    by: str
    method: Method | None
    origin: Annotated[str, Description("page, api, cli or otlp")]
    at: str
    ns: str


class ErrorGroupBody(Body):
    """Errors of one tool, model or step whose messages have one signature."""

    error_id: str
    state: State
    watched: bool
    subject: ErrorSubject
    error_type: str | None
    message: Annotated[
        str | None,
        Description("its beginning, of the newest one; null: none was reported or is stored"),
    ]
    count: Annotated[int, Description("errors of the time and the runs that were requested")]
    run_count: Annotated[int, Description("runs that have one of them")]
    first_at: Annotated[str, Description("of all that are stored, as is the last")]
    first_ns: str
    last_at: str
    last_ns: str
    trend: ErrorTrend
    agents: Annotated[list[str], Description("of the newest 50, as are the models")]
    models: list[str]
    newest: Annotated[list[ErrorOccurrenceBody], Description("the newest first; 3 in a list")]
    closed_at: str | None
    closed_ns: str | None
    reopened_at: Annotated[str | None, Description("when it last opened again by itself")]
    reopened_ns: str | None
    note_count: int


class ErrorGroupDetail(ErrorGroupBody):
    """A group with all that was decided about it."""

    history: Annotated[list[ErrorChangeBody], Description("the newest first, 100 at most")]
    task_id: Annotated[str | None, Description("the open review of the detector about it")]


_IN_LIST = 3
_IN_DETAIL = 20


def error_json(group: ErrorGroup, *, newest: int = _IN_LIST) -> ErrorGroupBody:
    """Return a group as a list has it."""
    return body_of(
        ErrorGroupBody,
        group,
        subject={"kind": group.subject_kind, "name": group.subject},
        trend=_trend_json(group.trend),
        newest=[_occurrence_json(one) for one in group.newest[:newest]],
    )


def error_detail_json(connection: apsw.Connection, group: ErrorGroup) -> ErrorGroupDetail:
    """Return everything that is known of a group."""
    history = [
        body_of(ErrorChangeBody, one, at=time_text(one.at_ns), ns=str(one.at_ns))
        for one in read_history(connection, group.key)
    ]
    return {
        **error_json(group, newest=_IN_DETAIL),
        "history": history,
        "task_id": task_of_error(connection, group),
    }


def _trend_json(trend: Trend) -> ErrorTrend:
    return body_of(ErrorTrend, trend, bar_s=trend.bar_ns // 10**9, counts=list(trend.counts))


def _occurrence_json(one: ErrorOccurrence) -> ErrorOccurrenceBody:
    return body_of(ErrorOccurrenceBody, one, at=time_text(one.at_ns), ns=str(one.at_ns))
