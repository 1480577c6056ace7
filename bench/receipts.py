"""What receipts add to the ingest of a compile, and what asking for them costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import apsw
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from bench.figures import Figure, below, percentile
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Encoding, IngestRequest, RequestSender, Signal
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.compilations.queries import ID_KEY
from hansard_store.compilations.receipts import ReceiptFilter, list_receipts
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader

_ITEMS = 200
_COMPILES = 300  # of each sort
_WARM = 30
_FILES = 3_000  # that compiles choose from
_NO_ID = "hansard.compilation.other"  # under it nobody finds a compilation
_START_NS = 1_780_000_000 * 10**9
_SENDER = RequestSender("127.0.0.1:4000", "bench/1.0", "grpc")
_ASKED = (
    ("one file, excluded by budget", ReceiptFilter(source="src/7.py", reason="over_budget")),
    ("all that policy cut out", ReceiptFilter(decision="redact")),
    ("a reason that nothing has", ReceiptFilter(reason="conflict_lost")),
)


def run() -> list[Figure]:
    """Store compiles with and without their receipts, in turn, and compare."""
    with tempfile.TemporaryDirectory() as path, _pipeline(DataFolder(Path(path))) as pipeline:
        bodies = [
            {key: _compile(number, key).SerializeToString() for key in (ID_KEY, _NO_ID)}
            for number in range(_COMPILES)
        ]
        took = _stored(pipeline, bodies)
        # What others do on the machine makes both longer: the fastest tenth is compared.
        with_receipts, without = (percentile(took[key], 0.1) for key in (ID_KEY, _NO_ID))
        added = [
            below(
                f"receipts of a {_ITEMS}-item compile, at ingest",
                (with_receipts - without) * 1000,
                "ms",
                bar=1,
                note=f"{with_receipts * 1000:.2f} against {without * 1000:.2f} ms without, "
                f"fastest tenth of {_COMPILES - _WARM}",
            )
        ]
        connection = open_reader(DataFolder(Path(path)))
        rows = int(connection.execute("SELECT count(*) FROM receipt").get)
        asked = [
            Figure(f"receipts: {what}", _asking(connection, wanted), "ms", note=f"of {rows:,}")
            for what, wanted in _ASKED
        ]
        connection.close()
        return added + asked


@contextmanager
def _pipeline(folder: DataFolder) -> Iterator[Pipeline]:
    folder.create()
    policy = RetentionPolicy("redacted_payloads", Redactor(folder.key()))
    pipeline = Pipeline(folder, policy)
    pipeline.start()
    try:
        yield pipeline
    finally:
        pipeline.close()


def _stored(
    pipeline: Pipeline, bodies: Sequence[Mapping[str, bytes]]
) -> Mapping[str, Sequence[float]]:
    """Return how long each request took until it was committed, by sort, the first ones not."""
    took: dict[str, list[float]] = {ID_KEY: [], _NO_ID: []}
    for number, pair in enumerate(bodies):
        # Whichever comes second finds warmer caches, so they take turns.
        for key in sorted(pair, reverse=bool(number % 2)):
            began = time.perf_counter()
            request = IngestRequest(
                Signal.TRACES, Encoding.PROTOBUF, pair[key], _SENDER, time.time_ns()
            )
            pipeline.submit(request).result(60)
            took[key].append(time.perf_counter() - began)
    return {key: found[_WARM:] for key, found in took.items()}


def _asking(connection: apsw.Connection, wanted: ReceiptFilter) -> float:
    return _median_ms(lambda: list_receipts(connection, wanted, limit=50))


def _median_ms(call: Callable[[], object]) -> float:
    found = []
    for _ in range(20):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return median(found) * 1000


def _compile(number: int, id_key: str) -> ExportTraceServiceRequest:
    """Return one compile span, as `CompileResult.columns()` has its receipts."""
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    sort = b"a" if id_key == ID_KEY else b"b"
    span.trace_id = number.to_bytes(15, "big") + sort
    span.span_id = number.to_bytes(7, "big") + sort
    span.name = "hansard.compile"
    span.start_time_unix_nano = _START_NS + number * 10**9
    span.end_time_unix_nano = span.start_time_unix_nano + 10**7
    attributes = {id_key: f"{number:032x}", **_columns(number)}
    span.attributes.extend(KeyValue(key=key, value=_any(one)) for key, one in attributes.items())
    return request


def _columns(number: int) -> dict[str, Any]:
    files = [(number * 7 + at) % _FILES for at in range(_ITEMS)]
    fits = [at % 4 == 0 for at in range(_ITEMS)]
    pairs = list(zip(files, fits, strict=True))
    columns: dict[str, Sequence[Any]] = {
        "ids": [f"src/{file}.py#body" for file in files],
        "kinds": [("file", "memory", "retrieval_doc")[file % 3] for file in files],
        "decisions": [_decision(at, fits[at]) for at in range(_ITEMS)],
        "passes": ["budget"] * _ITEMS,
        "reasons": ["within_budget" if fit else "over_budget" for fit in fits],
        "tokens_before": [100 + file % 900 for file in files],
        "tokens_after": [100 + file % 900 if fit else 0 for file, fit in pairs],
        "scores": [f"0.{file:04d}51237" for file in files],
        "sources": [f"file src/{file}.py" for file in files],
        "sections": ["task_context" if fit else "" for fit in fits],
        "payload_refs": [f"sha256:{file:064x}" for file in files],
        "rule_ids": [""] * _ITEMS,
        "final_refs": [""] * _ITEMS,
        "missed_tokens": [-1 if fit else file for file, fit in pairs],
        "missed_scores": [-1 if fit else file * 1000 for file, fit in pairs],
        "related": [""] * _ITEMS,
    }  # fmt: skip
    return {f"hansard.item.{name}": column for name, column in columns.items()} | {
        "hansard.item.total": _ITEMS
    }


def _decision(at: int, fits: bool) -> str:
    if not fits:
        return "exclude"
    return "redact" if at % 40 == 0 else "include"


def _any(value: Any) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_any(one) for one in value]))
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
