"""Transcripts in SQLite: rows that nobody changes, decoded when they are read, and their events."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.errors import (
    InvalidConversationId,
    NothingToFold,
    TranscriptWithheld,
    UndecodableMessage,
)
from hansard_compiler.transcripts.ids import BranchId, ConversationId, parse_log_id
from hansard_store.audit.events import read_events, verify_events
from hansard_store.content.payload_uses import GRACE_NS, unused_payloads
from hansard_store.content.payloads import blob_path, get_payload, parse_payload_ref, read_payload
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.errors import StoreCorruptError, StoreError
from hansard_store.transcripts.archives import check_archive, write_archive
from hansard_store.transcripts.queries import (
    decode_all,
    list_transcripts,
    transcript_size,
)
from hansard_store.transcripts.service import SqliteTranscripts
from tests.instrumentation.transcript_maker import SECRET, call, result, say, texts, user
from tests.store.by_hand import failing, triggers_dropped
from tests.store.empty import empty_store


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


@pytest.fixture
def transcripts(folder: DataFolder) -> SqliteTranscripts:
    return SqliteTranscripts(folder, RetentionMode.REDACTED_PAYLOADS, Redactor(folder.key()))


@pytest.fixture
def talk(transcripts: SqliteTranscripts) -> ConversationId:
    return transcripts.ensure("talk").id


@pytest.fixture
def reader(folder: DataFolder) -> Iterator[apsw.Connection]:
    connection = open_reader(folder)
    yield connection
    connection.close()


def by_hand(folder: DataFolder, sql: str, *values: str | int | bytes) -> None:
    """Run a statement as anybody can who has the file."""
    connection = apsw.Connection(str(folder.database))
    try:
        connection.execute(sql, values)
    finally:
        connection.close()


INSERT = """
{verb} INTO transcript_message
  (id, conversation_id, position, role, content, created_at, schema_version)
