"""Every example is run as its first lines say, against a real server, and keeps its word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import Serving, hosting, patient

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class Shown:
    """What an example printed, and the runs that the server has of it, oldest first."""

    output: str
    errors: str
    runs: list[dict[str, Any]]
    trees: list[str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def tree(server: Serving, run_id: str) -> str:
    steps = json.loads(server.get(f"/v1/runs/{run_id}/steps"))["items"]
    return "".join(
        f"{'  ' * step['depth']}{step['name']}"
        f"{' ' + step['status'] if step['status'] != 'unset' else ''}\n"
        for step in steps
    )


def show(server: Serving, folder: Path, name: str, *arguments: str) -> Shown:
    """Run an example to its end."""
    known = {run["run_id"] for run in runs_of(server)}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        env=patient(
            HANSARD_DATA=str(folder),
            HANSARD_ENDPOINT=server.http,
            OTEL_EXPORTER_OTLP_ENDPOINT=server.http,
        ),
        timeout=240,
    )
    assert ended.returncode == 0, ended.stderr
    runs = [run for run in reversed(runs_of(server)) if run["run_id"] not in known]
    trees = [tree(server, run["run_id"]) for run in runs]
    return Shown(ended.stdout, ended.stderr, runs, trees)


def runs_of(server: Serving) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.get("/v1/runs?limit=500"))["items"]
    return found


@pytest.mark.covers("DC-07")
def test_a_decorated_agent_is_a_run_with_its_tools(server: Serving, tmp_path: Path) -> None:
    shown = show(server, tmp_path, "decorated_agent.py", "Where is order 8?")

    assert (shown.output, shown.errors) == ("Your order is waiting for stock.\n", "")
    assert shown.trees == [
        "invoke_agent clerk\n  chat rules-1\n  execute_tool find_order\n  chat rules-1\n"
    ]


def test_a_failing_tool_of_it_shows_as_failed(server: Serving, tmp_path: Path) -> None:
    shown = show(server, tmp_path, "decorated_agent.py", "Where is order 9?")

    assert shown.output == "We are sorry: there is no order 9.\n"
    assert shown.trees == [
        "invoke_agent clerk\n  chat rules-1\n  execute_tool find_order error\n"
        "  execute_tool apologise\n"
    ]


@pytest.mark.covers("EX-15")
@pytest.mark.covers("EX-15")
def test_a_program_with_opentelemetry_needs_only_the_endpoint(
    server: Serving, tmp_path: Path
) -> None:
    shown = show(server, tmp_path, "existing_otel.py")

    assert (shown.output, shown.errors) == ("There are 3 left of: lamp.\n", "")
    assert shown.trees == ["invoke_agent stock\n  SELECT stock\n"]


@pytest.mark.covers("OT-13")
def test_with_the_sdk_both_back_ends_get_the_spans(server: Serving, tmp_path: Path) -> None:
    shown = show(server, tmp_path, "existing_otel.py", "--hansard")

    assert shown.output == "There are 3 left of: lamp.\n"
    assert shown.errors.split("\n")[:-1] == [
        "SELECT stock", "execute_tool count_stock", "invoke_agent stock",
    ]  # fmt: skip
    assert shown.trees == ["invoke_agent stock\n  execute_tool count_stock\n    SELECT stock\n"]
    assert shown.runs[0]["service_names"] == ["stock"]


@pytest.mark.covers("SD-12")
def test_a_back_end_of_ones_own_tells_its_runs_step_by_step(
    server: Serving, tmp_path: Path
) -> None:
    shown = show(server, tmp_path, "custom_backend.py")

    assert (shown.output, shown.errors) == ("s-1 completed\ns-2 cancelled\n", "")
    lisbon, oslo = sorted(shown.runs, key=lambda run: run["conversation_id"])
    assert (lisbon["status"], oslo["status"]) == ("ok", "cancelled")
    assert (lisbon["domain"], lisbon["user_id"]) == ("travel", "ada")
    assert lisbon["first_input"] == "Book me a train to Lisbon."
    assert lisbon["last_output"] == "The 09:10 has a seat, but the card was refused."
    assert (lisbon["tokens"]["input"], lisbon["tool_calls"]) == (310, 2)
    assert sorted(shown.trees) == [
        "invoke_agent travel-desk\n  chat planner-1\n  execute_tool find_train\n"
        "  execute_tool pay error\n",
        "invoke_agent travel-desk cancelled\n  execute_tool find_train cancelled\n",
    ]


def test_a_service_answers_in_the_trace_of_whoever_asked(server: Serving, tmp_path: Path) -> None:
    shown = show(server, tmp_path, "http_service.py")

    assert (shown.output, shown.errors) == ("lampe\n", "")
    assert shown.trees == [
        "invoke_agent reader\n  invoke_agent translator\n    execute_tool translate\n"
    ]
    assert shown.runs[0]["domain"] == "language"


@pytest.mark.covers("SD-06")
def test_three_kinds_of_programs_are_shown_by_one_server(server: Serving, tmp_path: Path) -> None:
    """A back end of one's own, a service, and one that stores by itself."""
    custom = show(server, tmp_path, "custom_backend.py")
    service = show(server, tmp_path, "http_service.py")
    embedded = show(server, server.data, "embedded.py")

    assert [len(one.runs) for one in (custom, service, embedded)] == [2, 1, 1]
    assert (embedded.output, embedded.errors) == ("lamp: 3, chair: none\n", "")
    assert embedded.trees == [
        "invoke_agent storekeeper\n  execute_tool count_stock\n  execute_tool count_stock\n"
    ]


