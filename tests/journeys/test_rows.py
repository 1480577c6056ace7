"""Rows of the requirements from outside: stock exporters in, pages and the API out."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import apsw
import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from tests.journeys.processes import (
    Serving,
    environment,
    export,
    grpc_exporter,
    http_exporter,
    serving,
    spans,
)
from tests.web.html import parse

RECORDINGS = Path(__file__).parents[1] / "fixtures" / "otlp"
BOTH_DOORS = pytest.mark.parametrize("door", ["http", "grpc"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data")) as running:
        yield running


def ask(server: Serving, path: str, **query: Any) -> Any:
    asked = f"?{urlencode(query, doseq=True)}" if query else ""
    return json.loads(server.get(f"{path}{asked}"))


def steps_of(server: Serving, run_id: str) -> list[Any]:
    found: list[Any] = ask(server, f"/v1/runs/{run_id}/steps", limit=500)["items"]
    return found


def exporter_of(server: Serving, door: str) -> SpanExporter:
    return http_exporter(server) if door == "http" else grpc_exporter(server)


# ---- CO-12: tracing of anything


def web_request() -> tuple[str, list[ReadableSpan]]:
    """Return what an instrumented web shop sends for one request; nothing of it knows of models."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("opentelemetry.instrumentation.asgi")
    asked = {"http.request.method": "GET", "http.route": "/cart", "http.response.status_code": 200}
    with tracer.start_as_current_span("GET /cart", kind=SpanKind.SERVER, attributes=asked) as root:
        with tracer.start_as_current_span("load cart"):
            statement = {"db.system.name": "postgresql", "db.query.text": "SELECT 1"}
            tracer.start_span("SELECT carts", kind=SpanKind.CLIENT, attributes=statement).end()
        tracer.start_span("render").end()
    return f"{root.get_span_context().trace_id:032x}", list(memory.get_finished_spans())


@BOTH_DOORS
@pytest.mark.covers("CO-12")
def test_a_trace_without_a_model_is_a_tree_on_its_page(server: Serving, door: str) -> None:
    run_id, batch = web_request()

    assert export(exporter_of(server, door), batch)

    page = parse(server.get(f"/runs/{run_id}").decode())
    rows = [row for row in page.all(role="row") if "aria-level" in row.attributes]
    assert [(row["aria-level"], row.one("a", class_="tg-title").text) for row in rows] == [
        ("1", "GET /cart"),
        ("2", "load cart"),
        ("3", "SELECT carts"),
        ("2", "render"),
    ]
    query = next(step for step in steps_of(server, run_id) if step["name"] == "SELECT carts")
    attributes = ask(server, f"/v1/steps/{query['step_id']}")["attributes"]
    assert attributes == {"db.system.name": "postgresql", "db.query.text": "SELECT 1"}
    assert "GET /cart" in server.get("/?kind=any").decode()


# ---- CO-13: older and rival dialects


