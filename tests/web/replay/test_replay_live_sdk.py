"""A fork that goes on live with a program's own tools: each behind its gate, and only so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard._runtime import recorder as _state
from hansard.errors import GateUnavailable
from tests.instrumentation.clients.provider import json_reply
from tests.web.conftest import Served
from tests.web.replay.stage import Stage
from tests.web.replay.test_replay_forward import TURNS, recorded_run, saying

Json = dict[str, Any]
READ = saying(None, ("get", {"k": 9}))
WRITE = saying(None, ("send_email", {"to": "grace"}))
END = saying("Done.")
calls: list[Any] = []  # what really ran


def get(k: int) -> Json:
    calls.append(("get", k))
    return {"order": k, "at": "sea"}


def send_email(to: str) -> str:
    calls.append(("send_email", to))
    return "sent"


TOOLS = hansard.ToolSet(reads=[get], writes=[send_email])


@pytest.fixture(scope="module")
def address(stage: Stage) -> Iterator[str]:
    with Served(stage.app) as server:
        yield server.url


@pytest.fixture(autouse=True)
def told(address: str) -> Iterator[None]:
    """A program that was told of the server."""
    before = _state.settings()
    _state.remember(load_settings({"endpoint": address}))
    calls.clear()
    yield
    _state.remember(before)


def fork(stage: Stage, *answers: Json, tools: Any = TOOLS, **more: Any) -> Any:
    """Let a fork part at its second turn, and go on live with the program's tools."""
    steps = recorded_run(stage)
    stage.provider.replies.extend(json_reply(one) for one in (TURNS[0], *answers))
    return hansard.replay(steps[0], live=True, tools=tools, **more)


def test_a_tool_that_reads_runs_behind_the_gate_and_the_fork_goes_on(stage: Stage) -> None:
    told = fork(stage, READ, END)

    assert (told.state, calls) == ("done", [("get", 9)])
    [call] = told.live["calls"]
    assert (call["origin"], call["result"]) == ("gate", {"order": 9, "at": "sea"})
    types = [one["type"] for one in stage.get("/v1/events?limit=2")["items"]]
    assert sorted(types) == ["tool.called", "tool.returned"]


@pytest.mark.covers("RP-20")
def test_a_tool_that_writes_waits_for_an_approval_and_then_runs_once(stage: Stage) -> None:
    waiting = fork(stage, WRITE)
    still = hansard.continue_replay(waiting, tools=TOOLS)
    [held] = waiting.continuation["calls"]
    nothing_yet = list(calls)

    stage.post(f"/v1/approvals/{held['approval_id']}/approve", {"by": "ada"})
    stage.provider.replies.append(json_reply(END))
    done = hansard.continue_replay(waiting.replay_id, tools=TOOLS)

    assert (waiting.state, waiting.reason) == ("waiting", "needs_approval")
    assert (held["state"], held["block_reason"], nothing_yet) == ("blocked", "pending", [])
    assert still.continuation["calls"][0]["approval_id"] == held["approval_id"]
    assert (done.state, calls) == ("done", [("send_email", "grace")])
    assert done.live["calls"][0]["approval_id"] == held["approval_id"]


def test_what_was_rejected_does_not_run_and_a_person_may_still_say_what_came_of_it(
    stage: Stage,
) -> None:
    waiting = fork(stage, WRITE)
    approval_id = waiting.continuation["calls"][0]["approval_id"]
    stage.post(f"/v1/approvals/{approval_id}/reject", {"by": "ada", "reason": "no"})

    held = hansard.continue_replay(waiting, tools=TOOLS)
    call_id = held.continuation["calls"][0]["call_id"]
    stage.provider.replies.append(json_reply(END))
    done = hansard.continue_replay(held, results={call_id: "nobody was written to"})

    assert (held.state, held.continuation["calls"][0]["block_reason"]) == ("waiting", "rejected")
    assert (done.state, calls) == ("done", [])
    assert done.live["calls"][0]["origin"] == "hand"


