"""A replay that would have its provider act is refused, or approved before it is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import hansard
from hansard import instrument_client
from hansard_compiler.replay.errors import NotReplayable
from hansard_store.approvals.service import ApprovalService
from tests.instrumentation.clients.asking import CHAT
from tests.instrumentation.clients.provider import ANSWERS, SECRET, json_reply
from tests.signing import add_token, bearer
from tests.web.html import parse
from tests.web.replay.stage import Stage, staging
from tests.web.replay.wire_requests import send_raw

Json = dict[str, Any]
MCP = {
    "type": "mcp", "server_label": "wiki", "server_url": "https://wiki.example/mcp",
    "require_approval": "never",
}  # fmt: skip
ALLOWED = {"allow_provider_side_effects": True}


@pytest.fixture
def own_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with staging(tmp_path / "data", monkeypatch) as made:
        yield made


def body(api: str, **more: Any) -> bytes:
    """Return a request of an API with further fields."""
    usual: dict[str, Json] = {
        "chat": {"model": "gpt-6-luna", "messages": [{"role": "user", "content": "Hi"}]},
        "responses": {"model": "gpt-6-luna", "input": "Hi", "store": False},
        "messages": {
            "model": "claude-haiku-5-5", "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi"}],
        },
    }  # fmt: skip
    return json.dumps({**usual[api], **more}).encode()


CASES: list[tuple[str, Json]] = [
    ("responses", {"tools": [MCP]}),
    ("responses", {"conversation": "conv_1"}),
    ("responses", {"background": True}),
    ("responses", {"store": True, "previous_response_id": "resp_0"}),
    ("responses", {"tools": [{"type": "tool_of_tomorrow"}]}),
    ("chat", {"web_search_options": {}}),
    ("messages", {"mcp_servers": [{"type": "url", "url": "https://x", "name": "wiki"}]}),
    ("messages", {"tools": [{"type": "code_execution_20260521", "name": "code_execution"}]}),
]


def approve(stage: Stage, approval_id: str) -> None:
    """Grant an approval as a person at the store does."""
    store = ApprovalService(stage.folder)
    try:
        store.approve(approval_id, by="rosa")
    finally:
        store.close()


def approval_of(replay: Json) -> str:
    found: str = replay["continuation"]["approval_id"]
    return found


def log_of(stage: Stage, approval_id: str) -> list[str]:
    store = ApprovalService(stage.folder)
    try:
        return [str(one.type) for one in store.history(approval_id)]
    finally:
        store.close()


def go_on(stage: Stage, replay_id: str, **more: Any) -> Any:
    return stage.post(f"/v1/replay/{replay_id}/continue", {"wait_s": 30, **more})


@pytest.mark.covers("RP-20")
@pytest.mark.parametrize(("api", "more"), CASES, ids=lambda one: str(one)[:30])
def test_a_request_that_makes_its_provider_act_is_not_sent_again(
    api: str, more: Json, stage: Stage
) -> None:
    step_id = send_raw(stage, api, body(api, **more))
    stage.provider.received.clear()

    shown = stage.preview(step_id)
    exact = stage.refused(step_id)
    changed = stage.refused(step_id, mutations=[{"op": "set_model", "model": "other-1"}])
    fork = stage.refused(step_id, live=True)

    assert (shown["sends"], shown["needs_approval"]) == (False, False)
    assert shown["refusal"]["reason"] == "provider_side_effects"
    assert shown["provider_side_effects"][0]["path"] in shown["refusal"]["message"]
    for refused in (exact, changed, fork):
        assert refused["reason"] == "provider_side_effects"
        assert refused["side_effects"] == shown["provider_side_effects"]
    assert stage.provider.received == []
    assert stage.get(f"/v1/replay/{exact['replay_id']}")["state"] == "refused"


def test_its_recording_still_answers_and_a_change_can_take_the_tool_away(stage: Stage) -> None:
    step_id = send_raw(stage, "responses", body("responses", tools=[MCP]))
    stage.provider.received.clear()

    offline = stage.replay(step_id, recorded=True)
    without = stage.replay(step_id, mutations=[{"op": "remove_tool", "name": "wiki"}])

    assert (offline["state"], offline["same_request"]) == ("done", True)
    assert without["state"] == "done"
    assert [one.body for one in stage.provider.received] == [body("responses")]


@pytest.mark.covers("RP-20")
def test_allowed_it_waits_for_an_approval_and_is_then_sent_once(stage: Stage) -> None:
    data = body("responses", tools=[MCP])
    step_id = send_raw(stage, "responses", data)
    stage.provider.received.clear()

    shown = stage.preview(step_id, **ALLOWED)
    waiting = stage.replay(step_id, **ALLOWED)
    early = go_on(stage, waiting["replay_id"])
    approval = stage.get(f"/v1/approvals/{approval_of(waiting)}")
    sent_before = list(stage.provider.received)
    approve(stage, approval_of(waiting))
    done = go_on(stage, waiting["replay_id"]).json()
    again = go_on(stage, waiting["replay_id"])

    assert (shown["sends"], shown["needs_approval"], shown["refusal"]) == (True, True, None)
    assert (waiting["state"], waiting["reason"]) == ("waiting", "needs_approval")
    assert (waiting["run_id"], waiting["step_ids"]) == (None, [])
    assert early.json()["error"]["details"]["reason"] == "needs_approval"
    assert sent_before == []
    assert approval["tool"] == "hansard.replay.send"
    assert approval["arguments"]["request"] == waiting["request_hash"]
    assert "https://wiki.example/mcp" in json.dumps(approval["arguments"])
    assert (done["state"], done["same_request"]) == ("done", True)
    assert again.json()["error"]["details"]["reason"] == "not_waiting"
    assert [one.body for one in stage.provider.received] == [data]
    log = log_of(stage, approval_of(waiting))
    assert [one.rpartition(".")[2] for one in log] == [
        "created", "approved", "claimed", "executed",
    ]  # fmt: skip


def test_the_principal_that_requested_it_cannot_approve_it(own_stage: Stage) -> None:
    step_id = send_raw(own_stage, "responses", body("responses", tools=[MCP]))
    ana, rosa = (bearer(add_token(own_stage.folder, name)) for name in ("ana", "rosa"))
    client = own_stage.client

    waiting = client.post("/v1/replay", json={"step_id": step_id, **ALLOWED}, headers=ana).json()
    path = f"/v1/approvals/{approval_of(waiting)}/approve"
    own = client.post(path, json={}, headers=ana)
    other = client.post(path, json={}, headers=rosa)

    assert own.status_code == 403, own.text
    assert other.status_code == 200, other.text
    assert client.get(path.removesuffix("/approve")).json()["requested_by"] == ["ana"]


def test_a_rejected_one_is_never_sent(stage: Stage) -> None:
    step_id = send_raw(stage, "responses", body("responses", tools=[MCP]))
    waiting = stage.replay(step_id, **ALLOWED)
    stage.provider.received.clear()
    store = ApprovalService(stage.folder)
    store.reject(approval_of(waiting), by="rosa", reason="not again")
    store.close()

    refused = go_on(stage, waiting["replay_id"]).json()["error"]

    assert refused["details"]["reason"] == "approval_refused"
    assert stage.provider.received == []


def test_what_was_approved_is_sent_as_often_as_was_approved_and_never_retried(
    stage: Stage,
) -> None:
    step_id = send_raw(stage, "chat", body("chat", web_search_options={}))
    waiting = stage.replay(step_id, n=2, max_retries=5, **ALLOWED)
    approve(stage, approval_of(waiting))
    stage.provider.received.clear()
    stage.provider.replies.append(json_reply({"error": {"message": "busy"}}, status=503))

    failed = go_on(stage, waiting["replay_id"]).json()

    assert (failed["state"], failed["reason"]) == ("failed", "provider_failed")
    assert len(stage.provider.received) == 1
    approval = stage.get(f"/v1/approvals/{approval_of(waiting)}")
    assert approval["arguments"]["most_requests"] == 2
    assert approval["execution"]["state"] == "failed"


def test_what_cannot_be_made_again_as_it_was_approved_is_not_sent(stage: Stage) -> None:
    """A change that held a secret is kept without it, so the request would be another one."""
    step_id = send_raw(stage, "responses", body("responses", tools=[MCP]))
    change = {"op": "edit_message", "position": 0, "text": f"use {SECRET}"}
    waiting = stage.replay(step_id, mutations=[change], **ALLOWED)
    approve(stage, approval_of(waiting))
    stage.provider.received.clear()

    refused = go_on(stage, waiting["replay_id"]).json()["error"]

    assert refused["details"]["reason"] == "approval_refused"
    assert stage.provider.received == []


def test_a_rule_denies_it_before_anybody_is_asked(own_stage: Stage) -> None:
    rule = {
        "id": "no-replays",
        "effect": "deny",
        "conditions": {"tool.name": "hansard.replay.send"},
    }
    answer = own_stage.client.put(
        "/v1/policy/rules",
        json={
            "rule_sets": [{"schema_version": 1, "version": "1", "name": "mine", "rules": [rule]}],
            "version": 0,
        },
    )
    step_id = send_raw(own_stage, "responses", body("responses", tools=[MCP]))

    assert answer.is_success, answer.text
    refused = own_stage.refused(step_id, **ALLOWED)
    assert refused["reason"] == "policy_denied"
    assert refused["rule_ids"] == ["no-replays"]


def test_in_metadata_only_nothing_waits_so_nothing_is_sent(own_stage: Stage) -> None:
    step_id = send_raw(own_stage, "responses", body("responses", tools=[MCP]))
    own_stage._retention = "metadata_only"
    own_stage.close()
    own_stage.serve()
    own_stage.provider.received.clear()

    refused = own_stage.refused(step_id, **ALLOWED)

    assert refused["reason"] == "metadata_only"
    assert own_stage.provider.received == []


# ---- forks


def asking(name: str, **arguments: Any) -> Any:
    call = {
        "id": f"call_{name}", "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }  # fmt: skip
    return json_reply(
        {
            "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-6-luna",
            "choices": [{"index": 0, "finish_reason": "tool_calls",
                         "message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        }
    )  # fmt: skip


@pytest.mark.covers("RP-20")
def test_each_part_of_a_live_fork_needs_its_own_approval(stage: Stage) -> None:
    step_id = send_raw(stage, "chat", body("chat", web_search_options={}))
    waiting = stage.replay(step_id, live=True, max_turns=3, **ALLOWED)
    approve(stage, approval_of(waiting))
    stage.provider.received.clear()
    stage.provider.replies.append(asking("other", k=1))
    parted = go_on(stage, waiting["replay_id"]).json()
    result = {"results": [{"call_id": "call_other", "result": "yes"}]}

    refused = go_on(stage, waiting["replay_id"], **result)
    held = go_on(stage, waiting["replay_id"], **result, **ALLOWED).json()
    early = go_on(stage, waiting["replay_id"], **ALLOWED)
    sent = len(stage.provider.received)
    approve(stage, approval_of(held))
    done = go_on(stage, waiting["replay_id"]).json()

    assert (parted["state"], parted["reason"]) == ("waiting", "needs_results")
    assert refused.json()["error"]["details"]["reason"] == "provider_side_effects"
    assert (held["state"], held["reason"]) == ("waiting", "needs_approval")
    assert approval_of(held) != approval_of(waiting)
    assert early.json()["error"]["details"]["reason"] == "needs_approval"
    assert sent == 1
    assert done["state"] in ("done", "waiting")
    assert len(stage.provider.received) == 2
    assert stage.provider.received[1].json["messages"][-1]["content"] == "yes"
    for one in (waiting, held):
        assert log_of(stage, approval_of(one))[-1].endswith("executed")


def test_a_later_turn_of_a_fork_with_side_effects_is_not_sent(stage: Stage) -> None:
    said = ANSWERS["/v1/chat/completions"]["choices"][0]["message"]
    user = {"role": "user", "content": "Hi"}
    result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "yes"}
    headers = {"headers": {"content-type": "application/json"}}
    with stage.program(), instrument_client(CHAT.sync(stage.provider)) as client:
        for data in (
            body("chat"),
            body("chat", messages=[user, said, result], web_search_options={}),
        ):
            client.post("/chat/completions", cast_to=httpx2.Response, content=data, options=headers)
    run = stage.get("/v1/runs")["items"][0]["run_id"]
    steps = stage.get(f"/v1/runs/{run}/steps")["items"]
    first = next(one["step_id"] for one in steps if one["role"] == "llm")
    stage.provider.received.clear()

    told = stage.replay(first, mode="forward")

    assert (told["state"], told["reason"]) == ("failed", "provider_side_effects")
    assert [one.body for one in stage.provider.received] == [body("chat")]


# ---- the other ways in


@pytest.mark.slow
def test_the_command_refuses_and_with_the_flag_waits_for_the_approval(
    own_stage: Stage,
) -> None:
    data = body("responses", tools=[MCP])
    step_id = send_raw(own_stage, "responses", data)
    own_stage.close()
    own_stage.provider.received.clear()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).with_name("hansard"), *arguments,
             "--data", str(own_stage.folder.path)],
            capture_output=True, text=True, env=dict(os.environ), timeout=240, check=False,
        )  # fmt: skip

    refused = run("replay", step_id, "--yes")
    preview = run("replay", step_id, "--preview")
    waits = run("replay", step_id, "--allow-provider-side-effects", "--yes", "--json")
    assert waits.returncode == 3, waits.stderr
    waiting = json.loads(waits.stdout)
    early = run("replay", waiting["replay_id"], "--continue", "--yes")
    sent = len(own_stage.provider.received)
    approve(own_stage, approval_of(waiting))
    done = run("replay", waiting["replay_id"], "--continue", "--yes")

    assert (refused.returncode, waits.returncode, early.returncode) == (2, 3, 2)
    assert "mcp wiki" in refused.stderr
    assert "at the provider" in preview.stdout
    assert sent == 0
    assert done.returncode == 0, done.stderr
    assert [one.body for one in own_stage.provider.received] == [data]


def test_a_program_is_refused_and_with_the_flag_waits_for_the_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staging(tmp_path / "data", monkeypatch) as made:
        step_id = send_raw(made, "responses", body("responses", tools=[MCP]))
        made.close()
        made.provider.received.clear()
        hansard.init(embedded=True, data=made.folder.path)
        try:
            with pytest.raises(NotReplayable) as refused:
                hansard.replay(step_id)
            waiting = hansard.replay(step_id, allow_provider_side_effects=True)
            sent = len(made.provider.received)
            approve(made, waiting.continuation["approval_id"])
            done = hansard.continue_replay(waiting)
        finally:
            hansard.shutdown()

        assert refused.value.reason == "provider_side_effects"
        assert (waiting.state, sent) == ("waiting", 0)
        assert (done.state, len(made.provider.received)) == ("done", 1)


def test_the_page_shows_what_the_provider_would_do_and_asks_for_the_approval(
    stage: Stage,
) -> None:
    step_id = send_raw(stage, "responses", body("responses", tools=[MCP]))
    stage.provider.received.clear()

    page = parse(stage.client.get(f"/replay/{step_id}?act=exact").text)
    allowed = parse(stage.client.get(f"/replay/{step_id}?act=exact&allow=1").text)

    assert "mcp wiki: a tool that the provider runs" in page.text
    assert "Allow it for this replay, with an approval" in page.text
    assert "provider_side_effects" in page.text
    assert "Ask for the approval" in allowed.text
