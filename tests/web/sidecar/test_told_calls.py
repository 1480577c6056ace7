"""Model calls that are told while they are made: what comes, in which order, and how they end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import httpx2
import pytest

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.providers.formats.sse import read_events
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from hansard_web.sidecar.model_calls import CalledModel
from tests.instrumentation.clients.provider import (
    EVENTS,
    STREAMS,
    Reply,
    event_bytes,
    json_reply,
    stream_reply,
)
from tests.web.answers import check_fits
from tests.web.conftest import Served
from tests.web.replay.stage import MODELS, SCRIPT, Stage, module_staging

Json = dict[str, Any]
CHAT = STREAMS["/v1/chat/completions"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with module_staging(tmp_path_factory.mktemp("told") / "data") as made:
        yield made


@pytest.fixture(autouse=True)
def quiet_provider(stage: Stage) -> None:
    stage.provider.received.clear()
    stage.provider.replies.clear()


@pytest.fixture(scope="module")
def url(stage: Stage) -> Iterator[str]:
    """The address of a server on a port of its own: a test client reads answers whole."""
    pipeline = Pipeline(
        stage.folder, RetentionPolicy("redacted_payloads", Redactor(stage.folder.key()))
    )
    pipeline.start()
    settings = WebSettings(model_server=f"{stage.provider.address}/v1")
    with Served(create_app(stage.folder, pipeline, settings)) as server:
        yield server.url
    pipeline.close()


def call_of(stage: Stage, provider: str, **more: Any) -> Json:
    """Return the body of a streamed call, in a run of its own."""
    run = stage.post("/v1/runs/start", {"agent_name": "clerk"}).json()["run_id"]
    return {
        "run_id": run,
        "provider": provider,
        "model": MODELS[provider],
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "Where is order 7?"}]}],
        "stream": True,
        "max_retries": 0,
        "max_output_tokens": 50,
        **({"script": SCRIPT} if provider == "scripted" else {}),
        **more,
    }


def told(stage: Stage, body: Json, **headers: str) -> list[tuple[str, Json]]:
    """Ask, and return the messages that came."""
    answer = stage.post("/v1/model/call", body, **headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [(one.name, json.loads(one.data)) for one in read_events(answer.content)]


def text_of(messages: list[tuple[str, Json]]) -> str:
    return "".join(one.get("text", "") for name, one in messages if name == "delta")


@pytest.mark.parametrize("provider", sorted(MODELS))
def test_the_pieces_of_an_answer_come_before_the_whole_of_it(stage: Stage, provider: str) -> None:
    body = call_of(stage, provider)

    messages = told(stage, body)

    names = [name for name, _ in messages]
    (_, started), (_, result) = messages[0], messages[-1]
    assert (names[0], names[-1], set(names[1:-1])) == ("started", "result", {"delta"})
    check_fits(CalledModel, result)
    assert text_of(messages) == result["answer"]["text"] != ""
    assert (started["run_id"], started["step_id"]) == (body["run_id"], result["step_id"])
    call = stage.step(result["step_id"])
    assert (call["status"], call["call"]["stream"]) == ("unset", True)
    assert stage.payload(result["response_ref"])


def test_what_a_stream_ends_with_is_what_is_answered_without_one(stage: Stage) -> None:
    body = call_of(stage, "scripted")

    _, streamed = told(stage, body)[-1]
    plain = stage.post("/v1/model/call", {**body, "stream": False}).json()

    of_the_call = ("step_id", "request_ref", "response_ref", "recipe_ref", "response_id")
    same = [name for name in plain if name not in of_the_call]
    assert {name: streamed[name] for name in same} == {name: plain[name] for name in same}


def test_a_piece_is_there_before_the_model_said_the_next(stage: Stage, url: str) -> None:
    gate = threading.Event()
    stage.provider.replies.append(stream_reply(*CHAT[1:], gate=gate))
    body = call_of(stage, "openai_compatible")

    with httpx2.stream("POST", f"{url}/v1/model/call", json=body, timeout=20) as answer:
        lines = answer.iter_lines()
        came = [next(lines) for _ in range(5)]
        meanwhile = call_in(stage, body["run_id"])["status"]
        gate.set()
        rest = list(lines)

    assert came[0] == "event: started"
    assert json.loads(came[4].removeprefix("data: ")) == {"type": "text", "text": "Grü"}
    assert meanwhile == "open"
    assert "event: result" in rest


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"provider": "nobody"}, 422, "provider_unavailable"),
        ({"run_id": "f" * 32}, 404, "not_found"),
        ({"stream": "often"}, 400, "bad_request"),
    ],
)
def test_what_is_refused_before_it_began_is_an_ordinary_answer(
    stage: Stage, change: Json, status: int, code: str
) -> None:
    answer = stage.post("/v1/model/call", {**call_of(stage, "scripted"), **change})

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("reply", "status", "code", "text"),
    [
        (json_reply({"error": {"message": "slow down"}}, status=429), 429, "rate_limited", ""),
        (stream_reply(*CHAT[1:2], breaks_off=True), 502, "stream_interrupted", "Grü"),
    ],
    ids=["refused", "broken"],
)
def test_what_fails_later_is_the_last_message_with_its_code_and_status(
    stage: Stage, reply: Reply, status: int, code: str, text: str
) -> None:
    stage.provider.replies.append(reply)

    messages = told(stage, call_of(stage, "openai_compatible"))

    (_, started), (name, error) = messages[0], messages[-1]
    assert (name, error["status"], error["error"]["code"]) == ("error", status, code)
    assert text_of(messages) == text
    assert stage.step(started["step_id"])["status"] == "error"


def test_a_request_that_is_sent_again_gets_what_was_kept_of_its_answer(stage: Stage) -> None:
    body = call_of(stage, "scripted")

    first = told(stage, body, idempotency_key="streamed")
    again = told(stage, body, idempotency_key="streamed")

    assert [name for name, _ in again] == ["result"]
    assert again[0][1] == {**first[-1][1], "answer": None}
    assert stage.get(f"/v1/runs/{body['run_id']}")["model_calls"] == 1


def test_where_nobody_reads_on_the_call_is_cancelled(stage: Stage, url: str) -> None:
    endless: Any = repeat(event_bytes(CHAT[1]))  # ends when the server closes its connection
    stage.provider.replies.append(Reply(endless, media_type=EVENTS))
    body = call_of(stage, "openai_compatible")

    with httpx2.stream("POST", f"{url}/v1/model/call", json=body, timeout=20) as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(5)][3] == "event: delta"

    deadline_s = time.monotonic() + 60
    while (status := call_in(stage, body["run_id"])["status"]) == "open":
        assert time.monotonic() < deadline_s
    assert status == "cancelled"


def call_in(stage: Stage, run_id: str) -> Json:
    """Return the model call of a run."""
    steps = stage.get(f"/v1/runs/{run_id}/steps")["items"]
    found: Json = next(one for one in steps if one["role"] == "llm")
    return found
