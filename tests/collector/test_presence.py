"""What processes say of themselves: that they live, and what they lost."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard import semconv
from hansard_collector.keepalives import BAD_DROPPED, BAD_KEEPALIVE, SilenceWatch, report_silence
from hansard_store.database.connections import open_for_maintenance
from hansard_store.ledger import list_drops
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import get_run, last_change, list_runs
from hansard_store.runs.status import SILENCE_NS
from hansard_store.steps.queries import get_step
from tests.collector.ingesting import TRACE, Ingesting, logs, pairs, span, traces

_S = 1_000_000_000
_OTHER = bytes(reversed(TRACE))


def of_process(request: Any, instance: str) -> Any:
    """Let a request come from a process of our SDK."""
    levels = (
        request.resource_spans
        if isinstance(request, ExportTraceServiceRequest)
        else request.resource_logs
    )
    levels[0].resource.attributes.extend(pairs({"service.instance.id": instance}))
    return request


def strings(texts: list[str]) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=text) for text in texts]))


def keepalive(
    instance: str, *trace_ids: bytes, last: bool = False, interval_ms: int = 10_000
) -> ExportLogsServiceRequest:
    told = {
        semconv.KEEPALIVE_TRACES: strings([one.hex() for one in trace_ids]),
        semconv.KEEPALIVE_INTERVAL_MS: interval_ms,
        semconv.KEEPALIVE_LAST: last,
    }
    return record(semconv.EVENT_KEEPALIVE, told, instance=instance)


def record(
    event: str, told: Mapping[str, Any], *, instance: str = "one"
) -> ExportLogsServiceRequest:
    request = logs([LogRecord(time_unix_nano=1, event_name=event, attributes=pairs(told))])
    found: ExportLogsServiceRequest = of_process(request, instance)
    return found


def open_span(number: int, instance: str, *, trace_id: bytes = TRACE, parent: int = 0) -> Any:
    request = traces([span(number, parent, duration_s=None, trace_id=trace_id)])
    return of_process(request, instance)


def drops(items: int, *, reason: str = "spool full", instance: str = "one") -> Any:
    told = {
        semconv.DROPPED_SIGNAL: "spans",
        semconv.DROPPED_REASON: reason,
        semconv.DROPPED_ITEMS: items,
    }
    return record(semconv.EVENT_DROPPED, told, instance=instance)


def run_status(ingesting: Ingesting, later_s: float, trace_id: bytes = TRACE) -> str:
    now_ns = time.time_ns() + round(later_s * _S)
    status = get_run(ingesting.db, trace_id.hex(), now_ns=now_ns).status
    listed = list_runs(ingesting.db, RunFilter(status=(status,)), now_ns=now_ns)
    assert trace_id.hex() in [item.run_id for item in listed.items]
    return status


def step_status(ingesting: Ingesting, number: int, later_s: float) -> str:
    now_ns = time.time_ns() + round(later_s * _S)
    return get_step(ingesting.db, f"{TRACE.hex()}-{number:016x}", now_ns=now_ns).status


def test_a_run_whose_process_stops_its_keepalives_has_no_end_after_half_a_minute(
    ingesting: Ingesting,
) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(keepalive("one", TRACE))

    assert [run_status(ingesting, later) for later in (0, 29, 46)] == ["open", "open", "no_end"]
    assert step_status(ingesting, 1, 29) == "open"
    assert step_status(ingesting, 1, 46) == "no_end"


def test_an_open_run_without_a_keepalive_is_waited_for_a_quarter_of_an_hour(
    ingesting: Ingesting,
) -> None:
    ingesting.send(open_span(1, "one"))

    assert run_status(ingesting, SILENCE_NS / _S - 60) == "open"
    assert run_status(ingesting, SILENCE_NS / _S + 60) == "no_end"


def test_a_process_that_says_goodbye_leaves_its_steps_without_an_end_at_once(
    ingesting: Ingesting,
) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(open_span(2, "two", parent=1))
    ingesting.send(keepalive("one", TRACE))
    ingesting.send(keepalive("two", TRACE))

    ingesting.send(keepalive("two", TRACE, last=True))

    assert (step_status(ingesting, 1, 0), step_status(ingesting, 2, 0)) == ("open", "no_end")
    assert run_status(ingesting, 0) == "open"
    ingesting.send(keepalive("one", TRACE, last=True))
    assert run_status(ingesting, 0) == "no_end"


def test_a_keepalive_after_silence_shows_the_run_as_open_again(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(keepalive("one", TRACE, last=True))
    before = last_change(ingesting.db)
    assert run_status(ingesting, 0) == "no_end"

    ingesting.send(keepalive("one", TRACE))

    assert run_status(ingesting, 0) == "open"
    assert last_change(ingesting.db) > before
    again = last_change(ingesting.db)
    ingesting.send(keepalive("one", TRACE))
    assert last_change(ingesting.db) == again


def test_a_span_of_another_back_end_keeps_its_run_open(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(traces([span(9, duration_s=None)], service="foreign"))

    ingesting.send(keepalive("one", TRACE, last=True))

    assert run_status(ingesting, 60) == "open"
    assert step_status(ingesting, 1, 60) == "no_end"


def test_keepalives_and_losses_are_counted_and_are_no_logs(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(keepalive("one", TRACE, _OTHER))
    ingesting.send(drops(3))

    ledger = ingesting.ledger("logs")
    assert (ledger["received"], ledger["stored"]) == (2, 2)
    assert ingesting.one("SELECT count(*) FROM log_record") == 0


@pytest.mark.covers("OT-12")
def test_a_loss_is_told_with_its_largest_count(ingesting: Ingesting) -> None:
    for items in (3, 12, 12, 5):
        ingesting.send(drops(items))
    ingesting.send(drops(1, instance="two"))
    ingesting.send(drops(7, reason="queue full"))

    told = {(one.service, one.signal, one.reason): one for one in list_drops(ingesting.db)}
    assert told["svc", "spans", "spool full"].items == 13
    assert told["svc", "spans", "spool full"].processes == 2
    assert told["svc", "spans", "queue full"].items == 7


@pytest.mark.parametrize(
    ("event", "told", "reason"),
    [
        (semconv.EVENT_KEEPALIVE, {}, BAD_KEEPALIVE),
        (semconv.EVENT_KEEPALIVE, {semconv.KEEPALIVE_TRACES: "text"}, BAD_KEEPALIVE),
        (semconv.EVENT_DROPPED, {}, BAD_DROPPED),
        (semconv.EVENT_DROPPED, {semconv.DROPPED_ITEMS: "many"}, BAD_DROPPED),
        (
            semconv.EVENT_DROPPED,
            {
                semconv.DROPPED_SIGNAL: "spans",
                semconv.DROPPED_REASON: "x",
                semconv.DROPPED_ITEMS: -1,
            },
            BAD_DROPPED,
        ),
    ],
)
def test_what_makes_no_sense_is_rejected_in_words(
    ingesting: Ingesting, event: str, told: Mapping[str, Any], reason: str
) -> None:
    result = ingesting.send(record(event, told))

    assert (result.rejected, reason in result.message) == (1, True)


def test_reports_of_an_older_sdk_are_read_under_the_names_of_now(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    keepalive = {"trace_ids": strings([TRACE.hex()]), "interval_ms": 10_000, "last": True}
    count = {"signal": "spans", "reason": "spool full", "items": 3}

    ingesting.send(
        record("hansard.pulse", {f"hansard.pulse.{key}": one for key, one in keepalive.items()})
    )
    ingesting.send(
        record("hansard.loss", {f"hansard.loss.{key}": one for key, one in count.items()})
    )

    assert run_status(ingesting, 1) == "no_end"
    assert [(one.reason, one.items) for one in list_drops(ingesting.db)] == [("spool full", 3)]
    assert ingesting.one("SELECT count(*) FROM log_record") == 0


def test_a_keepalive_that_names_nonsense_harms_nothing(ingesting: Ingesting) -> None:
    told = {
        semconv.KEEPALIVE_TRACES: strings(["", "xyz", "00", "f" * 64]),
        semconv.KEEPALIVE_INTERVAL_MS: 2**62,
    }

    assert ingesting.send(record(semconv.EVENT_KEEPALIVE, told)).rejected == 0


@pytest.mark.parametrize("retention", ["redacted_payloads", "metadata_only"])
def test_keepalives_and_losses_work_in_every_retention_mode(tmp_path: Any, retention: str) -> None:
    with contextlib.closing(Ingesting(tmp_path / "data", retention=retention)) as ingesting:
        ingesting.send(open_span(1, "one"))
        ingesting.send(keepalive("one", TRACE, last=True))
        ingesting.send(drops(3))

        assert run_status(ingesting, 0) == "no_end"
        assert [one.reason for one in list_drops(ingesting.db)] == ["spool full"]


@contextlib.contextmanager
def maintenance(ingesting: Ingesting) -> Iterator[Any]:
    with contextlib.closing(open_for_maintenance(ingesting.folder)) as connection:
        yield connection


def test_pages_are_told_once_of_a_run_that_fell_silent(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    ingesting.send(keepalive("one", TRACE))
    now_ns = time.time_ns()
    with maintenance(ingesting) as connection:
        told = [
            report_silence(connection, since_ns=now_ns + at * _S, now_ns=now_ns + (at + 20) * _S)
            for at in (0, 20, 40)
        ]

    assert told == [0, 1, 0]


def test_a_watch_tells_by_itself_and_stops(ingesting: Ingesting) -> None:
    ingesting.send(open_span(1, "one"))
    changed = threading.Event()

    with SilenceWatch(ingesting.folder, every_s=0.01).working():
        ingesting.send(keepalive("one", TRACE, interval_ms=150))
        before = last_change(ingesting.db)
        deadline_s = time.monotonic() + 60
        while last_change(ingesting.db) == before and time.monotonic() < deadline_s:
            changed.wait(0.01)

    assert last_change(ingesting.db) > before
    assert run_status(ingesting, 0) == "no_end"
