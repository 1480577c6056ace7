"""From a program that compiles, through a real collector: what is named is there, byte for byte."""

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

from hansard_compiler.providers.recipe import Recipe
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.instrumentation.clients.provider import Provider, providing
from tests.instrumentation.compiling.compiling_program import LONG, MODELS
from tests.journeys.processes import Serving, environment, hansard, hosting

pytestmark = pytest.mark.slow

DEADLINE_S = 60.0
by_provider = pytest.mark.parametrize("name", MODELS)


@dataclass(frozen=True)
class Journey:
    server: Serving
    provider: Provider

    def steps(self, name: str, role: str) -> list[Any]:
        """The steps of a run of one role, in order, each as its page has it."""
        runs = json.loads(self.server.get("/v1/runs"))["items"]
        [run] = [one for one in runs if one["name"] == f"invoke_agent {name}"]
        items = json.loads(self.server.get(f"/v1/runs/{run['run_id']}/steps"))["items"]
        ids = [one["step_id"] for one in items if one["role"] == role]
        return [json.loads(self.server.get(f"/v1/steps/{step_id}")) for step_id in ids]

    def payload(self, ref: str) -> bytes:
        return self.server.get(f"/v1/payloads/{ref}")

    def sent(self, name: str) -> list[bytes]:
        """The bodies that the provider got of one run, in order."""
        model = MODELS[name].encode()
        return [one.body for one in self.provider.received if model in one.body]


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journey]:
    data = tmp_path_factory.mktemp("compiling")
    with hosting(data / "server") as server, providing() as provider:
        program = "tests.instrumentation.compiling.compiling_program"
        ended = subprocess.run(
            [sys.executable, "-m", program, server.http, provider.address, str(data / "sdk")],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment(),
            cwd=Path(__file__).parents[3],
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        yield Journey(server, provider)


def eventually(found: Callable[[], Any]) -> Any:
    """Return what is found as soon as there is something."""
    deadline = time.monotonic() + DEADLINE_S
    while not (value := found()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


@pytest.mark.covers("OT-06", "OT-07")
@by_provider
def test_the_decisions_arrive_with_references_that_lead_to_the_contents(
    name: str, journey: Journey
) -> None:
    [step] = journey.steps(name, "compile")
    told = step["attributes"]

    ids = told["hansard.item.ids"]
    assert len(ids) == told["hansard.item.total"] == 5
    assert dict(zip(ids, told["hansard.item.reasons"], strict=True))["orders"] == "policy_denied"
    for ref in told["hansard.item.payload_refs"]:
        assert f"sha256:{hashlib.sha256(journey.payload(ref)).hexdigest()}" == ref
    poem = told["hansard.item.payload_refs"][ids.index("poem")]
    assert journey.payload(poem).decode() == LONG
    assert all(len(json.dumps(value)) < 2_000 for value in told.values())


@pytest.mark.covers("RC-05", "RC-10")
@by_provider
def test_request_result_and_checks_of_the_compile_are_stored(name: str, journey: Journey) -> None:
    [step] = journey.steps(name, "compile")
    [checked] = journey.steps(name, "policy")

    request = json.loads(journey.payload(step["attributes"]["hansard.compilation.request_ref"]))
    result = json.loads(journey.payload(step["attributes"]["hansard.compilation.result_ref"]))
    checks = json.loads(journey.payload(checked["attributes"]["hansard.policy.checks_ref"]))
    assert result["compile_hash"] == step["attributes"]["hansard.compilation.hash"]
    assert [one["id"] for one in request["context_items"]][:2] == ["rules", "almanac"]
    assert [one["effect"] for one in checks].count("deny") == 1
    assert checked["parent_span_id"] == step["step_id"].partition("-")[2]


@pytest.mark.covers("RC-15")
@by_provider
def test_the_store_can_make_the_compile_again(name: str, journey: Journey) -> None:
    [step] = journey.steps(name, "compile")

    made = hansard(
        "verify", "compile", step["attributes"]["hansard.compilation.id"],
        "--data", str(journey.server.data),
    )  # fmt: skip

    assert (made.returncode, made.stderr) == (0, "")


@pytest.mark.covers("RC-07", "RC-08", "OT-08")
@by_provider
def test_the_exact_bytes_of_both_directions_are_stored(name: str, journey: Journey) -> None:
    calls = journey.steps(name, "llm")

    stored = [journey.payload(one["attributes"]["hansard.request.ref"]) for one in calls]
    answers = [journey.payload(one["attributes"]["hansard.response.ref"]) for one in calls]

    assert stored == journey.sent(name)[:2]
    assert len(stored[0]) > 2_000_000
    assert "Grüße!" in json.dumps(json.loads(answers[0]), ensure_ascii=False)
    assert answers[1].startswith(b"data: ") or answers[1].startswith(b"event: ")
    assert all(len(json.dumps(value)) < 2_000 for value in calls[0]["attributes"].values())


@pytest.mark.covers("RC-13", "RC-18")
@by_provider
def test_from_the_stored_recipe_alone_the_same_bytes_are_sent_again(
    name: str, journey: Journey
) -> None:
    call = journey.steps(name, "llm")[0]

    recipe = Recipe.model_validate_json(journey.payload(call["attributes"]["hansard.recipe.ref"]))
    assert recipe.request.is_exact
    base = recipe.request.address.removesuffix(recipe.request.path)
    adapter = adapter_for(recipe.provider, AdapterSettings(Connection(api_key="k", base_url=base)))
    adapter.resend(journey.payload(recipe.request.ref))
    adapter.close()

    assert journey.sent(name)[-1] == journey.sent(name)[0]


@by_provider
def test_the_call_is_shown_with_its_messages_and_its_tokens(name: str, journey: Journey) -> None:
    def call() -> Any:
        found = journey.steps(name, "llm")[0]["call"]
        return found if found["input"] else None

    shown = eventually(call)

    assert shown["tokens"]["input"] == 100
    assert shown["finish_reason"] == "tool_call"
    assert LONG in json.dumps(shown["input"])
    assert {"type": "text", "text": "Grüße!"} in shown["output"][0]["parts"]
