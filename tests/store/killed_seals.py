"""python -m tests.store.killed_seals FOLDER: kill -9 before every statement of a seal.

Prints JSON: how many kills, and what the seals named after each. As killed_accounts.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from hansard_store.audit.sealer import seal
from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.verification.seals import SealCheck, SealReport
from tests.store.killing import is_killed


def found(folder: DataFolder) -> tuple[list[tuple[str, str, str]], SealReport]:
    """Return the rows that the seals of a store name, and the report."""
    reader = open_reader(folder)
    check = SealCheck(reader, folder.key())
    try:
        return list(check.run()), check.report
    finally:
        reader.close()


def main(folder: DataFolder) -> dict[str, Any]:
    """Seal what is not sealed, killed before each statement in turn."""
    kills, named = 0, []
    while is_killed(partial(_seal_and_die, folder, kills)):
        kills += 1
        named += found(folder)[0]
    return {"kills": kills, "named": named}


def _seal_and_die(folder: DataFolder, statement: int) -> None:
    connection = open_for_accountability(folder)
    left = statement

    def trace(_: apsw.Cursor, sql: str, bindings: object) -> bool:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return True

    connection.exec_trace = trace
    seal(connection, folder.key())


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(DataFolder(Path(sys.argv[1])))))
