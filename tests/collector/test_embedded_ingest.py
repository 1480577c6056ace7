"""The pipeline inside another program: what is exported is committed, on the caller's thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_collector.errors import MalformedRequest, StoreBusy
from hansard_collector.pipeline.embedded import EmbeddedIngest, open_embedded
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.connections import open_for_accountability
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import transaction
from hansard_store.errors import StoreError, StoreNewerError
from tests.collector.ingesting import span, traces
from tests.journeys.processes import count_spans

FULL = RetentionMode.FULL_PAYLOADS


@contextlib.contextmanager
def opened(data: Path, *, retention: RetentionMode = FULL) -> Iterator[EmbeddedIngest]:
    ingest = open_embedded(data, retention=retention, sender="test/1")
    try:
        yield ingest
    finally:
        ingest.close()


def body(*numbers: int) -> bytes:
    data: bytes = traces([span(number) for number in numbers]).SerializeToString()
    return data


def one(data: Path, sql: str) -> Any:
    connection = apsw.Connection(str(data / "hansard.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).get
    finally:
        connection.close()


def test_the_entry_point_leads_to_it() -> None:
    [entry] = entry_points(group="hansard.embedded")

    assert entry.load().open_embedded is open_embedded


def test_what_is_exported_is_committed_and_no_thread_is_started(tmp_path: Path) -> None:
    before = threading.enumerate()
    with opened(tmp_path / "new") as ingest:
        assert ingest.export("traces", body(1, 2)) == ""
        assert count_spans(tmp_path / "new") == 2
        assert ingest.export("traces", body(2, 3)) == ""
        assert threading.enumerate() == before

    assert count_spans(tmp_path / "new") == 3
    assert one(tmp_path / "new", "SELECT transport, user_agent FROM sender") == (
        "embedded",
        "test/1",
    )


def test_items_that_take_long_are_committed_on_the_same_thread_too(tmp_path: Path) -> None:
    before = threading.enumerate()
    wide = {f"k{key}": "v" for key in range(2_000)}
    heavy = traces([span(1), span(2, attributes=wide), span(3), span(4, attributes=wide)])
    with opened(tmp_path / "new") as ingest:
        assert ingest.export("traces", heavy.SerializeToString()) == ""
        assert count_spans(tmp_path / "new") == 4
        assert threading.enumerate() == before


def test_what_cannot_be_read_is_refused_and_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as ingest:
        with pytest.raises(MalformedRequest):
            ingest.export("traces", b"\xff\xff no protobuf")
        ingest.export("traces", body(1))

    assert count_spans(tmp_path) == 1
    assert one(tmp_path, "SELECT count(*) FROM refusal") == 1


def test_items_that_are_refused_singly_are_told(tmp_path: Path) -> None:
    wrong = traces([span(1), span(2)])
    wrong.resource_spans[0].scope_spans[0].spans[1].trace_id = b"short"
    with opened(tmp_path) as ingest:
        told = ingest.export("traces", wrong.SerializeToString())

    assert "trace" in told
    assert count_spans(tmp_path) == 1


def test_while_another_process_holds_the_lock_it_is_busy_and_later_it_is_not(
    tmp_path: Path,
) -> None:
    with (
        opened(tmp_path) as ingest,
        contextlib.closing(open_for_accountability(DataFolder(tmp_path))) as other,
    ):
        ingest.export("traces", body(1))
        with transaction(other), pytest.raises(StoreBusy):
            ingest.export("traces", body(2))

        assert ingest.export("traces", body(2)) == ""

    assert count_spans(tmp_path) == 2


def test_two_that_write_one_store_take_turns(tmp_path: Path) -> None:
    def write(numbers: range) -> None:
        with opened(tmp_path) as ingest:
            for number in numbers:
                ingest.export("traces", body(number))

    threads = [
        threading.Thread(target=write, args=(range(start, start + 20),)) for start in (1, 101)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert count_spans(tmp_path) == 40
    assert one(tmp_path, "PRAGMA integrity_check") == "ok"
    assert one(tmp_path, "SELECT count(*), span_count FROM run") == (1, 40)


def test_a_store_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "hansard.db").write_bytes(b"no database " * 999)
    with opened(tmp_path / "newer") as ingest:
        ingest.export("traces", body(1))
    newer = apsw.Connection(str(tmp_path / "newer" / "hansard.db"))
    newer.pragma("user_version", 9999)
    newer.close()

    for name, error in (("file", StoreError), ("damaged", StoreError), ("newer", StoreNewerError)):
        with pytest.raises(error), opened(tmp_path / name):
            pass


def test_metadata_only_keeps_no_content(tmp_path: Path) -> None:
    told = traces([span(1, attributes={"input.value": "a canary sings"})])
    with opened(tmp_path, retention=RetentionMode.METADATA_ONLY) as ingest:
        ingest.export("traces", told.SerializeToString())
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert all(b"canary" not in path.read_bytes() for path in files)

    assert count_spans(tmp_path) == 1
