"""Contents: stored once, shared by what continues them, read back whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_store.content.large_values import ContentCutter, ContentWriter, read_content, read_list
from hansard_store.database.connections import open_for_ingest
from hansard_store.errors import StoreCorruptError
from tests.store.empty import empty_store
from tests.strategies import large_json

TRACE = b"t" * 16


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = open_for_ingest(empty_store(tmp_path / "data"))
    yield connection
    connection.close()


def conversation(turns: int) -> str:
    return json.dumps(
        [{"role": "user", "content": f"{turn} " + "word " * 40} for turn in range(turns)]
    )


def stored_bytes(db: apsw.Connection) -> int:
    return int(db.execute("SELECT sum(size) FROM content").get)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(large_json(), min_size=1, max_size=4))
def test_texts_cut_one_after_the_other_are_all_read_back(
    db: apsw.Connection, texts: list[str]
) -> None:
    cutter, contents = ContentCutter(), ContentWriter(db)

    for text in texts:
        value = cutter.cut(TRACE, "key", text)
        if value is not None:
            node = contents.add_list(value.pieces, run=1)
            contents.write_held()
            assert read_list(db, node) + value.tail.encode() == text.encode()


def test_a_conversation_that_grows_stores_only_what_is_new(db: apsw.Connection) -> None:
    cutter, contents = ContentCutter(), ContentWriter(db)

    for turns in range(2, 50):
        value = cutter.cut(TRACE, "key", conversation(turns))
        assert value is not None
        contents.add_list(value.pieces, run=1)
        contents.write_held()

    assert stored_bytes(db) <= len(conversation(49))
    assert db.execute("SELECT count(*) FROM content_list").get == 49


def test_two_writers_agree_on_contents_and_lists(db: apsw.Connection) -> None:
    nodes = []
    for _ in range(2):
        cutter, contents = ContentCutter(), ContentWriter(db)
        value = cutter.cut(TRACE, "key", conversation(9))
        assert value is not None
        nodes.append(contents.add_list(value.pieces, run=1))
        contents.write_held()

    assert nodes[0] == nodes[1]
    assert stored_bytes(db) <= len(conversation(9))


def test_interleaved_conversations_of_one_trace_and_key_share_their_own_prefix_each() -> None:
    cutter = ContentCutter()
    other = conversation(9).replace("user", "helper")
    first = cutter.cut(TRACE, "key", conversation(9))
    second = cutter.cut(TRACE, "key", other)
    assert first is not None
    assert second is not None

    again = cutter.cut(TRACE, "key", conversation(10))

    assert again is not None
    assert [piece is before for piece, before in zip(again.pieces, first.pieces, strict=False)] == (
        [True] * 9
    )


def test_after_a_rollback_ids_are_looked_up_again(db: apsw.Connection) -> None:
    cutter, contents = ContentCutter(), ContentWriter(db)
    value = cutter.cut(TRACE, "key", conversation(9))
    assert value is not None
    db.execute("BEGIN")
    contents.add_list(value.pieces, run=1)
    contents.add(b"bytes", run=1)
    contents.write_held()
    db.execute("ROLLBACK")
    contents.forget()

    node, content = contents.add_list(value.pieces, run=1), contents.add(b"bytes", run=1)
    contents.write_held()

    assert read_list(db, node) + value.tail.encode() == conversation(9).encode()
    assert read_content(db, content) == b"bytes"


def test_a_missing_content_or_list_is_corrupt(db: apsw.Connection) -> None:
    with pytest.raises(StoreCorruptError, match="content 7"):
        read_content(db, 7)
    with pytest.raises(StoreCorruptError, match="list 7"):
        read_list(db, 7)
