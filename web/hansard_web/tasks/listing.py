"""The list of the page of tasks, and what its address says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlencode

import apsw

from hansard_store.errors import BadCursorError
from hansard_store.tasks.json import sample_of
from hansard_store.tasks.rows import OPEN, Task, TaskPage, count_tasks, list_tasks
from hansard_web.tasks import labels as words

_ROWS: Final = 50
# What can be shown, in the order of the switch; the first unless said.
SHOWN: Final = {"open": "Open", "all": "All"}


@dataclass(frozen=True, slots=True)
class TasksState:
    """What of the list is shown, as the address says it."""

    state: str = "open"  # one of SHOWN
    cursor: str = ""

    def address(self, task_id: str = "", **changes: str) -> str:
        """Return the address of the list, with a task beside it."""
        told = replace(self, **changes)
        given = {"state": "" if told.state == "open" else told.state, "cursor": told.cursor}
        query = urlencode({name: value for name, value in given.items() if value})
        path = f"/tasks/{task_id}" if task_id else "/tasks"
        return f"{path}?{query}" if query else path


@dataclass(frozen=True, slots=True)
class Choice:
    """One part of the switch."""

    label: str
    count: int
    href: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A task as the list shows it."""

    task_id: str
    href: str
    mark: str
    word: str
    title: str
    level: str
    count: int
    last_ns: int
    says: str  # the newest one, as far as it is kept


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything to the left of the task."""

    state: TasksState
    choices: tuple[Choice, ...]
    rows: tuple[Row, ...]
    first_href: str | None
    more_href: str | None
    is_bare: bool  # there never was a task
    problem: str

    @property
    def first_id(self) -> str | None:
        """Return what is shown when nothing was chosen."""
        return self.rows[0].task_id if self.rows else None


def read_state(query: Mapping[str, str]) -> TasksState:
    """Return what an address asks for; what it cannot mean is left out."""
    state = query.get("state", "")
    return TasksState(state if state in SHOWN else "open", query.get("cursor", "")[:200])


def read_listing(connection: apsw.Connection, state: TasksState) -> Listing:
    """Read the list; a cursor that is none is told in words, over an empty list."""
    counts, problem = count_tasks(connection), ""
    try:
        found = _found(connection, state)
    except BadCursorError as error:
        found, problem = TaskPage((), None), str(error)
    more = found.next_cursor
    return Listing(
        state=state,
        choices=tuple(_choices(state, counts)),
        rows=tuple(_row(connection, state, task) for task in found.items),
        first_href=state.address(cursor="") if state.cursor else None,
        more_href=state.address(cursor=more) if more else None,
        is_bare=not any(counts.values()),
        problem=problem,
    )


def _found(connection: apsw.Connection, state: TasksState) -> TaskPage:
    cursor = state.cursor or None
    wanted: Literal["open"] | None = "open" if state.state == "open" else None
    return list_tasks(connection, state=wanted, limit=_ROWS, cursor=cursor)


def _choices(state: TasksState, counts: Mapping[str, int]) -> list[Choice]:
    sums = {"open": sum(counts[one] for one in OPEN), "all": sum(counts.values())}
    return [
        Choice(label, sums[name], TasksState(name).address(), is_on=name == state.state)
        for name, label in SHOWN.items()
    ]


def _row(connection: apsw.Connection, state: TasksState, task: Task) -> Row:
    mark, word = words.STATES[task.state]
    return Row(
        task_id=task.task_id,
        href=state.address(task.task_id),
        mark=mark,
        word=word,
        title=task.title,
        level=task.level,
        count=task.count,
        last_ns=task.last_ns,
        says=sample_of(connection, task.evidence[-1]) or "",
    )