def send_recording(server: Serving, name: str) -> dict[tuple[str, str], Any]:
    """Send what was recorded, byte for byte; return its spans by their ids."""
    sent = {}
    for path in sorted((RECORDINGS / name).glob("*.binpb")):
        signal = path.name.split(".")[1]
        headers = {"content-type": "application/x-protobuf"}
        request = urllib.request.Request(
            f"{server.http}/v1/{signal}", path.read_bytes(), headers, method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        if signal == "traces":
            message = ExportTraceServiceRequest.FromString(path.read_bytes())
            for resource in message.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        sent[span.trace_id.hex(), span.span_id.hex()] = span
    return sent


def exported(server: Serving, run_id: str) -> dict[tuple[str, str], Any]:
    message = ExportTraceServiceRequest.FromString(
        server.get(f"/v1/runs/{run_id}/export?format=otlp-proto")
    )
    return {
        (span.trace_id.hex(), span.span_id.hex()): span
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }


@pytest.mark.parametrize(
    ("recording", "mark"),
    [
        ("otel_openai_v2_old", "gen_ai.system"),
        ("oi_openai", "openinference.span.kind"),
        ("traceloop_legacy", "llm.request.type"),
        ("traceloop_openai", "traceloop.entity.name"),
    ],
)
@pytest.mark.covers("CO-13")
def test_a_rival_dialect_reads_like_our_own_and_leaves_as_it_came(
    server: Serving, recording: str, mark: str
) -> None:
    sent = send_recording(server, recording)
    assert any(pair.key == mark for span in sent.values() for pair in span.attributes)

    run_ids = {run_id for run_id, _ in sent}
    left: dict[tuple[str, str], Any] = {}
    for run_id in run_ids:
        left |= exported(server, run_id)
    assert left == sent
    calls = [s for run_id in run_ids for s in steps_of(server, run_id) if s["role"] == "llm"]
    answered = [
        ask(server, f"/v1/steps/{step['step_id']}") for step in calls if step["status"] != "error"
    ]
    assert answered
    for step in answered:
        call = step["call"]
        assert call["provider"] in ("openai", "anthropic")
        assert call["request_model"]
        assert call["tokens"]["input"]
        assert call["tokens"]["output"]
        assert call["input"][-1]["parts"]
        assert call["output"][0]["parts"]
        page = server.get(f"/steps/{step['step_id']}?all=1").decode()
        assert "What is the weather in Paris?" in page
        raw = ask(server, f"/v1/steps/{step['step_id']}/raw")
        span = sent[step["run_id"], step["span_id"]]
        assert keys_of_raw(raw) == [pair.key for pair in span.attributes]


def keys_of_raw(raw: Any) -> list[str]:
    (span,) = raw["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return [pair["key"] for pair in span["attributes"]]


# ---- CO-14: logs and metrics


@BOTH_DOORS
@pytest.mark.covers("CO-14")
def test_a_whole_application_is_accepted_and_its_log_events_stand_on_their_step(
    server: Serving, door: str, caplog: pytest.LogCaptureFixture
) -> None:
    if door == "http":
        log_exporter: Any = http_logs.OTLPLogExporter(endpoint=f"{server.http}/v1/logs")
        metric_exporter: Any = http_metrics.OTLPMetricExporter(endpoint=f"{server.http}/v1/metrics")
    else:
        log_exporter = grpc_logs.OTLPLogExporter(endpoint=server.grpc, insecure=True)
        metric_exporter = grpc_metrics.OTLPMetricExporter(endpoint=server.grpc, insecure=True)
    before = ask(server, "/v1/ledger")
    tracing = TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(BatchSpanProcessor(exporter_of(server, door)))
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(BatchLogRecordProcessor(log_exporter))
    metrics = MeterProvider(
        [PeriodicExportingMetricReader(metric_exporter)], shutdown_on_exit=False
    )

    with (
        caplog.at_level(logging.WARNING),
        tracing.get_tracer("app").start_as_current_span(
            "chat gpt-4.1", attributes={"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}
        ) as span,
    ):
        talk = logs.get_logger("app")
        talk.emit(event_name="gen_ai.user.message", body={"content": f"hello over {door}"})
        said = {"role": "assistant", "content": "hello back"}
        body = {"index": 0, "finish_reason": "stop", "message": said}
        talk.emit(event_name="gen_ai.choice", body=body)
        metrics.get_meter("app").create_counter("gen_ai.client.calls").add(1)
    for provider in (logs, metrics, tracing):
        provider.shutdown()

    assert [record.getMessage() for record in caplog.records] == []
    context = span.get_span_context()
    step = ask(server, f"/v1/steps/{context.trace_id:032x}-{context.span_id:016x}")
    assert [log["event_name"] for log in step["logs"]] == ["gen_ai.user.message", "gen_ai.choice"]
    assert step["call"]["input"][0]["parts"] == [{"type": "text", "text": f"hello over {door}"}]
    assert step["call"]["output"][0]["parts"] == [{"type": "text", "text": "hello back"}]
    after = ask(server, "/v1/ledger")
    for signal, count in (("logs", 2), ("metric_points", 1)):
        assert after[signal]["stored"] == before[signal]["stored"] + count
        assert after[signal]["rejected"] == before[signal]["rejected"]


# ---- ST-03, ST-04, ST-07: where it is kept


def put(server: Serving, ref: str, data: bytes) -> Any:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(
        f"{server.http}/v1/payloads/{ref}", data, headers, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.covers("ST-03")
def test_what_was_received_is_rows_that_any_sqlite_reads(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        run_id, batch = web_request()
        assert export(http_exporter(server), batch)
        assert server.stop() == 0

    with sqlite3.connect(f"file:{tmp_path / 'hansard.db'}?mode=ro", uri=True) as database:
        kept = database.execute(
            "SELECT name, start_ns, end_ns FROM span WHERE trace_id = ? ORDER BY id",
            (bytes.fromhex(run_id),),
        ).fetchall()
    database.close()
    assert kept == [(span.name, span.start_time, span.end_time) for span in batch]


@pytest.mark.covers("ST-04")
def test_a_payload_is_a_local_file_named_by_its_digest(server: Serving) -> None:
    lines = [json.dumps({"turn": turn, "text": "what was said " * 40}) for turn in range(400)]
    data = "\n".join(lines).encode()
    digest = sha256(data).hexdigest()

    assert put(server, f"sha256:{digest}", data)["stored"]
    assert put(server, f"sha256:{digest}", data)["stored"]

    files = [path for path in (server.data / "blobs").rglob("*") if path.is_file()]
    assert [path for path in files if digest in "".join(path.relative_to(server.data).parts)]
    assert [path.read_bytes() for path in files].count(data) == 1
    assert server.get(f"/v1/payloads/sha256:{digest}") == data
    with pytest.raises(HTTPError, match="4"):
        put(server, f"sha256:{digest}", data + b" ")


@pytest.mark.covers("ST-07")
def test_one_setting_chooses_where_everything_is_kept(tmp_path: Path) -> None:
    data = b"x" * 100_000
    for name in ("a", "b"):
        with serving(tmp_path / name) as server:
            assert export(grpc_exporter(server), spans(2))
            assert put(server, f"sha256:{sha256(data).hexdigest()}", data)["stored"]
            assert server.count_spans() == 2

    for name in ("a", "b"):
        made = {path.name for path in (tmp_path / name).iterdir()}
        assert {"hansard.db", "blobs", "key"} <= made
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
    assert "HANSARD_DATA" not in environment()


# ---- RC-14, RC-27: ids and questions


@pytest.mark.covers("RC-14")
def test_every_step_has_an_id_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for _ in range(3):
            batch = spans(8)
            assert export(http_exporter(server), batch)
            assert export(grpc_exporter(server), batch)  # sent again, it is the same step
        send_recording(server, "otel_manual")
        runs = ask(server, "/v1/runs", limit=500)["items"]
        ids = [step["step_id"] for run in runs for step in steps_of(server, run["run_id"])]
        assert server.stop() == 0

    assert len(ids) == len(set(ids)) == sum(run["span_count"] for run in runs) > 3 * 8
    database = apsw.Connection(str(tmp_path / "hansard.db"))
    columns = [row[1] for row in database.execute("PRAGMA table_info(span)") if row[1] != "id"]
    names = ", ".join(columns)
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        database.execute(f"INSERT INTO span ({names}) SELECT {names} FROM span LIMIT 1")
    database.close()


def model_call(agent: str, model: str, text: str, **more: Any) -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("agents")
    with tracer.start_as_current_span(
        f"invoke_agent {agent}",
        attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent},
    ):
        said = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
        tracer.start_span(
            f"chat {model}",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": model,
                "gen_ai.input.messages": json.dumps(said),
                **more,
            },
        ).end()
    return list(memory.get_finished_spans())


def id_of(batch: list[ReadableSpan]) -> str:
    context = batch[0].get_span_context()
    assert isinstance(context, trace.SpanContext)
    return f"{context.trace_id:032x}"


@pytest.mark.covers("RC-27")
def test_runs_are_asked_for_by_who_what_when_why_and_words(tmp_path: Path) -> None:
    kept = {"hansard.item.ids": ["item-7", "item-8"], "hansard.item.rule_ids": ["no-secrets"]}
    left = {"hansard.item.ids": ["item-9"], "hansard.item.reasons": ["over_budget", "stale"]}
    with serving(tmp_path) as server:
        first = model_call("planner", "gpt-4.1", "where is the kestrel", **kept)
        middle = datetime.now(UTC).isoformat()
        second = model_call("mender", "claude-sonnet-4-5", "the heron flew", **left)
        assert export(http_exporter(server), first)
        assert export(grpc_exporter(server), second)

        def found(**query: Any) -> list[str]:
            return [run["run_id"] for run in ask(server, "/v1/runs", **query)["items"]]

        one, other = id_of(first), id_of(second)
        assert found() == [other, one]
        assert ask(server, f"/v1/runs/{one[:12]}")["run_id"] == one
        assert found(agent="planner") == [one]
        assert found(model="claude-sonnet-4-5") == [other]
        assert found(since=middle) == [other]
        assert found(until=middle) == [one]
        assert found(q="kestrel") == [one]
        assert found(q="heron", agent="planner") == []
        assert found(attribute="hansard.item.ids:item-8") == [one]
        assert found(attribute="hansard.item.reasons:stale") == [other]
        assert found(attribute="hansard.item.rule_ids:no-secrets") == [one]
        hit = ask(server, "/v1/search", q="heron")["items"][0]
        assert hit["run_id"] == other
        assert "heron" in server.get("/search?q=heron").decode()
        with pytest.raises(HTTPError, match="400"):
            found(min_cost="a lot")


# ---- CO-15: reading while writing


@pytest.mark.covers("CO-15")
def test_pages_answer_while_spans_come_in(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        enough, sent, refused = threading.Event(), threading.Semaphore(0), []
        counts: list[int] = []

        def load(number: int) -> None:
            make = (http_exporter, grpc_exporter)[number % 2]
            while not enough.is_set():
                if export(make(server), spans(40)):
                    counts.append(40)
                    sent.release()
                else:
                    refused.append(number)

        senders = [threading.Thread(target=load, args=(number,)) for number in range(2)]
        for sender in senders:
            sender.start()
        try:
            stored = []
            for path in ("/", "/health", "/usage", "/search?q=child") * 3:
                assert sent.acquire(timeout=30)  # the load has moved on since the last page
                assert server.get(path).rstrip().endswith(b"</html>")
                stored.append(ask(server, "/v1/ledger")["spans"]["stored"])
        finally:
            enough.set()
            for sender in senders:
                sender.join(60)
        assert not refused
        assert stored == sorted(stored)
        assert stored[-1] > stored[0]
        assert server.count_spans() == sum(counts)
