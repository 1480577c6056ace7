"""The pipeline against a collector that comes and goes: what arrives, what waits, what is lost."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

from hansard import semconv
from hansard._config.settings import load_settings
from hansard._export.dropped import DropReason, load_losses
from hansard._export.otlp.batches import encode
from hansard._export.otlp.exporter import ExportResponse, HttpSender
from hansard._export.otlp.log_records import make_record
from hansard._export.processor import SpanPipeline
from hansard._export.spool import SpoolKind, files_of, process_folders, refused_files
from hansard._runtime import warnings as trouble
from hansard_compiler.redaction.redactor import Redactor
from tests.instrumentation.collectors import Collector, collecting
from tests.instrumentation.faulty import closed_port
from tests.instrumentation.programs import spooled

SECRET = "sk-proj-Zx81kQm2Vn7Rt5Yw9Lb4Hs6Jd3Fg0PcAqXeTuIoMzNvBk"  # made up
MakeProgram = Callable[..., "Program"]


class Program:
    """A tracer whose spans go through a pipeline of their own."""

    def __init__(self, data: Path, endpoint: str, **more: Any) -> None:
        given = {"data": data, "endpoint": endpoint, "export_delay_ms": 20, "timeout_s": 5.0}
        variables = {key: str(value) for key, value in more.items() if key.isupper()}
        arguments = {key: value for key, value in more.items() if not key.isupper()}
        self.data = data
        resource = Resource({"service.name": "shop", "service.instance.id": "one"})
        self.pipeline = SpanPipeline(
            load_settings(given | arguments, variables),
            resource,
            instance_id="one",
            redactor=Redactor(b"k" * 32),
        )
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(self.pipeline)
        self.tracer: Tracer = self.provider.get_tracer("shop")

    def spans(self, *names: str, **attributes: Any) -> None:
        for name in names:
            self.tracer.start_span(name, attributes=attributes).end()

    def flush(self) -> bool:
        return self.pipeline.force_flush(20_000)

    def close(self) -> None:
        self.pipeline.close(5_000)

    def lost(self) -> dict[tuple[str, str], int]:
        """Return what was lost and not told, from disk, after the program ended."""
        found: dict[tuple[str, str], int] = {}
        for path in process_folders(self.data / "spool"):
            losses = load_losses(path)
            found |= dict(losses.counts) if losses else {}
        return found


@pytest.fixture
def program(tmp_path: Path) -> Iterator[MakeProgram]:
    """Makes programs on one data folder; all of them end."""
    trouble._warned.clear()
    with contextlib.ExitStack() as ends:

        def make(endpoint: str, **more: Any) -> Program:
            made = Program(tmp_path, endpoint, **more)
            ends.callback(made.close)
            return made

        yield make


class Switch:
    """Decides whether a collector answers well."""

    def __init__(self, bad: str = "502") -> None:
        self.bad = bad
        self.is_well = False

    def __call__(self, path: str, body: bytes) -> str:
        return "200" if self.is_well else self.bad


@pytest.mark.covers("OT-12")
def test_what_waits_while_the_collector_is_away_arrives_in_its_order(
    program: MakeProgram, caplog: pytest.LogCaptureFixture
) -> None:
    switch = Switch("429")
    with collecting(switch) as collector, caplog.at_level(logging.WARNING, "hansard"):
        made = program(collector.url)
        names = [f"span {number}" for number in range(6)]
        for name in names:
            made.spans(name)
            made.flush()
        assert collector.names == []
        assert len(spooled(made.data)) >= 3
        assert caplog.text.count(f"nothing can be sent to {collector.url}") == 1

        switch.is_well = True
        made.pipeline._worker._contact.retry_s = 0  # it asked for 30 s
        made.spans("last")
        collector.wait_for(lambda: "last" in collector.names)

        assert collector.names == [*names, "last"]
        assert made.flush()
        assert spooled(made.data) == []
        assert "answers again" in caplog.text


def test_a_poison_span_costs_only_itself(program: MakeProgram) -> None:
    def decide(path: str, body: bytes) -> str:
        return "400" if path == "/v1/traces" and b"poison" in body else "200"

    with collecting(decide) as collector:
        made = program(collector.url, export_delay_ms=200)
        made.spans("a", "b", "poison", "c", "d")
        collector.wait_for(
            lambda: any(one.event_name == "hansard.dropped" for one in collector.logs)
        )

        assert sorted(collector.names) == ["a", "b", "c", "d"]
        [aside] = refused_files(made.data / "spool")
        assert (aside.items, b"poison" in aside.read()) == (1, True)
        told = {pair.key: pair.value for pair in collector.logs[0].attributes}
        assert told[semconv.DROPPED_ITEMS].int_value == 1
        assert told[semconv.DROPPED_REASON].string_value == "refused by the collector"


def test_a_batch_that_breaks_the_collector_is_not_sent_for_ever(program: MakeProgram) -> None:
    def decide(path: str, body: bytes) -> str:
        return "500" if b"poison" in body else "200"

    with collecting(decide) as collector:
        made = program(collector.url)
        made.spans("poison")
        made.flush()
        made.spans("after")
        collector.wait_for(lambda: "after" in collector.names)

        assert len(refused_files(made.data / "spool")) == 1


def test_a_torn_file_is_counted_and_the_rest_arrives(program: MakeProgram) -> None:
    first = program(f"http://127.0.0.1:{closed_port()}")
    for name in ("a", "b", "c"):
        first.spans(name)
        first.flush()
    first.close()
    [folder] = process_folders(first.data / "spool")
    files = files_of(folder)
    torn, empty = files[0], files[1]
    torn.path.write_bytes(torn.path.read_bytes()[:-7])
    empty.path.write_bytes(b"")

    with collecting() as collector:
        second = program(collector.url)
        collector.wait_for(
            lambda: any(one.event_name == "hansard.dropped" for one in collector.logs)
        )
        second.close()

        assert collector.names == ["c"]
        told = {pair.key: pair.value for pair in collector.logs[0].attributes}
        assert told[semconv.DROPPED_ITEMS].int_value == 2
        assert not folder.exists()


@pytest.mark.covers("OT-12")
def test_a_full_spool_drops_the_oldest_and_tells_how_many(program: MakeProgram) -> None:
    switch = Switch()
    with collecting(switch) as collector:
        made = program(collector.url, spool_max_bytes=4 * 4096)
        for number in range(10):
            made.spans(f"span {number}")
            made.flush()
        assert len(spooled(made.data)) == 4
        made.close()
        assert made.lost() == {("spans", "spool full"): 6}

        switch.is_well = True
        program(collector.url)
        collector.wait_for(
            lambda: any(one.event_name == "hansard.dropped" for one in collector.logs)
        )

        assert collector.names == [f"span {number}" for number in range(6, 10)]
        assert [one.body.string_value for one in collector.logs] == [
            "6 spans were lost: spool full"
        ]


@pytest.mark.covers("OT-11", "OT-12")
def test_a_spool_that_cannot_be_written_harms_nobody_and_is_told_once(
    program: MakeProgram, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spool").write_text("in the way")
    with caplog.at_level(logging.WARNING, "hansard"):
        made = program(f"http://127.0.0.1:{closed_port()}", OTEL_BSP_MAX_QUEUE_SIZE=50)
        for number in range(20):
            made.spans(*[f"span {number}"] * 10)
            made.pipeline.force_flush(10)
        made.close()

    assert caplog.text.count("cannot write") == 1
    lost = made.pipeline.spool.lost("spans")
    assert sum(lost.values()) == 200
    assert lost.keys() <= {"spool unwritable", "queue full"}


def test_a_program_faster_than_its_queue_is_never_held_up(program: MakeProgram) -> None:
    stop = threading.Event()

    def decide(_path: str, _body: bytes) -> str:
        stop.wait(10)
        return "200"

    with collecting(decide) as collector:
        made = program(collector.url, OTEL_BSP_MAX_QUEUE_SIZE=10, OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5)
        started_s = time.monotonic()
        made.spans(*["quick"] * 2000)
        took_s = time.monotonic() - started_s
        stop.set()
        made.flush()
        lost = made.pipeline.spool.lost("spans")["queue full"]

        assert took_s < 5
        assert lost > 0
        collector.wait_for(lambda: len(collector.names) + lost == 2000)


def test_two_programs_that_start_at_once_replay_once(program: MakeProgram) -> None:
    first = program(f"http://127.0.0.1:{closed_port()}")
    for number in range(8):
        first.spans(f"span {number}")
        first.flush()
    first.close()

    with collecting() as collector:
        starts = [threading.Thread(target=program, args=(collector.url,)) for _ in range(2)]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        collector.wait_for(lambda: len(collector.names) >= 8)

    assert collector.names == [f"span {number}" for number in range(8)]


def test_an_endpoint_without_logs_still_gets_its_spans(program: MakeProgram) -> None:
    with collecting(lambda path, _body: "404" if path == "/v1/logs" else "200") as collector:
        made = program(collector.url)
        made.pipeline.spool.lose("spans", DropReason.QUEUE_FULL, 1)
        made.spans("a")
        made.flush()
        made.spans("b")
        assert made.flush()
        collector.wait_for(lambda: "/v1/logs" in collector.requests)

        assert collector.names == ["a", "b"]
        assert made.pipeline.spool.lost("logs") == {}


def test_log_records_of_the_sdk_go_the_same_way(program: MakeProgram) -> None:
    switch = Switch()
    with collecting(switch) as collector:
        made = program(collector.url)
        record = make_record(made.pipeline._resource, "hansard.keepalive", b"\0\xff", {})
        made.pipeline.spool.add(SpoolKind.LOGS, encode(SpoolKind.LOGS, [record]), items=1)
        made.flush()
        assert [name.rpartition(".")[2] for name in spooled(made.data)] == ["logs"]

        switch.is_well = True
        collector.wait_for(lambda: collector.logs)

        assert collector.logs[0].event_name == "hansard.keepalive"
        assert collector.logs[0].body.bytes_value == b"\0\xff"


@pytest.mark.parametrize("is_hansard", [True, False])
def test_open_spans_are_sent_once_and_only_to_hansard(
    program: MakeProgram, is_hansard: bool
) -> None:
    with collecting(is_hansard=is_hansard) as collector:
        made = program(collector.url)
        with made.tracer.start_as_current_span("long", attributes={"key": SECRET}):
            made.spans("short")
            if is_hansard:
                collector.wait_for(lambda: [one for one in collector.spans if one.name == "long"])
                collector.wait_for(lambda: collector.logs)
            else:
                collector.wait_for(lambda: "/healthz" in collector.requests)
            made.flush()
        made.flush()

        long = [span for span in collector.spans if span.name == "long"]
        assert [bool(span.end_time_unix_nano) for span in long] == [False, True][not is_hansard :]
        keepalives = [one for one in collector.logs if one.event_name == "hansard.keepalive"]
        assert bool(keepalives) == is_hansard
        assert not any(SECRET.encode() in span.SerializeToString() for span in collector.spans)


@pytest.mark.covers("OT-17")
@pytest.mark.parametrize("retention", ["redacted_payloads", "metadata_only"])
def test_no_secret_reaches_the_disk_whoever_made_the_span(
    program: MakeProgram, retention: str
) -> None:
    made = program(f"http://127.0.0.1:{closed_port()}", retention=retention)
    with made.tracer.start_as_current_span("call", attributes={"prompt": f"use {SECRET}"}) as span:
        span.add_event("said", {"text": SECRET})
        span.record_exception(ValueError(SECRET))
    made.flush()
    made.close()

    kept = b"".join(
        path.read_bytes() for path in (made.data / "spool").rglob("*") if path.is_file()
    )
    assert b"call" in kept
    assert SECRET.encode() not in kept
    assert (b"use " in kept) == (retention == "redacted_payloads")


def test_a_span_with_what_has_no_form_costs_only_itself(program: MakeProgram) -> None:
    with collecting() as collector:
        made = program(collector.url, export_delay_ms=200)
        made.spans("a", "lone \ud800 surrogate", "b")
        collector.wait_for(lambda: len(collector.names) >= 2)
        made.flush()

        assert sorted(collector.names)[:2] == ["a", "b"]


def test_files_of_the_spool_are_the_owners_alone(program: MakeProgram) -> None:
    made = program(f"http://127.0.0.1:{closed_port()}")
    made.spans("a")
    made.flush()

    [folder] = process_folders(made.data / "spool")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_the_collector_is_reached_by_the_stock_exporter(program: MakeProgram) -> None:
    with collecting() as collector:
        made = program(collector.url, compression="gzip", headers={"x-team": "a"})
        made.spans("a")
        assert made.flush()
        _assert_named(collector)


def _assert_named(collector: Collector) -> None:
    assert collector.requests == ["/v1/traces"]
    assert collector.names == ["a"]


def test_an_error_of_the_sdk_itself_loses_no_batch(
    program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True])
    send = HttpSender.send

    def fail_once(self: HttpSender, kind: SpoolKind, items: Sequence[Any]) -> ExportResponse:
        if next(failures, False):
            raise RuntimeError("no")
        return send(self, kind, items)

    monkeypatch.setattr(HttpSender, "send", fail_once)
    with collecting() as collector:
        made = program(collector.url)
        made.spans("first")
        made.flush()
        made.spans("second")
        collector.wait_for(lambda: "second" in collector.names)

        assert collector.names == ["first", "second"]


def test_what_cannot_be_cleaned_is_counted_and_never_sent(
    program: MakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("no")

    with collecting() as collector:
        made = program(collector.url)
        monkeypatch.setattr("hansard_compiler.redaction.redactor.Redactor.scan_bytes", fail)
        made.spans("a", api_key=SECRET)
        made.flush()

        assert collector.names == []
        assert made.pipeline.spool.lost("spans")["could not be encoded"]
