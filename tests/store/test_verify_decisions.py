"""Decisions on memory and tasks that were changed with `sqlite3`: verify names row and column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from hansard_compiler.compile.models import parse
from hansard_compiler.models.memory import EndMemory
from hansard_compiler.models.tasks import Decide
from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.model import Principal, Scope
from hansard_store.verification.integrity import IntegrityFinding, verify_store
from tests.store.maker import StoreMaker
from tests.store.memory_maker import MemoryMaker
from tests.store.task_maker import TaskMaker

ANA = Principal("ana", frozenset({Scope.DECIDE}), "token")
BO = Principal("bo", frozenset({Scope.DECIDE}), "session")


@dataclass(frozen=True)
class Decided:
    """A store with decisions of principals on memory and tasks, by what was decided."""

    folder: DataFolder
    ids: dict[str, str]

    def alter(self, sql: str, name: str) -> list[IntegrityFinding]:
        with sqlite3.connect(self.folder.database) as plain:
            for (trigger,) in plain.execute("SELECT name FROM sqlite_schema WHERE type='trigger'"):
                plain.execute(f"DROP TRIGGER {trigger}")
            key = f"{sql.split()[1]}_id"
            changed = plain.execute(f"{sql} WHERE {key} = ?", (bytes.fromhex(self.ids[name]),))
            assert changed.rowcount == 1
        plain.close()
        found = verify_store(self.folder).findings
        return [one for one in found if one.check == "decisions"]


def _ended(memory: MemoryMaker, what: str, by: Principal | None) -> str:
    made = memory.write(f"{what} is so.", subject=what)["memory"]["memory_id"]
    if by is not None:
        asked = parse(EndMemory, {"memory_id": made, "reason": "it is not so", "by": "x"})
        book = memory.book.acting(by)
        (book.purge if what == "purged" else book.invalidate)(asked)
    return str(made)


def _decided(tasks: TaskMaker, tool: str, *decisions: tuple[str, Principal]) -> str:
    with tasks.store.batch():
        tasks.fail_often(5, tool=tool, run=tool, message=f"{tool} is away")
    tasks.detect()
    [task] = [one for one in tasks.tasks() if one.subject == tool]
    for decision, by in decisions:
        tasks.book.acting(by).decide(task.task_id, parse(Decide, {"decision": decision}))
    return task.task_id


@pytest.fixture
def decided(tmp_path: Path) -> Decided:
    path = tmp_path / "data"
    with closing(StoreMaker(path)) as store, closing(TaskMaker(store)) as tasks:
        ids = {
            "blocked": _decided(tasks, "blocked"),
            "approved": _decided(tasks, "approved", ("approve", ANA)),
            "dismissed": _decided(tasks, "dismissed", ("dismiss", BO)),
            "done": _decided(tasks, "done", ("approve", ANA), ("done", BO)),
        }
    with closing(MemoryMaker(path)) as memory:
        ids |= {
            "current": _ended(memory, "current", None),
            "ended": _ended(memory, "ended", ANA),
            "purged": _ended(memory, "purged", BO),
        }
    return Decided(DataFolder(path), ids)


def test_decisions_fit_their_events(decided: Decided) -> None:
    assert verify_store(decided.folder).findings == []


ALTERED = {
    "who ended a memory": (
        "UPDATE memory SET ended_by = 'bo'", "ended", "has ended_by bo, and ana by event"),
    "how it is known": (
        "UPDATE memory SET ended_method = NULL", "ended", "has ended_method none, and token by"),
    "a memory that holds again": (
        "UPDATE memory SET state = 'current', ended_ns = NULL, ended_by = NULL", "ended",
        "is current, and ended by event"),
    "who purged": ("UPDATE memory SET ended_by = 'ana'", "purged", "has ended_by ana, and bo by"),
    "a memory that nobody ended": (
        "UPDATE memory SET state = 'invalidated', ended_ns = 1, ended_by = 'ana'", "current",
        "is invalidated by ana, and the audit log knows nothing of it"),
    "who approved a task": (
        "UPDATE task SET decided_by = 'bo'", "approved", "has decided_by bo, and ana by event"),
    "how the approver is known": (
        "UPDATE task SET decided_method = 'session'", "approved",
        "has decided_method session, and token by event"),
    "through what it was decided": (
        "UPDATE task SET decided_origin = 'cli'", "approved", "has decided_origin cli"),
    "a dismissal made an approval": (
        "UPDATE task SET state = 'approved'", "dismissed",
        "has state approved, and dismissed by event"),
    "who did it": ("UPDATE task SET done_by = 'ana'", "done", "has done_by ana, and bo by event"),
    "how the doer is known": (
        "UPDATE task SET done_method = NULL", "done", "has done_method none, and session by"),
    "a task that nobody approved": (
        "UPDATE task SET state = 'approved', review = 0, decided_by = 'ana',"
        " decided_method = 'token'",
        "blocked", "has decided_by ana, and the audit log knows nothing of it"),
    "a decision taken back": (
        "UPDATE task SET state = 'blocked', review = 1, decided_by = NULL, decided_method = NULL",
        "approved",
        "has state blocked, and approved by event"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_what_was_altered_is_named_by_its_row_and_column(decided: Decided, name: str) -> None:
    sql, which, message = ALTERED[name]

    found = decided.alter(sql, which)

    assert {(one.table, one.row) for one in found} == {(sql.split()[1], decided.ids[which])}
    assert message in " ".join(one.message for one in found)
