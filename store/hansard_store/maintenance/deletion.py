"""Deleting runs: a tombstone first, then their rows in slices; what nothing uses is left to gc.

The tombstone stands before the first row goes, so spans that come late are counted as `deleted`
and not stored. The run's own row goes last: a deletion that was cut off is found by it, and its
number is not assigned to another run while anything still carries it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.annotations.rows import release_annotations
from hansard_store.calls import cross_trace_duplicates
from hansard_store.calls.usage_rollup import follow_roots
from hansard_store.compilations.queries import release_receipts
from hansard_store.content.large_values import log_user
from hansard_store.content.payload_uses import release_payloads
from hansard_store.database.checkpoints import make_room
from hansard_store.database.connections import without_foreign_keys
from hansard_store.database.transactions import snapshot, transaction
from hansard_store.database.upkeep_slices import Pace, in_slices
from hansard_store.evaluation.verdicts import release_verdicts
from hansard_store.memory.supersession import release_working
from hansard_store.policy.checks import release_checks
from hansard_store.replays import release_replays
from hansard_store.reports.files import reports_beside
from hansard_store.runs.projection import RunWriter, keep_numbers
from hansard_store.runs.tombstones import Reason, Tombstone, add_tombstone, find_tombstone

_AT_ONCE = 50  # spans or log records
_USES_AT_ONCE = 500

_RUN = "SELECT id FROM run WHERE trace_id = ?"
_VERSION = "SELECT version FROM run WHERE trace_id = ?"
_MACS = """
SELECT mac FROM span JOIN span_record ON span_record.span = span.id
WHERE trace_id = ? ORDER BY span.id
"""
_UNFINISHED = "SELECT trace_id FROM tombstone JOIN run USING (trace_id)"


def delete_run(
    connection: apsw.Connection,
    trace_id: bytes,
    *,
    reason: Reason,
    by: str | None = None,
    pace: Pace | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Tombstone:
    """Delete a run with its spans, log records and all that is derived from them.

    `by` is the person who does it; None where a setting does. `progress` is called with the number
    of spans and logs that were removed since its last call. Raises NotFoundError for a run that is
    not stored. Stopped in between, the run is gone for readers of new spans, and
    `finish_deletions` removes the rest.
    """
    pace = pace or Pace()
    make_room(connection)
    run = connection.execute(_RUN, (trace_id,)).get
    if run is None:
        raise NotFoundError("run", trace_id.hex())
    tombstone = _bury(connection, trace_id, reason=reason, by=by)
    reports_beside(connection).forget(trace_id.hex())
    _Remover(connection, trace_id, run, pace, progress).remove()
    return tombstone


def finish_deletions(connection: apsw.Connection, *, pace: Pace | None = None) -> int:
    """Remove what deletions left that were cut off; return how many there were."""
    rows: list[Any] = connection.execute(_UNFINISHED).fetchall()
    for (trace_id,) in rows:
        delete_run(connection, trace_id, reason="by hand", pace=pace)
    return len(rows)


def _bury(
    connection: apsw.Connection, trace_id: bytes, *, reason: Reason, by: str | None
) -> Tombstone:
    """Write the tombstone; its digest is made before the lock is taken, unless the run changes."""

    def write(count: int, digest: bytes) -> Tombstone:
        return add_tombstone(
            connection, trace_id, reason=reason, by=by, span_count=count, digest=digest
        )

    for _ in range(3):
        with snapshot(connection):
            version, count, digest = _digest(connection, trace_id)
        with transaction(connection):
            found = find_tombstone(connection, trace_id)
            if found is not None:
                return found
            if connection.execute(_VERSION, (trace_id,)).get == version:
                return write(count, digest)
    with transaction(connection):
        _, count, digest = _digest(connection, trace_id)
        return write(count, digest)


def _digest(connection: apsw.Connection, trace_id: bytes) -> tuple[Any, int, bytes]:
    version = connection.execute(_VERSION, (trace_id,)).get
    digest, count = hashlib.sha256(), 0
    for (mac,) in connection.execute(_MACS, (trace_id,)):
        digest.update(mac)
        count += 1
    return version, count, digest.digest()


_SPANS = "SELECT id FROM span WHERE trace_id = ? LIMIT ?"
_LOGS = "SELECT id FROM log_record INDEXED BY log_record_step WHERE trace_id = ? LIMIT ?"
# Of a span, by its id; children before what they refer to, the full-text index apart from both.
_OF_SPAN = (
    "DELETE FROM span_link WHERE span = ?",
    "DELETE FROM usage_sum WHERE span = ?",
    "DELETE FROM error_step WHERE span = ?",
    "DELETE FROM call WHERE span = ?",
    "DELETE FROM span_duplicate WHERE span = ?",
    "DELETE FROM span_record WHERE span = ?",
    "DELETE FROM redaction WHERE signal = 'traces' AND item = ?",
    "DELETE FROM span WHERE id = ?",
    "DELETE FROM attribute_fts WHERE rowid = ?",
)
_OF_LOG = (
    "DELETE FROM redaction WHERE signal = 'logs' AND item = ?",
    "DELETE FROM log_record WHERE id = ?",
)
_OF_USER = (
    "DELETE FROM content_use WHERE run = ?",
    "DELETE FROM content_list_use WHERE run = ?",
)
# Of a run, some rows at a time: table, and what its key has beside the run.
_OF_RUN = {
    "content_use": "content",
    "content_list_use": "list",
    "text_use": "text",
    "tool_event": "id",
}
_FACETS = "DELETE FROM run_facet WHERE run = ?"
_MARKS = """
DELETE FROM usage_below WHERE trace_id = :trace
AND span_id IN (SELECT span_id FROM usage_below WHERE trace_id = :trace LIMIT :most)
"""
_DROP_RUN = "DELETE FROM run WHERE id = ?"


class _Remover:
    """Removes the rows of one buried run."""

    def __init__(
        self,
        connection: apsw.Connection,
        trace_id: bytes,
        run: int,
        pace: Pace,
        progress: Callable[[int], None],
    ) -> None:
        self._connection = connection
        self._trace_id = trace_id
        self._run = run
        self._pace = pace
        self._progress = progress

    def remove(self) -> None:
        connection = self._connection
        steps: tuple[Callable[[], int], ...] = (
            partial(release_receipts, connection, self._run, most=_USES_AT_ONCE),
            *(
                partial(release, connection, self._trace_id, most=_USES_AT_ONCE)
                for release in (
                    release_checks,
                    release_replays,
                    release_working,
                    release_annotations,
                    release_verdicts,
                )
            ),
            self._spans,
            self._logs,
            partial(release_payloads, connection, self._run, most=_AT_ONCE),
            self._uses,
            self._marks,
        )
        for step in steps:
            in_slices(connection, step, self._pace)
        with without_foreign_keys(self._connection), transaction(self._connection):
            keep_numbers(self._connection.execute)
            self._connection.execute(_FACETS, (self._run,))
            self._connection.execute(_DROP_RUN, (self._run,))

    def _spans(self) -> int:
        found = [span for (span,) in self._ids(_SPANS)]
        responses = cross_trace_duplicates.responses_of(self._connection, found)
        removed = self._items(_SPANS, _OF_SPAN)
        runs = RunWriter(self._connection, now_ns=None)  # calls that other runs report as well
        changed = [(response, self._run) for response in responses]
        cross_trace_duplicates.settle_responses(self._connection, runs, changed)
        follow_roots(self._connection, runs.changed())
        runs.flush()
        return removed

    def _logs(self) -> int:
        found = self._ids(_LOGS)
        for sql in _OF_USER:
            self._connection.executemany(sql, [(log_user(log),) for (log,) in found])
        return self._items(_LOGS, _OF_LOG)

    def _items(self, select: str, removals: Sequence[str]) -> int:
        found = self._ids(select)
        for sql in removals:
            self._connection.executemany(sql, found)
        self._progress(len(found))
        return len(found)

    def _ids(self, select: str) -> list[tuple[int]]:
        rows: list[Any] = self._connection.execute(select, (self._trace_id, _AT_ONCE)).fetchall()
        return rows

    def _uses(self) -> int:
        for table, key in _OF_RUN.items():
            self._connection.execute(
                f"DELETE FROM {table} WHERE run = :run AND {key} IN "
                f"(SELECT {key} FROM {table} WHERE run = :run LIMIT :most)",
                {"run": self._run, "most": _USES_AT_ONCE},
            )
            if changed := self._connection.changes():
                return changed
        return 0

    def _marks(self) -> int:
        self._connection.execute(_MARKS, {"trace": self._trace_id, "most": _USES_AT_ONCE})
        return self._connection.changes()


# ---- which runs are to go, and which stay


_OLD = "SELECT trace_id FROM run WHERE last_received_ns < :before AND pinned = 0 ORDER BY id"
_OLDEST = "SELECT trace_id FROM run WHERE pinned = 0 ORDER BY last_received_ns, id LIMIT :limit"
_PIN = """
UPDATE run SET pinned = :pinned, version = version + 1, change_seq = 1 + max(
  (SELECT max(change_seq) FROM run),
  coalesce((SELECT value FROM setting WHERE name = 'last_change'), 0))
WHERE trace_id = :trace
"""


def runs_without_news_since(connection: apsw.Connection, before_ns: int) -> list[bytes]:
    """Return the trace ids of runs of which nothing came since; pinned ones stay."""
    rows: list[Any] = connection.execute(_OLD, {"before": before_ns}).fetchall()
    return [row[0] for row in rows]


def oldest_runs(connection: apsw.Connection, *, limit: int) -> list[bytes]:
    """Return the trace ids of the runs whose last news is longest ago; pinned ones stay."""
    rows: list[Any] = connection.execute(_OLDEST, {"limit": limit}).fetchall()
    return [row[0] for row in rows]


def pin_run(connection: apsw.Connection, trace_id: bytes, *, pinned: bool) -> None:
    """Keep a run from `keep` and `max_disk`, or let it go again; raises NotFoundError."""
    with transaction(connection):
        connection.execute(_PIN, {"trace": trace_id, "pinned": int(pinned)})
        if not connection.changes():
            raise NotFoundError("run", trace_id.hex())
