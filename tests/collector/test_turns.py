"""Requests take turns: nobody waits for the end of somebody else's request."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.pipeline.group_commit import Job
from hansard_collector.pipeline.requests import Encoding, IngestRequest, IngestResult, Signal
from hansard_collector.pipeline.validation import ItemLimits
from hansard_collector.receivers.export_response import ExportRefusal, RejectReason, submit
from hansard_store.database.connections import open_for_accountability
from hansard_store.database.transactions import transaction
from hansard_store.ingest.otlp_records import restore_span
from tests.collector.ingesting import SENDER, Ingesting, logs, metrics, pairs, span, traces

WAIT_S = 120


@pytest.fixture
def ingesting(tmp_path: Path) -> Iterator[Ingesting]:
    ingesting = Ingesting(tmp_path)
    yield ingesting
    ingesting.close()


def request(message: Any, *, signal: Signal = Signal.TRACES) -> IngestRequest:
    body = message.SerializeToString()
    return IngestRequest(signal, Encoding.PROTOBUF, body, SENDER, time.time_ns())


def in_order(ingesting: Ingesting, *requests: IngestRequest) -> list[int]:
    """Submit requests while the store is locked; the order in which they are answered."""
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")
    answered: list[int] = []
    futures: list[Future[IngestResult]] = []
    for number, one in enumerate(requests):
        future = ingesting.pipeline.submit(one)
        future.add_done_callback(lambda _, number=number: answered.append(number))
        futures.append(future)
    blocker.execute("ROLLBACK")
    for future in futures:
        assert future.result(WAIT_S).rejected == 0
    return answered


def chain(count: int) -> Any:
    return traces(span(number, max(number - 1, 1)) for number in range(2, count + 2))


def test_a_small_request_is_answered_before_a_long_one_that_came_first(
    ingesting: Ingesting,
) -> None:
    small = traces([span(900_000)])

    order = in_order(ingesting, request(chain(5_000)), request(small))

    assert order == [1, 0]
    assert ingesting.one("SELECT count(*) FROM span") == 5_001


def test_small_requests_are_answered_in_the_order_in_which_they_came(
    ingesting: Ingesting,
) -> None:
    requests = [request(traces([span(number)])) for number in range(1, 20)]

    assert in_order(ingesting, *requests) == list(range(19))


def test_a_metric_of_very_many_points_lets_others_through(ingesting: Ingesting) -> None:
    metric = Metric(name="points")
    for value in range(5_000):
        metric.gauge.data_points.add(as_int=value, time_unix_nano=value + 1)

    order = in_order(
        ingesting,
        request(metrics([metric]), signal=Signal.METRICS),
        request(traces([span(1)])),
    )

    assert order == [1, 0]
    assert ingesting.one("SELECT count(*) FROM metric_point") == 5_000


def test_a_large_request_is_opened_beside_the_small_ones(ingesting: Ingesting) -> None:
    huge = traces([span(1, attributes={"text": "word " * 2_000_000})])

    order = in_order(ingesting, request(huge), *(request(traces([span(n)])) for n in (2, 3)))

    assert order[-1] == 0
    assert ingesting.one("SELECT count(*) FROM span") == 3


def test_long_requests_take_turns_and_all_end(ingesting: Ingesting) -> None:
    first, second = (
        traces(span(n) for n in range(1, 2_000)),
        traces(span(n) for n in range(10_000, 11_000)),
    )

    order = in_order(ingesting, request(first), request(second))

    assert order == [1, 0]


def test_large_requests_are_finished_when_the_pipeline_closes(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path)
    huge = [traces([span(n, attributes={"text": "word " * 1_000_000})]) for n in (1, 2, 3)]
    futures = [ingesting.pipeline.submit(request(one)) for one in huge]

    ingesting.close()

    assert [future.result(0).accepted for future in futures] == [1, 1, 1]


def wides(count: int, *, attributes: int = 4_000) -> Any:
    return traces(
        span(number, attributes={f"k{key}": "v" for key in range(attributes)})
        for number in range(1, count + 1)
    )


def test_a_small_request_is_answered_before_items_that_take_long(ingesting: Ingesting) -> None:
    order = in_order(ingesting, request(wides(6)), request(traces([span(900)])))

    assert order == [1, 0]
    assert ingesting.one("SELECT count(*) FROM span") == 7


def test_items_before_between_and_after_those_that_take_long_are_all_stored(
    ingesting: Ingesting,
) -> None:
    mixed = traces(
        span(number, attributes={f"k{key}": "v" for key in range(1_000 if number % 3 == 0 else 3)})
        for number in range(1, 31)
    )
    mixed.resource_spans[0].scope_spans[0].spans[5].span_id = b"bad"

    result = ingesting.send(mixed)

    assert (result.accepted, result.rejected) == (29, 1)
    assert ingesting.one("SELECT count(*) FROM span") == 29
    assert ingesting.ledger() | {"stored": 29, "rejected": 1, "requests": 1} == ingesting.ledger()


def test_items_that_take_long_are_refused_like_others_and_the_next_ones_go_on(
    ingesting: Ingesting,
) -> None:
    ingesting.pipeline.set_patience(10)
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")
    refused = [ingesting.pipeline.submit(request(wides(count))) for count in (9, 3)]
    for future in refused:
        assert isinstance(future.exception(WAIT_S), StoreBusy)
    blocker.execute("ROLLBACK")

    assert ingesting.send(wides(9)).accepted == 9
    assert ingesting.pipeline.queue_state().bytes == 0


def test_the_rows_of_one_item_are_bounded_and_its_values_are_whole(ingesting: Ingesting) -> None:
    lists = {f"list.{key}": json.dumps([f"{key} {n}" for n in range(6_000)]) for key in range(8)}
    many = json.dumps([{"role": "user", "content": f"message {n}"} for n in range(9_000)])
    call = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": many}

    ingesting.send(traces([span(1, attributes=lists), span(2, attributes=call)]))

    assert ingesting.one("SELECT count(*) FROM content") < 20_000
    assert ingesting.one("SELECT count(*) FROM text WHERE field = 'message'") == 8_193
    rows = ingesting.all("SELECT record FROM span_record ORDER BY span")
    kept = [restore_span(ingesting.db, record) for (record,) in rows]
    told = [{pair.key: pair.value.string_value for pair in one.attributes} for one in kept]
    assert told == [lists, call]


class Body(bytes):
    """Counts those that are gone."""

    gone = 0

    def __del__(self) -> None:
        Body.gone += 1


def test_a_body_is_let_go_once_it_is_decoded(ingesting: Ingesting) -> None:
    before = Body.gone
    body = Body(chain(1_500).SerializeToString())
    blocker = open_for_accountability(ingesting.folder)
    blocker.execute("BEGIN IMMEDIATE")

    future = ingesting.pipeline.submit(
        IngestRequest(Signal.TRACES, Encoding.PROTOBUF, body, SENDER, time.time_ns())
    )
    del body
    until, pause = time.monotonic() + WAIT_S, threading.Event()
    while Body.gone == before and time.monotonic() < until:
        pause.wait(0.01)

    assert Body.gone == before + 1
    assert not future.done()
    blocker.execute("ROLLBACK")
    assert future.result(WAIT_S).accepted == 1_500


# ---- what is too large to be worked on beside others


def wide(count: int) -> Any:
    return span(1, attributes={f"k{number}": "v" for number in range(count)})


def with_events(count: int) -> Any:
    made = span(1)
    for _ in range(count):
        made.events.add(name="e")
    return made


def with_links(count: int) -> Any:
    made = span(1)
    for number in range(count):
        made.links.add(trace_id=bytes(range(16)), span_id=number.to_bytes(8, "big"))
    return made


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (wide, "a span with more than 16,384 attributes"),
        (with_events, "a span with more than 16,384 events"),
        (with_links, "a span with more than 16,384 links"),
    ],
)
def test_a_span_over_a_bound_is_rejected_singly_counted_and_never_cut(
    ingesting: Ingesting, make: Any, reason: str
) -> None:
    result = ingesting.send(traces([make(16_385), span(2)]))

    assert (result.accepted, result.rejected) == (1, 1)
    assert reason in result.message
    assert ingesting.one("SELECT count(*) FROM span") == 1
    assert ingesting.ledger()["rejected"] == 1
    assert ingesting.one("SELECT message FROM refusal") == reason


LONG = "n" * 65_537


def test_a_span_with_a_name_that_is_a_text_is_rejected_singly(ingesting: Ingesting) -> None:
    named, keyed, with_event, traced = span(1), span(2, attributes={LONG: 1}), span(3), span(4)
    named.name = LONG
    with_event.events.add(name=LONG)
    traced.trace_state = LONG
    as_long_as_it_may_be = span(5, attributes={LONG[1:]: LONG * 10})
    as_long_as_it_may_be.name = LONG[1:]

    result = ingesting.send(traces([named, keyed, with_event, traced, as_long_as_it_may_be]))

    assert (result.accepted, result.rejected) == (1, 4)
    assert "a span with a key of more than 65,536 bytes" in result.message
    assert ingesting.ledger()["rejected"] == 4
    assert ingesting.one("SELECT name FROM span") == LONG[1:]


@pytest.mark.parametrize("level", ["resource_spans", "scope_spans"])
def test_a_scope_or_schema_with_a_name_that_is_a_text_costs_its_own_items(
    ingesting: Ingesting, level: str
) -> None:
    sent = traces([span(1), span(2)])
    if level == "resource_spans":
        sent.resource_spans[0].schema_url = LONG
    else:
        sent.resource_spans[0].scope_spans[0].scope.name = LONG
    sent.MergeFrom(traces([span(3)]))

    result = ingesting.send(sent)

    assert (result.accepted, result.rejected) == (1, 2)


@pytest.mark.parametrize(
    ("text", "rejected"),
    [("a" * 34_000_000 + "\U0001f600", 1), ("\U0001f600" * 15_000_000, 0), ("a" * 60_000_000, 0)],
    ids=["wide by one", "wide", "ASCII"],
)
def test_a_text_that_takes_four_times_its_bytes_is_bounded(
    ingesting: Ingesting, text: str, rejected: int
) -> None:
    result = ingesting.send(traces([span(1, attributes={"a": text}), span(2)]))

    assert (result.accepted, result.rejected) == (2 - rejected, rejected)


def test_a_long_vector_is_stored_whole(ingesting: Ingesting) -> None:
    sent = span(1)
    vector = sent.attributes.add(key="vector").value.array_value.values
    for number in range(300_000):
        vector.add(double_value=number + 0.5)

    ingesting.send(traces([sent]))

    record: Any = ingesting.one("SELECT record FROM span_record")
    [attribute] = restore_span(ingesting.db, record).attributes
    values = attribute.value.array_value.values
    assert [value.double_value for value in values] == [n + 0.5 for n in range(300_000)]


@pytest.mark.parametrize("make", [wide, with_events, with_links])
def test_a_span_of_just_the_bound_is_stored_whole(ingesting: Ingesting, make: Any) -> None:
    assert ingesting.send(traces([make(16_384)])) == IngestResult(accepted=1)


def test_the_bound_is_a_setting(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path, limits=ItemLimits(attributes=20_000))

    result = ingesting.send(traces([wide(20_000)]))

    assert result == IngestResult(accepted=1)
    assert ingesting.one("SELECT count(*) FROM span") == 1
    ingesting.close()


@pytest.mark.parametrize("retention", ["full_payloads", "redacted_payloads", "metadata_only"])
def test_a_bound_holds_in_every_retention(tmp_path: Path, retention: str) -> None:
    ingesting = Ingesting(tmp_path, retention=retention)
    poison = wide(16_385)
    poison.attributes[0].value.string_value = "AKIAIOSFODNN7EXAMPLE"

    result = ingesting.send(traces([poison, span(2), span(3)]))

    assert (result.accepted, result.rejected) == (2, 1)
    ingesting.close()


def test_values_inside_of_values_are_bounded_too_but_not_lists_as_receipts_are(
    ingesting: Ingesting,
) -> None:
    receipts = span(1, attributes={f"column {n}": ["item"] * 50_000 for n in range(16)})
    nested = span(2)
    inner = nested.attributes.add(key="map").value.kvlist_value.values
    for number in range(140_000):
        inner.add(key=f"k{number}").value.string_value = "v"

    result = ingesting.send(traces([receipts, nested]))

    assert (result.accepted, result.rejected) == (1, 1)
    assert "values in lists" in result.message


def test_a_resource_over_a_bound_costs_its_own_items_alone(ingesting: Ingesting) -> None:
    sent = traces([span(1), span(2)])
    sent.resource_spans[0].resource.attributes.extend(
        pairs({f"k{number}": "v" for number in range(16_385)})
    )
    sent.MergeFrom(traces([span(3)]))

    result = ingesting.send(sent)

    assert (result.accepted, result.rejected) == (1, 2)
    assert "a resource with more than 16,384 attributes" in result.message


def test_a_log_record_over_a_bound_is_rejected_singly(ingesting: Ingesting) -> None:
    poison = LogRecord(attributes=pairs({f"k{number}": "v" for number in range(16_385)}))

    result = ingesting.send(logs([poison, LogRecord(event_name="e")]))

    assert (result.accepted, result.rejected) == (1, 1)
    assert "a log record with more than 16,384 attributes" in result.message


def test_a_list_of_very_many_messages_is_stored_whole_and_not_read_one_by_one(
    ingesting: Ingesting,
) -> None:
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": f"m{n}"}]} for n in range(40_000)
    ]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(sent)}

    result = ingesting.send(traces([span(1, attributes=chat)]))

    assert result == IngestResult(accepted=1)
    assert ingesting.one("SELECT count(*) FROM text") < 10
    assert "is stored whole" in str(ingesting.one("SELECT notes FROM span"))


# ---- what was refused is not held


def alive(kind: type) -> int:
    return sum(isinstance(one, kind) for one in gc.get_objects())


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Only what is no cycle goes away: the collector of a busy server comes late."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Full:
    """The pipeline's face with a full queue."""

    def submit(self, one: IngestRequest) -> Future[IngestResult]:
        raise StoreBusy("the ingest queue is full; send it again in a second")

    def refuse(self, one: object) -> None:
        raise AssertionError("not asked")


