"""The pipeline: what is acknowledged is stored, once, whole, and counted."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rederivation import read_span
from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.pipeline.requests import (
    Encoding,
    IngestRequest,
    IngestResult,
    RefusedRequest,
    RequestSender,
    Signal,
)
from hansard_store.database.connections import open_for_accountability
from hansard_store.ingest.otlp_records import restore_log, restore_metric
from hansard_store.ingest.stored_spans import read_resource, read_scope
from hansard_store.steps.flags import SpanFlag
from tests.collector.ingesting import (
    SENDER,
    START_NS,
    TRACE,
    Ingesting,
    conversation,
    fixture_requests,
    log,
    logs,
    metrics,
    pairs,
    span,
    span_id,
    tables,
    traces,
)
from tests.strategies import log_records, spans

COUNTED = ("ledger", "sender")
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 5,
}


# ---- what is stored


@pytest.mark.covers("CO-11")
@settings(max_examples=30)
@given(st.lists(spans(), max_size=4), st.lists(log_records(), max_size=3))
def test_any_request_is_stored_whole(sent: list[Span], records: list[Any]) -> None:
    with _fresh() as ingesting:
        result = ingesting.send(traces(sent))
        ingesting.send(logs(records))

        shown = {
            (stored.message.trace_id, stored.message.span_id, stored.side): stored
            for (number,) in ingesting.all("SELECT id FROM span")
            for stored in [read_span(ingesting.db, number)]
        }
        kept_logs = [
            restore_log(ingesting.db, record).SerializeToString()
            for (record,) in ingesting.all("SELECT record FROM log_record")
        ]

    assert result == IngestResult(accepted=len(sent))
    identities = {(one.trace_id, one.span_id, int(one.kind == 2)) for one in sent}
    assert set(shown) == identities
    everything = {one.SerializeToString() for one in sent}
    assert all(stored.message.SerializeToString() in everything for stored in shown.values())
    assert sorted(kept_logs) == sorted(one.SerializeToString() for one in records)


@contextmanager
def _fresh() -> Iterator[Ingesting]:
    """A pipeline in a folder of its own, for properties."""
    with tempfile.TemporaryDirectory() as folder:
        made = Ingesting(Path(folder))
        yield made
        made.close()


@pytest.mark.covers("CO-07")
def test_recorded_requests_are_stored_whole_and_twice_is_once(ingesting: Ingesting) -> None:
    recorded = list(fixture_requests())
    for signal, body in recorded:
        ingesting.send_bytes(signal, body)
    before = tables(ingesting.db, without=COUNTED)
    counts = ingesting.ledger()

    for signal, body in recorded:
        ingesting.send_bytes(signal, body)

    assert tables(ingesting.db, without=COUNTED) == before
    after = ingesting.ledger()
    assert after["duplicate"] == counts["duplicate"] + counts["received"]
    assert after["stored"] == counts["stored"] == len(before["span"])


def test_resource_scope_and_schema_urls_come_back_as_sent(ingesting: Ingesting) -> None:
    request = traces([span(1)])
    resource, scope = request.resource_spans[0], request.resource_spans[0].scope_spans[0]
    resource.schema_url, resource.resource.dropped_attributes_count = "https://r", 3
    scope.schema_url, scope.scope.version = "https://s", "1.2"
    scope.scope.attributes.extend(pairs({"k": True}))

    ingesting.send(request)

    stored = read_span(ingesting.db, 1)
    del scope.spans[:]
    assert stored.scope == scope
    del resource.scope_spans[:]
    assert stored.resource == resource
    assert read_resource(ingesting.db, 1) == stored.resource
    assert read_scope(ingesting.db, 1) == stored.scope


def test_every_point_of_a_metric_is_kept_whole(ingesting: Ingesting) -> None:
    metric = Metric(name="gen_ai.client.token.usage", unit="{token}", description="d")
    for value in (1.5, float("nan"), 7.0):
        metric.sum.data_points.add(as_double=value, time_unix_nano=START_NS)
    metric.sum.is_monotonic = True

    ingesting.send(metrics([metric]))
    ingesting.send(metrics([metric]))

    rows = ingesting.all("SELECT value, record FROM metric_point ORDER BY id")
    assert [row[0] for row in rows] == [1.5, None, 7.0]
    points = [restore_metric(ingesting.db, row[1]) for row in rows]
    assert [one.sum.is_monotonic for one in points] == [True] * 3
    assert [one.sum.data_points[0].as_double for one in points[::2]] == [1.5, 7.0]
    assert ingesting.ledger("metrics")["duplicate"] == 3


# ---- order of arrival


@pytest.mark.covers("CO-08")
def test_a_child_before_its_parent_is_stored_and_the_run_takes_the_parents_name(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traces([span(2, 1, name="child")]))
    assert ingesting.one("SELECT name FROM run") == "child"

    ingesting.send(traces([span(1, name="root")]))

    assert ingesting.one("SELECT name, span_count FROM run") == ("root", 2)


@pytest.mark.parametrize("log_first", [True, False])
def test_a_log_and_its_span_are_joined_in_either_order(
    ingesting: Ingesting, log_first: bool
) -> None:
    chat = traces([span(1, attributes=CHAT)])
    said = logs([log(1, event_name="gen_ai.user.message", text="what is the time?")])

    for request in (said, chat) if log_first else (chat, said):
        ingesting.send(request)

    flags = ingesting.one("SELECT flags FROM span")
    assert flags & SpanFlag.HAS_LOGS
    assert ingesting.one("SELECT count(*) FROM log_record") == 1


def test_a_richer_report_with_logs_keeps_what_the_logs_told(ingesting: Ingesting) -> None:
    ingesting.send(logs([log(1)]))
    ingesting.send(traces([span(1)]))

    ingesting.send(traces([span(1, attributes={"more": 1})]))

    assert ingesting.one("SELECT flags FROM span") & SpanFlag.HAS_LOGS
    assert ingesting.one("SELECT count(*) FROM span_duplicate") == 1


def test_a_start_record_is_replaced_by_its_end(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, duration_s=None)]))
    assert ingesting.one("SELECT status, open_count FROM run") == ("open", 1)

    ingesting.send(traces([span(1, attributes={"more": 1})]))

    assert ingesting.one("SELECT status, open_count, span_count FROM run") == ("ok", 0, 1)
    assert ingesting.one("SELECT count(*) FROM span_duplicate") == 0
    assert ingesting.ledger()["opened"] == 1


def test_a_start_record_that_comes_late_changes_nothing(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1)]))
    before = tables(ingesting.db, without=COUNTED)

    ingesting.send(traces([span(1, duration_s=None)]))

    assert tables(ingesting.db, without=COUNTED) == before
    assert ingesting.ledger()["opened"] == 1


def test_of_two_reports_the_richer_is_shown_and_the_other_kept_in_either_order(
    tmp_path: Path,
) -> None:
    poor, rich = span(1), span(1, attributes={"more": 1})
    found = []
    for name, order in (("a", (poor, rich)), ("b", (rich, poor)), ("c", (poor, rich, poor))):
        ingesting = Ingesting(tmp_path / name)
        for one in order:
            ingesting.send(traces([one]))
        shown = read_span(ingesting.db, 1).message
        found.append((shown == rich, ingesting.one("SELECT count(*) FROM span_duplicate")))
        ingesting.close()

    assert found == [(True, 1)] * 3


def test_a_client_and_a_server_span_may_share_their_id(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1, kind=3), span(1, kind=2)]))

    assert ingesting.all("SELECT side FROM span ORDER BY side") == [(0,), (1,)]


def test_cycles_and_self_parents_are_stored_like_any_span(ingesting: Ingesting) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 9}
    cycle = [span(2, 3, attributes=agent), span(3, 4, attributes=CHAT), span(4, 2)]

    result = ingesting.send(traces([span(1, 1, attributes=CHAT), *cycle]))

    assert result == IngestResult(accepted=4)
    assert ingesting.one("SELECT span_count, model_calls, tokens_input FROM run") == (4, 2, 20)


# ---- what is refused, and counted


@pytest.mark.covers("CO-09", "CO-16")
def test_bad_items_are_refused_singly_and_the_sender_is_told_why(ingesting: Ingesting) -> None:
    bad = [
        span(1, trace_id=b"short"),
        span(2, trace_id=bytes(16)),
        Span(trace_id=TRACE, span_id=b"short"),
        Span(trace_id=TRACE, span_id=bytes(8)),
    ]

    result = ingesting.send(traces([*bad, span(9)]))

    assert (result.accepted, result.rejected) == (1, 4)
    assert "a trace id has 16 bytes, not 5" in result.message
    assert "a span id is all zero" in result.message
    ledger = ingesting.ledger()
    assert (ledger["received"], ledger["stored"], ledger["rejected"]) == (5, 1, 4)
    told = {row[0] for row in ingesting.all("SELECT message FROM refusal")}
    assert len(told) == 4


def test_an_undecodable_request_is_refused_whole_and_counted(ingesting: Ingesting) -> None:
    with pytest.raises(MalformedRequest):
        ingesting.send_bytes(Signal.TRACES, b"\xff\xff")
    ingesting.send(traces([span(1)]))

    assert ingesting.ledger()["refused"] == 1
    assert ingesting.one("SELECT code, items, bytes FROM refusal") == ("malformed", None, 2)


def test_what_receivers_refuse_is_counted_however_much_it_is(ingesting: Ingesting) -> None:
    refused = RefusedRequest("traces", SENDER, "too_large", "larger than allowed", 9, START_NS)
    for _ in range(1000):
        ingesting.pipeline.refuse(refused)
    ingesting.send(traces([span(1)]))

    assert ingesting.ledger()["refused"] == 1000
    assert ingesting.ledger()["requests"] == 1001


def test_the_ledger_adds_up_whatever_was_sent(ingesting: Ingesting) -> None:
    for signal, body in fixture_requests():
        ingesting.send_bytes(signal, body)
    ingesting.send(traces([span(1, duration_s=None), span(1), span(1, trace_id=b"")]))
    ingesting.send(logs([log(1), log(1), log(None)]))

    for name in ("traces", "logs", "metrics"):
        count = ingesting.ledger(name)
        outcomes = ("stored", "duplicate", "rejected", "opened", "deleted")
        assert count["received"] == sum(count[outcome] for outcome in outcomes)
    assert ingesting.one("SELECT count(*) FROM log_record") == ingesting.ledger("logs")["stored"]
    assert (
        ingesting.one("SELECT count(*) FROM metric_point") == ingesting.ledger("metrics")["stored"]
    )


def test_senders_are_told_apart_by_service_transport_and_exporter(ingesting: Ingesting) -> None:
    ingesting.send(traces([span(1)], service="a"))
    ingesting.send(traces([span(2)], service="b"))
    ingesting.send(
        traces([span(3)], service="b"), sender=RequestSender("unix", "test-exporter/1.0", "grpc")
    )

    assert ingesting.all("SELECT service, transport, address FROM sender ORDER BY id") == [
        ("a", "http", "127.0.0.1:4000"),
        ("b", "http", "127.0.0.1:4000"),
        ("b", "grpc", "unix"),
    ]


@pytest.mark.parametrize(
    "tokens", [2**63 - 1, -(2**63), 1e300, float("inf"), "99999999999999999999999"]
)
def test_absurd_numbers_cost_a_span_its_number_and_nothing_else(
    ingesting: Ingesting, tokens: Any
) -> None:
    chat = CHAT | {"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.cost": tokens}

    results = [ingesting.send(traces([span(number, attributes=chat)])) for number in (1, 2, 3)]
    ingesting.send(traces([span(4, attributes=CHAT)]))

    assert results == [IngestResult(accepted=1)] * 3
    assert ingesting.one("SELECT span_count FROM run") == 4


# ---- groups, the queue, and the end


def test_a_request_larger_than_a_transaction_is_acknowledged_after_its_last_part(
    ingesting: Ingesting,
) -> None:
    result = ingesting.send(traces(span(number, 1) for number in range(2, 2000)))

    assert result == IngestResult(accepted=1998)
    assert ingesting.one("SELECT count(*) FROM span") == 1998


@pytest.mark.covers("CO-10")
def test_a_full_queue_refuses_at_once_and_takes_one_request_of_any_size(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path, queue_bytes=10)
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")

    first = ingesting.pipeline.submit(_request(1))
    _wait(first.running)
    second = ingesting.pipeline.submit(_request(2))
    with pytest.raises(StoreBusy, match="queue is full"):
        ingesting.pipeline.submit(_request(3))
    state = ingesting.pipeline.queue_state()
    blocker.execute("ROLLBACK")

    assert state.requests == 1
    assert state.bytes > state.max_bytes
    assert [future.result(30).accepted for future in (first, second)] == [1, 1]
    ingesting.close()


def test_closing_finishes_what_was_accepted_and_takes_nothing_more(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path)
    future = ingesting.pipeline.submit(_request(1))

    ingesting.close()

    assert future.result(0) == IngestResult(accepted=1)
    with pytest.raises(StoreBusy, match="stopping"):
        ingesting.pipeline.submit(_request(2))
    wal = ingesting.folder.database.with_name("hansard.db-wal")
    assert not wal.exists()
    assert wal.with_name("hansard.db").stat().st_size > 0


def test_a_request_that_nobody_waits_for_any_more_is_left_to_its_sender(
    ingesting: Ingesting,
) -> None:
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")
    first = ingesting.pipeline.submit(_request(1))
    _wait(first.running)
    second, third = ingesting.pipeline.submit(_request(2)), ingesting.pipeline.submit(_request(3))
    assert second.cancel()
    blocker.execute("ROLLBACK")

    assert third.result(30) == IngestResult(accepted=1)
    assert ingesting.one("SELECT count(*) FROM span WHERE span_id = ?", span_id(2)) == 0


def _request(number: int) -> IngestRequest:
    body = traces([span(number)]).SerializeToString()
    return IngestRequest(Signal.TRACES, Encoding.PROTOBUF, body, SENDER, time.time_ns())


def _wait(condition: Any) -> None:
    """Wait for what another thread is about to do."""
    pause = threading.Event()
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        pause.wait(0.001)


def test_two_pipelines_may_write_to_one_store(tmp_path: Path) -> None:
    one, other = Ingesting(tmp_path), Ingesting(tmp_path)
    for number in range(1, 40):
        sender = one if number % 2 else other
        sender.send(traces([span(number, 1, attributes={"input.value": conversation(number)})]))

    assert one.one("SELECT span_count FROM run") == 39
    assert one.one("SELECT count(*) FROM span") == 39
    read = [read_span(one.db, number).message.attributes[0] for number in range(1, 40)]
    assert [pair.value.string_value.count('"role"') for pair in read] == [
        2 * number for number in range(1, 40)
    ]
    one.close()
    other.close()


# ---- growth


def _as_array(turns: int) -> Span:
    return span(turns, attributes=CHAT | {"gen_ai.input.messages": conversation(turns)})


def _as_flat_keys(turns: int) -> Span:
    flat: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for at, message in enumerate(conversation(turns)):
        flat[f"llm.input_messages.{at}.message.role"] = message["role"]
        flat[f"llm.input_messages.{at}.message.content"] = message["content"]
    return span(turns, attributes=flat)


def _as_events(turns: int) -> Span:
    made = span(turns, attributes=CHAT)
    for at, message in enumerate(conversation(turns)):
        event = made.events.add(
            name=f"gen_ai.{message['role']}.message", time_unix_nano=START_NS + turns * 1000 + at
        )
        event.attributes.extend(pairs({"content": message["content"]}))
    return made


@pytest.mark.covers("RC-28")
@pytest.mark.parametrize("shape", [_as_array, _as_flat_keys, _as_events])
def test_a_conversation_of_a_hundred_turns_is_stored_once(tmp_path: Path, shape: Any) -> None:
    sizes = []
    for turns in (0, 50, 100):
        ingesting = Ingesting(tmp_path / str(turns))
        for turn in range(1, turns + 1):
            ingesting.send(traces([shape(turn)]))
        pages = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, {}, {}"
        sizes.append(ingesting.one(pages.format("pragma_freelist_count", "pragma_page_size")))
        ingesting.close()
    empty, half, whole = sizes
    sent = sum(shape(turn).ByteSize() for turn in range(1, 101))

    # Twice the turns are twice the text and four times the bytes sent.
    assert whole - empty < 2.8 * (half - empty)
    assert whole - empty < sent / 5
