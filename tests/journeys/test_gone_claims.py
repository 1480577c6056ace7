"""A claim whose process is gone: of unknown outcome for every reader, at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.processes import environment, hansard

PROGRAM = """
import os, signal, sys
import hansard
from hansard import approvals
hansard.init(embedded=True, data=sys.argv[1])

@hansard.tool(effect="write")
def send(how: str):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise GeneratorExit

made = send(sys.argv[2])["approval_id"]
approvals.approve(made, by="ana")
if sys.argv[2] == "killed":
    child = os.fork()
    if child == 0:
        approvals.run(made)
        os._exit(0)
    os.waitpid(child, 0)
else:
    try:
        approvals.run(made)
    except GeneratorExit:
        pass
print(made, flush=True)
sys.stdin.readline()
states = [approvals.get(made)["execution"]["state"]]
print(" ".join(states), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("how", ["killed", "left"])
@pytest.mark.parametrize("first", ["program", "command"])
def test_what_a_gone_process_claimed_is_unknown_to_everybody(
    tmp_path: Path, how: str, first: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        made = program.stdout.readline().strip()

        def ask_command() -> str:
            shown = hansard("approvals", "show", made, "--json", "--data", str(tmp_path))
            state: str = json.loads(shown.stdout)["execution"]["state"]
            return state

        if first == "command":
            assert ask_command() == "unknown"
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline().split() == ["unknown"]
        assert ask_command() == "unknown"
        program.stdin.write("\n")
        program.stdin.flush()
