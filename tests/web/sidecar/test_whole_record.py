"""The nine jobs of the sidecar in order, and the record of them as SQL and the API have it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.web.sidecar.conftest import Agent, House
from tests.web.sidecar.test_sidecar_models import QUESTION, SCRIPT, item

Json = dict[str, Any]
PROJECT = {"project": "shop"}
REPORT = "<h1>Refunds of the year</h1>\n" + "<p>none</p>\n" * 10_000  # over 64 KiB: a file
EMAIL = {"to": "ana@example.org", "body": "Refunded."}


@dataclass
class Told:
    """A run as a program told it, and what each request answered."""

    agent: Agent
    database: Path
    run_id: str = ""
    step_id: str = ""
    answers: Json = field(default_factory=dict)

    def rows(self, sql: str, **values: Any) -> list[Json]:
        """Read the file as anybody can, with the `sqlite3` of Python."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute(sql, {"run": self.run_id, **values})
            return [dict(row) for row in found]

    def payload(self, ref: str) -> Any:
        return json.loads(self.agent.client.get(f"/v1/payloads/{ref}").content)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    house = House(tmp_path_factory.mktemp("whole") / "data")
    made = Told(house.serve(), house.folder.database)
    _nine_jobs(made)
    yield made
    house.stop()


def _nine_jobs(made: Told) -> None:
    agent, answers = made.agent, made.answers
    kept = {"memory_type": "fact", "subject": "refunds", "content": "Refunds take three days."}
    agent.tell("/v1/memory/write", {"writer": "app", "namespace": PROJECT, **kept})
    # 1. start a run
    begun = {
        "agent_name": "clerk",
        "domain": "support",
        "user_goal": "Refund order 7",
        "conversation_id": "order-7",
        "user_id": "u-9",
        "metadata": {"shift": "night"},
    }
    made.run_id = agent.tell("/v1/runs/start", begun)["run_id"]
    run: Json = {"run_id": made.run_id}
    # 2. append what a step was given
    path = f"/v1/runs/{made.run_id}/steps"
    given = {
        "name": "answer",
        "kind": "chain",
        "inputs": [item("order.md", "Order 7: paid.")],
        "metadata": {"turn": 3},
    }
    made.step_id = agent.tell(path, given)["step_id"]
    # 3. fetch memory
    asked = {"namespace": PROJECT, "text": "refunds"}
    answers["read"] = agent.tell("/v1/memory/read", {**run, **asked})
    # 4. compile
    answers["compile"] = agent.tell(
        "/v1/compile",
        {
            **run,
            "step_id": made.step_id,
            "provider": "scripted",
            "model": "scripted-1",
            "token_budget": 400,
            "context_items": [
                item("almanac.md", "tides " * 3000),
                item("report.html", REPORT, kind="artifact"),
                QUESTION,
            ],
            "memory_records": answers["read"]["memory_records"],
            "compile_config": {"scope": answers["read"]["scope"]},
        },
    )
    # 5. call a model through an adapter
    compiled = {"compilation_id": answers["compile"]["compilation_id"], "script": SCRIPT}
    answers["call"] = agent.tell("/v1/model/call", {**run, "step_id": made.step_id, **compiled})
    # 6. record a tool's call and result, after policy was asked
    tool = {"name": "refund", "class": "payment", "effect": "write", "arguments": {"id": 7}}
    agent.tell("/v1/policy/check", {**run, "tool": tool})
    call = {**run, "name": "refund", "call_id": "c1", "arguments": {"id": 7}}
    answers["tool"] = agent.tell("/v1/tools/call", call)
    agent.tell("/v1/tools/result", {**run, "call_id": "c1", "result": {"refunded": True}})
    # 7. write memory
    learnt = {**kept, "subject": "order 7", "content": "It is refunded.", "namespace": PROJECT}
    answers["write"] = agent.tell("/v1/memory/write", {"writer": "app", **run, **learnt})
    # What a person has to approve.
    mail = agent.tell("/v1/tools/call", {**run, "name": "send_email", "arguments": EMAIL})
    proposal = {"tool": "send_email", "arguments": EMAIL, "effect": "write", "agent": "clerk"}
    answers["mail"] = mail
    answers["approval"] = agent.tell(
        "/v1/approvals", {**run, **proposal, "step_id": mail["step_id"]}
    )
    # 8. replay a step
    again = {"step_id": answers["call"]["step_id"], "script": SCRIPT, "wait_s": 30}
    answers["replay"] = agent.tell("/v1/replay", again)


