"""What a run says of itself is what its root was given, returned and tagged with."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import Serving, environment, hosting

PROGRAM = """
import json, sys
import hansard
hansard.init()

@hansard.agent
def part(question):
    return "words of a part"

@hansard.agent
def whole(value):
    part("asked of a part")
    return json.loads(sys.argv[2])

whole(json.loads(sys.argv[1]))
"""

TAGGED = """
import hansard
hansard.init()
with hansard.start_run("tagged", tags=["paid", "eu", "paid", ""]):
    with hansard.span("inner"):
        pass
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("data")) as running:
        yield running


def newest_run(program: str, server: Serving, data: Path, *arguments: str) -> dict[str, Any]:
    variables = environment(HANSARD_DATA=str(data), HANSARD_ENDPOINT=server.http)
    subprocess.run(
        [sys.executable, "-c", program, *arguments], env=variables, check=True, timeout=240
    )
    return dict(json.loads(server.get("/v1/runs?limit=1"))["items"][0])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (7, "7"),
        ([1, 2], "[1,2]"),
        ({"a": {"b": 1}}, '{"a":{"b":1}}'),
        (False, "false"),
        ([], "[]"),
        ("a question", "a question"),
        ("[1] is the first", "[1] is the first"),
        ([{"role": "user", "content": "Where is it?"}], "Where is it?"),
    ],
)
def test_input_and_output_of_a_run_are_those_of_its_root(
    server: Serving, tmp_path: Path, given: Any, shown: str
) -> None:
    run = newest_run(PROGRAM, server, tmp_path, json.dumps(given), json.dumps(given))

    assert (run["first_input"], run["last_output"]) == (shown, shown)
    title = server.get(f"/runs/{run['run_id']}").decode()
    assert "asked of a part" not in title.split("</h1>")[0]


def test_the_tags_of_a_program_are_tags_of_the_run(server: Serving, tmp_path: Path) -> None:
    run = newest_run(TAGGED, server, tmp_path)

    assert run["tags"] == ["eu", "paid"]
    for query in ("tag=paid", "tag=eu&tag=paid", urllib.parse.urlencode({"q": "tag:paid"})):
        page = server.get(f"/?{query}").decode()
        assert run["run_id"] in page, query
    found = json.loads(server.get("/v1/runs?tag=paid"))["items"]
    assert run["run_id"] in [one["run_id"] for one in found]
    assert json.loads(server.get("/v1/runs?tag=unpaid"))["items"] == []


def test_a_person_may_give_the_same_tag_and_take_back_their_own(
    server: Serving, tmp_path: Path
) -> None:
    run = newest_run(TAGGED, server, tmp_path)
    asked = json.dumps({"run_id": run["run_id"], "kind": "tag", "tag": "paid"})
    request = urllib.request.Request(
        f"{server.http}/v1/annotations", asked.encode(), {"Content-Type": "application/json"}
    )

    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 201

    assert json.loads(server.get(f"/v1/runs/{run['run_id']}"))["tags"] == ["eu", "paid"]


CALLS = """
import sys
import hansard
hansard.init()
with hansard.start_run("counted") as run:
    for tokens in sys.argv[1:]:
        with run.step("chat", "model_call") as step:
            step.span.set_attribute("gen_ai.operation.name", "chat")
            step.span.set_attribute("gen_ai.provider.name", "openai")
            step.span.set_attribute("gen_ai.request.model", "gpt-4o-mini")
            step.span.set_attribute("gen_ai.response.id", f"one {id(step)}")
            if tokens != "unknown":
                step.span.set_attribute("gen_ai.usage.input_tokens", int(tokens))
                step.span.set_attribute("gen_ai.usage.output_tokens", 1)
"""


def head_of(server: Serving, run_id: str) -> str:
    page = server.get(f"/runs/{run_id}").decode()
    return page.split('<dl class="run-totals">')[1].split("</dl>")[0]


def test_sums_that_lack_calls_are_lower_bounds(server: Serving, tmp_path: Path) -> None:
    run = newest_run(CALLS, server, tmp_path, "100", "unknown", "20")

    totals = json.loads(server.get(f"/v1/runs/{run['run_id']}"))["totals"]
    assert (run["tokens"]["input"], run["model_calls"]) == (120, 3)
    assert (totals["calls_without_tokens"], totals["calls_without_cost"]) == (1, 1)
    head = head_of(server, run["run_id"])
    assert "tokens in, at least" in head
    assert "out, at least" in head
    assert "cost, at least" in head
    assert "1 of 3 model calls did not report tokens" in head


@pytest.mark.parametrize("tokens", [("100", "20"), ("unknown", "unknown")])
def test_sums_of_all_calls_and_of_none_are_no_lower_bounds(
    server: Serving, tmp_path: Path, tokens: tuple[str, ...]
) -> None:
    run = newest_run(CALLS, server, tmp_path, *tokens)

    assert "at least" not in head_of(server, run["run_id"])
