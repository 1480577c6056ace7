"""Tasks for review as they are stored: rows, the lists of them, and how each changes."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple, get_args

import apsw

from hansard_store.approvals.unit_of_work import Who
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.id_prefixes import find_key
from hansard_store.database.stored_json import json_of
from hansard_store.detection.rules import EvidenceKind, Level

State = Literal["blocked", "approved", "dismissed", "done"]
Decided = Literal["approved", "dismissed"]
Origin = Literal["page", "api", "cli"]
STATES: Final[tuple[State, ...]] = get_args(State)
OPEN: Final = ("blocked", "approved")
_ABOVE_ALL: Final = (1 << 63) - 1


class TaskRunEvidence(NamedTuple):
    """A step, an approval or a memory in which it happened."""

    kind: EvidenceKind
    id: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Task:
    """What repeats, and what a person decided about it. Times are Unix nanoseconds."""

    id: int
    task_id: str
    state: State
    review: bool  # a person has to decide
    level: Level
    rule: str
    pattern: bytes
    subject_kind: str
    subject: str
    title: str
    description: str
    count: int
    first_ns: int
    last_ns: int
    counted_to: int
    evidence: tuple[TaskRunEvidence, ...]  # the first one and the newest, the oldest first
    activity: tuple[int, ...]  # of the window when it was last seen, the oldest first
    threshold: int
    window_ns: int
    created_ns: int
    updated_ns: int
    decided_by: str | None = None
    decided_ns: int | None = None
    decided_origin: str | None = None
    note: str | None = None
    done_by: str | None = None
    done_ns: int | None = None
    decided_method: str | None = None  # how `decided_by` is known; None: not on record
    done_method: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def key(self) -> bytes:
        return bytes.fromhex(self.task_id)


_NAMES: Final = tuple(field.name for field in fields(Task))
_COLUMNS: Final = ", ".join(_NAMES)
_SELECT: Final = f"SELECT {_COLUMNS} FROM task"
_ADD: Final = f"""
INSERT INTO task ({", ".join(_NAMES[1:])}) VALUES ({", ".join(f":{name}" for name in _NAMES[1:])})
"""
_BY_ID: Final = f"{_SELECT} WHERE task_id = ?"
_OPEN: Final = f"""
{_SELECT} INDEXED BY task_pattern WHERE pattern = ? AND state IN ('blocked', 'approved')
"""
_COUNTED: Final = """
SELECT coalesce(max(counted_to), 0), coalesce(max(last_ns), 0) FROM task INDEXED BY task_known
WHERE pattern = ?
"""
_COUNT_MORE: Final = """
UPDATE task SET count = :count, first_ns = :first_ns, last_ns = :last_ns, counted_to = :counted_to,
  evidence = :evidence, activity = :activity, threshold = :threshold, window_ns = :window_ns,
  updated_ns = :updated_ns
WHERE id = :id AND state IN ('blocked', 'approved')
"""
# Compare and set: of two who decide at once, one finds the state that it saw.
_DECIDE: Final = """
UPDATE task SET state = :state, review = 0, decided_by = :by, decided_ns = :now,
  decided_origin = :origin, decided_method = :method, note = :note, updated_ns = :now
WHERE id = :id AND state = 'blocked'
"""
_FINISH: Final = """
UPDATE task SET state = 'done', done_by = :by, done_method = :method, done_ns = :now,
  updated_ns = :now
