"""A tool step shows what became of the draft that it proposed, and not of a later one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import hansard
from hansard.errors import PolicyDenied
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.web.html import parse

DENY = {
    "id": "no-staff", "effect": "deny", "conditions": {"arguments.to": "staff"},
}  # fmt: skip


@dataclass
class DraftedRun:
    """A store that a program filled, served."""

    client: TestClient
    path: Path
    steps: list[str]  # of the tool calls, in order
    sent: list[str]

    def gate(self, at: int) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/v1/steps/{self.steps[at]}").json()["gate"]
        return found

    def panel(self, at: int) -> Any:
        run_id, _, span = self.steps[at].partition("-")
        page = parse(self.client.get(f"/runs/{run_id}?span={span}").text)
        return page.one("div", class_="gated")


@pytest.fixture
def drafted(tmp_path: Path) -> Iterator[DraftedRun]:
    """Draft 1 is sent back, draft 2 is edited and approved, and runs in a later step."""
    sent: list[str] = []

    @hansard.tool(effect="write")
    def send(to: str, text: str) -> str:
        sent.append(f"{to}: {text}")
        return "sent"

    data = tmp_path / "data"
    hansard.init(embedded=True, data=data)
    try:
        with (
            hansard.start_run("clerk", "post"),
            hansard.gate(agent="clerk", tools=[send], policy=[DENY]) as gate,
        ):
            with pytest.raises(PolicyDenied):
                gate.call("send", {"to": "staff", "text": "hello"})
            first = gate.call("send", {"to": "ana", "text": "draft one"}).for_model()
            identity = first["approval_id"]
            hansard.approvals.revise(identity, note="kinder", by="rosa")
            gate.call("send", {"to": "ana", "text": "draft two"}, repropose=identity)
            hansard.approvals.approve(
                identity, by="rosa", arguments={"to": "ana", "text": "draft three"}
            )
            hansard.approvals.run(identity)
    finally:
        hansard.shutdown()
    folder = DataFolder(data)
    pipeline = Pipeline(
        folder, RetentionPolicy(RetentionMode.REDACTED_PAYLOADS, Redactor(folder.key()))
    )
    pipeline.start()
    with TestClient(
        create_app(folder, pipeline, WebSettings()), base_url="http://localhost"
    ) as client:
        run_id = client.get("/v1/runs").json()["items"][0]["run_id"]
        items = client.get(f"/v1/runs/{run_id}/steps").json()["items"]
        steps = [one["step_id"] for one in items if one["role"] == "tool"]
        yield DraftedRun(client, data, steps, sent)
    pipeline.close()


def test_the_draft_that_was_sent_back_is_shown_so_with_its_successor(drafted: DraftedRun) -> None:
    gate, panel = drafted.gate(1), drafted.panel(1)

    assert gate["states"] == ["requested", "sent back by rosa (draft 1)", "not run"]
    assert (gate["draft"], gate["next_draft"]) == (1, 2)
    assert gate["next_step_id"] == drafted.steps[2]
    assert "approved" not in panel.text
    assert "see draft 2" in panel.text
    links = [one["href"] for one in panel.all("a")]
    assert links == [f"/approvals/{gate['approval_id']}", f"/steps/{drafted.steps[2]}"]


def test_the_draft_that_ran_is_shown_so_on_the_step_that_proposed_and_the_one_that_ran_it(
    drafted: DraftedRun,
) -> None:
    proposed, ran = drafted.gate(2), drafted.gate(3)

    assert drafted.sent == ["ana: draft three"]
    for one in (proposed, ran):
        assert one["states"][-4:] == [
            "edited by rosa (draft 3)", "approved by rosa (claimed)", "ran", "returned",
        ]  # fmt: skip
        assert one["next_draft"] is None


def test_what_a_rule_denied_did_not_run(drafted: DraftedRun) -> None:
    assert drafted.gate(0)["states"] == ["requested", "blocked"]


def test_the_log_names_the_step_of_each_draft(drafted: DraftedRun) -> None:
    store = ApprovalService(DataFolder(drafted.path))
    history = store.history(drafted.gate(1)["approval_id"])
    store.close()

    found = [
        (str(one.type), f"{one.trace_id.hex()}-{one.span_id.hex()}")
        for one in history
        if one.trace_id and one.span_id
    ]
    first, second = drafted.steps[1], drafted.steps[2]
    assert [kind for kind, step in found if step == first] == ["action.created", "action.revised"]
    assert {step for kind, step in found[2:]} == {second}
    assert [kind for kind, _ in found[2:]][-2:] == ["action.claimed", "action.executed"]


@pytest.mark.slow
def test_the_command_line_says_the_same_and_the_store_verifies(drafted: DraftedRun) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).with_name("hansard"), *arguments, "--data", str(drafted.path)],
            capture_output=True, text=True, env=dict(os.environ), timeout=240, check=False,
        )  # fmt: skip

    shown = run("steps", "show", drafted.steps[1])
    verified = run("verify")

    assert "requested → sent back by rosa (draft 1) → not run; see draft 2" in shown.stdout
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_call_in_the_conversation_that_was_held_did_not_run(drafted: DraftedRun) -> None:
    from hansard_store.database.readers import open_reader
    from hansard_web.approvals.step_history import calls_not_run

    connection = open_reader(DataFolder(drafted.path))
    try:
        found = calls_not_run(connection, drafted.steps[0].partition("-")[0])
    finally:
        connection.close()

    assert found == {
        drafted.steps[0]: ("blocked by policy", "fail"),
        drafted.steps[1]: ("sent back by rosa", "fail"),
    }
    assert json.dumps(found)


def test_the_rows_of_the_tree_say_who_decided_each_draft_and_hatch_the_wait(
    drafted: DraftedRun,
) -> None:
    run_id = drafted.steps[1].partition("-")[0]
    page = parse(drafted.client.get(f"/runs/{run_id}").text)
    rows = {row["id"]: row for row in page.all(role="row") if "id" in row.attributes}

    first, second = (rows[f"s-{drafted.steps[at].partition('-')[2]}"] for at in (1, 2))

    assert "sent back by rosa, " in first.text
    assert "approved by rosa" not in first.text
    assert "approved by rosa, " in second.text
    assert first.all("rect", class_="human")
