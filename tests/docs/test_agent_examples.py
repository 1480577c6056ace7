"""Agents of several domains and runtimes, each run as its first lines say, against one server."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import hansard
from hansard_web.cli import commands
from tests.instrumentation.clients.provider import providing
from tests.journeys.processes import Serving, environment, hosting, patient
from tests.signing import add_token

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Played:
    """What an example printed, and the runs that the server has of it, oldest first."""

    server: Serving
    output: str
    errors: str
    runs: list[dict[str, Any]]

    def steps(self, run: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = get(
            self.server, f"/v1/runs/{self.runs[run]['run_id']}/steps?limit=200"
        )["items"]
        return found

    def tree(self, run: int) -> str:
        return "".join(
            f"{'  ' * step['depth']}{step['name']}{' error' * (step['status'] == 'error')}\n"
            for step in self.steps(run)
        )

    def receipts(self, run: int, turn: int) -> dict[str, dict[str, Any]]:
        """What became of each candidate of one turn, by item id."""
        compiles = [step for step in self.steps(run) if step["role"] == "compile"]
        told = get(self.server, f"/v1/steps/{compiles[turn]['step_id']}")["receipts"]
        return {one["item_id"]: one for one in told}


def get(server: Serving, path: str) -> Any:
    return json.loads(server.get(path))


def play(
    server: Serving, folder: Path, name: str, *arguments: str, typed: str = "", **more: str
) -> Played:
    """Run an example to its end."""
    known = {run["run_id"] for run in get(server, "/v1/runs?limit=500")["items"]}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        env=patient(HANSARD_DATA=str(folder), HANSARD_ENDPOINT=server.http, **more),
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    runs = reversed(get(server, "/v1/runs?limit=500")["items"])
    new = [run for run in runs if run["run_id"] not in known]
    return Played(server, ended.stdout, ended.stderr, new)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def research(server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Two questions, the second of which the first one's findings answer."""
    return play(server, tmp_path_factory.mktemp("research"), "research_agent")


