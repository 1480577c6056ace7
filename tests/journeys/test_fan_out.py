"""One agent over await, threads, pools, processes and HTTP: one run, one tree, no orphans."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import Serving, environment, hosting

HERE = Path(__file__).parent


@contextmanager
def hop(variables: dict[str, str]) -> Iterator[str]:
    """Run the service; its address."""
    with subprocess.Popen(
        [sys.executable, str(HERE / "hop_server.py")],
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
            assert process.wait(30) == 0
        finally:
            process.kill()


def steps_of(server: Serving, run_id: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(server.get(f"/v1/runs/{run_id}/steps?limit=500"))[
        "items"
    ]
    return items


def tree_of(steps: list[dict[str, Any]]) -> list[Any]:
    """Return nested (name, children), children in order of their names: threads have none."""
    children: dict[str | None, list[dict[str, Any]]] = {}
    for step in steps:
        children.setdefault(step["parent_span_id"], []).append(step)

    def below(parent: str | None) -> list[Any]:
        found = [(step["name"], below(step["span_id"])) for step in children.get(parent, [])]
        return sorted(found, key=json.dumps)

    return below(None)


Node = tuple[str, list[Any]]

LEAF: Node = ("execute_tool leaf", [])
BRANCH: Node = ("branch", [LEAF])
COROUTINE: Node = ("coroutine", [LEAF])
AWAIT = [BRANCH, COROUTINE, COROUTINE]
HELPER: Node = ("invoke_agent helper", [("invoke_agent sub-agent", [("execute_tool lookup", [])])])
CALLED: Node = (
    "invoke_agent chief",
    [
        ("await again", AWAIT),
        ("await", AWAIT),
        ("fork", [BRANCH, LEAF]),
        ("forkserver", [BRANCH, LEAF]),
        ("helper", [HELPER]),
        ("http", [("GET /hop", [("execute_tool answer", [])])]),
        ("pools", [BRANCH, BRANCH, BRANCH]),
        ("program", [("program", [])]),
        ("spawn", [BRANCH, LEAF]),
        ("threads", [BRANCH, BRANCH]),
    ],
)


@pytest.mark.covers("OT-10")
def test_the_tree_is_the_calls_across_everything(tmp_path: Path) -> None:
    with hosting(tmp_path / "data") as server:
        variables = environment(
            HANSARD_ENDPOINT=server.http, HANSARD_DATA=str(tmp_path / "own"), PYTHONPATH=str(HERE)
        )
        with hop(variables) as address:
            ended = subprocess.run(
                [sys.executable, str(HERE / "fan_out_agent.py"), address],
                capture_output=True,
                text=True,
                env=variables,
                timeout=120,
            )
        assert ended.stderr == ""
        run_id = ended.stdout.strip()
        steps = steps_of(server, run_id)
        runs = json.loads(server.get("/v1/runs"))["items"]
        details = [json.loads(server.get(f"/v1/steps/{step['step_id']}")) for step in steps]

    assert tree_of(steps) == [CALLED]
    assert [run["run_id"] for run in runs] == [run_id]
    assert not any(step["orphan"] for step in steps)
    assert {detail["attributes"].get("gen_ai.conversation.id") for detail in details} == {"c-1"}
    assert (runs[0]["domain"], runs[0]["conversation_id"]) == ("research", "c-1")
