"""Empty stores, each a copy of one that this process made by all migrations."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder


def empty_store(path: Path) -> DataFolder:
    """Return the folder of an empty store of today's schema; one that is there already stays.

    Opening it is a fifth of the work of making it: for tests that are not about making it.
    """
    folder = DataFolder(path)
    folder.create()
    if not folder.database.exists():
        folder.database.touch(mode=0o600)
        folder.database.write_bytes(_made_once())
    return folder


@cache
def _made_once() -> bytes:
    with tempfile.TemporaryDirectory() as made:
        folder = DataFolder(Path(made) / "data")
        open_for_ingest(folder).close()
        return folder.database.read_bytes()
