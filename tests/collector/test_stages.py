"""The stages of ingest: items, what identifies and what rejects them, and where stages run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from hansard_collector.payloads import PayloadStage
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.preparation import (
    PreparedLog,
    PreparedPoint,
    PreparedSpan,
    Preparer,
)
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Encoding, IngestRequest, Signal
from hansard_collector.pipeline.stages import STAGES, Batch, Worker, open_batch, run_stages, scan
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.data_folder import DataFolder
from tests.collector.ingesting import (
    SENDER,
    START_NS,
    conversation,
    log,
    logs,
    metrics,
    pairs,
    span,
    traces,
)
from tests.store.empty import empty_store

KEY = b"k" * 32
# A made-up key in the form that a rule of redaction finds.
SECRET = "sk-ant-api03-" + "A1b2C3d4" * 11 + "x" * 5 + "AA"


def request_of(message: Any) -> IngestRequest:
    signal = {"T": Signal.TRACES, "L": Signal.LOGS, "M": Signal.METRICS}[
        type(message).__name__.removeprefix("Export")[0]
    ]
    return IngestRequest(signal, Encoding.PROTOBUF, message.SerializeToString(), SENDER, START_NS)


@contextmanager
def worker(retention: str = "full_payloads") -> Iterator[Worker]:
    policy = RetentionPolicy(retention, Redactor(KEY))
    with TemporaryDirectory() as data, ThreadPoolExecutor(1) as helpers:
        folder = DataFolder(Path(data))
        folder.create()
        yield Worker(policy, Preparer(key=KEY), PayloadStage(folder, policy.mode), helpers)


def taken(message: Any, *, retention: str = "full_payloads") -> Batch:
    with worker(retention) as made:
        return run_stages(Batch(request_of(message), made))


def spans_of(request: Batch) -> list[PreparedSpan]:
    return [item for item in request.prepared if isinstance(item, PreparedSpan)]


def test_items_come_with_the_resource_and_scope_they_stand_under() -> None:
    request = traces([span(1)], service="a")
    request.MergeFrom(traces([span(2), span(3)], service="b", scope="other"))

    found = spans_of(taken(request))

    assert [(one.envelope.service_name, one.envelope.scope_name) for one in found] == [
        ("a", "scope"),
        ("b", "other"),
        ("b", "other"),
    ]


def test_identity_is_judged_before_redaction() -> None:
    plain = spans_of(taken(traces([span(1, attributes={"k": SECRET})])))
    redacted = spans_of(
        taken(traces([span(1, attributes={"k": SECRET})]), retention="redacted_payloads")
    )
    other = spans_of(
        taken(traces([span(1, attributes={"k": SECRET[:-3]})]), retention="redacted_payloads")
    )

    assert SECRET not in redacted[0].message.attributes[0].value.string_value
    assert redacted[0].fields["mac"] == plain[0].fields["mac"] != other[0].fields["mac"]
    assert [one.count for one in redacted[0].removed] == [1]


@pytest.mark.parametrize("filler", ["", "word " * 20_000], ids=["small", "large"])
def test_secrets_are_found_at_once_and_by_a_helper_alike(filler: str) -> None:
    request = traces([span(1, attributes={"k": f"{filler}{SECRET}"}), span(2)])

    found = spans_of(taken(request, retention="redacted_payloads"))

    assert SECRET not in found[0].message.attributes[0].value.string_value
    assert [len(one.removed) for one in found] == [1, 0]


def test_equal_log_records_of_one_request_are_told_apart_and_those_of_two_services_differ() -> None:
    request = logs([log(1), log(1), log(2)], service="a")
    request.MergeFrom(logs([log(1)], service="b"))

    found = [item.fields for item in taken(request).prepared if isinstance(item, PreparedLog)]

    assert [one["ordinal"] for one in found] == [0, 1, 0, 0]
    assert found[0]["mac"] == found[1]["mac"]
    assert len({one["mac"] for one in found}) == 3


def test_a_log_with_invalid_ids_is_about_no_trace() -> None:
    records = [
        LogRecord(trace_id=b"bad", span_id=b"12345678"),
        LogRecord(trace_id=bytes(range(16)), span_id=b"bad"),
        LogRecord(time_unix_nano=2**64 - 1),
    ]

    found = [item.fields for item in taken(logs(records)).prepared if isinstance(item, PreparedLog)]

    assert [(one["trace_id"], one["span_id"]) for one in found] == [
        (None, None),
        (bytes(range(16)), None),
        (None, None),
    ]
    assert [one["time_ns"] for one in found] == [START_NS] * 3


def test_a_metric_is_split_into_its_points_and_one_without_points_is_kept() -> None:
    three = Metric(name="three")
    for value in (1, 2, 3):
        three.gauge.data_points.add(as_int=value)

    found = [
        item
        for item in taken(metrics([three, Metric(name="none")])).prepared
        if isinstance(item, PreparedPoint)
    ]

    assert [(one.fields["name"], one.fields["value"]) for one in found] == [
        ("three", 1.0),
        ("three", 2.0),
        ("three", 3.0),
        ("none", None),
    ]
    assert [len(one.message.gauge.data_points) for one in found] == [1, 1, 1, 0]


def test_messages_are_those_of_the_attribute_and_not_of_its_namesake_in_an_event() -> None:
    asked = conversation(3)
    made = span(1, attributes={"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked})
    namesake = json.dumps(asked).replace("turn 1", "turn one")
    made.events.add(name="e").attributes.extend(pairs({"gen_ai.input.messages": namesake}))

    (prepared,) = spans_of(taken(traces([made])))

    assert prepared.projection.call is not None
    found = [message.text for message in prepared.projection.call.input]
    assert found == [message["content"] for message in asked]


def test_the_message_to_a_sender_stays_short() -> None:
    bad = [span(number, trace_id=bytes(number % 9)) for number in range(1, 500)]

    request = taken(traces(bad))

    assert not any(request.prepared)
    assert request.rejected == 499
    assert len(request.rejection()) <= 1000


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_request_has_no_items(count: int) -> None:
    request = taken(traces([]) if count else type(traces([]))())

    assert (any(request.prepared), request.rejected, request.rejection()) == (False, 0, "")


class Watched(Redactor):
    """A redactor that records which threads look for secrets."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.threads: list[str] = []

    def scan_bytes(self, data: bytes) -> Any:
        self.threads.append(threading.current_thread().name)
        return super().scan_bytes(data)


def test_the_scan_runs_on_the_thread_that_the_list_names(tmp_path: Path) -> None:
    folder = empty_store(tmp_path)
    redactor = Watched(folder.key())
    large = traces([span(1, attributes={"text": "word " * 20_000})])
    request = IngestRequest(
        Signal.TRACES, Encoding.PROTOBUF, large.SerializeToString(), SENDER, START_NS
    )

    with closing(Pipeline(folder, RetentionPolicy("redacted_payloads", redactor))) as pipeline:
        pipeline.start()
        assert pipeline.submit(request).result(60).accepted == 1

    named = {stage.run: stage.thread for stage in STAGES}[scan]
    assert [name.startswith(named) for name in redactor.threads] == [True]


def test_a_batch_is_opened_up_to_its_scan_and_the_other_stages_go_on_from_there() -> None:
    with worker() as made:
        batch = open_batch(Batch(request_of(traces([span(1)])), made))
        is_decoded, has_items = batch.message is not None, any(batch.prepared)
        run_stages(batch)

    assert (is_decoded, has_items) == (True, False)
    assert batch.request.body == b""
    assert len(spans_of(batch)) == 1
