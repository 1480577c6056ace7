"""The walk-through of docs/sidecar.md and the shell example, with the real curl and server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import Serving, hosting

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"<!-- run -->\n```sh\n(.*?)```", re.DOTALL)
_PREAMBLE = 'set -eu\ncurl() { command curl --fail-with-body "$@"; echo; }\n'


def walk(address: str, *, preamble: str = _PREAMBLE) -> str:
    """Run what the page says, in one shell, against this address."""
    script = "\n".join(_BLOCK.findall((ROOT / "docs" / "sidecar.md").read_text(encoding="utf-8")))
    script = script.replace("H=http://127.0.0.1:4318", f"H={address}")
    ended = subprocess.run(
        ["bash", "-c", preamble + script], capture_output=True, text=True, timeout=240
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def runs_of(server: Serving) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(server.get("/v1/runs"))["items"]
    return runs


def names_of(server: Serving, run_id: str) -> list[str]:
    steps = json.loads(server.get(f"/v1/runs/{run_id}/steps"))["items"]
    return [f"{'  ' * one['depth']}{one['name']} {one['status']}" for one in steps]


@pytest.mark.covers("SC-01", "SC-02", "SC-03", "SC-04", "SC-08", "SD-08", "SD-09")
@pytest.mark.parametrize("door", ["port", "socket"])
def test_the_walk_through_leaves_the_run_it_tells(tmp_path: Path, door: str) -> None:
    socket = tmp_path / "h.sock"
    with hosting(tmp_path / "data", socket=str(socket)) as server:
        if door == "port":
            said = walk(server.http)
        else:
            named = _PREAMBLE.replace("curl --fail", f"curl --unix-socket {socket} --fail")
            said = walk("http://localhost", preamble=named)
        (run,) = runs_of(server)
        steps = names_of(server, run["run_id"])
        (check,) = json.loads(server.get("/v1/policy/checks"))["items"]

    assert '"text":"Refunded."' in said
    assert re.findall(r"^event: (\w+)$", said, re.MULTILINE) == [
        "started", *["delta"] * 4, "result",
    ]  # fmt: skip
    assert run["status"] == "ok"
    assert run["has_receipts"] is True
    assert sorted(steps) == [
        "    chat scripted-1 unset",
        "    chat scripted-1 unset",
        "    execute_tool find_order unset",
        "    hansard.compile unset",
        "  answer unset",
        "invoke_agent clerk unset",
    ]
    assert (check["run_id"], check["subject"]) == (run["run_id"], "find_order")


@pytest.mark.covers("SD-12")
def test_an_agent_in_shell_tells_its_run(tmp_path: Path) -> None:
    with hosting(tmp_path / "data") as server:
        ended = subprocess.run(
            ["sh", str(ROOT / "examples" / "sidecar.sh"), server.http],
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert ended.returncode == 0, ended.stderr
        (run,) = runs_of(server)
        steps = names_of(server, run["run_id"])

    assert "% is used." in ended.stdout
    assert run["last_output"] == ended.stdout.strip()
    assert steps == ["invoke_agent disk watcher unset", "  look unset", "    execute_tool df unset"]


def test_a_policy_file_that_cannot_be_used_stops_the_server_with_its_place(tmp_path: Path) -> None:
    from tests.journeys.processes import hansard

    file = tmp_path / "rules.json"
    file.write_text('{"schema_version": 1, "name": "a", "version": "1", "rules": [{}]}')
    ports = ("--http-port", "0", "--grpc-port", "0")

    ended = hansard("serve", "--data", str(tmp_path / "data"), "--policy", str(file), *ports)

    assert ended.returncode == 2
    assert "rules.json.rules[0]" in ended.stderr
    assert "Traceback" not in ended.stderr
