"""Derived rows against what the same spans give when they are derived again.

A copy of the database is made beside the store, and derived again in it by the code of a rebuild;
what differs is named by table and row. The store itself is only read, and nobody waits for it. It
takes twice the database's size on disk while it lasts, and memory for some rows at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from hansard_collector.derive import DERIVED_VERSION
from hansard_collector.rebuild import rebuild
from hansard_collector.verification.items import check_items
from hansard_store.database.batched_transactions import Pace
from hansard_store.database.connections import DataFolder, open_reader
from hansard_store.database.disk import need_space
from hansard_store.maintenance import rebuild_state as rebuilding
from hansard_store.maintenance.backup import copy_database
from hansard_store.verification.derived import compare_derived, find_orphans, forget_derived
from hansard_store.verification.verify import Finding

_PREFIX: Final = ".verify-"

Progress = Callable[[str, int, int], None]


def verify_derived(
    folder: DataFolder, *, progress: Progress = lambda _what, _done, _total: None
) -> list[Finding]:
    """Return the derived rows that are not what their spans give, at most 50 of each table.

    That an older version derived runs, or a rebuild is unfinished, is a finding too: these cannot
    be compared. Raises NoSpaceError where the copies have no room.
    """
    need_space("two copies", folder.path, size_bytes=2 * folder.database.stat().st_size)
    with _copies(folder, progress) as (before, again):
        due = _why_due(before)
        if due is not None:
            return [Finding("derived", "span", "", due)]
        forget_derived(again)
        rebuild(
            again,
            pace=Pace(hold_s=1.0, pause_s=0.0),
            progress=lambda done, total: progress("derived again", done, total),
        )
        with closing(open_reader(before)) as old, closing(open_reader(again)) as new:
            found = [
                *find_orphans(old),
                *check_items(old),
                *compare_derived(old, new, progress=progress),
            ]
            return [Finding("derived", *one) for one in found]


@contextmanager
def _copies(folder: DataFolder, progress: Progress) -> Iterator[tuple[DataFolder, DataFolder]]:
    """Lend two copies of one state of the database, with the payloads of the store."""
    for left in folder.path.glob(f"{_PREFIX}*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder.path) as name:
        before, again = DataFolder(Path(name) / "before"), DataFolder(Path(name) / "again")
        before.path.mkdir(mode=0o700)
        with closing(open_reader(folder)) as reader:
            copy_database(reader, before.database, progress)
        shutil.copyfile(folder.key_file, before.key_file)
        shutil.copytree(before.path, again.path)
        for copy in (before, again):
            copy.blobs.symlink_to(folder.blobs.resolve(), target_is_directory=True)
        yield before, again


def _why_due(folder: DataFolder) -> str | None:
    with closing(open_reader(folder)) as connection:
        if rebuilding.read_progress(connection) is not None:
            return "cannot be compared: a rebuild is unfinished; `hansard rebuild` ends it"
        if rebuilding.is_older(connection, DERIVED_VERSION):
            return (
                "cannot be compared: an older version derived some runs; `hansard rebuild` derives "
                "them again"
            )
        return None
