"""Before a call, after it, and over time: hook, evaluation, detector and report of one session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentation.hooks.hook_events import SESSION, bash, event, eventually, hook
from tests.journeys.processes import Serving, hansard, serving

FAILED = "E   AssertionError: total is 3, expected 4"


def play(data: Path) -> bytes:
    """Run a session's hooks: a dangerous call, five failures, and an answer that denies them.

    Returns what the agent was told before the dangerous call.
    """
    more = {"HANSARD_ENDPOINT": ""}  # that of the folder's server
    hook("session-start", event("SessionStart", source="startup"), data, **more)
    hook("user-prompt-submit", event("UserPromptSubmit", prompt="Fix it"), data, **more)
    dangerous = bash("git push --force", tool_use_id="t0")
    warned = hook("pre-tool-use", dangerous, data, **more).stdout
    ended = dangerous | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "done"}}
    hook("post-tool-use", ended, data, **more)
    for number in range(1, 6):
        call = bash("pytest -q", tool_use_id=f"t{number}")
        assert hook("pre-tool-use", call, data, **more).stdout == b""
        failed = {"hook_event_name": "PostToolUseFailure", "error": FAILED,
                  "tool_response": {"stdout": "1 failed", "exit_code": 1}}  # fmt: skip
        hook("post-tool-use", call | failed, data, **more)
    hook("stop", event("Stop", last_assistant_message="All tests pass."), data, **more)
    hook("session-end", event("SessionEnd", reason="exit"), data, **more)
    return warned


def told(served: Serving, path: str) -> Any:
    return json.loads(served.get(path))


def cycle(data: Path) -> dict[str, dict[str, Any]]:
    """Run one cycle of the heartbeat; its phases by name."""
    ended = hansard("heartbeat", "--once", "--json", "--data", str(data))
    assert ended.returncode == 0, ended.stderr
    return {one["name"]: one for one in json.loads(ended.stdout)["phases"]}


@pytest.mark.covers("DI-22")
def test_one_session_passes_all_three_layers_and_is_in_the_report(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        warned = play(tmp_path)
        [run] = eventually(
            lambda: [one for one in told(served, "/v1/runs")["items"] if one["tool_calls"] == 6]
        )
        phases = cycle(tmp_path)

        run_id = run["run_id"]
        assert (run["conversation_id"], run["error_count"]) == (SESSION, 5)

        # before the call
        assert b"may not be undone" in warned
        assert phases["hooks"]["figures"]["warned"] == 1
        steps = told(served, f"/v1/runs/{run_id}/steps")["items"]
        calls = [served.get(f"/steps/{one['step_id']}") for one in steps if one["role"] == "tool"]
        noted = [b"A hook warned before this call" in page for page in calls]
        assert (len(noted), sum(noted)) == (6, 1)
        assert b"git push --force" in calls[noted.index(True)]

        # after it
        [verdict] = told(served, f"/v1/evaluations?run={run_id}&verdict=contradicted")["items"]
        assert verdict["claim"]["sentence"] == "All tests pass."
        [correction] = told(served, "/v1/memory?type=correction")["items"]
        assert correction["memory_id"] == verdict["correction_id"]
        assert correction["source_step_ids"] == verdict["evidence"]["step_ids"]

        # over time
        [task] = told(served, "/v1/tasks")["items"]
        assert (task["rule"], task["state"], task["count"]) == ("repeated_errors", "blocked", 5)
        assert correction["source_step_ids"][0] in json.dumps(task["evidence"])

    # all of it on one page
    page = hansard("report", "--latest", "--data", str(tmp_path), "--as", "ana").stdout
    assert "1 of 6 calls were warned of" in page
    assert f"memory {correction['memory_id'][-8:]}" in page
    assert f"hansard tasks show {task['task_id'][-8:]}" in page
    assert "tool `Bash`, 5 times" in page
    assert hansard("report", "--latest", "--data", str(tmp_path), "--as", "ana").stdout != page
