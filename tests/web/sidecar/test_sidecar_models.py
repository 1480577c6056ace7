"""Compiles and model calls over HTTP: the SDK's own spans, kept by the server."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_web.app.config import WebSettings, parse_token
from tests.web.sidecar.conftest import Agent, House

Json = dict[str, Any]
SCRIPT: Json = {
    "hansard_script": 1,
    "answers": [
        {
            "when": {"last_user_contains": "weather"},
            "call": [{"name": "get_weather", "arguments": {"city": "Oslo"}}],
        }
    ],
    "otherwise": {"say": "Refunded."},
}


def item(item_id: str, content: str, **more: Any) -> Json:
    return {
        "id": item_id,
        "kind": "file",
        "content": content,
        "source_ref": {"source_type": "file", "uri": f"file:///{item_id}"},
        "created_at": "2026-11-22T12:00:00Z",
        **more,
    }


def to_compile(run_id: str, *items: Any, **more: Any) -> Json:
    return {
        "run_id": run_id,
        "provider": "scripted",
        "model": "scripted-1",
        "token_budget": 400,
        "now": "2026-11-22T12:00:00Z",
        "context_items": list(items),
        **more,
    }


QUESTION = {"role": "user", "content": "Refund order 7, please."}


@pytest.mark.covers("SC-03")
def test_a_compile_answers_with_every_receipt_and_stands_in_the_run(agent: Agent) -> None:
    run_id = agent.start()
    step = agent.tell(
        f"/v1/runs/{run_id}/steps", {"name": "answer", "inputs": [item("small.md", "Order 7: ok")]}
    )

    told = agent.tell(
        "/v1/compile",
        to_compile(run_id, item("large.md", "word " * 3000), QUESTION, step_id=step["step_id"]),
    )

    by_id = {one["item_id"]: one for one in told["compiled"]["decisions"]}
    stored = agent.get(f"/v1/compilations/{told['compilation_id']}")
    compile_step = agent.step(told["step_id"])
    assert by_id["small.md"]["decision"] == "include"
    assert by_id["large.md"]["reason_code"]
    assert len(by_id) == 3
    assert compile_step["role"] == "compile"
    assert compile_step["parent_span_id"] == step["span_id"]
    assert {one["item_id"]: one["decision"] for one in stored["receipts"]} == {
        item_id: one["decision"] for item_id, one in by_id.items()
    }
    assert agent.get(f"/v1/runs/{run_id}")["has_receipts"] is True


@pytest.mark.covers("SC-04")
def test_a_model_is_asked_for_what_an_earlier_server_compiled(house: House) -> None:
    agent = house.serve()
    run_id = agent.start()
    step = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "answer"})["step_id"]
    compiled = agent.tell("/v1/compile", to_compile(run_id, QUESTION, step_id=step))
    house.stop()

    agent = house.serve()
    told = agent.tell(
        "/v1/model/call",
        {
            "run_id": run_id,
            "step_id": step,
            "compilation_id": compiled["compilation_id"],
            "script": SCRIPT,
        },
    )

    call = agent.step(told["step_id"])
    request = agent.client.get(f"/v1/payloads/{told['request_ref']}").content
    assert told["answer"]["text"] == "Refunded."
    assert told["finish_reason"] == "stop"
    assert call["role"] == "llm"
    assert call["parent_span_id"] == step.partition("-")[2]
    assert call["attributes"]["hansard.compilation.id"] == compiled["compilation_id"]
    assert call["call"]["output"][0]["parts"][0]["text"] == "Refunded."
    assert b"Refund order 7" in request
    assert agent.get(f"/v1/runs/{run_id}")["model_calls"] == 1


def test_a_model_is_asked_for_messages_as_they_are(agent: Agent) -> None:
    run_id = agent.start()

    told = agent.tell(
        "/v1/model/call",
        {
            "run_id": run_id,
            "provider": "scripted",
            "model": "scripted-1",
            "script": SCRIPT,
            "messages": [{"role": "user", "parts": [{"type": "text", "text": "the weather?"}]}],
            "tools": [{"name": "get_weather", "parameters": {"type": "object"}}],
        },
    )

    (call,) = told["answer"]["tool_calls"]
    assert (call["name"], call["arguments"]) == ("get_weather", {"city": "Oslo"})
    assert told["finish_reason"] == "tool_call"
    assert told["answer"]["message"]["role"] == "assistant"


def test_the_same_compile_has_the_same_hash_and_the_same_key_makes_one(agent: Agent) -> None:
    run_id = agent.start()
    body = to_compile(run_id, QUESTION)

    first = agent.tell("/v1/compile", body, idempotency_key="k")
    again = agent.tell("/v1/compile", body, idempotency_key="k")
    other = agent.tell("/v1/compile", body)

    assert again == first
    assert other["compilation_id"] != first["compilation_id"]
    assert other["compiled"]["compile_hash"] == first["compiled"]["compile_hash"]
    assert agent.get(f"/v1/runs/{run_id}")["span_count"] == 3


def test_a_model_call_sent_again_is_not_made_again(agent: Agent) -> None:
    run_id = agent.start()
    body = {
        "run_id": run_id,
        "provider": "scripted",
        "model": "m",
        "script": SCRIPT,
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
    }

    first = agent.tell("/v1/model/call", body, idempotency_key="k")
    again = agent.tell("/v1/model/call", body, idempotency_key="k")

    assert again["answer"] is None
    assert {**again, "answer": first["answer"]} == first
    assert agent.get(f"/v1/runs/{run_id}")["model_calls"] == 1


# ---- policy in a compile


@pytest.mark.covers("PO-01")
def test_the_rules_in_force_decide_in_a_compile_and_its_own_beside_them(agent: Agent) -> None:
    rules = {
        "schema_version": 1,
        "name": "house",
        "version": "1",
        "rules": [
            {
                "id": "no-wages",
                "effect": "deny",
                "applies_to": {"action": "see", "agent": "clerk"},
                "conditions": {"item.tags": {"contains": "wages"}},
            }
        ],
    }
    put = agent.put("/v1/policy/rules", {"rule_sets": [rules], "version": 0})
    assert put.is_success, put.text
    own = {
        "id": "no-drafts",
        "effect": "deny",
        "conditions": {"item.tags": {"contains": "draft"}},
    }
    run_id = agent.start()

    told = agent.tell(
        "/v1/compile",
        to_compile(
            run_id,
            item("wages.csv", "a", tags=["wages"]),
            item("draft.md", "b", tags=["draft"]),
            item("open.md", "c"),
            QUESTION,
            policy_rules=[own],
        ),
    )

    denied = {one["item_id"]: one["rule_id"] for one in told["policy"]["denied"]}
    assert denied == {"wages.csv": "no-wages", "draft.md": "no-drafts"}
    assert told["policy"]["checks"] == 4
    assert "open.md" in told["compiled"]["selected_items"]
    checks = agent.get(f"/v1/policy/checks?run={run_id}")["items"]
    assert {one["subject"]: one["effect"] for one in checks if one["effect"] == "deny"} == {
        "wages.csv": "deny",
        "draft.md": "deny",
    }
    assert (len(checks), {one["source"] for one in checks}) == (4, {"span"})


# ---- what is refused


def test_what_may_never_be_dropped_and_does_not_fit_is_told_with_its_numbers(agent: Agent) -> None:
    run_id = agent.start()
    system = {"role": "system", "content": "rule " * 900}

    answer = agent.post("/v1/compile", to_compile(run_id, system, QUESTION))

    error = answer.json()["error"]
    details = error["details"]
    assert (answer.status_code, error["code"]) == (422, "required_over_budget")
    assert details["available_tokens"] == 400
    assert details["missing_tokens"] == details["needed_tokens"] - 400
    assert details["items"][0]["tokens"] > 400
    steps = agent.get(f"/v1/runs/{run_id}/steps")["items"]
    assert [one["status"] for one in steps if one["role"] == "compile"] == ["error"]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"token_budget": -1}, 400, "invalid_budget"),
        ({"context_items": [{"id": "x", "kind": "file", "content": "a"}]}, 400, None),
        ({"compile_config": {"nonsense": 1}}, 400, "invalid_input"),
        ({"policy_rules": [{"id": "a", "name": "a", "effect": "forbid"}]}, 422, "invalid_policy"),
        ({"token_budget": "many"}, 400, "bad_request"),
        ({"run_id": "f" * 32}, 404, "not_found"),
        ({"now": "soon"}, 400, "invalid_input"),
    ],
)
def test_a_compile_that_cannot_be_says_why(
    agent: Agent, change: Json, status: int, code: str | None
) -> None:
    run_id = agent.start()

    answer = agent.post("/v1/compile", {**to_compile(run_id, QUESTION), **change})

    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"provider": "nobody"}, 422, "provider_unavailable"),
        ({"script": None}, 422, "provider_unavailable"),
        ({"script": {"answers": []}}, 422, "invalid_script"),
        ({"provider": "openai_compatible"}, 501, "provider_setup"),
        ({"messages": []}, 400, "bad_request"),
        ({"model": None}, 400, "bad_request"),
        ({"compilation_id": "0" * 32, "messages": [], "provider": None}, 404, "not_found"),
        ({"messages": [{"role": "user"}, {"parts": 3}]}, 400, "bad_request"),
        ({"script": {"hansard_script": 1, "otherwise": {"fail": "rate_limited"}}}, 429, None),
    ],
)
def test_a_model_call_that_cannot_be_says_why(
    agent: Agent, change: Json, status: int, code: str | None
) -> None:
    body: Json = {
        "run_id": agent.start(),
        "provider": "scripted",
        "model": "m",
        "script": SCRIPT,
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
    }

    answer = agent.post("/v1/model/call", {**body, **change})

    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["error"]["code"] == code


def test_an_answer_with_content_needs_a_token_that_may_read(house: House) -> None:
    tokens = ("ingest:sending-1", "ingest+read:both-of-1")
    agent = house.serve(WebSettings(tokens=tuple(map(parse_token, tokens))))
    run_id = agent.post("/v1/runs/start", {}, authorization="Bearer sending-1").json()["run_id"]
    body = to_compile(run_id, QUESTION)

    by_sender = agent.post("/v1/compile", body, authorization="Bearer sending-1")
    by_both = agent.post("/v1/compile", body, authorization="Bearer both-of-1")

    assert (by_sender.status_code, by_both.status_code) == (403, 200)


def test_where_no_content_is_kept_a_compile_answers_and_is_not_told_twice(house: House) -> None:
    agent = house.serve(WebSettings(retention="metadata_only"))
    run_id = agent.start()
    body = to_compile(run_id, {"role": "user", "content": "canary words"})

    told = agent.tell("/v1/compile", body, idempotency_key="k")
    again = agent.post("/v1/compile", body, idempotency_key="k")
    call = agent.post(
        "/v1/model/call",
        {"run_id": run_id, "compilation_id": told["compilation_id"], "script": SCRIPT},
    )

    assert told["result_ref"] is None
    assert (again.status_code, again.json()["error"]["code"]) == (409, "not_retained")
    assert (call.status_code, call.json()["error"]["code"]) == (409, "not_retained")
    house.stop()
    stored = b"".join(path.read_bytes() for path in house.folder.path.rglob("*") if path.is_file())
    assert b"canary" not in stored