def test_rules_hold_for_live_calls_and_tools_without_a_class_never_run(stage: Stage) -> None:
    def send_email(to: str) -> str:
        calls.append(to)
        return "sent"

    rules = [{"id": "no-get", "effect": "deny", "applies_to": {"action": "do"}}]
    with hansard.gate(policy=rules):
        denied = fork(stage, READ)
    unclassified = fork(stage, WRITE, tools=[send_email])

    because = [one.continuation["calls"][0]["block_reason"] for one in (denied, unclassified)]
    assert because == ["policy_denied", "unclassified"]
    assert (denied.state, calls) == ("waiting", [])


def test_a_tool_that_fails_is_told_to_the_model_as_a_failure(stage: Stage) -> None:
    async def get(k: int) -> None:
        raise ValueError(f"no order {k}")

    told = fork(stage, READ, END, tools=hansard.ToolSet(reads=[get]))

    assert told.state == "done"
    assert stage.provider.received[-1].json["messages"][-1]["content"] == "ValueError: no order 9"
    assert told.live["calls"][0]["is_error"]


def test_tools_are_for_a_fork_that_goes_on_live() -> None:
    with pytest.raises(ValueError, match="live=True"):
        hansard.replay("0" * 32 + "-" + "1" * 16, forward=True, tools=TOOLS)


def test_without_anybody_to_decide_or_record_nothing_runs(stage: Stage) -> None:
    gone = HttpDecisions(load_settings({"endpoint": "http://127.0.0.1:9"}))
    steps = recorded_run(stage)
    stage.provider.replies.extend(json_reply(one) for one in (TURNS[0], READ))

    with hansard.gate(decisions=gone), pytest.raises(GateUnavailable):
        hansard.replay(steps[0], live=True, tools=TOOLS)

    newest = stage.get("/v1/replay?limit=1")["items"][0]
    assert (newest["state"], newest["reason"], calls) == ("waiting", "needs_results", [])


def test_in_its_own_store_the_calls_of_the_program_stand_in_the_replays_run(
    tmp_path: Path, stage: Stage
) -> None:
    hansard.init(embedded=True, data=tmp_path / "own", service_name="clerk")
    script: Json = {
        "hansard_script": 1,
        "answers": [{"when": {"any_contains": "at"}, "say": "It is at sea."}],
        "otherwise": {"call": [{"name": "get", "arguments": {"k": 9}}]},
    }
    try:
        with hansard.start_run("clerk"):
            compiled = hansard.compile_step(
                inputs=[{"role": "user", "content": "Where is it?"}],
                model="scripted-1", provider=stage.adapter("scripted"), token_budget=400,
            )  # fmt: skip
            answer = hansard.call_model(compiled)
        told = hansard.replay(answer, live=True, tools=TOOLS, script=script)
        hansard.flush()
        spans = steps_of(tmp_path / "own", told.run_id)
    finally:
        hansard.shutdown()

    ours = [one for one in spans if one["name"] == "execute_tool get"]
    assert (told.state, calls, len(ours)) == ("done", [("get", 9)], 1)
    assert ours[0]["attributes"]["hansard.replay.live"] is True
    assert ours[0]["attributes"]["hansard.replay.id"] == told.replay_id


def steps_of(data: Path, run_id: str) -> list[Json]:
    """Return the spans of a run, from the store of another folder."""
    from hansard_collector.derivation.stored_span import read_step
    from hansard_store.database.data_folder import DataFolder
    from hansard_store.database.readers import open_reader

    connection = open_reader(DataFolder(data))
    try:
        rows = connection.execute(
            "SELECT id, name FROM span WHERE trace_id = ?", (bytes.fromhex(run_id),)
        ).fetchall()
        return [
            {"name": name, "attributes": read_step(connection, number).view.attributes}
            for number, name in rows
        ]
    finally:
        connection.close()
