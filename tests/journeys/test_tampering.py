"""The store of the demo and of a server, altered with `sqlite3`: verify names what was altered."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint

from hansard_collector.derivation.verification import verify_derived
from hansard_store.approvals.errors import ApprovalConflict
from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService, open_accountability
from hansard_store.audit.event_types import Actor, Event, EventType, Head
from hansard_store.audit.hash_chain import chained_row
from hansard_store.audit.schedule import SealSchedule
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.verification.integrity import IntegrityFinding, verify_store
from tests.collector.ingesting import log, logs, metrics, span, traces
from tests.demo_store import demo_store
from tests.journeys.processes import Serving, hansard, serving
from tests.journeys.tampering import TAMPERINGS, Tampering
from tests.store.by_hand import triggers_dropped

DOCS = Path(__file__).parents[2] / "docs"
_SECRET = "AKIA" + "IOSFODNN7EXAMPLE"
_TASK = """
INSERT INTO task (task_id, state, review, level, rule, pattern, subject_kind, subject, title,
  description, count, first_ns, last_ns, counted_to, evidence, activity, threshold, window_ns,
  created_ns, updated_ns)
VALUES (zeroblob(16), 'blocked', 1, 'action', 'failed_steps', x'00', 'tool', 'wire', 't', 'd', 3, 1,
  2, 3, '[]', '[]', 3, 4, 5, 6)
"""


def _send(server: Serving, path: str, body: dict[str, Any], method: str = "POST") -> Any:
    request = urllib.request.Request(
        f"{server.http}{path}",
        data=json.dumps(body).encode(),
        method=method,
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def _otlp(server: Serving, signal: str, message: Message) -> None:
    request = urllib.request.Request(
        f"{server.http}/v1/{signal}",
        data=message.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def _fill(server: Serving) -> None:
    """Have a server store something in every table that the demo leaves empty."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.prompt": f"the key is {_SECRET}"}
    _otlp(server, "traces", traces([span(1, attributes=chat), span(2, 1)]))
    _otlp(server, "traces", traces([span(7, trace_id=bytes([9]) * 16)]))
    _otlp(server, "logs", logs([log(1)]))
    gauge = Gauge(data_points=[NumberDataPoint(time_unix_nano=1, as_int=1)])
    _otlp(server, "metrics", metrics([Metric(name="tokens", gauge=gauge)]))
    rule = {
        "id": "no-writes",
        "name": "n",
        "effect": "deny",
        "conditions": {"tool.effect": "write"},
    }
    rules = {"schema_version": 1, "name": "mine", "version": "1", "rules": [rule]}
    _send(server, "/v1/policy/rules", {"rule_sets": [rules], "version": 0}, "PUT")
    _send(server, "/v1/policy/check", {"tool": {"name": "rm", "effect": "write"}})
    run = bytes(range(16)).hex()
    _send(server, "/v1/annotations", {"run_id": run, "kind": "note", "text": "look at this"})
    more = {"name": "quality", "score": {"value": 0.25}}
    _send(server, "/v1/annotations", {"run_id": run, "kind": "score", **more})
    memory = {
        "memory_type": "fact", "content": "alice pays", "subject": "alice", "tags": ["money"],
        "writer": "app", "namespace": {"project": "p"},
    }  # fmt: skip
    _send(server, "/v1/memory/write", memory)
    _send(server, "/v1/memory/read", {"namespace": {"project": "p"}, "text": "alice"})