VALUES (?, ?, ?, 'user', '{{}}', 1, 1)
"""


@pytest.mark.covers("TR-01", "TR-02")
@pytest.mark.parametrize(
    "table",
    ["conversation", "transcript_message", "checkpoint", "transcript_mark",
     "branch", "branch_message", "branch_checkpoint", "branch_mark", "branch_end"],
)  # fmt: skip
def test_no_row_of_a_transcript_can_be_changed_removed_or_replaced(
    folder: DataFolder, transcripts: SqliteTranscripts, talk: ConversationId, table: str
) -> None:
    branch = transcripts.spawn(talk, "helper")
    for log in (talk, branch.id):
        say(transcripts, log, user("a"))
        transcripts.fold(log, "a")
        transcripts.mark(log, 0, "redacted", reason="r")
    transcripts.end(branch.id)

    for statement in (
        f"UPDATE {table} SET created_at = 0",
        f"DELETE FROM {table}",
        f"REPLACE INTO {table} SELECT * FROM {table}",
        f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET rowid = 9",
    ):
        with pytest.raises(apsw.ConstraintError):
            by_hand(folder, statement)


@pytest.mark.covers("TR-02", "TR-03")
@pytest.mark.parametrize("verb", ["INSERT", "REPLACE"])
@pytest.mark.parametrize("position", [0, 3, -1])
def test_no_position_can_be_taken_but_the_next(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    verb: str,
    position: int,
) -> None:
    say(transcripts, talk, user("a"), user("b"))

    with pytest.raises(apsw.ConstraintError):
        by_hand(folder, INSERT.format(verb=verb), b"\1" * 16, talk.digest, position)

    assert texts(transcripts.messages(talk)) == ["a", "b"]


@pytest.mark.covers("TR-15")
def test_a_fold_by_hand_stands_at_the_head_or_not_at_all(
    folder: DataFolder, transcripts: SqliteTranscripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("a"), user("b"))

    for position in (0, 2):
        with pytest.raises(apsw.ConstraintError, match="head"):
            by_hand(
                folder,
                "INSERT INTO checkpoint (conversation_id, message_position, summary, actor,"
                " created_at) VALUES (?, ?, 's', 'me', 1)",
                talk.digest,
                position,
            )


@pytest.mark.covers("TR-05")
def test_messages_are_found_by_role_without_reading_json(
    transcripts: SqliteTranscripts, talk: ConversationId, reader: apsw.Connection
) -> None:
    say(transcripts, talk, user("a"), call("c"), result("c", 1), user("d"))
    sql = "SELECT position FROM transcript_message WHERE role = 'user' ORDER BY position"

    assert reader.execute(sql).fetchall() == [(0,), (3,)]
    content = reader.execute("SELECT content FROM transcript_message LIMIT 1").get
    assert json.loads(str(content)) == {"parts": [{"type": "text", "text": "a"}]}


@pytest.mark.covers("TR-09")
def test_an_id_of_another_kind_is_refused() -> None:
    for text in ("4bf92f3577b34da6a3ce929d0e0e4736", "support-42", "conv_12", "br_" + "0" * 31, ""):
        with pytest.raises(InvalidConversationId):
            parse_log_id(text)
    with pytest.raises(InvalidConversationId):
        ConversationId.parse(str(BranchId(bytes(16))))
    with pytest.raises(InvalidConversationId):
        ConversationId("conv_" + "0" * 32)  # type: ignore[arg-type]
    assert parse_log_id(str(ConversationId(bytes(16)))) == ConversationId(bytes(16))
    assert len({ConversationId(bytes(16)), BranchId(bytes(16))}) == 2


@pytest.mark.covers("TR-06", "TR-07", "TR-08")
@pytest.mark.parametrize(
    ("role", "content", "version"),
    [
        ("user", "{}", 1),
        ("user", "{", 1),
        ("user", "[]", 1),
        ("user", "", 1),
        ("user", '{"parts":[]}', 1),
        ("user", '{"parts":[{"type":"tool_call","name":"x"}]}', 1),
        ("assistant", '{"parts":[{"type":"text"}]}', 1),
        ("tool", '{"parts":[{"type":"text","text":"x"}]}', 1),
        ("user", '{"role":"tool","parts":[{"type":"text","text":"x"}]}', 1),
        ("user", '{"parts":[{"type":"text","text":"x"}],"more":1}', 1),
        ("user", '{"parts":[{"type":"text","text":"x"}]}', 99),
        ("user", "[" * 200_000, 1),
    ],
)
def test_a_row_that_is_no_message_raises_one_error_that_names_it(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
    role: str,
    content: str,
    version: int,
) -> None:
    say(transcripts, talk, user("fine"))
    by_hand(
        folder,
        "INSERT INTO transcript_message VALUES (?, ?, 1, ?, ?, 1, ?, NULL, NULL)",
        secrets.token_bytes(16),
        talk.digest,
        role,
        content,
        version,
    )

    with pytest.raises(UndecodableMessage) as refused:
        transcripts.messages(talk)

    assert type(refused.value) is UndecodableMessage
    assert (refused.value.log, refused.value.position) == (str(talk), 1)
    found = decode_all(reader)
    assert [(one.log, one.position) for one in found.failures] == [(str(talk), 1)]
    assert found.messages == 2


# Rows as version 1 wrote them, to the byte: they must decode for ever.
VERSION_1 = (
    ("user", '{"parts":[{"text":"hello","type":"text"}]}'),
    ("user", '{"name":"ada","parts":[{"media_type":"image/png","payload":"sha256:00",'
             '"type":"media"}]}'),
    ("assistant", '{"parts":[{"text":"hm","type":"reasoning"},{"arguments":{"a":1},"id":"c1",'
                  '"name":"find","type":"tool_call"},{"type":"other","value":{"signed":"x"}}]}'),
    ("assistant", '{"parts":[]}'),
    ("tool", '{"parts":[{"clip":{"kept_bytes":3,"media_type":"text/plain","payload":"sha256:11",'
             '"size_bytes":9},"content":"abc","id":"c1","type":"tool_result"}]}'),
    ("tool", '{"parts":[{"content":{"rows":[1,null]},"id":"c2","name":"q","type":"tool_result"}]}'),
)  # fmt: skip


@pytest.mark.covers("TR-26")
def test_rows_of_version_1_decode(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
) -> None:
    for position, (role, content) in enumerate(VERSION_1):
        by_hand(
            folder,
            "INSERT INTO transcript_message VALUES (?, ?, ?, ?, ?, 1, 1, NULL, NULL)",
            secrets.token_bytes(16),
            talk.digest,
            position,
            role,
            content,
        )

    found = transcripts.messages(talk)

    assert [(one.role, one.content) for one in found] == list(VERSION_1)
    assert decode_all(reader).versions == {1: 6}
    assert decode_all(reader).is_sound


APPENDER = """
import sys
from pathlib import Path
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.entry import NewMessage
from hansard_store.transcripts.service import open_transcripts
kept = open_transcripts(Path(sys.argv[1]), retention=RetentionMode.REDACTED_PAYLOADS)
talk = kept.ensure("race").id
print("ready", flush=True)
sys.stdin.readline()
for n in range(int(sys.argv[3])):
    kept.append(talk, [NewMessage({"role": "user", "content": f"{sys.argv[2]} {n}"})])
    print(n, flush=True)
