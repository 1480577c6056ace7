"""Every part of the record has a table, and the key that it is found by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from tests.store.empty import empty_store

# Events of a span stay inside it: nothing asks for one by itself.
TABLES = {
    "spans": ("span", {"trace_id", "span_id", "side"}, {"name", "start_ns", "end_ns", "status"}),
    "events of spans": ("span_record", {"span"}, {"record"}),
    "links": ("span_link", {"span", "ordinal"}, {"to_trace_id", "to_span_id"}),
    "resources": ("resource", {"digest"}, {"service_name", "record"}),
    "event log": ("event", {"seq"}, {"type", "actor", "subject", "prev_hash", "hash"}),
    "pending actions": ("approval", {"approval_id"}, {"status", "tool", "arguments_hash"}),
    "messages": ("transcript_message", {"conversation_id", "position"}, {"role", "content"}),
    "checkpoints": ("checkpoint", {"number"}, {"conversation_id", "message_position", "summary"}),
    "tasks": ("task", {"task_id"}, {"state", "review"}),
    "processed story ids": ("processed_story", {"source", "story_id"}, {"accepted", "memory"}),
    "payload index": ("payload", {"digest"}, {"size", "media_type"}),
}
_UNIQUE = 'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial'
_COLUMNS = "SELECT name, pk FROM pragma_table_xinfo(?)"
_STRICT = "SELECT type, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """The store as all migrations make it."""
    folder = empty_store(tmp_path_factory.mktemp("record") / "data")
    connection = apsw.Connection(str(folder.database))
    yield connection
    connection.close()


def keys_of(connection: apsw.Connection, table: str) -> list[set[str]]:
    """Return what a row is found by: the primary key, and whatever else is unique."""
    columns: list[Any] = connection.execute(_COLUMNS, (table,)).fetchall()
    keys = [{name for name, place in columns if place}]
    for (index,) in connection.execute(_UNIQUE, (table,)).fetchall():
        rows = connection.execute("SELECT name FROM pragma_index_info(?)", (index,))
        keys.append({str(name) for (name,) in rows})
    return keys


@pytest.mark.covers("ST-02")
@pytest.mark.parametrize("part", TABLES)
def test_each_part_of_the_record_has_its_table_and_key(schema: apsw.Connection, part: str) -> None:
    table, key, further = TABLES[part]

    assert schema.execute(_STRICT, (table,)).fetchall() == [("table", 1)]
    assert key in keys_of(schema, table)
    assert further <= {name for name, _ in schema.execute(_COLUMNS, (table,))}
