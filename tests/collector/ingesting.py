"""The real pipeline on a real file, and makers of requests for it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rows import DERIVED_VERSION
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import (
    Encoding,
    IngestRequest,
    IngestResult,
    RequestSender,
    Signal,
)
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.maintenance import rebuild_state
from tests.store.empty import empty_store

FIXTURES = Path(__file__).parent.parent / "fixtures" / "otlp"
SENDER = RequestSender("127.0.0.1:4000", "test-exporter/1.0", "http")
TRACE = bytes(range(16))
LEDGER = (
    "received", "stored", "duplicate", "rejected", "opened", "deleted", "requests", "refused",
)  # fmt: skip
START_NS = 1_780_000_000 * 10**9

_SIGNALS: Mapping[type[Message], Signal] = {
    ExportTraceServiceRequest: Signal.TRACES,
    ExportLogsServiceRequest: Signal.LOGS,
    ExportMetricsServiceRequest: Signal.METRICS,
}


class Ingesting:
    """A running pipeline; everything sent is committed when `send` returns."""

    def __init__(self, path: Path, *, retention: str = "full_payloads", **options: Any) -> None:
        self.folder = empty_store(path)
        policy = RetentionPolicy(retention, Redactor(self.folder.key()))
        self.pipeline = Pipeline(self.folder, policy, **options)
        self.pipeline.start()
        self.db: apsw.Connection = open_reader(self.folder)

    def close(self) -> None:
        self.db.close()
        self.pipeline.close()

    def send(self, message: Message, *, sender: RequestSender = SENDER) -> IngestResult:
        return self.send_bytes(_SIGNALS[type(message)], message.SerializeToString(), sender=sender)

    def send_bytes(
        self, signal: Signal, body: bytes, *, sender: RequestSender = SENDER
    ) -> IngestResult:
        request = IngestRequest(signal, Encoding.PROTOBUF, body, sender, time.time_ns())
        return self.pipeline.submit(request).result(60)

    def ledger(self, signal: str = "traces") -> dict[str, int]:
        """Return the sums of a signal's counts."""
        columns = ", ".join(f"coalesce(sum({name}), 0)" for name in LEDGER)
        row: Any = self.db.execute(f"SELECT {columns} FROM ledger WHERE signal = ?", (signal,)).get
        return dict(zip(LEDGER, row, strict=True))

    def one(self, sql: str, *values: Any) -> Any:
        """Return the one row, or the one value, of a query."""
        return self.db.execute(sql, values).get

    def all(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of a query."""
        rows: list[Any] = self.db.execute(sql, values).fetchall()
        return rows


def fixture_requests() -> Iterator[tuple[Signal, bytes]]:
    """Yield every recorded request, in the order of its recording."""
    for path in sorted(FIXTURES.glob("*/*.binpb")):
        yield Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes()


def any_value(value: Any) -> AnyValue:
    if isinstance(value, AnyValue):
        return value
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(string_value=json.dumps(value))


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def span(
    number: int,
    parent: int = 0,
    *,
    name: str = "",
    trace_id: bytes = TRACE,
    start_s: float | None = None,
    duration_s: float | None = 1,
    kind: int = 1,
    status: int = 0,
    attributes: Mapping[str, Any] = {},
    **fields: Any,
) -> Span:
    """Return a span by number; `duration_s` None: it is still open."""
    start_ns = START_NS + round((number if start_s is None else start_s) * 1e9)
    made = Span(
        trace_id=trace_id,
        span_id=span_id(number),
        parent_span_id=span_id(parent) if parent else b"",
        name=name or f"span {number}",
        kind=kind,  # type: ignore[arg-type]  # enum by number
        start_time_unix_nano=start_ns,
        end_time_unix_nano=0 if duration_s is None else start_ns + round(duration_s * 1e9),
        attributes=pairs(attributes),
        **fields,
    )
    if status:
        made.status.code = status  # type: ignore[assignment]  # enum by number
    return made


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def traces(
    spans: Iterable[Span], *, service: str = "svc", scope: str = "scope"
) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    scoped = resource.scope_spans.add()
    scoped.scope.name = scope
    scoped.spans.extend(spans)
    return request


def logs(records: Iterable[LogRecord], *, service: str = "svc") -> ExportLogsServiceRequest:
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    resource.scope_logs.add().log_records.extend(records)
    return request


def metrics(found: Iterable[Metric], *, service: str = "svc") -> ExportMetricsServiceRequest:
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    resource.scope_metrics.add().metrics.extend(found)
    return request


def log(
    span_number: int | None = None,
    *,
    text: str = "something happened",
    event_name: str = "",
    attributes: Mapping[str, Any] = {},
    trace_id: bytes = TRACE,
) -> LogRecord:
    return LogRecord(
        time_unix_nano=START_NS,
        body=AnyValue(string_value=text),
        event_name=event_name,
        attributes=pairs(attributes),
        trace_id=b"" if span_number is None else trace_id,
        span_id=b"" if span_number is None else span_id(span_number),
    )


def conversation(turns: int) -> list[dict[str, str]]:
    """Return the messages of a conversation, a user's and an assistant's a turn."""
    return [
        {"role": role, "content": f"{role} says in turn {turn}: " + f"word{turn} " * 50}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def tables(connection: apsw.Connection, *, without: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return all rows of all tables; what is left out, is with the marks of its changes."""
    names: list[Any] = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    ).fetchall()
    found = {
        name: connection.execute(f'SELECT * FROM "{name}"').fetchall()
        for (name,) in names
        if name not in without and not name.startswith("sqlite_")
    }
    if "seal_due" in found:
        found["seal_due"] = [one for one in found["seal_due"] if one[1] not in without]
    return found


def is_rebuild_due(folder: DataFolder) -> bool:
    """Whether an older version derived something here, or a rebuild was cut off."""
    with closing(open_reader(folder)) as connection:
        cut_off = rebuild_state.read_progress(connection) is not None
        return cut_off or rebuild_state.is_older(connection, DERIVED_VERSION)