"""


def appender(folder: DataFolder, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(folder.path), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.covers("TR-04")
def test_two_processes_that_append_at_once_leave_no_gap_and_lose_nothing(
    folder: DataFolder, transcripts: SqliteTranscripts
) -> None:
    racers = [appender(folder, name, 60) for name in ("left", "right")]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdin is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")  # type: ignore[union-attr]
        racer.stdin.flush()  # type: ignore[union-attr]
    for racer in racers:
        racer.communicate(timeout=240)
        assert racer.returncode == 0

    found = transcripts.messages(ConversationId.named("race"))

    assert [one.position for one in found] == list(range(120))
    for name in ("left", "right"):
        mine = [text for text in texts(found) if text.startswith(name)]
        assert mine == [f"{name} {n}" for n in range(60)]


@pytest.mark.slow
@pytest.mark.covers("TR-01")
@pytest.mark.parametrize("after", [1, 4, 9])
def test_what_was_appended_survives_a_kill(
    folder: DataFolder, transcripts: SqliteTranscripts, reader: apsw.Connection, after: int
) -> None:
    victim = appender(folder, "victim", 100_000)
    assert victim.stdin is not None
    assert victim.stdout is not None
    victim.stdin.write("go\n")
    victim.stdin.flush()
    while victim.stdout.readline() != f"{after}\n":
        pass
    victim.kill()
    victim.communicate()

    found = transcripts.messages(ConversationId.named("race"))

    assert texts(found) == [f"victim {n}" for n in range(len(found))]
    assert len(found) > after
    assert decode_all(reader).is_sound
    assert verify_events(reader).is_sound
    # record and event are one transaction: as many of one as of the other
    assert len(read_events(reader, limit=100_000)) == len(found)


@pytest.mark.parametrize(
    "fails",
    [
        "BEFORE INSERT ON event",
        "BEFORE INSERT ON transcript_payload",
        "AFTER INSERT ON transcript_message WHEN NEW.position = 2",
    ],
)
def test_an_append_that_fails_half_way_leaves_nothing(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
    fails: str,
) -> None:
    with failing(fails), pytest.raises(apsw.ConstraintError, match="fault"):
        say(transcripts, talk, call("c"), result("c", "x" * 90_000), user("b"))

    assert transcripts.messages(talk) == []
    assert read_events(reader) == []
    for table in ("payload", "transcript_payload"):
        assert reader.execute(f"SELECT count(*) FROM {table}").get == 0
    assert len(say(transcripts, talk, call("c"), result("c", "x" * 90_000), user("b"))) == 3


def test_a_fold_without_its_event_is_no_fold(
    folder: DataFolder, transcripts: SqliteTranscripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("a"))

    with failing("BEFORE INSERT ON event"), pytest.raises(apsw.ConstraintError, match="fault"):
        transcripts.fold(talk, "a")

    assert transcripts.folds(talk) == []


def test_a_store_that_another_holds_is_waited_for_and_then_told(
    folder: DataFolder, transcripts: SqliteTranscripts, talk: ConversationId
) -> None:
    other = apsw.Connection(str(folder.database))
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()

    assert texts(say(transcripts, talk, user("waited"))) == ["waited"]
    other.close()


@pytest.mark.covers("TR-21")
def test_messages_and_folds_have_their_events_without_content(
    transcripts: SqliteTranscripts, talk: ConversationId, reader: apsw.Connection
) -> None:
    trace_id, span_id = bytes(range(16)), bytes(range(8))
    transcripts.append(talk, [NewMessage(user("secret plan"), trace_id=trace_id, span_id=span_id)])
    say(transcripts, talk, call("c"), result("c", "evidence"))
    transcripts.fold(talk, "the plan", actor="ada")

    found = read_events(reader)[::-1]

    assert [one.type for one in found] == [
        "message.inbound",
        "message.outbound",
        "transcript.folded",
    ]
    assert (found[0].trace_id, found[0].span_id) == (trace_id, span_id)
    assert {one.subject for one in found} == {"conversation:talk"}
    assert found[2].who == "ada"
    assert "plan" not in "".join(one.body for one in found)


def test_a_message_sent_twice_has_one_event(
    transcripts: SqliteTranscripts, talk: ConversationId, reader: apsw.Connection
) -> None:
    once = NewMessage(user("once"), id=bytes(16))
    transcripts.append(talk, [once])
    transcripts.append(talk, [once])

    assert len(read_events(reader)) == 1


@pytest.mark.covers("TR-18")
def test_the_original_of_a_clipped_result_stays_when_garbage_is_collected(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
) -> None:
    text = f"key {SECRET} " + "data " * 40_000
    _, stored = say(transcripts, talk, call("c1"), result("c1", text))
    digest = parse_payload_ref(stored.clips[0].payload)

    whole = read_payload(folder, get_payload(reader, digest)).decode()
    connection = open_for_maintenance(folder)
    unused = unused_payloads(connection, now_ns=(1 << 62) + GRACE_NS)
    connection.close()

    assert whole.startswith("key ‹redacted:")
    assert whole.endswith("data data ")
    assert unused == []
    assert decode_all(reader).is_sound
    blob_path(folder, digest).unlink()
    assert "is missing" in str(decode_all(reader).problems)


def test_without_content_there_is_no_transcript(
    folder: DataFolder, transcripts: SqliteTranscripts, talk: ConversationId
) -> None:
    strict = SqliteTranscripts(folder, RetentionMode.METADATA_ONLY, Redactor(folder.key()))
    say(transcripts, talk, user("kept before"))

    for attempt in (
        lambda: strict.ensure("name"),
        lambda: say(strict, talk, user("words")),
        lambda: strict.fold(talk, "words"),
        lambda: strict.mark(talk, 0, "redacted", reason="words"),
        lambda: strict.spawn(talk, "words"),
    ):
        with pytest.raises(TranscriptWithheld):
            attempt()
    assert texts(strict.messages(talk)) == ["kept before"]


def test_full_payloads_keeps_what_was_said(folder: DataFolder) -> None:
    full = SqliteTranscripts(folder, RetentionMode.FULL_PAYLOADS, Redactor(folder.key()))
    talk = full.ensure("open").id

    assert SECRET in say(full, talk, user(f"key {SECRET}"))[0].content


@pytest.mark.covers("TR-23")
def test_the_folded_part_is_archived_and_proved(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
    tmp_path: Path,
) -> None:
    path = tmp_path / "talk.jsonl"

    def archive() -> object:
        return write_archive(folder, reader, talk, path, actor="me", clock=lambda: 1)

    say(transcripts, talk, user("a"), call("c1"), result("c1", "x" * 90_000))
    with pytest.raises(NothingToFold):
        archive()
    transcripts.fold(talk, "a and x")
    say(transcripts, talk, user("later"))
    made = archive()

    size = transcript_size(reader, talk)
    assert check_archive(reader, path) == made
    assert (size.archives, size.item.messages, size.item.folded_until) == (1, 4, 2)
    assert size.folded_bytes < size.item.size_bytes
    assert size.payload_bytes == 90_000
    assert size.roles == {"assistant": 1, "tool": 1, "user": 2}
    assert len(path.read_text().splitlines()) == 4
    with pytest.raises(StoreError, match="overwritten"):
        archive()
    path.write_text(path.read_text().replace('"a"', '"b"'))
    with pytest.raises(StoreCorruptError, match="altered"):
        check_archive(reader, path)


@pytest.mark.covers("TR-23")
def test_an_archive_is_held_against_the_messages_that_are_stored(
    folder: DataFolder,
    transcripts: SqliteTranscripts,
    talk: ConversationId,
    reader: apsw.Connection,
    tmp_path: Path,
) -> None:
    say(transcripts, talk, user("pay 10"), user("pay 20"))
    transcripts.fold(talk, "payments")
    path = tmp_path / "talk.jsonl"
    write_archive(folder, reader, talk, path, actor="me", clock=lambda: 1)
    altered = open_for_maintenance(folder)
    with triggers_dropped(altered):
        altered.execute(
            "UPDATE transcript_message SET content = replace(content, 'pay 20', 'pay 90')"
        )
    altered.close()

    with pytest.raises(StoreCorruptError, match="position 1 is another one here"):
        check_archive(reader, path)


def test_transcripts_are_listed_page_by_page(
    transcripts: SqliteTranscripts, reader: apsw.Connection
) -> None:
    for number in range(5):
        say(transcripts, transcripts.ensure(f"talk {number}").id, user(f"hello {number}"))

    first = list_transcripts(reader, limit=3)
    rest = list_transcripts(reader, limit=3, cursor=first.next_cursor)

    assert [one.first_input for one in (*first.items, *rest.items)] == [
        f"hello {number}" for number in (4, 3, 2, 1, 0)
    ]
    assert rest.next_cursor is None
    assert list_transcripts(reader, name="talk 2").items[0].messages == 1
