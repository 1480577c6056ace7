"""What this machine can do at most with one Python thread: parse, one row a span, commit.

Nothing is derived, searched or redacted here. It says how much of a figure is the machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import apsw
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.load import Batch

_SCHEMA = "CREATE TABLE span (trace_id BLOB, span_id BLOB, name TEXT, record BLOB)"
_INSERT = "INSERT INTO span VALUES (?, ?, ?, ?)"


def spans_per_second(batches: Sequence[Batch], folder: Path) -> float:
    """Return how many of these spans a second go into a bare table, a transaction a request."""
    connection = apsw.Connection(str(folder / "ceiling.db"))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "NORMAL")
    connection.execute(_SCHEMA)
    began = time.perf_counter()
    for batch in batches:
        request = ExportTraceServiceRequest.FromString(batch.body)
        rows = [
            (span.trace_id, span.span_id, span.name, span.SerializeToString())
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, rows)
        connection.execute("COMMIT")
    seconds = time.perf_counter() - began
    connection.close()
    return sum(batch.spans for batch in batches) / seconds