@pytest.mark.usefixtures("without_collector")
def test_a_request_that_finds_a_full_queue_is_not_held() -> None:
    before = alive(IngestRequest)

    refusals = [submit(Full(), request(traces([span(1)]))) for _ in range(10)]

    assert {one.reason for one in refusals if isinstance(one, ExportRefusal)} == {RejectReason.BUSY}
    assert alive(IngestRequest) == before


@pytest.mark.usefixtures("without_collector")
def test_requests_that_were_answered_are_not_held(tmp_path: Path) -> None:
    ingesting = Ingesting(tmp_path)
    before = alive(Job)
    broken = IngestRequest(Signal.TRACES, Encoding.PROTOBUF, b"\xff" * 50, SENDER, 1)

    for _ in range(5):
        with pytest.raises(MalformedRequest):
            ingesting.pipeline.submit(broken).result(WAIT_S)
        ingesting.send(traces([span(1)]))
    ingesting.close()

    assert alive(Job) == before


# ---- who else writes


def test_a_decision_is_written_between_two_transactions_of_ingest(ingesting: Ingesting) -> None:
    sent = [request(chain(512)) for _ in range(30)]
    futures = [ingesting.pipeline.submit(one) for one in sent]
    futures[0].result(WAIT_S)
    with closing(open_for_accountability(ingesting.folder)) as connection:
        for _ in range(5):
            before = sum(future.done() for future in futures)
            with transaction(connection):
                connection.execute("INSERT OR REPLACE INTO setting VALUES ('touched', 1)")
            after = sum(future.done() for future in futures)

            assert after - before <= 3
    for future in futures:
        assert future.result(WAIT_S).rejected == 0
