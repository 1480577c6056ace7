"""Runs, steps and tools told over HTTP: what is stored is what the SDK would have sent."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from hansard_web.app.config import WebSettings
from tests.web.sidecar.conftest import Agent, House

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def steps_of(agent: Agent, run_id: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in agent.get(f"/v1/runs/{run_id}/steps")["items"]}


# ---- SC-01, SC-02


@pytest.mark.covers("SC-01")
def test_a_run_is_shown_open_from_its_first_request_and_ends_as_told(agent: Agent) -> None:
    told = agent.tell(
        "/v1/runs/start",
        {
            "agent_name": "clerk",
            "domain": "support",
            "user_goal": "Refund order 7",
            "conversation_id": "conv-1",
            "tags": ["beta"],
            "metadata": {"order": 7},
        },
    )
    open_run = agent.get(f"/v1/runs/{told['run_id']}")

    ended = agent.tell(f"/v1/runs/{told['run_id']}/end", {"output": "Refunded."})

    run = agent.get(f"/v1/runs/{told['run_id']}")
    root = agent.step(told["step_id"])
    assert open_run["status"] == "open"
    assert ended["status"] == "completed"
    assert (run["status"], run["agent"], run["domain"]) == ("ok", "clerk", "support")
    assert run["conversation_id"] == "conv-1"
    assert run["first_input"] == "Refund order 7"
    assert root["attributes"]["hansard.run.metadata.order"] == 7
    assert root["dialect"] == "hansard"
    assert root["output"] == "Refunded."


@pytest.mark.covers("SC-02")
def test_a_step_takes_inputs_calls_and_results_over_several_requests(agent: Agent) -> None:
    run_id = agent.start()
    path = f"/v1/runs/{run_id}/steps"
    step = agent.tell(path, {"name": "plan", "kind": "chain", "inputs": ["first"]})

    agent.tell(path, {"step_id": step["step_id"], "inputs": ["second", {"path": "b"}]})
    agent.tell(
        path,
        {
            "step_id": step["step_id"],
            "tool_calls": [{"name": "find", "arguments": {"id": 7}, "call_id": "c1"}],
        },
    )
    ended = agent.tell(
        path,
        {
            "step_id": step["step_id"],
            "tool_results": [{"call_id": "c1", "result": {"total": 12}}],
            "output": "found",
            "status": "completed",
        },
    )

    plan = agent.step(step["step_id"])
    tool = next(
        one for one in agent.get(f"/v1/runs/{run_id}/steps")["items"] if one["role"] == "tool"
    )
    assert len(ended["input_refs"]) == 2
    assert [one["name"] for one in plan["payloads"]] == [
        "hansard.step.input[0]",
        "hansard.step.input[1]",
    ]
    assert plan["status"] == "unset"
    assert plan["output"] == "found"
    assert tool["parent_span_id"] == step["span_id"]
    assert agent.step(tool["step_id"])["tool"]["result"] == {"total": 12}


def test_a_server_that_was_stopped_knows_as_much_as_before(house: House) -> None:
    agent = house.serve()
    run_id = agent.start()
    step = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "look", "input": {"q": "x" * 3000}})
    agent.tell("/v1/tools/call", {"run_id": run_id, "name": "find", "call_id": "c1"})
    house.stop()

    agent = house.serve()
    agent.tell("/v1/tools/result", {"run_id": run_id, "call_id": "c1", "result": "here"})
    agent.tell(f"/v1/runs/{run_id}/steps", {"step_id": step["step_id"], "status": "completed"})
    agent.tell(f"/v1/runs/{run_id}/end")

    steps = steps_of(agent, run_id)
    assert [one["status"] for one in steps.values()] == ["unset"] * 3
    assert "x" * 3000 in agent.step(step["step_id"])["input"]
    assert agent.get(f"/v1/runs/{run_id}")["span_count"] == 3


def test_what_is_open_when_a_run_ends_ends_with_it_and_says_so(agent: Agent) -> None:
    run_id = agent.start()
    step = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "look"})
    agent.tell(
        "/v1/tools/call", {"run_id": run_id, "name": "find", "parent_step_id": step["step_id"]}
    )

    ended = agent.tell(f"/v1/runs/{run_id}/end", {"status": "failed", "error": "no such order"})

    look = agent.step(step["step_id"])
    assert len(ended["unended_steps"]) == 2
    assert agent.get(f"/v1/runs/{run_id}")["status"] == "error"
    assert look["status"] == "cancelled"
    assert look["attributes"]["hansard.unended"] is True


def test_a_failure_is_told_with_its_type_and_message(agent: Agent) -> None:
    run_id = agent.start()

    told = agent.tell(
        f"/v1/runs/{run_id}/steps",
        {"name": "pay", "error": {"type": "CardRefused", "message": "expired"}},
    )

    step = agent.step(told["step_id"])
    assert told["status"] == "failed"
    assert step["status"] == "error"
    assert (step["error"]["type"], step["error"]["message"]) == ("CardRefused", "expired")


@pytest.mark.covers("SC-05", "SC-17")
def test_a_tool_call_is_on_record_before_it_runs_and_its_result_after(agent: Agent) -> None:
    run_id = agent.start()
    body = {"run_id": run_id, "name": "find", "call_id": "c1", "arguments": {"id": 7}}

    called = agent.tell("/v1/tools/call", body)
    before = agent.step(called["step_id"])
    agent.tell("/v1/tools/result", {"run_id": run_id, "call_id": "c1", "result": {"total": 12}})
    after = agent.step(called["step_id"])

    assert (before["status"], before["end_ns"], before["tool"]["result"]) == ("open", None, None)
    assert before["tool"]["arguments"] == {"id": 7}
    assert (after["status"], after["tool"]["result"]) == ("unset", {"total": 12})
    assert int(after["end_ns"]) >= int(after["start_ns"]) == int(before["start_ns"])


@pytest.mark.covers("SC-05")
def test_a_tool_that_failed_is_a_step_that_failed_and_says_why(agent: Agent) -> None:
    run_id = agent.start()
    called = agent.tell("/v1/tools/call", {"run_id": run_id, "name": "find", "call_id": "c1"})
    failure = {"type": "LookupError", "message": "no order 7"}

    agent.tell(
        "/v1/tools/result",
        {"run_id": run_id, "call_id": "c1", "status": "failed", "error": failure},
    )

    step = agent.step(called["step_id"])
    assert step["status"] == "error"
    assert "LookupError" in json.dumps(step["error"])
    assert "no order 7" in json.dumps(step["error"])


def test_a_result_without_a_call_is_a_step_of_its_own(agent: Agent) -> None:
    run_id = agent.start()

    told = agent.tell(
        "/v1/tools/result",
        {"run_id": run_id, "name": "find", "call_id": "c9", "result": 1, "duration_ms": 250},
    )

    step = agent.step(told["step_id"])
    assert step["attributes"]["hansard.tool.recorded_part"] == "result"
    assert 249 <= step["duration_ms"] <= 5_000


def test_times_of_the_program_are_kept(agent: Agent) -> None:
    run = agent.tell("/v1/runs/start", {"started_at": "2026-01-31T12:00:00Z"})

    agent.tell(f"/v1/runs/{run['run_id']}/end", {"ended_at": "2026-01-31T12:00:01.5Z"})

    found = agent.get(f"/v1/runs/{run['run_id']}")
    assert found["started_at"] == "2026-01-31T12:00:00.000000000Z"
    assert found["duration_ms"] == 1500


# ---- trace context


def test_a_run_of_its_own_links_to_its_caller(agent: Agent) -> None:
    told = agent.tell("/v1/runs/start", {"agent_name": "sub"}, traceparent=CALLER)

    (link,) = agent.step(told["step_id"])["links"]
    assert told["run_id"] != CALLER[3:35]
    assert link["attributes"] == {"hansard.link.type": "caller"}
    assert (link["run_id"], link["span_id"]) == (CALLER[3:35], CALLER[36:52])


def test_a_nested_run_joins_the_trace_of_its_caller_and_ends_alone(agent: Agent) -> None:
    outer = agent.tell("/v1/runs/start", {"agent_name": "chief"})
    inner = agent.tell(
        "/v1/runs/start", {"agent_name": "sub", "nest": True}, traceparent=outer["traceparent"]
    )
    agent.tell(
        f"/v1/runs/{inner['run_id']}/steps",
        {"name": "work", "parent_step_id": inner["step_id"]},
    )

    agent.tell(f"/v1/runs/{inner['run_id']}/end", {"step_id": inner["step_id"]})

    steps = steps_of(agent, outer["run_id"])
    assert inner["run_id"] == outer["run_id"]
    assert [one["depth"] for one in steps.values()] == [0, 1, 2]
    assert steps["invoke_agent chief"]["status"] == "open"
    assert steps["invoke_agent sub"]["status"] == "unset"
    assert steps["work"]["status"] == "unset"


@pytest.mark.parametrize(
    "header",
    ["", "00-xyz", "ff" + CALLER[2:], CALLER.replace("00f067aa0ba902b7", "0" * 16), CALLER[:-4]],
)
def test_a_traceparent_that_is_none_is_passed_over(agent: Agent, header: str) -> None:
    told = agent.tell("/v1/runs/start", {"nest": True, "traceparent": header})

    assert agent.step(told["step_id"])["links"] == []
    assert agent.step(told["step_id"])["parent_span_id"] is None


# ---- the same request again


def test_a_request_sent_again_under_its_key_does_nothing_twice(house: House) -> None:
    agent = house.serve()
    first = agent.post("/v1/runs/start", {"agent_name": "clerk"}, idempotency_key="k1")
    run_id = first.json()["run_id"]
    step = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "a"}, idempotency_key="k2")
    house.stop()

    agent = house.serve()
    again = agent.post("/v1/runs/start", {"agent_name": "clerk"}, idempotency_key="k1")
    step_again = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "a"}, idempotency_key="k2")

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert step_again == step
    assert agent.get(f"/v1/runs/{run_id}")["span_count"] == 2


def test_another_body_under_a_known_key_is_refused(agent: Agent) -> None:
    agent.post("/v1/runs/start", {"agent_name": "clerk"}, idempotency_key="k1")

    answer = agent.post("/v1/runs/start", {"agent_name": "other"}, idempotency_key="k1")

    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_key_reused"


def test_a_refused_request_leaves_its_key_free(agent: Agent) -> None:
    run_id = agent.start()
    path = f"/v1/runs/{run_id}/steps"
    refused = agent.post(path, {"step_id": run_id + "-0123456789abcdef"}, idempotency_key="k")

    taken = agent.post(path, {"name": "a"}, idempotency_key="k")

    assert refused.status_code == 404
    assert taken.status_code == 200


def test_two_programs_that_tell_one_run_at_once_both_are_heard(agent: Agent) -> None:
    run_id = agent.start()
    path = f"/v1/runs/{run_id}/steps"
    step = agent.tell(path, {"name": "shared"})["step_id"]

    def tell(number: int) -> None:
        agent.tell(path, {"step_id": step, "inputs": [f"item {number}"]})

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(agent.step(step)["attributes"]["hansard.step.input_refs"]) == 8


# ---- retention


def test_secrets_in_what_is_told_are_not_stored(house: House) -> None:
    agent = house.serve()
    secret = "sk-ant-api03-" + "Ab1" * 31 + "AA"
    run = agent.tell("/v1/runs/start", {"user_goal": f"use {secret}", "input": {"k": secret}})
    agent.tell(
        f"/v1/runs/{run['run_id']}/steps",
        {"name": "a", "inputs": [secret], "output": "x " * 1000 + secret, "error": secret},
    )
    agent.tell(f"/v1/runs/{run['run_id']}/end")
    house.stop()

    stored = b"".join(path.read_bytes() for path in house.folder.path.rglob("*") if path.is_file())
    assert secret.encode() not in stored


def test_where_no_content_is_kept_steps_go_on_all_the_same(house: House) -> None:
    agent = house.serve(WebSettings(retention="metadata_only"))
    run = agent.tell("/v1/runs/start", {"agent_name": "clerk", "user_goal": "my canary words"})
    path = f"/v1/runs/{run['run_id']}/steps"
    step = agent.tell(path, {"name": "look", "inputs": ["canary"], "input": {"canary": "canary"}})
    agent.tell(path, {"step_id": step["step_id"], "output": "canary" * 999, "error": "canary"})
    agent.tell(f"/v1/runs/{run['run_id']}/end", {"output": "canary"})

    assert agent.get(f"/v1/runs/{run['run_id']}")["status"] == "ok"
    assert step["input_refs"] == []
    look = agent.step(step["step_id"])
    assert look["status"] == "error"
    assert look["attributes"]["hansard.output_size"] > 5_000
    house.stop()
    stored = b"".join(path.read_bytes() for path in house.folder.path.rglob("*") if path.is_file())
    assert b"canary" not in stored
