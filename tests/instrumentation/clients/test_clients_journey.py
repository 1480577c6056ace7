"""From a program's clients through a real server: one call, one step, with the right tokens."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentation.clients.client_program import LONG
from tests.instrumentation.clients.provider import Provider, providing
from tests.journeys.processes import Serving, environment, hosting

pytestmark = pytest.mark.slow

CALLS = ["chat gpt-6-luna", "chat gpt-6-luna", "chat claude-haiku-5-5", "chat gpt-6-luna"]
DEADLINE_S = 60.0


@dataclass(frozen=True)
class Journey:
    server: Serving
    provider: Provider
    printed: str

    def get(self, path: str) -> Any:
        return json.loads(self.server.get(path))

    def run(self, agent: str) -> Any:
        name = f"invoke_agent {agent}"
        [found] = [one for one in self.get("/v1/runs")["items"] if one["name"] == name]
        return found

    def calls(self, agent: str) -> list[Any]:
        """The steps of a run that are calls of models, without those that repeat another."""
        items = self.get(f"/v1/runs/{self.run(agent)['run_id']}/steps")["items"]
        return [one for one in items if one["role"] == "llm" and not one["duplicate"]]

    def step(self, step: Any) -> Any:
        return self.get(f"/v1/steps/{step['step_id']}")


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    data = tmp_path_factory.mktemp("clients")
    with hosting(data / "server") as server, providing() as provider:
        command = [sys.executable, "-m", "tests.instrumentation.clients.client_program"]
        ended = subprocess.run(
            [*command, server.http, provider.address, str(data / "sdk")],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(),
            cwd=Path(__file__).parents[3],
        )
        assert ended.returncode == 0, ended.stderr
        yield Journey(server, provider, ended.stdout)


def eventually(found: Callable[[], Any]) -> Any:
    """Return what is found as soon as there is something."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


@pytest.mark.covers("OT-16")
@pytest.mark.parametrize("agent", ["plain", "genai and recorded", "openinference and recorded"])
def test_one_call_is_one_step_whoever_else_watches(agent: str, journey: Journey) -> None:
    run = journey.run(agent)

    assert run["model_calls"] == 4
    assert run["step_count"] == 5  # and the agent
    assert run["tokens"] == {
        "input": 400,
        "output": 80,
        "cache_read": 256,
        "cache_write": 32,
        "reasoning": 32,
    }
    calls = journey.calls(agent)
    assert [call["name"] for call in calls] == CALLS
    assert all("hansard.response.ref" in journey.step(call)["attributes"] for call in calls)


@pytest.mark.parametrize(
    ("agent", "calls"),
    [("genai alone", 2), ("openinference alone", 2), ("anthropics own", 1), ("in tasks", 3)],
)
def test_whatever_is_watched_alone_is_counted_as_often_as_it_was_called(
    agent: str, calls: int, journey: Journey
) -> None:
    run = journey.run(agent)

    assert run["model_calls"] == calls
    assert run["tokens"]["input"] == 100 * calls
    assert run["tokens"]["output"] == 20 * calls


@pytest.mark.covers("OT-07", "OT-08")
def test_a_large_request_makes_a_small_span_and_its_bytes_are_there(journey: Journey) -> None:
    [call] = journey.calls("large")
    step = journey.step(call)
    [sent] = [one.body for one in journey.provider.received if LONG.encode() in one.body]

    ref = step["attributes"]["hansard.request.ref"]
    kept = journey.server.get(f"/v1/payloads/{ref}")

    assert kept == sent
    assert ref == f"sha256:{hashlib.sha256(sent).hexdigest()}"
    assert all(len(str(value)) < 2_000 for value in step["attributes"].values())


def test_messages_that_are_only_referred_to_are_shown(journey: Journey) -> None:
    [call] = journey.calls("large")

    said = eventually(lambda: journey.step(call)["call"]["input"])

    assert said[0]["parts"] == [{"type": "text", "text": LONG}]


def test_a_stream_tells_its_first_chunk(journey: Journey) -> None:
    call = journey.step(journey.calls("plain")[-1])["call"]

    assert call["stream"] is True
    assert call["time_to_first_token_ms"] > 0
    assert call["finish_reason"] == "tool_call"


def test_an_instrumentors_messages_are_kept_too(journey: Journey) -> None:
    call = journey.step(journey.calls("genai alone")[0])["call"]

    assert [message["role"] for message in call["input"]] == ["system", "user"]
    asked_for = {"type": "tool_call", "id": "call_1", "name": "get", "arguments": {"k": 1}}
    assert asked_for in call["output"][0]["parts"]


def test_the_program_is_told_what_was_switched_on(journey: Journey) -> None:
    assert journey.printed.splitlines() == [
        "openai: on (opentelemetry-instrumentation-genai-openai 1.3b0); "
        "left off: openinference-instrumentation-openai",
        "openai: already on (openinference-instrumentation-openai 0.1.66); "
        "left off: opentelemetry-instrumentation-genai-openai",
    ]
