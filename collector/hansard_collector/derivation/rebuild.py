"""Deriving all rows again, from the records of spans and logs, while ingest goes on.

Run by run, in slices of some milliseconds: first all that is derived of a run is taken back, then
made again in the order in which its spans came; then the log records of agents that send no
traces are understood again. The progress is stored, so that a
rebuild that was cut off goes on where it was. Spans that come meanwhile are derived as ever.

Lists show a run of many thousand spans without some of its numbers for the seconds that it takes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import apsw

from hansard._runtime.locks import try_lock
from hansard_collector.background import Background
from hansard_collector.derivation.rederivation import read_span, rederive_span, rederive_stored
from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.log_sessions.writer import settle_again
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.database.upkeep_slices import Pace
from hansard_store.error_groups import due
from hansard_store.errors import RebuildRunningError
from hansard_store.ingest.writer import IngestWriter, WriteBatch
from hansard_store.maintenance import rebuild_state
from hansard_store.runs.projection import RunState

# Shorter than for deletion: the index rows of a slice are written at its end, on top.
_PACE = Pace(hold_s=0.005)
MOST_SPANS_AT_ONCE = 256  # derived again inside of one transaction of ingest: a tenth of a second
_LOCK_FOLDER = "rebuilding"  # in the data folder; locked by the process that rebuilds
_RETRY_S = 60.0
_log = logging.getLogger("hansard.rebuild")

Progress = Callable[[int, int], None]  # runs done, runs in all


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """What was made again."""

    runs: int
    spans: int


@dataclass(frozen=True, slots=True)
class _State:
    """The progress of a rebuild: runs up to `after` are done, `making` is taken back already."""

    only_old: bool
    after: int = 0
    making: str = ""  # trace id in hex
    logs: int = 0  # log records up to this one are placed again, after the runs

    def text(self) -> str:
        return json.dumps([self.only_old, self.after, self.making, self.logs])


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A rebuild that has begun: until it ends, search and lists may miss steps of some runs."""

    runs_left: int
    is_running: bool  # a process works on it now


def unfinished_rebuild(folder: DataFolder, connection: apsw.Connection) -> Unfinished | None:
    """Return how far a rebuild is that has begun and not ended; None where there is none."""
    found = rebuild_state.read_progress(connection)
    if found is None:
        return None
    with _held(folder) as is_mine:
        state = _State(*json.loads(found))
        left = rebuild_state.count_runs_after(connection, state.after)
        return Unfinished(left, is_running=not is_mine)


@contextmanager
def _held(folder: DataFolder) -> Iterator[bool]:
    """Hold the lock of rebuilds in this block; False where another process has it."""
    path = folder.path / _LOCK_FOLDER
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        lock = try_lock(path)
    except OSError:  # a full or read-only disk: nothing can be rebuilt there either
        lock = None
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()


def rebuild(
    folder: DataFolder,
    *,
    only_old: bool = False,
    pace: Pace | None = None,
    progress: Progress = lambda _done, _total: None,
) -> _Rebuilt:
    """Derive all runs again, or only those that an older version derived.

    On a connection of its own: beside ingest, in any process. Raises StoppedError when `pace` is
    to stop; the next rebuild, or the next server, goes on from there. Raises RebuildRunningError
    while another process rebuilds.
    """
    with _held(folder) as is_mine, _writing(folder) as writer:
        if not is_mine:
            raise RebuildRunningError
        rebuilt = _Rebuild(writer, pace or _PACE, progress).run(only_old=only_old)
        if not only_old:  # every failed step has its row now
            with transaction(writer.connection):
                due.set_done(writer.connection)
        return rebuilt


def derive_again(
    connection: apsw.Connection, batch: WriteBatch, run: RunState, *, messages: MessageCache
) -> None:
    """Derive one run again inside the caller's transaction; its records must be written."""
    spans = rebuild_state.spans_of(connection, run.trace_id)
    for span in spans:
        batch.spans.retract(span, run)
    batch.runs.blank(run)
    for span in spans:
        rederive_stored(connection, batch, read_span(connection, span), messages=messages)


def derive_later(connection: apsw.Connection, run: RunState) -> None:
    """Leave a run to the rebuild beside ingest; until it ends, the store reports one as due."""
    rebuild_state.set_older(connection, run.trace_id, DERIVED_VERSION - 1)
    if rebuild_state.read_progress(connection) is None:
        rebuild_state.write_progress(connection, _State(only_old=True).text())


def rebuild_continuation(folder: DataFolder) -> Background:
    """Return what finishes a rebuild that was interrupted, in a thread of its own beside ingest.

    It looks at once, and every minute while it works.
    """
    return Background(
        "hansard-rebuild",
        partial(_continue, folder),
        every_s=_RETRY_S,
        log=_log,
        put_off="the unfinished rebuild is put off",
    )