def _decide(data: Path) -> None:
    """Have approvals in every state, and claims that ended well and badly."""
    with open_accountability(data) as desk:
        ids = {
            tool: desk.propose(Proposal(tool, {"kroner": 100})).approval.approval_id
            for tool in ("wire", "broken", "rejected", "waits")
        }
        desk.reject(ids["rejected"], reason="too much", by="ann")
        for tool, is_ok in (("wire", True), ("broken", False)):
            desk.approve(ids[tool], by="ann")
            desk.finish(desk.claim(ids[tool]), ok=is_ok, error=None if is_ok else "no")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a row in every primary table, written by Hansard and sealed."""
    data = demo_store(tmp_path_factory)
    for name in ("ana", "bob"):
        assert (
            hansard("tokens", "add", name, "--scope", "decide", "--data", str(data)).returncode == 0
        )
    assert hansard("tokens", "revoke", "bob", "--data", str(data)).returncode == 0
    _decide(data)
    with serving(data) as server:
        _fill(server)
        gone = (bytes([9]) * 16).hex()
        assert hansard("runs", "delete", gone, "--yes", "--data", str(data)).returncode == 0
    connection = open_for_maintenance(DataFolder(data))
    connection.execute(_TASK)
    connection.close()
    with ApprovalService(data) as desk:
        SealSchedule(desk.seal).end()
    return data


@pytest.fixture
def store(made: Path, tmp_path: Path) -> DataFolder:
    shutil.copytree(made, tmp_path / "data", ignore=shutil.ignore_patterns("repositories"))
    return DataFolder(tmp_path / "data")


def _tamper(folder: DataFolder, sql: str) -> None:
    plain = sqlite3.connect(folder.database)
    with triggers_dropped(plain):
        changed = sum(plain.execute(one).rowcount for one in sql.split("; "))
    plain.commit()
    plain.close()
    assert changed > 0, "nothing was there to be altered"


def _found(folder: DataFolder, *, is_deep: bool) -> list[IntegrityFinding]:
    found = verify_store(folder).findings
    return found + (verify_derived(folder) if is_deep else [])


def test_a_store_that_nobody_altered_is_sound(store: DataFolder) -> None:
    report = verify_store(store)

    assert report.findings == []
    assert report.seals.unsealed == 0
    assert verify_derived(store) == []


@pytest.mark.covers("RC-30")
@pytest.mark.parametrize("one", TAMPERINGS, ids=lambda one: f"{one.table}: {one.what}")
def test_what_was_altered_is_named(store: DataFolder, one: Tampering) -> None:
    _tamper(store, one.sql)

    found = _found(store, is_deep=one.is_deep)

    assert one.table in {finding.table for finding in found}
    assert all(finding.row for finding in found if finding.table == one.table)


def _append_approval(plain: sqlite3.Connection, approval_id: bytes) -> None:
    """Append an approval that nobody gave, with a hash that continues the chain."""
    last = plain.execute("SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1").fetchone()
    [text] = plain.execute(
        "SELECT body FROM event WHERE approval_id = ? AND type = 'action.created'", (approval_id,)
    ).fetchone()
    body = {"arguments": json.loads(text)["arguments"], "revision": 1, "auth_method": "token"}
    event = Event(
        type=EventType.ACTION_APPROVED, actor=Actor.ME, who="ana", action="waits", source="api",
        subject=f"approval:{approval_id.hex()}", approval_id=approval_id, time_ns=1, body=body,
    )  # fmt: skip
    row = chained_row(event, Head(*last))
    plain.execute(f"INSERT INTO event VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize("with_row", [False, True])
def test_an_approval_that_continues_the_chain_is_named_and_runs_nothing(
    store: DataFolder, with_row: bool
) -> None:
    plain = sqlite3.connect(store.database)
    [found] = plain.execute("SELECT approval_id FROM approval WHERE tool = 'waits'").fetchone()
    _append_approval(plain, found)
    if with_row:
        changed = (
            "status = 'approved', decided_by = 'ana', decided_method = 'token', decided_ns = 1"
        )
        plain.execute(f"UPDATE approval SET {changed} WHERE approval_id = ?", (found,))
    plain.commit()
    plain.close()

    assert "approval" in {one.table for one in _found(store, is_deep=False)}
    with open_accountability(store.path) as desk, pytest.raises(ApprovalConflict):
        desk.claim(found.hex())


def test_the_command_names_the_row_and_ends_with_1(store: DataFolder) -> None:
    _tamper(store, TAMPERINGS[0].sql)

    ended = hansard("verify", "--data", str(store.path))
    as_json = hansard("verify", "--json", "--data", str(store.path))

    assert (ended.returncode, as_json.returncode) == (1, 1)
    assert 'has arguments {"kroner": 900}, and {"kroner": 100} by event' in ended.stdout
    assert {one["table"] for one in json.loads(as_json.stdout)["findings"]} == {"approval"}


def test_the_table_of_the_docs_is_what_is_tried() -> None:
    page = (DOCS / "accountability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (verify|--deep) \|$", page, re.MULTILINE)

    tried = [(one.table, one.what, "--deep" if one.is_deep else "verify") for one in TAMPERINGS]
    assert rows == tried
    assert len(rows) >= 60
