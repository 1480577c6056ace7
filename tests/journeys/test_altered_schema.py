# ruff: noqa: E501 - a statement is read as a whole
"""A store whose schema somebody altered with `sqlite3`: named, and nothing goes through it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.repair import repair_schema
from hansard_store.audit.schedule import SealSchedule
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.sql_console import read_sql
from hansard_store.database.transactions import latest_version
from hansard_store.errors import SchemaAlteredError, StoreError
from hansard_store.verification.integrity import verify_store
from tests.collector.ingesting import span, traces
from tests.journeys.processes import Serving, hansard, hosting
from tests.store.empty import empty_store
from tests.store.test_migrations import store_of_version

_AFTER = "CREATE TRIGGER planted AFTER INSERT ON {0} BEGIN {1}; END"

# What is done to the schema, and the object that is named.
ALTERED = {
    "a check that says what it did not": (
        _AFTER.format("policy_check", "UPDATE policy_check SET effect = 'allow' WHERE rowid = new.rowid"),
        "trigger 'planted' on policy_check is not of Hansard"),
    "a check that is not kept": (
        "CREATE TRIGGER planted BEFORE INSERT ON policy_check BEGIN SELECT raise(IGNORE); END",
        "trigger 'planted' on policy_check is not of Hansard"),
    "another note": (
        _AFTER.format("annotation", "UPDATE annotation SET text = 'fine' WHERE rowid = new.rowid"),
        "trigger 'planted' on annotation is not of Hansard"),
    "a token that may do more": (
        _AFTER.format("principal_token", "UPDATE principal_token SET scopes = 'read+decide' WHERE rowid = new.rowid"),
        "trigger 'planted' on principal_token is not of Hansard"),
    "nobody asked": (
        _AFTER.format("approval", "UPDATE approval SET requested_by = NULL WHERE rowid = new.rowid"),
        "trigger 'planted' on approval is not of Hansard"),
    "an event that does not come": (
        "CREATE TRIGGER planted BEFORE INSERT ON event BEGIN SELECT raise(IGNORE); END",
        "trigger 'planted' on event is not of Hansard"),
    "a span elsewhere": (
        _AFTER.format("span", "UPDATE span SET name = 'other' WHERE rowid = new.rowid"),
        "trigger 'planted' on span is not of Hansard"),
    "no tombstones": (
        "CREATE TRIGGER planted BEFORE INSERT ON tombstone BEGIN SELECT raise(IGNORE); END",
        "trigger 'planted' on tombstone is not of Hansard"),
    "a trigger of an index": (
        _AFTER.format("text_fts_data", "SELECT 1"),
        "trigger 'planted' on text_fts_data is not of Hansard"),
    "a shipped trigger dropped": (
        "DROP TRIGGER event_stays", "trigger 'event_stays' on event is missing"),
    "a shipped trigger that does nothing": (
        "DROP TRIGGER event_stays; CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT 1; END",
        "trigger 'event_stays' on event is not as Hansard makes it"),
    "an invented approval": (
        "DROP VIEW pending_actions; CREATE VIEW pending_actions AS SELECT 'cafe' AS approval_id, 'wire' AS tool",
        "view 'pending_actions' is not as Hansard makes it"),
    "no view": ("DROP VIEW runs", "view 'runs' is missing"),
    "a view more": ("CREATE VIEW mine AS SELECT 1", "view 'mine' is not of Hansard"),
    "a table more": ("CREATE TABLE mine (a)", "table 'mine' is not of Hansard"),
    "a view in place of a table": (
        "ALTER TABLE sender RENAME TO sender_kept; CREATE VIEW sender AS SELECT * FROM sender_kept",
        "view 'sender' is not of Hansard"),
    "a trigger instead of a view": (
        "CREATE TRIGGER planted INSTEAD OF INSERT ON runs BEGIN SELECT 1; END",
        "trigger 'planted' on runs is not of Hansard"),
    "a column more": (
        "ALTER TABLE annotation ADD COLUMN more TEXT DEFAULT 'x'", "column 'more' was added"),
    "a CHECK that takes anything": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
        "'actor IN (''agent'', ''me'', ''tool'', ''system'')', '1') WHERE name = 'event'",
        "table 'event' is not as Hansard makes it"),
    "another default": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
        "'is_redacted    INTEGER NOT NULL', 'is_redacted INTEGER NOT NULL DEFAULT 1') WHERE name = 'approval'",
        "table 'approval' is not as Hansard makes it"),
    "a conflict that is ignored": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, "
        "'effect      TEXT NOT NULL', 'effect TEXT NOT NULL ON CONFLICT IGNORE') WHERE name = 'policy_check'",
        "table 'policy_check' is not as Hansard makes it"),
    "a trigger with a name of SQLite's": (
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_stat1', 'approval', 0, "
        "'CREATE TRIGGER sqlite_stat1 AFTER INSERT ON approval BEGIN UPDATE approval SET status = ''approved''; END')",
        "trigger 'sqlite_stat1' on approval is not of Hansard"),
    "an index that ignores words": (
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE ''text_fts_config''"
        "(k PRIMARY KEY ON CONFLICT IGNORE, v) WITHOUT ROWID' WHERE name = 'text_fts_config'",
        "table 'text_fts_config' is not as Hansard makes it"),
    "a unique index": (
        "CREATE UNIQUE INDEX mine ON policy_check (time_ns)", "index 'mine' on policy_check is not of Hansard"),
}  # fmt: skip


def by_hand(folder: DataFolder, sql: str) -> None:
    """Run statements as anybody can who has the file."""
    with closing(apsw.Connection(str(folder.database))) as plain:
        plain.execute(sql)


@pytest.fixture
def store(tmp_path: Path) -> DataFolder:
    folder = empty_store(tmp_path / "data")
    with ApprovalService(folder) as desk:
        desk.propose(Proposal("wire", {"kroner": 100}))
        SealSchedule(desk.seal).end()
    return folder


def schema_findings(folder: DataFolder) -> list[str]:
    return [one.message for one in verify_store(folder).findings if one.check == "schema"]


def events(folder: DataFolder, type_: str) -> list[dict[str, Any]]:
    with closing(open_reader(folder)) as reader:
        rows = reader.execute("SELECT body FROM event WHERE type = ? ORDER BY seq", (type_,))
        return [json.loads(body) for (body,) in rows]


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("what", ALTERED)
def test_what_was_done_to_the_schema_is_named_and_nothing_is_written_through_it(
    store: DataFolder, what: str
) -> None:
    sql, named = ALTERED[what]
    with ApprovalService(store) as running:
        [waiting] = running.approvals()
        by_hand(store, sql)

        with pytest.raises(SchemaAlteredError, match="hansard repair"):
            running.approve(waiting.approval_id, by="ann")

    assert any(named in one for one in schema_findings(store))
    with pytest.raises(SchemaAlteredError):
        open_for_ingest(store)
    with ApprovalService(store) as desk, pytest.raises(SchemaAlteredError):
        desk.propose(Proposal("wire", {"kroner": 900}))


@pytest.mark.parametrize("what", ALTERED)
def test_a_repair_restores_the_schema_and_says_so_in_the_log(store: DataFolder, what: str) -> None:
    sql, named = ALTERED[what]
    by_hand(store, sql)

    made = repair_schema(store, by="ann")

    assert verify_store(store).findings == []
    assert made.kept_as is not None
    assert (store.path / made.kept_as).exists()
    [event] = events(store, "schema.repaired")
    assert any(named in one for one in event["objects"])
    with ApprovalService(store) as desk:
        [waiting] = desk.approvals()
        assert desk.approve(waiting.approval_id, by="ann").status == "approved"
    assert repair_schema(store, by="ann").mended == ()


def test_an_index_that_somebody_added_is_a_note(store: DataFolder) -> None:
    by_hand(store, "CREATE INDEX mine ON policy_check (time_ns); ANALYZE")

    report = verify_store(store)

    assert report.findings == []
    assert report.notes == ["index 'mine' on policy_check is not of Hansard"]
    open_for_ingest(store).close()


@pytest.mark.parametrize("version", [1, 5, 10, 14, 20, 22])
def test_an_older_store_with_a_trigger_of_somebody_else_is_not_migrated(
    tmp_path: Path, version: int
) -> None:
    folder = store_of_version(tmp_path / "data", version)
    by_hand(folder, _AFTER.format("span", "UPDATE span SET name = 'other'"))

    with pytest.raises(SchemaAlteredError, match="'planted'"):
        open_for_ingest(folder)
    repair_schema(folder, by="ann")

    open_for_ingest(folder).close()
    assert schema_findings(folder) == []


def test_a_version_that_was_set_back_is_not_repaired_by_dropping_tables(store: DataFolder) -> None:
    by_hand(store, "PRAGMA user_version = 12")

    with pytest.raises(StoreError, match="set the number"):
        repair_schema(store, by="ann")
    by_hand(store, f"PRAGMA user_version = {latest_version()}")

    assert verify_store(store).findings == []


def test_a_schema_that_sqlite_cannot_read_is_a_finding(store: DataFolder) -> None:
    by_hand(store, "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM "
                   "sqlite_schema WHERE name = 'event_stays'")  # fmt: skip

    assert any("malformed" in one.message for one in verify_store(store).findings)
    with pytest.raises(StoreError):
        open_for_ingest(store)


def test_a_view_of_somebody_else_is_not_asked(store: DataFolder) -> None:
    by_hand(store, ALTERED["an invented approval"][0])

    with pytest.raises(SchemaAlteredError, match="pending_actions"):
        read_sql(store, "SELECT * FROM pending_actions")


# ---- the commands, on a store of a server that is stopped


def test_a_server_does_not_start_and_reading_goes_on(store: DataFolder) -> None:
    by_hand(store, ALTERED["a token that may do more"][0])
    data = ("--data", str(store.path))

    served = hansard("serve", *data, "--http-port", "0", "--grpc-port", "0")
    added = hansard("tokens", "add", "weak", "--scope", "read", *data)
    listed, shown = hansard("runs", "list", *data), hansard("approvals", "list", *data)
    doctor, verified = hansard("doctor", *data), hansard("verify", *data)

    for refused in (served, added):
        assert refused.returncode != 0
        assert "'planted' on principal_token" in refused.stderr
        assert "hansard repair" in refused.stderr
    assert (listed.returncode, shown.returncode) == (0, 0), listed.stderr + shown.stderr
    assert "wire" in shown.stdout
    assert (doctor.returncode, verified.returncode) == (1, 1)
    assert "trigger 'planted' on principal_token is not of Hansard" in doctor.stdout
    assert "trigger 'planted' on principal_token is not of Hansard" in verified.stdout

    repaired = hansard("repair", *data)

    assert repaired.returncode == 0, repaired.stderr
    assert "mended: trigger 'planted'" in repaired.stdout
    assert hansard("verify", *data).returncode == 0
    assert "nothing to mend" in hansard("repair", *data).stdout


# ---- while a server runs


def send(server: Serving, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"{server.http}{path}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def ingest(server: Serving, number: int) -> int:
    request = urllib.request.Request(
        f"{server.http}/v1/traces",
        data=traces([span(1, trace_id=bytes([number]) * 16)]).SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        status: int = answer.status
        return status


CALLS = {
    "/v1/policy/check": {"context": {"agent": "x"}, "tool": {"name": "rm"}},
    "/v1/approvals": {"tool": "wire", "arguments": {"kroner": 1}},
    "/v1/annotations": {"run_id": (bytes([1]) * 16).hex(), "kind": "note", "text": "no"},
    "/v1/memory/write": {
        "memory_type": "fact", "content": "a", "subject": "s", "writer": "app",
        "namespace": {"project": "p"},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "what", ["a check that is not kept", "another note", "an event that does not come", "no view"]
)
def test_a_running_server_takes_spans_and_decides_nothing(store: DataFolder, what: str) -> None:
    with hosting(store.path, decide="anyone") as server:
        assert ingest(server, 1) == 200
        assert {send(server, *one)[0] for one in CALLS.items()} <= {200, 201}
        [waiting] = [
            one["approval_id"]
            for one in json.loads(server.get("/v1/approvals"))["items"]
            if one["arguments"]["kroner"] == 100
        ]
        by_hand(store, ALTERED[what][0])

        answers = {path: send(server, path, body) for path, body in CALLS.items()}
        decided = send(server, f"/v1/approvals/{waiting}/approve", {"by": "ann"})

        for status, body in (*answers.values(), decided):
            assert (status, body["error"]["code"]) == (503, "schema_altered"), body
        assert ingest(server, 2) == 200
        assert send(server, "/v1/approvals/x/approve", {})[0] >= 400
        with pytest.raises(urllib.error.HTTPError) as told:
            server.get("/healthz")
        assert "the schema of the database was altered" in told.value.read().decode()
        assert b"the schema of the database was altered" in server.get("/health")
        assert schema_findings(store) != []
        if what != "an event that does not come":
            [event] = events(store, "schema.altered")
            assert event["count"] == 1

        made = repair_schema(store, by="ann")

        assert len(made.mended) == 1
        assert send(server, f"/v1/approvals/{waiting}/approve", {"by": "ann"})[0] == 200
    report = verify_store(store)
    assert report.findings == []
    assert report.seals.altered_rows > 0
    assert report.seals.altered_events
    assert (
        "sealed after the schema was altered" in hansard("verify", "--data", str(store.path)).stdout
    )


def test_a_trigger_that_came_and_went_while_a_server_ran_stays_on_record(store: DataFolder) -> None:
    with hosting(store.path) as server:
        assert ingest(server, 1) == 200
        by_hand(store, ALTERED["a span elsewhere"][0])
        assert ingest(server, 2) == 200
        by_hand(store, "DROP TRIGGER planted")
        assert ingest(server, 3) == 200

    [event] = events(store, "schema.altered")
    report = verify_store(store)

    assert "'planted' on span" in event["objects"][0]
    assert report.findings == []
    assert report.seals.altered_rows >= 3
