"""Derived rows against what the same spans give when they are derived again.

A copy of the database is made beside the store, and derived again in it by the code of a rebuild;
what differs is named by table and row. The store itself is only read, and writers do not wait. It
takes twice the database's size on disk while it lasts, and memory for some rows at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.otlp.any_value import log_view
from hansard_collector.otlp.stored_records import Envelopes
from hansard_collector.pipeline.preparation import log_columns, point_columns, single_points
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.disk import need_space
from hansard_store.database.readers import open_reader
from hansard_store.database.upkeep_slices import Pace
from hansard_store.error_groups import due
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.otlp_records import restore_log, restore_metric
from hansard_store.maintenance import rebuild_state
from hansard_store.maintenance.backup import copy_database
from hansard_store.verification.derived import (
    Difference,
    Found,
    compare_derived,
    differences,
    find_orphans,
    forget_derived,
    iter_logs,
    iter_points,
)
from hansard_store.verification.figures import check_figures
from hansard_store.verification.integrity import IntegrityFinding

_PREFIX: Final = ".verify-"

Progress = Callable[[str, int, int], None]


def verify_derived(
    folder: DataFolder, *, progress: Progress = lambda _what, _done, _total: None
) -> list[IntegrityFinding]:
    """Return the derived rows that are not what their spans give, at most 50 of each table.

    That an older version derived runs, or a rebuild is unfinished, is a finding too: these cannot
    be compared. Raises NoSpaceError where the copies have no room.
    """
    need_space("two copies", folder.path, size_bytes=2 * folder.database.stat().st_size)
    with _copies(folder, progress) as (before, again):
        due = _why_due(before)
        if due is not None:
            return [IntegrityFinding("derived", "span", "", due)]
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
                *check_figures(old),
                *compare_derived(old, new, progress=progress),
            ]
            return [IntegrityFinding("derived", *one) for one in found]


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
        if rebuild_state.read_progress(connection) is not None:
            return "cannot be compared: a rebuild is unfinished; `hansard rebuild` ends it"
        if rebuild_state.is_older(connection, DERIVED_VERSION):
            return (
                "cannot be compared: an older version derived some runs; `hansard rebuild` derives "
                "them again"
            )
        if due.is_due(connection):
            return (
                "cannot be compared: errors of before the upgrade are still being added; a server "
                "does it, or `hansard rebuild`"
            )
        return None


# Columns of log records and metric points against the records that they were read from.
#
# A seal holds the record, and these columns stand beside it, for lists and search. A rebuild does
# not write them again.

_MOST_OF_TABLE: Final = 50


def check_items(connection: apsw.Connection) -> Found:
    """Yield the log records and metric points with a column that is not that of the record."""
    yield from islice(_logs(connection), _MOST_OF_TABLE)
    yield from islice(_points(connection), _MOST_OF_TABLE)


def _logs(connection: apsw.Connection) -> Found:
    envelopes = Envelopes(connection)
    for row in iter_logs(connection):
        with suppress(StoreCorruptError):  # a finding of the check of records
            record = restore_log(connection, row.record)
            scope_name = envelopes.scope(row.scope).scope.name
            view = log_view(record, envelopes.attributes(row.resource), scope_name=scope_name)
            derived = log_columns(record, view) | {"notes": None}
            if row.is_of_session:  # placed on the step that it describes
                derived |= {"trace_id": row.home, "span_id": row.columns["span_id"]}
            yield from _compared("log_record", row.id, row.columns, derived)


def _points(connection: apsw.Connection) -> Found:
    for row in iter_points(connection):
        with suppress(StoreCorruptError):
            [(metric, point)] = single_points(restore_metric(connection, row.record))
            yield from _compared("metric_point", row.id, row.columns, point_columns(metric, point))


def _compared(table: str, number: int, found: Mapping[str, Any], made: Mapping[str, Any]) -> Found:
    differing = differences(list(found), list(found.values()), [made[one] for one in found])
    if differing:
        yield Difference(table, str(number), f"has {differing} as its record gives it")
