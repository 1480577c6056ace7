"""Replays: model calls that were made again, and what became of each.

A row is primary: the run a replay made is ordinary telemetry, and this says what it is a replay of.
Writes commit on the caller's thread with a connection of their own; a replay of a run goes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import apsw

from hansard_compiler.calls import Json
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.cursors import Page
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.id_prefixes import find_key
from hansard_store.database.stored_json import json_of, json_text, read_only
from hansard_store.errors import InvalidCursorError

State = Literal["running", "done", "diverged", "waiting", "refused", "failed"]

_ABOVE_ALL = (1 << 63) - 1


class ReplayRow(NamedTuple):
    """A replay as it is stored; JSON columns are values here."""

    replay_id: str  # 32 hex digits
    source_run_id: str
    source_step_id: str
    run_id: str | None
    mode: str
    is_recorded: bool
    repeats: int
    state: str
    reason: str | None
    request_hash: str | None
    steps: Sequence[Json]
    started_ns: int
    ended_ns: int | None
    holder: str  # the process that works on it, by the lock it holds; "" for none
    report: Json | None


_CALLED = {
    "source_run_id": "source_trace", "source_step_id": "source_step", "run_id": "trace_id",
    "is_recorded": "recorded",
}  # fmt: skip
_COLUMNS = ", ".join(_CALLED.get(name, name) for name in ReplayRow._fields)
_ADD = f"""
INSERT INTO replay ({_COLUMNS}) VALUES ({", ".join(f":{name}" for name in ReplayRow._fields)})
"""
# The last word counts: what ended is not changed any more.
_CHANGE = """
UPDATE replay SET trace_id = :run_id, state = :state, reason = :reason,
  request_hash = :request_hash, steps = :steps, ended_ns = :ended_ns, report = :report
WHERE replay_id = :replay_id AND state = 'running'
"""
# To go on again: only a caller that read the current state, and only one of them.
_CLAIM = """
UPDATE replay SET state = 'running', reason = NULL, ended_ns = NULL, holder = :holder,
  report = :report
WHERE replay_id = :replay_id AND state = :state AND ended_ns IS :ended_ns
"""
_SELECT = f"SELECT id, {_COLUMNS} FROM replay"
_BY_ID = f"{_SELECT} WHERE replay_id = ?"
_OF_STEP = f"""
{_SELECT} WHERE source_step = :step AND id < :before ORDER BY id DESC LIMIT :limit
"""
_OF_SOURCE = f"""
{_SELECT} INDEXED BY replay_source_run WHERE source_trace = :trace ORDER BY id DESC LIMIT :limit
"""
_NEWEST = f"{_SELECT} WHERE id < :before ORDER BY id DESC LIMIT :limit"
_OF_RUN = f"{_SELECT} INDEXED BY replay_run WHERE trace_id = ?"
_RUNNING = "SELECT replay_id, holder FROM replay WHERE state = 'running'"
_INTERRUPT = """
UPDATE replay SET state = 'failed', reason = 'interrupted', ended_ns = :now
WHERE replay_id = :id AND state = 'running'
"""
_LATER = """
SELECT id FROM span WHERE trace_id = :trace AND role = 'llm' AND (sort_ns, id) > (:sort_ns, :id)
ORDER BY sort_ns, id LIMIT :limit
"""
_DROP_OF_RUN = """
DELETE FROM replay WHERE id IN (
  SELECT id FROM replay WHERE source_trace = :trace OR trace_id = :trace LIMIT :most
)
"""


# ---- writing


def add_replay(folder: DataFolder, row: ReplayRow) -> None:
    """Note a replay that begins, or that was refused."""
    with accountability_transaction(folder) as connection:
        connection.execute(_ADD, _values(row))


def change_replay(folder: DataFolder, row: ReplayRow) -> bool:
    """Tell what became of a running replay; False when it had ended already."""
    with accountability_transaction(folder) as connection:
        connection.execute(_CHANGE, _values(row))
        return bool(connection.changes())


def claim_replay(folder: DataFolder, row: ReplayRow, *, holder: str, report: Json) -> bool:
    """Have a replay that stopped run again; False when it is not any more as `row` tells."""
    with accountability_transaction(folder) as connection:
        connection.execute(_CLAIM, _values(row._replace(holder=holder, report=report)))
        return bool(connection.changes())


def running_replays(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Return what is said to run: id, and the process that does."""
    rows: list[Any] = connection.execute(_RUNNING).fetchall()
    return [(replay_id.hex(), holder) for replay_id, holder in rows]


