"""Stored records as OTLP again: what came in, after redaction, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import apsw
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, TracesData

from hansard_store.ingest.otlp_records import restore_log, restore_metric, restore_span
from hansard_store.ingest.stored_spans import read_resource, read_scope
from hansard_store.maintenance.export import StoredRecord, stored_records


class Reexport:
    """Puts records back into their envelopes; keeps the envelopes it has read."""

    def __init__(self) -> None:
        self._resources: dict[int, ResourceSpans] = {}
        self._scopes: dict[int, ScopeSpans] = {}

    def spans(self, connection: apsw.Connection, spans: Sequence[int]) -> TracesData:
        """Return some spans by their numbers; neighbours of one envelope share it."""
        data = TracesData()
        for resource, in_resource in _by_resource(connection, "traces", spans):
            envelope = data.resource_spans.add()
            envelope.CopyFrom(self._resource(connection, resource))
            for scope, in_scope in groupby(in_resource, _scope_of):
                inner = envelope.scope_spans.add()
                inner.CopyFrom(self._scope(connection, scope))
                inner.spans.extend(restore_span(connection, one.record) for one in in_scope)
        return data

    def logs(self, connection: apsw.Connection, logs: Sequence[int]) -> LogsData:
        """Return some log records by their numbers."""
        data = LogsData()
        for resource, in_resource in _by_resource(connection, "logs", logs):
            envelope = data.resource_logs.add()
            envelope.CopyFrom(_as_logs(self._resource(connection, resource)))
            for scope, in_scope in groupby(in_resource, _scope_of):
                inner = envelope.scope_logs.add()
                inner.CopyFrom(_as_scope_logs(self._scope(connection, scope)))
                inner.log_records.extend(restore_log(connection, one.record) for one in in_scope)
        return data

    def points(self, connection: apsw.Connection, points: Sequence[int]) -> MetricsData:
        """Return some metric points by their numbers, each in a metric of its own."""
        data = MetricsData()
        for resource, in_resource in _by_resource(connection, "metrics", points):
            envelope = data.resource_metrics.add()
            envelope.MergeFromString(self._resource(connection, resource).SerializeToString())
            for scope, in_scope in groupby(in_resource, _scope_of):
                inner = envelope.scope_metrics.add()
                inner.MergeFromString(self._scope(connection, scope).SerializeToString())
                inner.metrics.extend(restore_metric(connection, one.record) for one in in_scope)
        return data

    def _resource(self, connection: apsw.Connection, number: int) -> ResourceSpans:
        if number not in self._resources:
            self._resources[number] = read_resource(connection, number)
        return self._resources[number]

    def _scope(self, connection: apsw.Connection, number: int) -> ScopeSpans:
        if number not in self._scopes:
            self._scopes[number] = read_scope(connection, number)
        return self._scopes[number]


def _by_resource(
    connection: apsw.Connection, signal: str, items: Sequence[int]
) -> Iterator[tuple[int, Iterator[StoredRecord]]]:
    return groupby(stored_records(connection, signal, items), lambda one: one.resource)


def _scope_of(one: StoredRecord) -> int:
    return one.scope


# Envelopes are stored in the form of traces, whatever signal they came with: the messages of the
# three signals have the same fields under the same numbers, so the bytes of one are the other's.
def _as_logs(envelope: ResourceSpans) -> ResourceLogs:
    converted = ResourceLogs()
    converted.MergeFromString(envelope.SerializeToString())
    return converted


def _as_scope_logs(envelope: ScopeSpans) -> ScopeLogs:
    converted = ScopeLogs()
    converted.MergeFromString(envelope.SerializeToString())
    return converted


def slices(numbers: Sequence[int], *, size: int) -> Iterable[Sequence[int]]:
    """Cut a list of numbers into slices."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
