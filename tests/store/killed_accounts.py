"""python -m tests.store.killed_accounts FOLDER: kill -9 before every statement of every write.

Prints JSON: for each write how many statements it has, and after which of them record and log
disagreed or something was half done. Each killed process is a fork that has opened nothing before.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from hansard_store.approvals.service import ApprovalService
from tests.store.account_paths import WRITES, CompoundWrite, disagreement, rules, state_of
from tests.store.accounts import Clock, account
from tests.store.killing import is_killed

_MOST_STATEMENTS = 300


def main(folder: Path) -> dict[str, Any]:
    """Walk every write; return what was found."""
    return {name: _walk(folder / f"{n}", write) for n, (name, write) in enumerate(WRITES.items())}


def _walk(folder: Path, write: CompoundWrite) -> dict[str, Any]:
    clock = Clock()
    with account(folder / "made", clock, policy=rules) as desk:
        given = write.prepare(desk, clock)
        before = state_of(desk._connections.get())
    problems: list[str] = []
    kills = 0
    for statement in range(_MOST_STATEMENTS):
        copy = folder / "killed"
        shutil.copytree(folder / "made", copy)
        if not is_killed(partial(_act, copy, clock, write, given, statement)):
            break
        kills += 1
        if problem := _look(copy, clock, write, given, before):
            problems.append(f"killed before statement {statement}: {problem}")
        shutil.rmtree(copy)
    shutil.rmtree(folder)
    return {"kills": kills, "problems": problems}


def _act(folder: Path, clock: Clock, write: CompoundWrite, given: Any, statement: int) -> None:
    with account(folder, clock, policy=rules) as desk:
        _kill_before(desk, statement)
        write.act(desk, given)


def _kill_before(desk: ApprovalService, statement: int) -> None:
    left = statement

    def trace(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return True

    desk._connections.get().exec_trace = trace


def _look(
    folder: Path, clock: Clock, write: CompoundWrite, given: Any, before: list[Any]
) -> str | None:
    with account(folder, clock, policy=rules) as desk:
        if state_of(desk._connections.get()) != before:
            return "something is half done"
        if problem := disagreement(desk):
            return problem
        write.act(desk, given)  # and it can be done after all
        return disagreement(desk)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
