"""`hansard hook install`: what Claude Code's settings get, and what stays of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hansard._hooks.process import KINDS
from tests.instrumentation.hooks.hook_events import PATIENT, bash
from tests.journeys.processes import HANSARD, environment

pytestmark = pytest.mark.slow


def install(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HANSARD, "hook", "install", *options],
        capture_output=True,
        text=True,
        env=environment(HOME=str(home)),
        cwd=home,
        timeout=240,
    )


def commands(settings: dict[str, Any]) -> dict[str, list[str]]:
    return {
        event: [one["command"] for group in groups for one in group["hooks"]]
        for event, groups in settings["hooks"].items()
    }


def test_it_prints_settings_whose_commands_work(tmp_path: Path) -> None:
    ended = install(tmp_path, "--claude-code")

    assert ended.returncode == 0, ended.stderr
    found = commands(json.loads(ended.stdout))
    assert {one.split(" hook ")[1] for group in found.values() for one in group} == set(KINDS)
    [pre] = found["PreToolUse"]
    warned = subprocess.run(
        pre,
        shell=True,
        input=json.dumps(bash("git push --force")),
        capture_output=True,
        text=True,
        env=environment(HANSARD_DATA=str(tmp_path), HANSARD_HOOK_RECORD="false", **PATIENT),
        check=True,
    )
    assert "may not be undone" in warned.stdout


def test_only_what_may_wait_runs_beside_the_agent(tmp_path: Path) -> None:
    hooks = json.loads(install(tmp_path, "--claude-code").stdout)["hooks"]
    beside = {event for event, [group] in hooks.items() if group["hooks"][0].get("async")}

    assert beside == {"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"}


@pytest.mark.parametrize("scope", ["--user", "--project"])
def test_it_merges_into_settings_and_keeps_what_is_there(tmp_path: Path, scope: str) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    own = {"matcher": "Bash", "hooks": [{"type": "command", "command": "my-guard"}]}
    path.write_text(json.dumps({"model": "opus", "hooks": {"PreToolUse": [own]}}))

    for _ in range(2):  # a second time changes nothing
        assert install(tmp_path, "--claude-code", scope, "--write").returncode == 0

    settings = json.loads(path.read_text())
    assert settings["model"] == "opus"
    assert settings["hooks"]["PreToolUse"][0] == own
    assert all(
        len(found) == 1 for event, found in commands(settings).items() if event != "PreToolUse"
    )
    assert len(commands(settings)["PreToolUse"]) == 2


def test_settings_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text("{ not json")

    ended = install(tmp_path, "--claude-code", "--write")

    assert ended.returncode == 1
    assert "nothing was changed" in ended.stderr
    assert path.read_text() == "{ not json"


def test_an_agent_has_to_be_named(tmp_path: Path) -> None:
    assert install(tmp_path).returncode == 2


def test_every_command_has_help(tmp_path: Path) -> None:
    for verb in ("", *KINDS, "install"):
        ended = subprocess.run(
            [HANSARD, "hook", *verb.split(), "--help"],
            capture_output=True,
            text=True,
            env=environment(HOME=str(tmp_path)),
            timeout=240,
        )
        assert (ended.returncode, "Usage:" in ended.stdout) == (0, True), verb
