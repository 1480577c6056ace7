"""Reading stored log records once more makes the same runs again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.log_sessions.writer import settle_again
from hansard_store.database.connections import open_for_ingest
from hansard_store.ingest.writer import IngestWriter
from tests.collector.ingesting import START_NS, Ingesting
from tests.collector.sessions.maker import picture, request
from tests.collector.sessions.test_order import SESSIONS
from tests.collector.sessions.test_with_traces import logged_turn, traced_turn


def forget_sessions(store: Ingesting) -> None:
    """Drop all that is derived of log records without ids, as if they had never been understood."""
    connection = open_for_ingest(store.folder)
    connection.execute("""
        DELETE FROM session_log;
        DELETE FROM traced_turn;
        UPDATE log_record SET trace_id = NULL, span_id = NULL;
        PRAGMA foreign_keys = OFF;
        DELETE FROM span WHERE flags & 16384;
        DELETE FROM span_record WHERE span NOT IN (SELECT id FROM span);
        DELETE FROM call WHERE span NOT IN (SELECT id FROM span);
        DELETE FROM error_step WHERE span NOT IN (SELECT id FROM span);
        DELETE FROM attribute_fts WHERE rowid NOT IN (SELECT id FROM span);
        DELETE FROM tool_event;
        DELETE FROM run_facet WHERE run IN (SELECT id FROM run WHERE synthetic);
        DELETE FROM run WHERE synthetic;
    """)
    connection.close()


def read_again(store: Ingesting, slices: Iterable[Sequence[int]]) -> None:
    connection = open_for_ingest(store.folder)
    writer = IngestWriter(connection, derived_version=DERIVED_VERSION)
    for logs in slices:
        with writer.batch(now_ns=START_NS) as batch:
            settle_again(connection, batch, MessageCache(), logs)
    connection.close()


def in_slices(store: Ingesting, size: int) -> list[list[int]]:
    logs = [log for (log,) in store.all("SELECT id FROM log_record ORDER BY id")]
    return [logs[start : start + size] for start in range(0, len(logs), size)]


@pytest.fixture
def stopped(tmp_path: Path) -> Iterable[Ingesting]:
    """A store with sessions of all agents, and nobody who writes to it."""
    store = Ingesting(tmp_path / "data")
    for agent, records in SESSIONS.values():
        store.send(request(records, agent))
    store.pipeline.close()
    yield store
    store.db.close()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_runs_that_were_forgotten_are_made_again(stopped: Ingesting, size: int) -> None:
    before = picture(stopped)
    forget_sessions(stopped)
    assert picture(stopped) == []

    read_again(stopped, in_slices(stopped, size))

    assert picture(stopped) == before


def test_reading_again_what_is_known_changes_nothing(stopped: Ingesting) -> None:
    before = picture(stopped)
    rows = stopped.all("SELECT * FROM session_log ORDER BY log")

    read_again(stopped, in_slices(stopped, 11))

    assert picture(stopped) == before
    assert stopped.all("SELECT * FROM session_log ORDER BY log") == rows


def test_a_record_that_is_understood_otherwise_now_moves(stopped: Ingesting) -> None:
    before = picture(stopped)
    connection = open_for_ingest(stopped.folder)
    # As an older version might have taken them: answers for notes, a prompt for nothing.
    connection.execute(
        "UPDATE session_log SET entry_type = 'note', kind = '', key = '' WHERE log % 3 = 0"
    )
    connection.execute("DELETE FROM session_log WHERE log % 5 = 0")
    connection.close()

    read_again(stopped, in_slices(stopped, 13))

    assert picture(stopped) == before


def test_records_of_traced_turns_find_their_spans_again(tmp_path: Path) -> None:
    store = Ingesting(tmp_path / "data")
    store.send(traced_turn())
    store.send(request(logged_turn()))
    store.pipeline.close()
    before = picture(store)
    forget_sessions(store)

    read_again(store, in_slices(store, 2))

    assert picture(store) == before
    store.db.close()
