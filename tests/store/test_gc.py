"""Garbage: what nothing uses goes, what anything uses stays, and after a purge no byte is left."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hansard_compiler.errors import NotFoundError
from hansard_store.annotations.rows import MOST_ENDED
from hansard_store.annotations.service import AnnotationService
from hansard_store.content.payload_uses import GRACE_NS
from hansard_store.content.payloads import (
    INLINE_BYTES,
    Retained,
    blob_path,
    payload_ref,
)
from hansard_store.database.compression import unpack
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.errors import StoreBusyError
from hansard_store.maintenance.deletion import delete_run
from hansard_store.maintenance.garbage import collect_garbage, give_back_pages, purge
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    conversation,
    log,
    logs,
    pairs,
    span,
    traces,
)
from tests.store.payloads import put_payload

OTHER = bytes(reversed(range(16)))


@pytest.fixture
def maintenance(ingesting: Ingesting) -> Iterator[apsw.Connection]:
    connection = open_for_maintenance(ingesting.folder, secure=True)
    yield connection
    connection.close()


def upload(folder: DataFolder, data: bytes, *, received_ns: int) -> bytes:
    digest = hashlib.sha256(data).digest()
    put_payload(
        folder,
        data,
        expected=digest,
        media_type="text/plain",
        received_ns=received_ns,
        retain=lambda kept, _: Retained(kept),
    )
    return digest


def naming(number: int, *digests: bytes, trace_id: bytes = TRACE) -> ExportTraceServiceRequest:
    refs = {f"hansard.{at}.ref": payload_ref(digest) for at, digest in enumerate(digests)}
    return traces([span(number, trace_id=trace_id, attributes=refs)])


def test_a_second_collection_finds_nothing(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    ingesting.send(traces([span(1, attributes={"input.value": conversation(9)})]))
    delete_run(maintenance, TRACE, reason="by hand")
    first = collect_garbage(ingesting.folder, maintenance)

    second = collect_garbage(ingesting.folder, maintenance)

    assert first.lists == 18
    assert (first.contents, first.texts, first.resources, first.scopes) == (18, 1, 1, 1)
    assert [getattr(second, name) for name in second.__slots__] == [0] * 8


def test_what_is_collected_is_told_as_it_goes(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    ingesting.send(traces([span(1, attributes={"input.value": conversation(100)})]))
    delete_run(maintenance, TRACE, reason="by hand")
    told: list[tuple[str, int]] = []

    collected = collect_garbage(
        ingesting.folder, maintenance, progress=lambda what, count: told.append((what, count))
    )

    assert sum(count for what, count in told if what == "contents") == collected.contents == 200
    assert len(told) > 6


def test_a_store_in_use_loses_nothing_to_a_collection(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    for turns in range(1, 9):
        ingesting.send(traces([span(turns, attributes={"input.value": conversation(turns)})]))
        ingesting.send(logs([log(turns, text=f"{turns} " + "long " * 1000), log(None)]))
        collect_garbage(ingesting.folder, maintenance)

    assert verify_store(ingesting.folder).findings == []


@pytest.mark.covers("ST-10")
@pytest.mark.parametrize("size", [100, INLINE_BYTES + 1])
def test_a_payload_goes_with_the_last_run_that_names_it(
    ingesting: Ingesting, maintenance: apsw.Connection, size: int
) -> None:
    now_ns = 2**62
    shared, own = (upload(ingesting.folder, bytes([n]) * size, received_ns=now_ns) for n in (1, 2))
    ingesting.send(naming(1, shared, own))
    ingesting.send(naming(1, shared, trace_id=OTHER))

    delete_run(maintenance, TRACE, reason="by hand")
    assert verify_store(ingesting.folder).findings == []
    collect_garbage(ingesting.folder, maintenance)

    assert ingesting.all("SELECT digest FROM payload") == [(shared,)]
    assert not blob_path(ingesting.folder, own).exists()
    assert blob_path(ingesting.folder, shared).exists() is (size > INLINE_BYTES)
    assert verify_store(ingesting.folder).findings == []


def test_a_payload_that_no_span_has_named_yet_waits_a_day(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    early = upload(ingesting.folder, b"early", received_ns=1)
    fresh = upload(ingesting.folder, b"fresh", received_ns=2**62)

    collected = collect_garbage(ingesting.folder, maintenance)

    assert collected.payloads == 1
    assert ingesting.all("SELECT digest FROM payload") == [(fresh,)]
    assert early != fresh
    assert GRACE_NS == 24 * 3600 * 10**9


def test_files_that_no_row_points_at_are_removed_and_others_left(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    kept = upload(ingesting.folder, b"k" * (INLINE_BYTES + 1), received_ns=2**62)
    shelf = ingesting.folder.blobs / "ab"
    shelf.mkdir()
    stray, unfinished, young, foreign = (
        shelf / name for name in ("cd" * 31, ".cdcdcdcd-1-old", ".cdcdcdcd-1-new", "notes.txt")
    )
    for path in (stray, unfinished, young, foreign):
        path.write_bytes(b"x")
    os.utime(unfinished, (0, 0))

    assert collect_garbage(ingesting.folder, maintenance).files == 2

    assert [path.exists() for path in (stray, unfinished, young, foreign)] == [
        False,
        False,
        True,
        True,
    ]
    assert blob_path(ingesting.folder, kept).exists()


def test_free_pages_are_given_back_to_the_disk(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    noise = {"input.value": os.urandom(500_000).hex()}
    ingesting.send(traces([span(1, attributes=noise)]))
    before = ingesting.one("SELECT page_count FROM pragma_page_count")
    delete_run(maintenance, TRACE, reason="by hand")
    collect_garbage(ingesting.folder, maintenance)

    freed = give_back_pages(maintenance)

    assert freed > 100
    assert ingesting.one("SELECT page_count FROM pragma_page_count") == before - freed


# ---- purge


WORDS = ("xylotomy", "quixotry", "zugzwang", "syzygial", "jumbling", "wolframy", "vexillum")


def secret_run() -> ExportTraceServiceRequest:
    """A run with a word of its own in every place that holds text."""
    name, key, value, event, status, resource, message = WORDS
    made = span(1, name=f"name {name}", status=2, attributes={f"key.{key}": f"value {value}"})
    made.status.message = f"failed with {status}"
    made.events.add(name=f"event {event}").attributes.extend(pairs({"a": f"of {event}"}))
    asked = [{"role": "user", "content": f"tell me of {message} " + "and more " * 400}]
    made.attributes.extend(pairs({"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked}))
    request = traces([made])
    request.resource_spans[0].resource.attributes.extend(pairs({"team": f"team {resource}"}))
    return request


def all_bytes(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


@pytest.mark.covers("RC-29")
def test_after_a_purge_no_byte_of_a_run_is_left_anywhere(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    # Neighbours before and after, so that pages and index segments are shared.
    ingesting.send(traces(span(n, name=f"plain {n}", trace_id=OTHER) for n in range(1, 60)))
    ingesting.send(secret_run())
    ingesting.send(logs([log(1, text=f"log of {WORDS[0]}", attributes={"k": WORDS[1]})]))
    payload = upload(ingesting.folder, b"payload " + b"tungsten " * 9999, received_ns=2**62)
    ingesting.send(naming(2, payload))
    ingesting.send(traces(span(n, name=f"plain {n}", trace_id=OTHER) for n in range(60, 99)))
    packed = [
        row[0]
        for table, column in (("content", "body"), ("span_record", "record"), ("text", "body"))
        for row in ingesting.all(f"SELECT {column} FROM {table}")
        if any(word.encode() in _unpacked(row[0]) for word in WORDS)
    ]
    stored = all_bytes(ingesting.folder.path)
    assert sum(word.encode() in stored for word in WORDS) >= 3  # others only where compressed
    assert sum(one in stored for one in packed) >= 3

    delete_run(maintenance, TRACE, reason="purge")
    collect_garbage(ingesting.folder, maintenance)
    purge(maintenance)

    left = all_bytes(ingesting.folder.path)
    # Index terms share their beginnings with their neighbours: look for their ends as well.
    found = [word for word in (*WORDS, "tungsten") if word[2:].encode() in left]
    assert found == []
    assert packed
    assert not any(one in left for one in packed)
    assert ingesting.one("SELECT span_count FROM run") == 98
    assert ingesting.one("SELECT reason FROM tombstone") == "purge"
    assert verify_store(ingesting.folder).findings == []


def test_after_a_purge_no_byte_of_what_was_said_of_a_run_is_left(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    ingesting.send(traces([span(1, name="plain 1", trace_id=OTHER), span(1, name="plain")]))
    book = AnnotationService(ingesting.folder)
    of_run, of_other = {"run_id": TRACE.hex()}, {"run_id": OTHER.hex()}
    book.write_json({"kind": "note", "text": "note of xylotomy " * 400, **of_run}, by="vexillum")
    judged = {"kind": "score", "name": "zugzwang", "explanation": "for quixotry", **of_run}
    for value in range(MOST_ENDED + 5):  # replaced, and some of them pruned
        book.write_json({**judged, "score": {"value": value}}, by="noor")
    tag = book.write_json({"kind": "tag", "tag": "syzygial", **of_run})
    book.withdraw_json(tag.annotation_id or "", {"reason": "wolframy"})
    book.write_json({"kind": "tag", "tag": "golden", **of_other})

    delete_run(maintenance, TRACE, reason="purge")
    with pytest.raises(NotFoundError):
        book.write_json({"kind": "note", "text": "jumbling", **of_run})
    book.close()
    collect_garbage(ingesting.folder, maintenance)
    purge(maintenance)

    left = all_bytes(ingesting.folder.path)
    assert [word for word in WORDS if word[2:].encode() in left] == []
    assert ingesting.all("SELECT name FROM annotation") == [("golden",)]
    assert ingesting.one("SELECT count(*) FROM annotation_pruned") == 0
    assert verify_store(ingesting.folder).findings == []


def _unpacked(body: Any) -> bytes:
    return unpack(body)


def test_a_purge_is_told_to_come_again_while_a_reader_holds_an_old_state(
    ingesting: Ingesting, maintenance: apsw.Connection
) -> None:
    ingesting.send(secret_run())
    maintenance.set_busy_timeout(10)
    reader = open_reader(ingesting.folder)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM span").fetchall()
    delete_run(maintenance, TRACE, reason="purge")
    collect_garbage(ingesting.folder, maintenance)

    with pytest.raises(StoreBusyError, match="reader"):
        purge(maintenance)
    reader.execute("ROLLBACK")
    purge(maintenance)

    reader.close()
    assert WORDS[0].encode() not in ingesting.folder.database.read_bytes()
