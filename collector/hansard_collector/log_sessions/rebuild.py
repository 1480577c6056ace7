"""Stored log records read once more, as `hansard rebuild` does: what is understood now counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.log_sessions.agents import recognise
from hansard_collector.log_sessions.writer import SessionWriter
from hansard_collector.otlp.any_value import attributes_dict, log_view
from hansard_collector.pipeline.validation import bad_trace_id
from hansard_store.ingest.otlp_records import restore_log
from hansard_store.ingest.session_logs import is_repeated, record_of
from hansard_store.ingest.stored_spans import read_resource, read_scope
from hansard_store.ingest.writer import Batch


def settle_again(
    connection: apsw.Connection, batch: Batch, messages: MessageCache, logs: Iterable[int]
) -> Mapping[bytes, set[bytes]]:
    """Place some log records (log_record.id) again and make the steps that they tell of again.

    Slices may be of any size and in any order, while other records come in: afterwards the runs
    are what they would be if all records came now. Spans that were sent must be indexed before.
    Returns the sent spans that were given records, by trace; they are to be derived again.
    """
    sessions = SessionWriter(connection, batch, messages)
    for log in logs:
        packed = record_of(connection, log)
        batch.write_held()
        record = restore_log(connection, packed.record)
        resource = attributes_dict(read_resource(connection, packed.resource).resource.attributes)
        scope = read_scope(connection, packed.scope).scope
        view = log_view(record, resource, scope_name=scope.name)
        sessions.note_again(
            None if is_repeated(connection, log) else recognise(view, record),
            log,
            packed.time_ns,
            sent_trace_id=None if bad_trace_id(record.trace_id) else record.trace_id,
        )
    return sessions.settle()