@pytest.mark.covers("SC-16", "TS-14")
def test_the_nine_jobs_are_done_in_order_and_the_record_answers(told: Told) -> None:
    """The ninth is to ask the record."""
    steps = told.agent.get(f"/v1/runs/{told.run_id}/steps")["items"]
    runs = told.agent.get("/v1/runs?agent=clerk&q=refund")["items"]
    receipts = told.agent.get(f"/v1/receipts?run={told.run_id}&decision=exclude")["items"]

    assert {one["run_id"] for one in runs} == {told.run_id, told.answers["replay"]["run_id"]}
    begun = sorted(steps, key=lambda one: int(one["start_ns"]))
    assert [one["role"] for one in begun] == [
        "agent", "chain", "memory", "compile", "llm", "tool", "memory", "tool",
    ]  # fmt: skip
    assert told.answers["call"]["answer"]["text"] == "Refunded."
    assert [one["item_id"] for one in receipts] == ["almanac.md"]
    assert told.answers["replay"]["state"] == "done"
    assert told.answers["replay"]["same_request"] is True


@pytest.mark.covers("DM-20")
def test_a_gated_step_reads_blocked_until_it_is_decided(told: Told) -> None:
    step_id, approval = told.answers["mail"]["step_id"], told.answers["approval"]["approval_id"]

    waiting = told.agent.step(step_id)["status"]
    listed = told.agent.get(f"/v1/runs/{told.run_id}/steps")["items"]
    told.agent.tell(f"/v1/approvals/{approval}/approve", {"by": "ana"})

    assert waiting == "blocked"
    assert [one["name"] for one in listed if one["status"] == "blocked"] == [
        "execute_tool send_email"
    ]
    assert told.agent.step(step_id)["status"] == "open"


# ---- the record, as SQL has it


@pytest.mark.covers("RC-01", "RC-02")
def test_run_and_steps_are_rows_with_their_metadata(told: Told) -> None:
    [run] = told.rows("SELECT * FROM runs WHERE run_id = :run")
    steps = told.rows("SELECT * FROM steps WHERE run_id = :run ORDER BY start_ns")

    shown = told.agent.get(f"/v1/runs/{told.run_id}")
    given = {
        "agent_name": "clerk",
        "domain": "support",
        "user_goal": "Refund order 7",
        "conversation_id": "order-7",
        "user_id": "u-9",
    }
    assert {key: run[key] for key in given} == given
    assert {key: shown["agent" if key == "agent_name" else key] for key in given} == given
    # By SQL a run is in the state that the API names, with an approval that waits and without.
    assert run["status"] == shown["status"]
    assert (run["run_id"], run["name"]) == (told.run_id, shown["name"])
    assert str(run["started_ns"]) == shown["started_ns"]
    assert (run["model_calls"], run["tool_calls"]) == (1, 2)
    assert (run["step_count"], run["tokens_input"]) == (
        shown["step_count"],
        shown["tokens"]["input"],
    )
    listed = told.agent.get(f"/v1/runs/{told.run_id}/steps")["items"]
    assert {one["step_id"] for one in steps} == {one["step_id"] for one in listed}
    by_id = {one["step_id"]: one for one in steps}
    for step in listed:
        row = by_id[step["step_id"]]
        assert (row["role"], row["model"], row["tool_name"]) == (
            step["role"], step["model"], step["tool_name"],
        )  # fmt: skip
        assert (row["name"], str(row["start_ns"])) == (step["name"], step["start_ns"])
    [agent] = [one for one in listed if one["role"] == "agent"]
    kept = told.agent.step(agent["step_id"])["attributes"]
    assert kept["hansard.run.metadata.shift"] == "night"
    assert kept["hansard.run.goal"] == "Refund order 7"
    assert told.agent.step(told.step_id)["attributes"]["hansard.step.metadata.turn"] == 3


