"""What the sidecar refuses, and that nothing of it is recorded."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings, parse_token
from tests.web.sidecar.conftest import Agent, House


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/runs/0123456789abcdef0123456789abcdef/steps", {"name": "a"}, 404, "not_found"),
        ("/v1/runs/xyz/end", {}, 404, "not_found"),
        ("/v1/runs/start", {"agent_nam": "x"}, 400, "bad_request"),
        ("/v1/runs/start", {"schema_version": "2"}, 400, "bad_request"),
        ("/v1/runs/start", {"agent_name": ""}, 400, "bad_request"),
        ("/v1/runs/start", {"started_at": "yesterday"}, 400, "bad_request"),
        ("/v1/runs/start", [], 400, "bad_request"),
        ("/v1/runs/start", "text", 400, "bad_request"),
        ("/v1/tools/call", {"name": "x"}, 400, "bad_request"),
    ],
)
def test_bad_requests_get_the_api_s_error(
    agent: Agent, path: str, body: object, status: int, code: str
) -> None:
    answer = agent.post(path, body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"role": "wizard", "content": "hi"}, "role: is 'wizard'; expected one of user,"),
        ({"id": "b"}, "kind: is missing"),
        ({"kind": "user_msg", "id": "b"}, "content: "),
        (7, ""),
        ({"role": "assistant", "tool_calls": 5}, "tool_calls: is no list"),
        ({"role": "assistant", "tool_calls": [1]}, "tool_calls[0]: is no object"),
        ({"role": "assistant", "tool_calls": [{"function": 3}]}, "[0].function: is no object"),
        ({"type": "reasoning", "summary": 5}, "summary: is neither a text nor a list"),
    ],
)
def test_an_input_that_no_compile_can_use_is_refused_at_once(
    agent: Agent, given: object, problem: str
) -> None:
    run_id = agent.start()

    answer = agent.post(f"/v1/runs/{run_id}/steps", {"name": "a", "inputs": ["fine", given]})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "invalid_item")
    assert problem in error["message"]
    assert "inputs[1]" in error["message"] or "item 'b'" in error["message"]
    assert len(agent.get(f"/v1/runs/{run_id}/steps")["items"]) == 1  # the run's own


@pytest.mark.covers("CP-54")
@pytest.mark.parametrize("more", [{}, {"source_ref": None}])
def test_an_item_without_a_source_is_refused_by_a_step_as_by_a_compile(
    agent: Agent, more: dict[str, None]
) -> None:
    run_id = agent.start()
    at = "2026-01-31T12:00:00Z"
    items = ["fine", {"id": "b", "kind": "file", "content": "a", "created_at": at, **more}]
    asked = {"run_id": run_id, "provider": "local", "model": "m", "token_budget": 500}

    step = agent.post(f"/v1/runs/{run_id}/steps", {"name": "a", "inputs": items})
    assert len(agent.get(f"/v1/runs/{run_id}/steps")["items"]) == 1  # the run's own
    made = agent.post("/v1/compile", {**asked, "context_items": items})

    assert (step.status_code, made.status_code) == (400, 400)
    for error in (step.json()["error"], made.json()["error"]):
        assert error["code"] == "missing_provenance"
        assert error["details"]["problems"] == [{"at": "b", "problem": "has no source_ref"}]


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize(
    "name", ["ttl_seconds", "trust_score", "importance_score", "token_estimate"]
)
def test_true_and_false_are_no_numbers_of_an_item(agent: Agent, name: str, value: object) -> None:
    run_id = agent.start()
    at = "2026-01-31T12:00:00Z"
    items = [{"id": "b", "kind": "file", "content": "a", "created_at": at, name: value}]
    asked = {"run_id": run_id, "provider": "local", "model": "m", "token_budget": 500}

    step = agent.post(f"/v1/runs/{run_id}/steps", {"name": "a", "inputs": items})
    made = agent.post("/v1/compile", {**asked, "context_items": items})

    for answer in (step, made):
        assert answer.status_code == 400, answer.text
        assert "not true or false" in answer.text
        assert name in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "user", "parts": [{"type": "text"}]}], "[0].parts[0].text is missing"),
        ([{"role": "user", "parts": [{"type": "text", "text": 5}]}], ".text is a number"),
        ([{"role": "user", "parts": [{"type": "tool_call"}]}], "[0].parts[0].id is missing"),
        ([{"role": "user", "parts": [{}]}], "[0].parts[0].type is missing"),
        ([{"role": "user", "parts": [{"type": "image"}]}], ".type is 'image'; expected one of"),
        ([{"role": "user", "parts": ["hi"]}], "[0].parts[0] is a text"),
        ([{"role": "user", "parts": "hi"}], "[0].parts is a text; expected a list"),
        ([{"role": "user", "content": "hi"}], "[0].parts is missing"),
        ([{"parts": []}], "[0].role is missing"),
    ],
)
def test_a_message_that_is_none_is_named_by_its_place(
    agent: Agent, messages: object, problem: str
) -> None:
    run_id = agent.start()
    body = {"run_id": run_id, "provider": "openai", "model": "m", "messages": messages}

    answer = agent.post("/v1/model/call", body)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "bad_request")
    assert problem in error["message"]
    assert "Error(" not in answer.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        (b'{"metadata": {"a": NaN}}', "invalid_json"),
        (b'{"agent_name": "a", "agent_name": "b"}', "invalid_json"),
        (b'{"input": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "invalid_json"),
        (b'{"input": ' + b"[" * 150 + b"]" * 150 + b"}", "invalid_json"),
        (b'{"input": "\\ud800"}', "invalid_json"),
        (b'{"input": ' + b"9" * 5_000 + b"}", "invalid_json"),
        (b'{"input": "' + b"x" * (16 * 1024 * 1024) + b'"}', "too_large"),
    ],
)
def test_hostile_json_is_refused_and_nothing_is_recorded(
    agent: Agent, body: bytes, code: str
) -> None:
    answer = agent.client.post(
        "/v1/runs/start", content=body, headers={"content-type": "application/json"}
    )

    assert answer.status_code == (413 if code == "too_large" else 400)
    assert answer.json()["error"]["code"] == code
    assert agent.get("/v1/runs")["items"] == []


def test_a_body_that_is_no_json_by_its_type_is_told_how_to_send_it(agent: Agent) -> None:
    answer = agent.client.post("/v1/runs/start", content=b"a=1")

    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]["message"]


def test_what_has_ended_does_not_go_on(agent: Agent) -> None:
    run_id = agent.start()
    step = agent.tell(f"/v1/runs/{run_id}/steps", {"name": "a", "status": "completed"})
    agent.tell("/v1/tools/result", {"run_id": run_id, "name": "t", "call_id": "c", "result": 1})

    again = agent.post(f"/v1/runs/{run_id}/steps", {"step_id": step["step_id"], "output": 1})
    twice = agent.post(
        "/v1/tools/result", {"run_id": run_id, "name": "t", "call_id": "c", "result": 2}
    )
    agent.tell(f"/v1/runs/{run_id}/end")
    late = agent.post(f"/v1/runs/{run_id}/steps", {"name": "b"})

    assert (again.status_code, again.json()["error"]["code"]) == (409, "not_open")
    assert (twice.status_code, twice.json()["error"]["code"]) == (409, "result_exists")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "not_open")


def test_an_end_before_its_start_is_refused(agent: Agent) -> None:
    run_id = agent.start()

    answer = agent.post(f"/v1/runs/{run_id}/end", {"ended_at": "2001-01-01"})

    assert answer.json()["error"]["details"] == {"parameter": "ended_at"}
    assert agent.get(f"/v1/runs/{run_id}")["status"] == "open"


def test_a_sender_s_token_may_tell_and_not_read(house: House) -> None:
    agent = house.serve(
        WebSettings(tokens=(parse_token("ingest:sending-1"), parse_token("read:reading-1")))
    )

    told = agent.post("/v1/runs/start", {}, authorization="Bearer sending-1")
    by_reader = agent.post("/v1/runs/start", {}, authorization="Bearer reading-1")
    by_nobody = agent.post("/v1/runs/start", {})
    read = agent.client.get("/v1/runs", headers={"authorization": "Bearer sending-1"})

    assert told.status_code == 201
    assert (by_reader.status_code, by_nobody.status_code, read.status_code) == (403, 401, 403)


def test_a_server_that_only_shows_refuses_to_record(house: House) -> None:
    house.serve()
    app = create_app(house.folder, None, WebSettings())
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/v1/runs/start", json={})

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "recording_disabled")


def test_a_message_of_an_unknown_role_is_refused(agent: Agent) -> None:
    run: dict[str, object] = {"run_id": agent.start(), "provider": "scripted", "model": "m"}
    item = {"role": "wizard", "content": "abracadabra"}
    message = {"role": "wizard", "parts": [{"type": "text", "text": "abracadabra"}]}

    compiled = agent.post("/v1/compile", {**run, "token_budget": 1_000, "context_items": [item]})
    called = agent.post("/v1/model/call", {**run, "messages": [message]})

    for answer in (compiled, called):
        assert answer.status_code == 400
        assert "'wizard'" in answer.text
        assert "expected one of" in answer.text
