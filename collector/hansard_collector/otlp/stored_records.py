"""Stored records as OTLP again: what came in, after redaction, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

import apsw
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, TracesData

from hansard_collector.dialects.engine.item_views import LogView
from hansard_collector.otlp.any_value import attributes_dict, log_view
from hansard_compiler.redaction.otlp import LOG_LEVELS, METRIC_LEVELS, SPAN_LEVELS
from hansard_store.ingest.otlp_records import restore_log, restore_metric, restore_span
from hansard_store.ingest.stored_spans import read_resource, read_scope
from hansard_store.maintenance.export import StoredRecord, stored_records

_Data = TypeVar("_Data", TracesData, LogsData, MetricsData)


class Envelopes:
    """Resources and scopes of records that are read together; each is read once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._resources: dict[int, ResourceSpans] = {}
        self._attributes: dict[int, Mapping[str, Any]] = {}
        self._scopes: dict[int, ScopeSpans] = {}

    def resource(self, number: int) -> ResourceSpans:
        found = self._resources.get(number)
        if found is None:
            found = self._resources[number] = read_resource(self._connection, number)
        return found

    def attributes(self, number: int) -> Mapping[str, Any]:
        """Return the attributes of a resource, as a dialect reads them."""
        found = self._attributes.get(number)
        if found is None:
            sent = self.resource(number).resource.attributes
            found = self._attributes[number] = attributes_dict(sent)
        return found

    def scope(self, number: int) -> ScopeSpans:
        found = self._scopes.get(number)
        if found is None:
            found = self._scopes[number] = read_scope(self._connection, number)
        return found

    def log(self, record: bytes, *, resource: int, scope: int) -> LogView:
        """Return a stored log record as a dialect reads it."""
        message = restore_log(self._connection, record)
        scope_name = self.scope(scope).scope.name
        return log_view(message, self.attributes(resource), scope_name=scope_name)


class Reexport:
    """Puts records back into their envelopes; keeps the envelopes it has read.

    These are stored in the form of traces, whatever signal they came with: the messages of the
    three signals have the same fields under the same numbers, so the bytes of one are the other's.
    """

    def __init__(self) -> None:
        self._resources: dict[int, bytes] = {}
        self._scopes: dict[int, bytes] = {}

    def spans(self, connection: apsw.Connection, spans: Sequence[int]) -> TracesData:
        """Return some spans by their numbers; neighbours of one envelope share it."""
        records = stored_records(connection, "traces", spans)
        return self._filled(TracesData(), SPAN_LEVELS, connection, records, restore_span)

    def logs(self, connection: apsw.Connection, logs: Sequence[int]) -> LogsData:
        """Return some log records by their numbers."""
        records = stored_records(connection, "logs", logs)
        return self._filled(LogsData(), LOG_LEVELS, connection, records, restore_log)

    def points(self, connection: apsw.Connection, points: Sequence[int]) -> MetricsData:
        """Return some metric points by their numbers, each in a metric of its own."""
        records = stored_records(connection, "metrics", points)
        return self._filled(MetricsData(), METRIC_LEVELS, connection, records, restore_metric)

    def _filled(
        self,
        data: _Data,
        levels: tuple[str, str, str],
        connection: apsw.Connection,
        records: Iterable[StoredRecord],
        restore: Callable[[apsw.Connection, bytes], Any],
    ) -> _Data:
        outer, inner, leaf = levels
        for resource, in_resource in groupby(records, attrgetter("resource")):
            if resource not in self._resources:
                envelope = read_resource(connection, resource)
                self._resources[resource] = envelope.SerializeToString()
            resource_level = getattr(data, outer).add()
            resource_level.MergeFromString(self._resources[resource])
            for scope, in_scope in groupby(in_resource, attrgetter("scope")):
                if scope not in self._scopes:
                    self._scopes[scope] = read_scope(connection, scope).SerializeToString()
                scope_level = getattr(resource_level, inner).add()
                scope_level.MergeFromString(self._scopes[scope])
                items = getattr(scope_level, leaf)
                items.extend(restore(connection, one.record) for one in in_scope)
        return data


def slices(numbers: Sequence[int], *, size: int) -> Iterable[Sequence[int]]:
    """Cut a list of numbers into slices."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
