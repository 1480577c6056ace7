"""Verify: a sound store passes, and each kind of damage is found and named."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from hansard_store.content.payloads import INLINE_BYTES, Retained, blob_path
from hansard_store.database.connections import open_for_maintenance, without_foreign_keys
from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import IntegrityFinding, verify_store
from tests.collector.ingesting import (
    TRACE,
    Ingesting,
    conversation,
    fixture_requests,
    log,
    logs,
    span,
    traces,
)
from tests.store.accounts import account, proposal
from tests.store.by_hand import triggers_dropped
from tests.store.payloads import put_payload


@pytest.fixture
def sound(tmp_path: Path) -> DataFolder:
    """A closed store with something in every table that is looked at."""
    ingesting = Ingesting(tmp_path / "data")
    for number in (1, 2, 3):
        chat = {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 3,
            "gen_ai.input.messages": conversation(number + 1),
            "other.text": "words " * 1000,
        }
        ingesting.send(traces([span(number, attributes=chat)]))
        ingesting.send(traces([span(number, attributes={"poor": "x" * 3000})]))
    ingesting.send(logs([log(1, text="long " * 1000)]))
    for signal, body in fixture_requests():
        if signal == "metrics":
            ingesting.send_bytes(signal, body)
    data = b"p" * (INLINE_BYTES + 1)
    put_payload(
        ingesting.folder,
        data,
        expected=hashlib.sha256(data).digest(),
        media_type="text/plain",
        received_ns=1,
        retain=lambda kept, _: Retained(kept),
    )
    ingesting.close()
    return ingesting.folder


def damage(folder: DataFolder, sql: str, *values: Any) -> None:
    connection = open_for_maintenance(folder)
    with without_foreign_keys(connection):
        connection.execute(sql, values)
        assert connection.changes() > 0
    connection.close()


def test_a_sound_store_has_no_findings_and_all_of_it_was_read(sound: DataFolder) -> None:
    told: dict[str, tuple[int, int]] = {}

    report = verify_store(
        sound, progress=lambda check, done, total: told.update({check: (done, total)})
    )

    assert report.findings == []
    assert report.is_sound
    assert report.rows > 40
    assert {"file", "foreign keys", "ledger", "runs", "indexes", "spans", "texts"} <= set(told)
    assert all(done == total for done, total in told.values())


def test_every_nth_row_can_be_enough(sound: DataFolder) -> None:
    whole = verify_store(sound)
    some = verify_store(sound, every=10)

    assert some.findings == []
    assert some.rows < whole.rows / 2


DAMAGES = [
    (
        "UPDATE content SET body = x'00414141', size = 3 WHERE id = 2",
        IntegrityFinding("contents", "content", "2", "its bytes are not those of its digest"),
    ),
    (
        "UPDATE content SET size = size + 1 WHERE id = 2",
        IntegrityFinding("contents", "content", "2", ""),
    ),
    (
        "UPDATE span_record SET record = x'00ff' WHERE span = 2",
        IntegrityFinding("spans", "span_record", "2", ""),
    ),
    (
        "UPDATE log_record SET record = x'07' WHERE id = 1",
        IntegrityFinding("logs", "log_record", "1", "a stored value has unknown codec b'\\x07'"),
    ),
    (
        "UPDATE metric_point SET record = x'00' WHERE id = 1",
        IntegrityFinding("metrics", "metric_point", "1", ""),
    ),
    (
        "DELETE FROM content_list_use WHERE list = (SELECT max(list) FROM content_list_use)",
        IntegrityFinding("spans", "span_record", "3", ""),
    ),
    (
        "DELETE FROM content_use WHERE run = -3",
        IntegrityFinding("logs", "log_record", "1", ""),
    ),
    (
        "UPDATE content_list SET parent = 999 WHERE id = 4",
        IntegrityFinding("lists", "content_list", "4", "continues list 999, which is not there"),
    ),
    (
        "UPDATE text SET hash = zeroblob(32) WHERE id = 1",
        IntegrityFinding("texts", "text", "1", "what it says is not what its hash promises"),
    ),
    (
        "UPDATE message_prefix SET hash = zeroblob(16) WHERE id = 2",
        IntegrityFinding(
            "prefixes", "message_prefix", "2", "its hash is not that of the messages up to it"
        ),
    ),
    (
        "DELETE FROM text_fts WHERE rowid = 3",
        IntegrityFinding("indexes", "text", "3", "is not in the full-text index text_fts"),
    ),
    (
        "DELETE FROM span_record WHERE span = 3",
        IntegrityFinding("records", "span", "3", "has no record"),
    ),
    (
        "UPDATE run SET span_count = 9",
        IntegrityFinding(
            "runs", "run", TRACE.hex(), "its count of spans is wrong; rebuild makes it again"
        ),
    ),
    (
        "UPDATE ledger SET stored = stored + 1 WHERE signal = 'traces'",
        IntegrityFinding("ledger", "ledger", "", ""),
    ),
]


@pytest.mark.parametrize(("sql", "expected"), DAMAGES)
def test_each_kind_of_damage_is_found_and_its_first_row_named(
    sound: DataFolder, sql: str, expected: IntegrityFinding
) -> None:
    damage(sound, sql)

    findings = verify_store(sound).findings

    first = next(one for one in findings if one.check == expected.check)
    assert first.table == expected.table
    assert expected.row in first.row
    assert expected.message in first.message


@pytest.mark.covers("ST-10")
def test_a_payload_whose_file_is_gone_or_altered_is_named(sound: DataFolder) -> None:
    digest = hashlib.sha256(b"p" * (INLINE_BYTES + 1)).digest()
    path = blob_path(sound, digest)

    path.write_bytes(b"q" * (INLINE_BYTES + 1))
    (altered,) = verify_store(sound).findings
    path.unlink()
    (missing,) = verify_store(sound).findings

    assert (altered.table, altered.row) == ("payload", digest.hex())
    assert altered.message.endswith("is altered")
    assert missing.message.endswith("is missing")


def test_a_damaged_page_is_found(sound: DataFolder) -> None:
    connection = open_for_maintenance(sound)
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'span_name'").get
    size = connection.pragma("page_size")
    connection.pragma("wal_checkpoint(TRUNCATE)")
    connection.close()
    with sound.database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)

    (found,) = verify_store(sound).findings

    assert (found.check, found.table) == ("file", "(file)")


@pytest.mark.covers("RC-30")
def test_an_altered_event_and_an_approval_that_its_log_contradicts_are_found(
    tmp_path: Path,
) -> None:
    with account(tmp_path) as desk:
        desk.propose(proposal())
        desk.failed("x", "boom")
        assert verify_store(desk.folder).is_sound
        connection = desk._connections.get()
        with triggers_dropped(connection):
            connection.execute("UPDATE event SET who = 'nobody' WHERE seq = 2")
        connection.execute("UPDATE approval SET status = 'rejected'")

        found = verify_store(desk.folder).findings

    assert [(one.check, one.table) for one in found] == [
        ("audit log", "event"),
        ("approvals", "approval"),
    ]
    assert found[0].row == "2"
    assert "is rejected, and awaiting by event 1" in found[1].message


def test_an_approval_that_the_log_does_not_know_is_told(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        desk.propose(proposal())
        connection = desk._connections.get()
        with triggers_dropped(connection):
            for kept in ("event_content", "event"):
                connection.execute(f"DELETE FROM {kept}")

        [found] = verify_store(desk.folder).findings

    assert found.message.endswith("is awaiting, and the audit log knows nothing of it")
