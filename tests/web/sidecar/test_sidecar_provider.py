"""A provider over real HTTP: its answer is kept, and waiting for it holds nobody up."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hansard_web.app.config import WebSettings
from tests.web.sidecar.conftest import House

Json = dict[str, Any]


class _Chat(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that answers when it is let."""

    asked: threading.Event
    may_answer: threading.Event

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked.set()
        type(self).may_answer.wait(30)
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Real words."},
        }
        told = {
            "id": "chat-1",
            "object": "chat.completion",
            "model": "local-7b",
            "choices": [choice],
            "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
        }
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def chat() -> Iterator[tuple[type[_Chat], str]]:
    handler = type("Chat", (_Chat,), {"asked": threading.Event(), "may_answer": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_address[1]}/v1"
    handler.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_call_is_shown_while_it_waits_and_holds_nobody_up(
    house: House, chat: tuple[type[_Chat], str]
) -> None:
    handler, address = chat
    agent = house.serve(WebSettings(model_server=address))
    run_id = agent.start()
    answers: list[Json] = []
    body = {
        "run_id": run_id,
        "provider": "openai_compatible",
        "model": "local-7b",
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
    }
    caller = threading.Thread(target=lambda: answers.append(agent.tell("/v1/model/call", body)))
    caller.start()
    assert handler.asked.wait(20)

    agent.tell(f"/v1/runs/{run_id}/steps", {"name": "meanwhile", "status": "completed"})
    steps = {one["name"]: one for one in agent.get(f"/v1/runs/{run_id}/steps")["items"]}
    handler.may_answer.set()
    caller.join()

    (told,) = answers
    assert steps["chat local-7b"]["status"] == "open"
    assert steps["meanwhile"]["status"] == "unset"
    assert told["answer"]["text"] == "Real words."
    assert told["tokens"] == {"input": 9, "output": 3}
    response = agent.client.get(f"/v1/payloads/{told['response_ref']}").json()
    assert response["id"] == "chat-1"
    assert agent.step(told["step_id"])["status"] == "unset"


def test_a_provider_that_does_not_answer_in_time_is_504_and_told_in_the_run(
    house: House, chat: tuple[type[_Chat], str]
) -> None:
    agent = house.serve(WebSettings(model_server=chat[1]))
    run_id = agent.start()

    answer = agent.post(
        "/v1/model/call",
        {
            "run_id": run_id,
            "provider": "openai_compatible",
            "model": "local-7b",
            "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
            "timeout_s": 0.2,
            "max_retries": 0,
        },
    )

    steps = agent.get(f"/v1/runs/{run_id}/steps")["items"]
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timed_out")
    assert [one["status"] for one in steps if one["role"] == "llm"] == ["error"]


@pytest.mark.parametrize(
    "change", [{"tools": [{"description": "nameless"}]}, {"previous_response_id": "resp_1"}]
)
def test_what_the_provider_has_no_form_for_is_422_and_never_sent(
    house: House, chat: tuple[type[_Chat], str], change: Json
) -> None:
    handler, address = chat
    agent = house.serve(WebSettings(model_server=address))
    body = {
        "run_id": agent.start(),
        "provider": "openai_compatible",
        "model": "local-7b",
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
    }

    answer = agent.post("/v1/model/call", {**body, **change})

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "not_renderable")
    assert not handler.asked.is_set()


def test_a_provider_without_a_key_is_501_and_names_the_variable(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent = house.serve()
    body = {
        "run_id": agent.start(),
        "provider": "openai",
        "model": "m",
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}],
        "max_output_tokens": 5,
    }

    answer = agent.post("/v1/model/call", body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "provider_key_missing")
    assert "OPENAI_API_KEY" in answer.json()["error"]["message"]
