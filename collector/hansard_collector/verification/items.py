"""Columns of log records and metric points against the records that they were read from.

A seal holds the record, and these columns stand beside it, for lists and search. A rebuild does not
write them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import apsw

from hansard_collector.any_value import attributes_dict, log_view
from hansard_collector.prepare_logs import log_columns, point_columns, single_points
from hansard_store.errors import StoreCorruptError
from hansard_store.ingest.otlp_records import restore_log, restore_metric
from hansard_store.ingest.stored_spans import read_resource, read_scope
from hansard_store.verification.derived import Difference, Found, differences
from hansard_store.verification.received import iter_logs, iter_points

_MOST_OF_TABLE: Final = 50


def check_items(connection: apsw.Connection) -> Found:
    """Yield the log records and metric points with a column that is not that of the record."""
    yield from islice(_logs(connection), _MOST_OF_TABLE)
    yield from islice(_points(connection), _MOST_OF_TABLE)


def _logs(connection: apsw.Connection) -> Found:
    resources: dict[int, Mapping[str, Any]] = {}
    scopes: dict[int, str] = {}  # names
    for row in iter_logs(connection):
        with suppress(StoreCorruptError):  # a finding of the check of records
            if row.resource not in resources:
                envelope = read_resource(connection, row.resource)
                resources[row.resource] = attributes_dict(envelope.resource.attributes)
            if row.scope not in scopes:
                scopes[row.scope] = read_scope(connection, row.scope).scope.name
            record = restore_log(connection, row.record)
            view = log_view(record, resources[row.resource], scope_name=scopes[row.scope])
            given = log_columns(record, view) | {"notes": None}
            if row.is_of_session:  # placed on the step that it tells of
                given |= {"trace_id": row.home, "span_id": row.columns["span_id"]}
            yield from _told("log_record", row.id, row.columns, given)


def _points(connection: apsw.Connection) -> Found:
    for row in iter_points(connection):
        with suppress(StoreCorruptError):
            [(metric, point)] = single_points(restore_metric(connection, row.record))
            yield from _told("metric_point", row.id, row.columns, point_columns(metric, point))


def _told(table: str, number: int, found: Mapping[str, Any], given: Mapping[str, Any]) -> Found:
    told = differences(list(found), list(found.values()), [given[one] for one in found])
    if told:
        yield Difference(table, str(number), f"has {told} as its record gives it")
