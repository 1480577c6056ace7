"""Rows of failed steps: of real spans and of sessions, made again, and of older stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from hansard_collector.derivation.error_steps import derive_error_steps
from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.verification import verify_derived
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.upkeep_slices import Pace
from hansard_store.error_groups import due
from hansard_store.error_groups.queries import Wanted, error_words, list_errors
from hansard_store.errors import StoppedError
from tests.collector.ingesting import Ingesting, pairs, span, traces
from tests.collector.sessions.maker import request
from tests.collector.sessions.test_order import SESSIONS

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_order"}
ROWS = "SELECT * FROM error_step ORDER BY span"


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path / "data")
    yield made
    made.close()


def exception(kind: str, message: str) -> Span.Event:
    attributes = pairs({"exception.type": kind, "exception.message": message})
    return Span.Event(name="exception", time_unix_nano=1, attributes=attributes)


def found(ingesting: Ingesting) -> list[tuple[str, str, int]]:
    """Return subject, words and count of each group."""
    page, _ = list_errors(ingesting.db, Wanted(), now_ns=time.time_ns(), limit=100)
    return [
        (one.subject, error_words(one.error_type, one.message), one.count) for one in page.items
    ]


def failed_trace(ingesting: Ingesting, number: int = 0) -> None:
    """Send an agent whose tool raised: each span has the exception and the status."""
    trace_id = (number + 1).to_bytes(16, "big")
    event = exception("LookupError", f"no order {number}")
    spans = [
        span(1, trace_id=trace_id, attributes={"gen_ai.operation.name": "invoke_agent"}),
        span(2, 1, trace_id=trace_id, start_s=1.2, duration_s=0.5, attributes=TOOL),
        span(3, 2, trace_id=trace_id, start_s=1.3, duration_s=0.4, name="GET"),
    ]
    for one in spans:
        one.status.code = Status.STATUS_CODE_ERROR
        one.events.append(event)
    ingesting.send(traces(spans))


def test_an_exception_that_every_caller_records_is_one_error(ingesting: Ingesting) -> None:
    for number in range(3):
        failed_trace(ingesting, number)

    assert found(ingesting) == [("get_order", "LookupError: no order 2", 3)]


def test_an_exception_event_without_the_status_is_no_error(ingesting: Ingesting) -> None:
    """The program caught it: OpenTelemetry sets the status where it ended the span."""
    caught = span(1, attributes=TOOL)
    caught.events.append(exception("LookupError", "no order"))

    ingesting.send(traces([caught]))

    flags = ingesting.one("SELECT flags & 4096 FROM span")
    assert len(found(ingesting)) == (1 if flags else 0)


def test_sessions_made_of_logs_have_the_errors_of_their_steps(ingesting: Ingesting) -> None:
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))

    failed = ingesting.one("SELECT count(*) FROM span WHERE flags & 4096")
    assert ingesting.one("SELECT count(*) FROM error_step") == failed


def test_rows_are_made_again_by_a_rebuild_and_verify_holds_them(ingesting: Ingesting) -> None:
    for number in range(5):
        failed_trace(ingesting, number)
    before = ingesting.all(ROWS)

    rebuild(ingesting.folder)

    assert len(before) == 15
    assert ingesting.all(ROWS) == before
    with closing(open_for_maintenance(ingesting.folder)) as connection:
        connection.execute("UPDATE error_step SET counted = 1 - counted WHERE span = 1")
    assert any("error_step" in str(one) for one in verify_derived(ingesting.folder))


def test_steps_of_an_older_store_are_added_in_slices_until_none_is_left(
    ingesting: Ingesting,
) -> None:
    for number in range(8):
        failed_trace(ingesting, number)
    before = ingesting.all(ROWS)
    with closing(open_for_maintenance(ingesting.folder)) as connection:
        connection.execute("DELETE FROM error_step")
        connection.execute("INSERT INTO setting (name, value) VALUES ('error_steps_due', '')")
    stop = threading.Event()
    stop.set()

    with pytest.raises(StoppedError):
        derive_error_steps(ingesting.folder, pace=Pace(hold_s=0, stop=stop))
    part = ingesting.one("SELECT count(*) FROM error_step")
    assert due.is_due(ingesting.db)
    derive_error_steps(ingesting.folder, pace=Pace(hold_s=0, pause_s=0))

    assert 0 < part < len(before)
    assert ingesting.all(ROWS) == before
    assert not due.is_due(ingesting.db)
    assert derive_error_steps(ingesting.folder) == 0