WHERE id = :id AND state = 'approved'
"""
# Which index serves a list, and what it asks; a level beside a state is asked of the rows.
_LISTS: Final = {
    "": ("NOT INDEXED", "1"),
    "open": ("INDEXED BY task_open", "state IN ('blocked', 'approved')"),
    "state": ("INDEXED BY task_state", "state = :state"),
    "level": ("INDEXED BY task_level", "level = :level"),
}
_COUNT_STATES: Final = "SELECT state, count(*) FROM task INDEXED BY task_state GROUP BY state"


# ---- reading


def get_task(connection: apsw.Connection, task_id: str) -> Task:
    """Return a task by its id, or a unique beginning or end of it of 8 digits or more.

    Raises NotFoundError or AmbiguousIdError.
    """
    key = find_key(connection, "task", task_id)
    return _task(connection.execute(_BY_ID, (key,)).fetchone())


def list_tasks(
    connection: apsw.Connection,
    *,
    state: State | Literal["open"] | None = None,
    level: Level | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Task]:
    """Return tasks of a state and a level, or of any, the last opened first.

    Raises InvalidCursorError.
    """
    (before,) = decode_cursor("tasks", cursor, count=1) if cursor else (_ABOVE_ALL,)
    served = "open" if state == "open" else "state" if state else "level" if level else ""
    index, condition = _LISTS[served]
    more = " AND level = :level" if state and level else ""
    parameters = {"state": state, "level": level, "before": before, "limit": limit + 1}
    sql = (
        f"{_SELECT} {index} WHERE {condition}{more} AND id < :before ORDER BY id DESC LIMIT :limit"
    )
    items = [_task(row) for row in connection.execute(sql, parameters)]
    more_cursor = encode_cursor("tasks", items[limit - 1].id) if len(items) > limit else None
    return Page(items[:limit], more_cursor)


def count_tasks(connection: apsw.Connection) -> dict[str, int]:
    """Return how many there are of each state."""
    found: Any = connection.execute(_COUNT_STATES)
    return {**dict.fromkeys(STATES, 0), **dict(found)}


def find_open(connection: apsw.Connection, pattern: bytes) -> Task | None:
    """Return the open task of a pattern; there is one at most."""
    row = connection.execute(_OPEN, (pattern,)).fetchone()
    return None if row is None else _task(row)


def counted_until(connection: apsw.Connection, pattern: bytes) -> tuple[int, int]:
    """Return number and time of the last occurrence that any task of a pattern counts."""
    row: Any = connection.execute(_COUNTED, (pattern,)).fetchone()
    number, last_ns = row
    return number, last_ns


# ---- writing, in the caller's transaction


def add_task(connection: apsw.Connection, task: Task) -> None:
    """Write a task; the table assigns its number."""
    connection.execute(_ADD, _row(task))


def count_more(connection: apsw.Connection, task: Task) -> None:
    """Write what was counted more of an open task."""
    connection.execute(_COUNT_MORE, _row(task))


def set_decided(
    connection: apsw.Connection,
    task: Task,
    state: Decided,
    *,
    by: Who,
    origin: Origin,
    note: str | None,
    now_ns: int,
) -> bool:
    """Decide about a blocked task; False where it is blocked no more."""
    parameters = {"id": task.id, "state": state, "origin": origin, "note": note, "now": now_ns}
    parameters |= {"by": by.name, "method": by.method}
    connection.execute(_DECIDE, parameters)
    return bool(connection.changes())


def set_done(connection: apsw.Connection, task: Task, *, by: Who, now_ns: int) -> bool:
    """Close an approved task; False where it is not approved."""
    parameters = {"id": task.id, "by": by.name, "method": by.method, "now": now_ns}
    connection.execute(_FINISH, parameters)
    return bool(connection.changes())


def _row(task: Task) -> dict[str, Any]:
    columns = {name: getattr(task, name) for name in _NAMES}
    return columns | {
        "task_id": task.key,
        "review": int(task.review),
        "evidence": json.dumps(task.evidence),
        "activity": json.dumps(task.activity),
    }


def _task(row: Any) -> Task:
    columns = dict(zip(_NAMES, row, strict=True))
    return Task(
        **{
            **columns,
            "task_id": columns["task_id"].hex(),
            "review": bool(columns["review"]),
            "evidence": tuple(TaskRunEvidence(*one) for one in json_of(columns["evidence"])),
            "activity": tuple(json_of(columns["activity"])),
        }
    )