@pytest.mark.covers("SD-02", "SD-03")
def test_a_compiled_agent_says_why_the_model_saw_what_it_saw(
    server: Serving, tmp_path: Path
) -> None:
    shown = show(server, tmp_path, "compiled_agent.py")

    assert (shown.output, shown.errors) == (
        "orders.md: include, within_budget\n"
        "almanac.md: exclude, over_budget\n"
        "payroll.md: exclude, policy_denied\n"
        "memory:tone: include, within_budget\n"
        "Order 7 is in the post.\n",
        "",
    )
    turn = "  turn\n    hansard.compile\n      hansard.policy.check\n    chat scripted-1\n"
    assert shown.trees == [f"invoke_agent desk\n{turn}  execute_tool find_order\n{turn}"]


@pytest.mark.covers("MC-06", "MC-07", "MC-08", "MC-09", "MC-11")
def test_resources_tools_and_prompts_of_an_mcp_server_go_into_a_compile(
    server: Serving, tmp_path: Path
) -> None:
    shown = show(server, tmp_path, "mcp_ingestion.py")

    lines = shown.output.splitlines()
    assert lines[0].startswith("prompt asset answer, sha256:")
    assert lines[1:] == [
        "orders.md: include, within_budget",
        "almanac.md: exclude, over_budget",
        "mcp_ingestion.py: exclude, policy_denied",
        "Answer a customer: include, latest_user_request",
        "Order 7 is in the post.",
    ]
    assert len(shown.runs) == 1
    assert "MCP send resources/read" in shown.trees[0]
    asked = f"/v1/receipts?run={shown.runs[0]['run_id']}&rule=mcp.workspace"
    refused = json.loads(server.get(asked))["items"]
    assert {one["source"].partition(" ")[0] for one in refused} == {"mcp_resource"}
    assert {one["decision"] for one in refused} == {"exclude"}


def test_every_example_is_run_by_a_test() -> None:
    tests = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")
    ) + (EXAMPLES.parent / "docs" / "quickstart.md").read_text(encoding="utf-8")

    assert [path.name for path in EXAMPLES.glob("*.py") if path.name not in tests] == []
