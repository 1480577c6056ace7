"""`hansard demo`: the whole way from agents to the API, and its own check of it."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hansard_web.app.server_file import Endpoints
from hansard_web.demo.agent import DemoReport, ScriptedModel, load_script
from hansard_web.demo.story import DemoFailed, Seen, check
from tests.journeys.demo_story import Story
from tests.journeys.processes import environment, hansard, serving

_ROOT: Final = Path(__file__).parents[2]
_NOT_SOURCES: Final = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist")
# Runs in every Python of the demo: what leaves this machine is told, and refused.
_WATCH: Final = """
import os, sys

def watch(event, arguments):
    if event != "socket.connect" or not isinstance(arguments[1], tuple):
        return
    if arguments[1][0] not in ("127.0.0.1", "::1", "localhost"):
        with open(os.environ["LEFT"], "a") as left:
            print(*arguments[1], file=left)
        raise PermissionError("nobody is out there")

sys.addaudithook(watch)
"""


@pytest.mark.covers("DE-17", "DE-18")
def test_a_fresh_checkout_plays_the_demo_with_one_command_no_key_and_no_network(
    tmp_path: Path,
) -> None:
    """Packages are lent to the new environment, where a user's pip fetches them."""
    checkout, watch, left = tmp_path / "checkout", tmp_path / "watch", tmp_path / "left"
    shutil.copytree(_ROOT, checkout, ignore=_NOT_SOURCES)
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(_WATCH)
    lent = Path(pytest.__file__).parents[1]
    python = tmp_path / "python3"
    python.write_text(
        f'#!/bin/sh\n{sys.executable} "$@" --without-pip\n'
        f'echo {lent} > "$(echo .venv/lib/python3.*/site-packages)/lent.pth"\n'
    )
    python.chmod(0o755)

    ended = subprocess.run(
        ["make", "demo", f"PYTHON={python}", "ARGS=--exit --fast --http-port 0 --grpc-port 0"],
        cwd=checkout,
        env=environment(
            PYTHONPATH=str(watch), LEFT=str(left), PIP_NO_INDEX="1",
            PIP_NO_BUILD_ISOLATION="false",  # pip's word for: build with what is lent
            OPENAI_API_KEY="", ANTHROPIC_API_KEY="",
        ),
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    assert "10 runs read back" in ended.stdout
    # The runs read back, two of the coding agent, two of the release agent and a question on one.
    assert ended.stdout.count("/runs/") == 15
    assert not left.exists(), left.read_text()


def test_a_second_demo_in_a_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    again = ("demo", "--exit", "--fast", "--http-port", "0", "--grpc-port", "0", "--data",
             str(tmp_path / "demo"))  # fmt: skip

    first = hansard(*again)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    second = hansard(*again)

    assert first.returncode == 0, first.stderr
    assert (second.returncode, second.stdout) == (1, "")
    assert len(second.stderr.splitlines()) == 1
    assert "holds a demo already" in second.stderr
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == files


def test_the_demo_has_models_agents_and_statuses_to_filter_by(story: Story) -> None:
    runs = story.get("/v1/runs?limit=50")["items"]

    assert {run["agent"] for run in runs} >= {
        "support-desk",
        "research-assistant",
        "release-notes",
        "inventory-sync",
    }
    assert {model for run in runs for model in run["models"]} >= {
        "gpt-4o-mini",
        "gpt-4.1",
        "claude-sonnet-4-5",
    }
    assert {run["status"] for run in runs} == {"ok", "error"}
    assert {run["user_id"] for run in runs} >= {"rosa", "tomas"}


def test_the_demo_has_a_slow_search_and_a_tool_that_failed(story: Story) -> None:
    runs = story.get("/v1/runs?limit=50")["items"]
    steps = [
        step
        for run in runs
        for step in story.get(f"/v1/runs/{run['run_id']}/steps?limit=500")["items"]
    ]

    slow = [s for s in steps if s["role"] == "retriever"]
    assert max(int(s["end_ns"]) - int(s["start_ns"]) for s in slow) > 1_000_000_000
    failed = [s for s in steps if s["role"] == "tool" and s["status"] == "error"]
    assert sorted(s["tool_name"] for s in failed) == ["apply_patch", "issue_refund"]


def test_one_agent_works_inside_the_run_of_another(story: Story) -> None:
    runs = story.get("/v1/runs?agent=research-assistant")["items"]
    steps = [
        step
        for run in runs
        for step in story.get(f"/v1/runs/{run['run_id']}/steps?limit=500")["items"]
    ]

    inner = [s for s in steps if s["agent_name"] == "fact-checker" and s["role"] == "agent"]
    assert inner
    assert inner[0]["depth"] == 2  # the agent, its tool call, the agent that was called


def test_a_new_clock_in_the_instructions_breaks_the_prompt_cache_once(
    story: Story,
) -> None:
    """The demo's third turn: the first call reads nothing from the cache, the next one does."""
    runs = story.get("/v1/runs?conversation=order-a-1042")["items"]
    first_calls = []
    for run in sorted(runs, key=lambda run: str(run["started_at"])):
        steps = story.get(f"/v1/runs/{run['run_id']}/steps")["items"]
        first_calls.append(next(s for s in steps if s["role"] == "llm"))

    assert [bool(step["tokens"]["cache_read"]) for step in first_calls] == [
        False,
        True,
        False,
        True,
    ]


def test_a_run_that_is_not_there_as_counted_fails_the_demo(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        endpoints = Endpoints(server.http, server.grpc, None, tmp_path)
        invented = Seen("support-desk", "grpc", DemoReport("0" * 31 + "1", "support-desk", None))

        with pytest.raises(DemoFailed, match="GET /v1/runs/0000"):
            check(endpoints, [invented])
        with pytest.raises(DemoFailed, match="expected 4, found 0"):
            check(endpoints, [])


# ---- the scripted model


def test_the_model_caches_exactly_what_an_earlier_request_began_with() -> None:
    system = {"role": "system", "content": "be brief"}
    asked = {"role": "user", "content": "How long until the money is there?"}
    model = ScriptedModel()

    first, again, changed = (
        model.complete(
            {"model": "gpt-4o-mini", "messages": [{**system, "content": text}, asked]}
        ).tokens
        for text in ("be brief", "be brief", "be long")
    )

    assert first["cache_read"] == 0
    assert again["cache_read"] == again["input"]
    assert changed["cache_read"] == 0


def test_the_script_is_whole() -> None:
    """Every entry says something, calls something or fails, and none hides behind another."""
    script = load_script()

    for number, reply in enumerate(script):
        assert reply.text or reply.tool_calls, dataclasses.asdict(reply)
        hidden = [
            other
            for other in script[:number]
            if other.when in reply.when and other.after_tools == reply.after_tools
        ]
        assert not hidden, reply.when