def _continue(folder: DataFolder, stop: threading.Event) -> None:
    with contextlib.closing(open_for_ingest(folder)) as connection:
        if rebuild_state.read_progress(connection) is None:
            return
    _log.warning("an unfinished rebuild is continued beside ingest")
    # Where another process rebuilds, that one finishes it, or leaves it to the next look.
    with contextlib.suppress(RebuildRunningError):
        rebuilt = rebuild(folder, pace=Pace(hold_s=_PACE.hold_s, stop=stop))
        _log.warning("the unfinished rebuild is finished: %d runs", rebuilt.runs)


@contextmanager
def _writing(folder: DataFolder) -> Iterator[IngestWriter]:
    with contextlib.closing(open_for_ingest(folder)) as connection:
        yield IngestWriter(connection, derived_version=DERIVED_VERSION)


class _Rebuild:
    def __init__(self, writer: IngestWriter, pace: Pace, progress: Progress) -> None:
        self._writer = writer
        self._connection = writer.connection
        self._pace = pace
        self._progress = progress
        self._messages = MessageCache()
        self._spans = 0
        self._runs_made = 0
        self._until = 0.0  # when the lock is to be left to others, at the latest
        self._state = _State(only_old=False)

    def run(self, *, only_old: bool) -> _Rebuilt:
        found = rebuild_state.read_progress(self._connection)
        self._state = _State(*json.loads(found)) if found else _State(only_old)
        with transaction(self._connection):  # before anything is taken back
            self._write(self._state)
        trace_ids = self._runs()
        for done, trace_id in enumerate(trace_ids):
            self._progress(done, len(trace_ids))
            if self._state.making != trace_id.hex():
                self._take_back(trace_id)
            self._make(trace_id)
        self._place_logs()
        self._progress(len(trace_ids), len(trace_ids))
        with self._batch():
            if not rebuild_state.is_older(self._connection, DERIVED_VERSION):
                rebuild_state.drop_progress(self._connection)
                return _Rebuilt(self._runs_made, self._spans)
            self._write(_State(only_old=True))  # runs that ingest left to this one meanwhile
        return self.run(only_old=True)

    def _runs(self) -> list[bytes]:
        state = self._state
        older_than = DERIVED_VERSION if state.only_old else None
        found = rebuild_state.runs_after(self._connection, state.after, older_than=older_than)
        # What was cut off first: parts of it may be made already.
        making = [bytes.fromhex(state.making)] if state.making else []
        return making + [one for one in found if one not in making]

    @contextmanager
    def _batch(self) -> Iterator[WriteBatch]:
        """Write in a transaction; the lock is left to others every some milliseconds."""
        if self._until and time.monotonic() > self._until:
            self._pace.rest()
            self._until = 0.0
        with self._writer.batch(now_ns=None) as batch:
            self._until = self._until or time.monotonic() + self._pace.hold_s
            yield batch

    def _take_back(self, trace_id: bytes) -> None:
        """Take back what is derived of a run; in the end, with spans that came meanwhile."""
        spans = deque(rebuild_state.derived_spans_of(self._connection, trace_id))
        made = False
        while not made:
            with self._batch() as batch:
                run = batch.runs.find(trace_id)
                if run is None:
                    return  # deleted meanwhile
                for span in self._slice(spans):
                    batch.spans.retract(span, run)
                if not spans:
                    for span in rebuild_state.derived_spans_of(self._connection, trace_id):
                        batch.spans.retract(span, run)
                    batch.runs.blank(run)
                    self._write(replace(self._state, making=trace_id.hex()))
                    made = True

    def _make(self, trace_id: bytes) -> None:
        spans = deque(rebuild_state.spans_of(self._connection, trace_id))
        made = False
        while not made:
            with self._batch() as batch:
                run = batch.runs.find(trace_id)
                for span in self._slice(spans) if run is not None else ():
                    self._derive(batch, span)
                if not spans or run is None:
                    after = self._state.after if run is None else max(self._state.after, run.id)
                    self._write(replace(self._state, after=after, making=""))
                    made = True
        self._runs_made += 1

    def _slice(self, spans: deque[int]) -> Iterator[int]:
        """Take the next spans off, some milliseconds' worth."""
        while spans:
            yield spans.popleft()
            if time.monotonic() > self._until:
                return

    def _place_logs(self) -> None:
        """Understand the records of log-only agents again, and make their steps."""
        while logs := deque(rebuild_state.logs_after(self._connection, self._state.logs)):
            with self._batch() as batch:
                for log in self._slice(logs):
                    settled = settle_again(self._connection, batch, self._messages, [log])
                    for trace_id, span_ids in settled.items():
                        batch.write_held()
                        for span_id in sorted(span_ids):
                            rederive_span(
                                self._connection,
                                batch,
                                trace_id=trace_id,
                                span_id=span_id,
                                messages=self._messages,
                            )
                    self._write(replace(self._state, logs=log))

    def _derive(self, batch: WriteBatch, span: int) -> None:
        if not rebuild_state.is_bare(self._connection, span):
            return  # its logs came meanwhile, and it was derived with them
        stored = read_span(self._connection, span)
        rederive_stored(self._connection, batch, stored, messages=self._messages)
        self._spans += 1

    def _write(self, state: _State) -> None:
        self._state = state
        rebuild_state.write_progress(self._connection, state.text())
