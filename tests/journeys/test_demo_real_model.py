"""`hansard demo --provider openai`, `anthropic`: the same agent, and a model over its real API."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.errors import ConfigError
from hansard_web.demo.coding.coder import SCRIPT
from hansard_web.demo.coding.settings import model_of
from tests.instrumentation.clients.provider import (
    MESSAGE,
    RESPONSE,
    Received,
    Reply,
    json_reply,
    providing,
)
from tests.journeys.processes import hansard

_MODELS = {"openai": "gpt-6-luna", "anthropic": "claude-haiku-5-5"}
_PATHS = {"openai": "/v1/responses", "anthropic": "/v1/messages"}
_PATCH = next(
    call["arguments"]
    for answer in json.loads(SCRIPT.read_bytes())["answers"]
    for call in answer.get("call", ())
    if "return round_cents(" in call["arguments"].get("new", "")
)


def _respond(request: Received) -> Reply:
    """Answer as a model does that needs no note: by what its prompt says came of it so far."""
    told = request.body.decode()
    is_messages = request.path == "/v1/messages"
    says = _says_as_message if is_messages else _says
    number = told.count('"type":"tool_result"' if is_messages else "function_call_output")
    if "4 passed" in told:
        return says("All four tests pass.", number)
    if "patched shop/invoice.py" in told:
        return says("Now the tests.", number, run_shell={"command": "python -m pytest"})
    if "1 failed" in told:
        return says("Round once.", number, apply_patch=_PATCH)
    return says("I look first.", number, run_shell={"command": "python -m pytest"})


def _says(text: str, number: int, **calls: Mapping[str, str]) -> Reply:
    response = copy.deepcopy(RESPONSE)
    message, call = response["output"][1:]
    message["content"][0]["text"] = text
    response["output"] = [message]
    for name, arguments in calls.items():
        made: dict[str, Any] = {**call, "name": name, "arguments": json.dumps(arguments)}
        response["output"].append({**made, "call_id": f"call_{number}"})
    return json_reply({**response, "model": _MODELS["openai"]})


def _says_as_message(text: str, number: int, **calls: Mapping[str, str]) -> Reply:
    uses = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        for name, arguments in calls.items()
    ]
    stopped = "tool_use" if uses else "end_turn"
    content = [{"type": "text", "text": text}, *uses]
    return json_reply({**MESSAGE, "content": content, "stop_reason": stopped})


@pytest.mark.covers("DE-30", "PA-01")
@pytest.mark.parametrize(("provider", "path"), _PATHS.items())
def test_the_same_agent_works_with_a_real_model_when_a_key_is_there(
    provider: str, path: str, tmp_path: Path
) -> None:
    model, variable = _MODELS[provider], provider.upper()
    with providing() as server:
        server.answer = _respond
        keys = {
            f"{variable}_API_KEY": "sk-a-key",
            f"{variable}_BASE_URL": server.address + ("/v1" if provider == "openai" else ""),
        }
        ended = hansard(
            "demo", "--exit", "--fast", "--provider", provider, "--model", model,
            "--http-port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data"), **keys,
        )  # fmt: skip
        asked = server.received

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("apply_patch shop/invoice.py: patched shop/invoice.py") == 2
    assert ended.stdout.count("approved by rosa") == 2
    assert "sent back by rosa" not in ended.stdout
    # A question each: nine of the coding agent, three of the agent that claims success.
    assert len(re.findall(r"^    http", ended.stdout, re.MULTILINE)) == 12
    assert "it said: All tests pass on release 1.4." in ended.stdout  # by a script, as ever
    assert "asked again: Not yet" in ended.stdout
    assert {one.path for one in asked} == {path}
    assert {one.json["model"] for one in asked} == {model}
    assert {_key_in(one) for one in asked} == {"sk-a-key"}
    assert b"release 1.4" not in b"".join(one.body for one in asked)
    # Two runs of four calls, one of them again to the byte, and one with more room.
    assert len(asked) == 10
    # The two runs may ask the same where their tests took equally long.
    assert Counter(one.body for one in asked).most_common(1)[0][1] >= 2
    stored = b"".join(one.read_bytes() for one in tmp_path.rglob("*") if one.is_file())
    assert b"sk-a-key" not in stored


def _key_in(request: Received) -> str:
    given = request.headers.get("x-api-key") or request.headers.get("authorization", "")
    return given.removeprefix("Bearer ")


def test_what_a_real_model_needs_is_said_before_anything_begins() -> None:
    def wanted(provider: str, model: str | None, server: str | None = None, **keys: str) -> str:
        return model_of(provider, model, model_server=server, environment=keys)

    assert wanted("scripted", None) == "scripted-1"
    assert wanted("anthropic", "claude-opus-5", ANTHROPIC_API_KEY="key") == "claude-opus-5"
    assert wanted("local", "qwen", "http://127.0.0.1:9/v1") == "qwen"
    with pytest.raises(ConfigError, match="--model NAME"):
        wanted("openai", None, OPENAI_API_KEY="key")
    with pytest.raises(ConfigError, match="set ANTHROPIC_API_KEY"):
        wanted("anthropic", "claude-opus-5", OPENAI_API_KEY="key")
    with pytest.raises(ConfigError, match="--model-server ADDRESS"):
        wanted("local", "qwen")
