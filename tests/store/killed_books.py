"""python -m tests.store.killed_books FOLDER: kill -9 before every statement of every other write.

As killed_accounts.py for approvals. Prints JSON: for each write how many kills, and what was found.
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

from tests.store.book_paths import WRITES, BookWrite, books, broken, logged, stored
from tests.store.killing import is_killed
from tests.store.tripping import tripping

_MOST_STATEMENTS = 300


def main(folder: Path) -> dict[str, Any]:
    """Walk every write; return what was found."""
    return {name: _walk(folder / f"{n}", write) for n, (name, write) in enumerate(WRITES.items())}


def _walk(folder: Path, write: BookWrite) -> dict[str, Any]:
    with books(folder / "made") as made:
        given = write.prepare(made)
        before = stored(made)
    problems: list[str] = []
    kills = 0
    for statement in range(_MOST_STATEMENTS):
        copy = folder / "killed"
        shutil.copytree(folder / "made", copy)
        if not is_killed(partial(_act, copy, write, given, statement)):
            break
        kills += 1
        if problem := _look(copy, write, given, before):
            problems.append(f"killed before statement {statement}: {problem}")
        shutil.rmtree(copy)
    shutil.rmtree(folder)
    return {"kills": kills, "problems": problems}


def _act(folder: Path, write: BookWrite, given: Any, statement: int) -> None:
    with tripping(statement, _die), books(folder) as made:
        write.act(made, given)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _look(folder: Path, write: BookWrite, given: Any, before: dict[str, list[str]]) -> str | None:
    with books(folder) as made:
        if stored(made) != before:
            return "something is half done"
        events = len(logged(made))
        write.act(made, given)  # and it can be done after all
        if tuple(logged(made)[events:]) != write.types:
            return "its events are not all there"
        return broken(made)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
