"""Deleting runs: nothing of them stays but a tombstone, and nothing of others goes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.pipeline.requests import IngestResult
from hansard_compiler.errors import NotFoundError
from hansard_store.audit.sealer import seal
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.upkeep_slices import Pace
from hansard_store.errors import StoppedError
from hansard_store.maintenance.deletion import (
    delete_run,
    finish_deletions,
    oldest_runs,
    pin_run,
    runs_without_news_since,
)
from hansard_store.maintenance.garbage import collect_garbage
from hansard_store.runs.tombstones import find_tombstone
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    conversation,
    fixture_requests,
    log,
    logs,
    span,
    tables,
    traces,
)
from tests.collector.sessions.maker import request
from tests.collector.sessions.test_order import SESSIONS
from tests.store.killed_seals import found

OTHER = bytes(reversed(range(16)))
# Of who sent what and when, which deletion leaves alone.
KEPT = ("ledger", "sender", "refusal", "setting", "tombstone", "seal_due", "figure_due")
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10}


def chat(number: int, turns: int = 3, *, trace_id: bytes = TRACE, **attributes: Any) -> Span:
    """A model call with a conversation, a link and a note."""
    made = span(
        number,
        1 if number > 1 else 0,
        trace_id=trace_id,
        attributes=CHAT | {"gen_ai.input.messages": conversation(turns)} | attributes,
        dropped_attributes_count=1,
    )
    made.links.add(trace_id=OTHER, span_id=b"12345678")
    return made


@pytest.mark.covers("RC-29")
def test_a_deleted_run_leaves_a_tombstone_and_no_row(ingesting: Ingesting) -> None:
    before = tables(ingesting.db, without=KEPT)
    macs = hashlib.sha256()
    ingesting.send(traces([chat(1), chat(2, turns=40), span(2, attributes={"poor": 1})]))
    ingesting.send(logs([log(1, text="long " * 1000), log(9)]))
    for (mac,) in ingesting.all("SELECT mac FROM span_record ORDER BY span"):
        macs.update(mac)

    with _maintenance(ingesting) as connection:
        tombstone = delete_run(connection, TRACE, reason="by hand")
        collect_garbage(ingesting.folder, connection)

    assert tables(ingesting.db, without=KEPT) == before
    assert ingesting.one("SELECT count(*) FROM text_fts_docsize") == 0
    assert ingesting.one("SELECT count(*) FROM attribute_fts_docsize") == 0
    assert (tombstone.span_count, tombstone.digest) == (2, macs.digest())
    assert find_tombstone(ingesting.db, TRACE) == tombstone


@contextmanager
def _maintenance(ingesting: Ingesting) -> Iterator[apsw.Connection]:
    connection = open_for_maintenance(ingesting.folder)
    yield connection
    connection.close()


def test_spans_and_logs_that_come_late_are_counted_and_not_stored(ingesting: Ingesting) -> None:
    ingesting.send(traces([chat(1)]))
    with _maintenance(ingesting) as connection:
        delete_run(connection, TRACE, reason="keep")

    late = ingesting.send(traces([chat(1), chat(2), span(3, trace_id=OTHER)]))
    ingesting.send(logs([log(1)]))

    assert late == IngestResult(accepted=3)
    assert ingesting.one("SELECT count(*) FROM span") == 1
    assert ingesting.ledger()["deleted"] == 2
    assert ingesting.ledger("logs")["deleted"] == 1


def test_what_another_run_uses_too_stays_whole(ingesting: Ingesting) -> None:
    ingesting.send(traces([chat(1, turns=20)]))
    ingesting.send(traces([chat(1, turns=9, trace_id=OTHER), chat(2, trace_id=OTHER)]))
    with _maintenance(ingesting) as connection:
        delete_run(connection, TRACE, reason="by hand")
        collect_garbage(ingesting.folder, connection)

    report = verify_store(ingesting.folder)

    assert report.findings == []
    assert ingesting.one("SELECT count(*) FROM content_list") == 18


def test_deleting_all_recorded_runs_one_by_one_keeps_the_rest_sound(ingesting: Ingesting) -> None:
    for signal, body in fixture_requests():
        ingesting.send_bytes(signal, body)
    trace_ids = [row[0] for row in ingesting.all("SELECT trace_id FROM run ORDER BY id")]

    with _maintenance(ingesting) as connection:
        for number, trace_id in enumerate(trace_ids):
            delete_run(connection, trace_id, reason="by hand")
            if number % 9 == 0:
                collect_garbage(ingesting.folder, connection)
                assert verify_store(ingesting.folder).findings == []
        collect_garbage(ingesting.folder, connection)

    left = {name: len(rows) for name, rows in tables(ingesting.db, without=KEPT).items() if rows}
    kept = {"log_record", "metric_point", "resource", "scope", "content", "content_use"}
    assert set(left) <= kept | {"content_list", "content_list_use", "session_log"}


def test_after_gc_the_running_pipeline_stores_the_same_again(ingesting: Ingesting) -> None:
    ingesting.send(traces([chat(1, turns=9)]))
    with _maintenance(ingesting) as connection:
        delete_run(connection, TRACE, reason="by hand")
        collect_garbage(ingesting.folder, connection)

    ingesting.send(traces([chat(1, turns=9, trace_id=OTHER), chat(2, turns=12, trace_id=OTHER)]))

    assert verify_store(ingesting.folder).findings == []
    assert ingesting.one("SELECT count(*) FROM content_list") == 24


def test_a_deletion_that_was_cut_off_takes_nothing_new_and_is_finished_later(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traces(span(number, 1) for number in range(1, 600)))
    pace = Pace(hold_s=0)
    removed: list[int] = []

    def stop(count: int) -> None:
        removed.append(count)
        pace.stop.set()

    with _maintenance(ingesting) as connection:
        with pytest.raises(StoppedError):
            delete_run(connection, TRACE, reason="by hand", pace=pace, progress=stop)
        left = ingesting.one("SELECT count(*) FROM span")
        ingesting.send(traces([span(700, 1)]))
        assert ingesting.one("SELECT count(*) FROM span") == left == 599 - sum(removed)

        assert finish_deletions(connection) == 1

    assert ingesting.one("SELECT count(*) FROM span") == 0
    assert ingesting.one("SELECT count(*) FROM run") == 0
    assert find_tombstone(ingesting.db, TRACE).span_count == 599  # type: ignore[union-attr]


def test_numbers_of_deleted_runs_are_not_given_again(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1)]))
    before = ingesting.one("SELECT id, change_seq FROM run")
    with _maintenance(ingesting) as connection:
        delete_run(connection, TRACE, reason="by hand")

    ingesting.send(traces([span(1, trace_id=OTHER)]))

    after = ingesting.one("SELECT id, change_seq FROM run")
    assert after[0] > before[0]
    assert after[1] > before[1]


@pytest.mark.parametrize("is_sealed_between", [False, True])
def test_what_comes_after_the_newest_runs_were_deleted_is_as_hansard_wrote_it(
    ingesting: Ingesting, is_sealed_between: bool
) -> None:
    runs = [bytes([number]) * 16 for number in range(1, 5)]
    step = {"gen_ai.input.messages": conversation(2)}
    for trace_id in runs[:3]:
        ingesting.send(traces([span(1, trace_id=trace_id, attributes=step)]))
        ingesting.send(logs([log(1, trace_id=trace_id, text="a text " * 200)]))
    with _maintenance(ingesting) as connection:
        seal(connection, ingesting.folder.key())
        delete_run(connection, runs[1], reason="by hand")
        if is_sealed_between:
            seal(connection, ingesting.folder.key())
        delete_run(connection, runs[2], reason="by hand")
        ingesting.send(traces([span(1, trace_id=runs[3], duration_s=None)]))
        ingesting.send(logs([log(1, trace_id=runs[3])]))
        assert found(ingesting.folder)[0] == []
        ingesting.send(traces([span(1, trace_id=runs[3], attributes=step)]))
        assert found(ingesting.folder)[0] == []
        for _ in range(3):
            seal(connection, ingesting.folder.key())
            assert found(ingesting.folder)[0] == []


def test_a_run_that_is_not_stored_cannot_be_deleted(ingesting: Ingesting) -> None:
    with _maintenance(ingesting) as connection, pytest.raises(NotFoundError, match=TRACE.hex()):
        delete_run(connection, TRACE, reason="by hand")


def test_pinned_runs_stay_whatever_is_to_go(ingesting: Ingesting) -> None:
    trace_ids = [bytes([number]) * 16 for number in (1, 2, 3)]
    for trace_id in trace_ids:
        ingesting.send(traces([span(1, trace_id=trace_id)]))
    change = ingesting.one("SELECT max(change_seq) FROM run")

    with _maintenance(ingesting) as connection:
        pin_run(connection, trace_ids[1], pinned=True)
        others = [trace_ids[0], trace_ids[2]]
        assert runs_without_news_since(connection, 2**62) == others
        assert runs_without_news_since(connection, 0) == []
        assert oldest_runs(connection, limit=9) == others
        assert oldest_runs(connection, limit=1) == others[:1]
        pin_run(connection, trace_ids[1], pinned=False)
        assert oldest_runs(connection, limit=9) == trace_ids
        with pytest.raises(NotFoundError):
            pin_run(connection, b"x" * 16, pinned=True)

    assert ingesting.one("SELECT max(change_seq) FROM run") == change + 2


def test_ingest_goes_on_while_a_large_run_is_deleted(ingesting: Ingesting) -> None:
    ingesting.send(traces(span(number, 1) for number in range(1, 3000)))
    sending = _Sending(ingesting)

    with _maintenance(ingesting) as connection:
        pace = Pace(hold_s=0, pause_s=0, stop=sending)
        delete_run(connection, TRACE, reason="by hand", pace=pace)

    assert sending.sent > 5
    assert ingesting.one("SELECT count(*) FROM span") == sending.sent


class _Sending(threading.Event):
    """In each pause between two slices, sends a span that must be stored before the next one."""

    def __init__(self, ingesting: Ingesting) -> None:
        super().__init__()
        self.sent = 0
        self._ingesting = ingesting

    def wait(self, timeout: float | None = None) -> bool:
        self.sent += 1
        self._ingesting.send(traces([span(self.sent, trace_id=OTHER)]))
        return False


def test_a_run_made_of_log_records_goes_with_them_and_stays_away(ingesting: Ingesting) -> None:
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))
    runs = ingesting.all("SELECT trace_id, synthetic FROM run ORDER BY id")
    (trace_id, synthetic), others = runs[0], len(runs) - 1
    assert synthetic

    with _maintenance(ingesting) as connection:
        delete_run(connection, trace_id, reason="by hand")
        collect_garbage(ingesting.folder, connection)
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))

    assert ingesting.one("SELECT count(*) FROM run") == others
    assert ingesting.one("SELECT count(*) FROM log_record WHERE trace_id = ?", trace_id) == 0
    assert ingesting.ledger("logs")["deleted"] > 0
    assert verify_store(ingesting.folder).findings == []