@pytest.fixture(scope="module")
def coding(server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A patch and a test run, approved by who sits there; `local_models.py` is the model."""
    folder = tmp_path_factory.mktemp("coding")
    token = add_token(server.data, "rosa")
    return play(
        server, folder, "anthropic_coding_agent.py", "--offline",
        typed="y\ny\n", APPROVER_TOKEN=token,
    )  # fmt: skip


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples as modules, for what needs no program of its own."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


# ---- research


@pytest.mark.covers("EX-11", "TS-17")
def test_of_sources_that_contradict_each_other_the_believed_one_is_shown(research: Played) -> None:
    told = research.receipts(0, 1)

    assert {name: (told[name]["decision"], told[name]["reason"]) for name in SOURCES} == SOURCES
    assert told["travel-blog"]["related_item_id"] == "coast-survey"
    assert told["light-list-2011"]["related_item_id"] == "light-list-2025"
    assert told["harbour-memo"]["rule_ids"] == ["research.embargo"]
    assert {told[name]["source"] for name in SOURCES} == {f"retrieval {name}" for name in SOURCES}
    assert "see coast-survey; differ in value; trust 0.3 against 0.9" in research.output


SOURCES = {
    "coast-survey": ("include", "within_budget"),
    "festival": ("compress", "compressed_to_fit"),
    "harbour-memo": ("exclude", "policy_denied"),
    "light-list-2011": ("exclude", "conflict_lost"),
    "light-list-2025": ("include", "within_budget"),
    "travel-blog": ("exclude", "conflict_lost"),
}


@pytest.mark.covers("TS-17")
def test_a_source_that_was_not_shown_cannot_be_cited(research: Played) -> None:
    checks = [step for step in research.steps(0) if step["name"] == "citation check"]

    assert research.errors == ""
    assert "checked: [travel-blog] is not among the sources you were given" in research.output
    assert len(checks) == 2
    assert research.runs[0]["last_output"] == (
        "The tower of Corliss lighthouse is 41 metres high [coast-survey]. "
        "The lamp of Corliss lighthouse flashes every 15 seconds [light-list-2025]."
    )


def test_it_may_search_the_web_and_not_write_to_production(research: Played) -> None:
    events = get(research.server, "/v1/events?limit=200")["items"]
    own = [one for one in events if one["run_id"] == research.runs[0]["run_id"]]
    tools = {step["name"]: step["status"] for step in research.steps(0) if step["role"] == "tool"}

    assert tools == {"execute_tool search_web": "unset", "execute_tool publish": "error"}
    assert [one["type"] for one in own].count("policy.blocked") == 1
    assert "research.no-production-writes" in research.output


@pytest.mark.covers("TS-17")
def test_what_it_found_is_remembered_and_answers_the_next_question(research: Played) -> None:
    records = get(research.server, "/v1/memory?project=lighthouses")["items"]
    [tower] = [one for one in records if one["metadata"]["source"] == "coast-survey"]

    assert len(records) == 2
    assert (tower["writer"], tower["confidence"], tower["memory_type"]) == ("app", 0.9, "fact")
    assert tower["freshness_at"].startswith("2024-03-11")
    assert tower["source_run_id"] == research.runs[0]["run_id"]
    assert research.receipts(1, 0)[tower["memory_id"]]["decision"] == "include"
    assert research.runs[1]["last_output"].startswith("Yes, by two metres.")
    assert research.runs[1]["tool_calls"] == 0


@pytest.mark.covers("DC-09")
def test_what_its_walkthrough_has_you_type_answers(research: Played) -> None:
    page = (EXAMPLES.parent / "docs" / "walkthrough-research.md").read_text(encoding="utf-8")
    typed = [line for line in page.splitlines() if line.startswith("hansard ")]
    calls = [step["step_id"] for step in research.steps(0) if step["role"] == "llm"]
    named = {"STEP": calls[1], "LEFT": calls[1], "RIGHT": calls[3]}
    group = click.Group("hansard")
    commands(group)
    said = {
        line: CliRunner().invoke(
            group,
            [named.get(word, word) for word in line.split()[1:]],
            env={"HANSARD_DATA": str(research.server.data)},
        )
        for line in typed
        if line != "hansard serve &"
    }

    assert [ended.exit_code for ended in said.values()] == [0, 0, 1]  # 1: they differ
    why, left_out, _ = (ended.output for ended in said.values())
    assert "trust 0.3 against 0.9" in why
    assert [name in left_out for name in ("travel-blog", "light-list-2011", "harbour-memo")] == [
        True, True, True,
    ]  # fmt: skip


def test_an_answer_has_to_name_sources_that_say_it(
    examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "research_agent"))
    citations = importlib.import_module("citations")
    shown = {"survey": "It is 41 metres high, and was built in 1888."}

    assert citations.problems("It is 41 metres high [survey].", shown) == []
    assert citations.problems("It is 14 metres high [survey].", shown) == [
        "[survey] does not say 14"
    ]
    assert citations.problems("It is high.", shown) == ["the answer names no source"]
    assert citations.problems("It is old [survey]. It is red [blog].", shown) == [
        "[blog] is not among the sources you were given"
    ]


# ---- coding, and the core that knows of neither


@pytest.mark.covers("EX-13")
def test_a_coding_agent_on_the_messages_api_asks_before_it_writes(coding: Played) -> None:
    assert coding.errors == ""
    assert coding.output.endswith('    return title.lower().replace(" ", "-")\n')
    assert coding.output.count("May it?") == 2  # `cat` runs unasked
    assert coding.runs[0]["last_output"] == "Done: the words of a slug are joined by hyphens."
    calls = [step for step in coding.steps(0) if step["role"] == "llm"]
    body = get(coding.server, f"/v1/steps/{calls[-1]['step_id']}")["call"]
    assert (body["provider"], len(calls)) == ("anthropic", 4)
    results = [part["type"] for one in body["input"] for part in one["parts"]]
    assert results.count("tool_result") == results.count("tool_call") == 3


@pytest.mark.covers("AC-01")
def test_two_domains_stand_on_one_core(research: Played, coding: Played) -> None:
    runs = [*research.runs, *coding.runs]

    assert {(run["domain"], run["status"]) for run in runs} == {
        ("research", "ok"),
        ("coding", "ok"),
    }
    assert all(run["has_receipts"] for run in runs)
    for played, kinds in ((research, {"retrieval_doc"}), (coding, {"file"})):
        assert kinds <= {one["kind"] for one in played.receipts(0, 1).values()}


# ---- nothing in particular, one call, a runtime of somebody else


@pytest.mark.covers("EX-09")
def test_an_agent_about_nothing_goes_on_after_a_tool_that_fails(
    server: Serving, tmp_path: Path
) -> None:
    played = play(server, tmp_path, "generic_agent.py")

    assert (played.output, played.errors) == ("Sycamore, with 8 letters.\n", "")
    turn = "    hansard.compile\n    chat scripted-1\n"
    assert played.tree(0) == (
        f"invoke_agent generic\n  turn 1\n{turn}  execute_tool longest\n  turn 2\n{turn}"
        "  execute_tool count_letters\n  execute_tool count_letters error\n"
        f"  turn 3\n{turn}"
    )


@pytest.mark.covers("EX-12")
def test_one_call_of_openai_goes_to_the_server_that_is_set(
    server: Serving, tmp_path: Path, examples: None
) -> None:
    with providing() as provider:
        played = play(
            server,
            tmp_path,
            "openai_oneshot.py",
            OPENAI_BASE_URL=f"{provider.address}/v1",
            OPENAI_API_KEY="none-at-all",
        )

    [asked] = provider.received
    assert (asked.path, asked.headers["authorization"]) == ("/v1/responses", "Bearer none-at-all")
    assert "Order 7 was packed on Monday" in asked.body.decode()
    assert "almanac.md: exclude (over_budget" in played.output
    assert played.output.splitlines()[-2] == "Grüße!"
    assert played.receipts(0, 0)["orders.md"]["decision"] == "include"
    offline = importlib.import_module("openai_oneshot").answer_offline(asked.json)
    assert offline["output"][0]["content"][0]["text"].startswith("Order 7 was packed on Monday.")


@pytest.mark.covers("SD-13", "NG-02")
def test_a_graph_is_recorded_without_being_changed(server: Serving, tmp_path: Path) -> None:
    played = play(server, tmp_path, "wrapped_runtime.py")

    assert (played.output, played.errors) == ("3 of: lamp.\n12 of: chair, on order.\n", "")
    assert [played.tree(run) for run in (0, 1)] == [
        "invoke_agent storekeeper\n  understand\n  look\n  reply\n",
        "invoke_agent storekeeper\n  understand\n  look\n  order\n  reply\n",
    ]


def test_what_a_node_raises_is_the_graph_s_own_and_its_step_failed(examples: None) -> None:
    runtime = importlib.import_module("wrapped_runtime")
    graph = runtime.make_graph()
    nodes = dict(graph.nodes)

    with hansard.testing.capture() as spans, pytest.raises(StopIteration):
        runtime.recorded(graph, "storekeeper").invoke({"question": "Is there a bed?"})

    assert graph.nodes == nodes
    assert spans.text("error.type") == (
        "invoke_agent storekeeper [error] error.type=StopIteration\n"
        "  understand [error] error.type=StopIteration\n"
    )


# ---- a tool that calls hooks


HOOKS: list[dict[str, Any]] = [
    {"hook_event_name": "SessionStart"},
    {"hook_event_name": "UserPromptSubmit", "prompt": "List the files."},
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_use_id": "t-1",
        "tool_input": {"command": "ls"},
    },
    {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "t-1",
        "tool_response": "a.py",
    },
    {"hook_event_name": "SessionEnd"},
]


@pytest.mark.covers("SD-11", "SD-12")
def test_hooks_of_a_session_become_one_run(
    server: Serving, examples: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = importlib.import_module("hook_adapter")
    monkeypatch.setattr(adapter, "ADDRESS", server.http)
    monkeypatch.setattr(urllib.request, "_opener", urllib.request.build_opener())

    for event in HOOKS:
        adapter.tell({"session_id": "s-1", **event})

    runs = get(server, "/v1/runs?limit=500")["items"]
    [run] = [one for one in runs if one["conversation_id"] == "s-1"]
    played = Played(server, "", "", [run])
    assert run["status"] == "ok"
    assert played.tree(0) == "invoke_agent coding-tool\n  prompt\n  execute_tool Bash\n"


def test_a_hook_never_stops_the_tool_that_calls_it() -> None:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / "hook_adapter.py")],
        input=json.dumps({"session_id": "s-2", **HOOKS[0]}),
        capture_output=True,
        text=True,
        env=environment(HANSARD_ENDPOINT="http://127.0.0.1:9"),
        timeout=240,
    )

    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr.startswith("not recorded: ")