@pytest.mark.covers("RC-03")
def test_every_candidate_is_a_row_that_leads_to_the_normalized_item(told: Told) -> None:
    compiled = told.answers["compile"]["compilation_id"]
    rows = told.rows(
        "SELECT * FROM context_items WHERE compilation_id = :id ORDER BY ordinal", id=compiled
    )
    [request] = told.rows(
        "SELECT * FROM compilation_requests WHERE compilation_id = :id", id=compiled
    )

    stored = told.payload(request["request_ref"])
    items = {one["id"]: one for one in stored["context_items"]}
    known = {"order.md", "almanac.md"}
    assert known < {one["item_id"] for one in rows}
    for row in rows:
        if row["item_id"] in known:
            assert row["kind"] == items[row["item_id"]]["kind"] == "file"
            assert row["source"] == items[row["item_id"]]["source_ref"]["uri"]
    assert items["order.md"]["content"] == "Order 7: paid."
    assert items["almanac.md"]["created_at"].startswith("2026-11-22T12:00:00")


@pytest.mark.covers("RC-04")
def test_memory_reads_and_writes_are_rows_of_the_step_that_did_them(told: Told) -> None:
    rows = told.rows(
        "SELECT kind, memory_id, step_id FROM memory_events WHERE run_id = :run ORDER BY id"
    )

    read, written = told.answers["read"], told.answers["write"]
    assert rows == [
        {"kind": kind, "memory_id": memory["memory_id"], "step_id": answer["step_id"]}
        for kind, memory, answer in (
            ("read", read["items"][0], read),
            ("write", written["memory"], written),
        )
    ]
    shown = told.rows("SELECT memory_id FROM memory_records ORDER BY created_ns")
    assert [one["memory_id"] for one in shown] == [one["memory_id"] for one in rows]


@pytest.mark.covers("CP-16")
def test_the_compile_is_persisted_with_its_receipts_and_has_a_span(told: Told) -> None:
    compiled = told.answers["compile"]
    [row] = told.rows(
        "SELECT * FROM compilation_results WHERE compilation_id = :id",
        id=compiled["compilation_id"],
    )
    step = told.agent.step(compiled["step_id"])

    assert row["run_id"] == told.run_id
    result = told.payload(row["result_ref"])
    assert result["compile_hash"] == compiled["compiled"]["compile_hash"]
    assert result["decisions"] == compiled["compiled"]["decisions"]
    assert len(step["receipts"]) == len(result["decisions"])
    assert (row["excluded"], row["compressed"]) == (1, 1)
    assert (step["role"], step["span_name"]) == ("compile", "hansard.compile")


@pytest.mark.covers("ST-05")
def test_an_artifact_is_a_file_of_the_data_folder(told: Told) -> None:
    step = told.agent.step(told.answers["compile"]["step_id"])
    [receipt] = [one for one in step["receipts"] if one["item_id"] == "report.html"]

    digest = receipt["original_ref"].removeprefix("sha256:")
    blobs = told.database.parent / "blobs"
    files = [path for path in blobs.rglob("*") if path.is_file()]
    assert [one.read_text() for one in files if digest in "".join(one.parts)] == [REPORT]


@pytest.mark.covers("RC-09")
def test_tool_calls_and_results_are_kept_and_joined_in_tool_events(told: Told) -> None:
    rows = told.rows("SELECT * FROM tool_events WHERE run_id = :run ORDER BY id")
    tool = told.agent.step(told.answers["tool"]["step_id"])["tool"]

    assert [(one["name"], one["call_id"]) for one in rows if one["call_id"]] == [("refund", "c1")]
    assert all(one["ran"] for one in rows)
    assert (tool["arguments"], tool["result"]) == ({"id": 7}, {"refunded": True})


@pytest.mark.covers("RC-11")
def test_the_approval_is_a_row_linked_to_its_step(told: Told) -> None:
    step_id, made = told.answers["mail"]["step_id"], told.answers["approval"]
    [row] = told.rows(
        "SELECT lower(hex(approval_id)) AS id, lower(hex(trace_id)) || '-' || lower(hex(span_id))"
        " AS step_id, tool FROM approval WHERE lower(hex(trace_id)) = :run"
    )
    [listed] = told.agent.get(f"/v1/approvals?run={told.run_id}")["items"]

    assert row == {"id": made["approval_id"], "step_id": step_id, "tool": "send_email"}
    assert listed["step_id"] == step_id


@pytest.mark.covers("ST-01")
def test_checks_and_replays_are_rows_too(told: Told) -> None:
    [check] = told.rows("SELECT * FROM policy_events WHERE run_id = :run AND subject = 'refund'")
    [replay] = told.rows("SELECT * FROM replay_runs WHERE source_run_id = :run")

    assert check["effect"] == "allow"
    assert replay["replay_id"] == told.answers["replay"]["replay_id"]
    assert replay["mode"] == "exact"