def interrupt_replay(folder: DataFolder, replay_id: str, *, now_ns: int) -> None:
    """Tell of a replay whose process is gone."""
    with accountability_transaction(folder) as connection:
        connection.execute(_INTERRUPT, {"id": bytes.fromhex(replay_id), "now": now_ns})


def release_replays(connection: apsw.Connection, trace_id: bytes, *, most: int) -> int:
    """Delete some replays of a run, or that made it; return how many. For the deletion of runs."""
    connection.execute(_DROP_OF_RUN, {"trace": trace_id, "most": most})
    return connection.changes()


# ---- reading


def get_replay(connection: apsw.Connection, replay_id: str) -> ReplayRow:
    """Return a replay by its id, or a unique beginning or end of it of 8 digits or more.

    Raises NotFoundError or AmbiguousIdError.
    """
    key = find_key(connection, "replay", replay_id)
    return _row(connection.execute(_BY_ID, (key,)).fetchone())[1]


def list_replays(
    connection: apsw.Connection, *, step_id: str | None = None, limit: int, cursor: str | None
) -> Page[ReplayRow]:
    """Return replays, of one step or of all, the newest first."""
    sql = _NEWEST if step_id is None else _OF_STEP
    bindings = {"before": _before(cursor), "limit": limit + 1, "step": step_id}
    rows = [_row(row) for row in connection.execute(sql, bindings)]
    more = len(rows) > limit
    return Page([row for _, row in rows[:limit]], str(rows[limit - 1][0]) if more else None)


def replays_of_run(connection: apsw.Connection, run_id: str, *, limit: int) -> list[ReplayRow]:
    """Return the replays of a run's steps, the newest first."""
    bindings = {"trace": bytes.fromhex(run_id), "limit": limit}
    return [_row(row)[1] for row in connection.execute(_OF_SOURCE, bindings)]


def later_calls(
    connection: apsw.Connection, run_id: str, *, sort_ns: int, span: int, limit: int
) -> list[int]:
    """Return the model calls of a run that began after a step, by their numbers, in order."""
    bindings = {"trace": bytes.fromhex(run_id), "sort_ns": sort_ns, "id": span, "limit": limit}
    return [row[0] for row in connection.execute(_LATER, bindings)]


def replay_that_made(connection: apsw.Connection, run_id: str) -> ReplayRow | None:
    """Return the replay that a run is; None for every other run."""
    row = connection.execute(_OF_RUN, (bytes.fromhex(run_id),)).fetchone()
    return None if row is None else _row(row)[1]


def _before(cursor: str | None) -> int:
    if cursor is None:
        return _ABOVE_ALL
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise InvalidCursorError
    return int(cursor)


def _row(row: Any) -> tuple[int, ReplayRow]:
    number, *columns = row
    values = dict(zip(ReplayRow._fields, columns, strict=True))
    run_id, report = values["run_id"], values["report"]
    changed = {
        "replay_id": values["replay_id"].hex(),
        "source_run_id": values["source_run_id"].hex(),
        "run_id": None if run_id is None else run_id.hex(),
        "is_recorded": bool(values["is_recorded"]),
        "steps": read_only(json_of(values["steps"])),
        "report": None if report is None else read_only(json_of(report)),
    }
    return number, ReplayRow(**{**values, **changed})


def _values(row: ReplayRow) -> dict[str, Any]:
    return row._asdict() | {
        "replay_id": bytes.fromhex(row.replay_id),
        "source_run_id": bytes.fromhex(row.source_run_id),
        "run_id": None if row.run_id is None else bytes.fromhex(row.run_id),
        "is_recorded": int(row.is_recorded),
        "steps": json_text(row.steps),
        "report": None if row.report is None else json_text(row.report),
    }
