"""The Dockerfile without an engine: its RUN lines in a fresh venv, by somebody without rights.

Part of `make test-peers`, since pip takes the dependencies from wherever it is set to look. What
only an engine can do is left: the base image, `useradd`, layers, mounts. No image is built.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.dockerfile import Instruction, copy_context, read_dockerfile  # noqa: E402
from tests.journeys.processes import environment  # noqa: E402
from tests.journeys.unprivileged import NOBODY, give_up_overrides  # noqa: E402

BUILD, IMAGE = read_dockerfile(ROOT / "Dockerfile")
HOME: Final = "/opt/hansard"
PIP_S: Final = 300
READY_S: Final = 60


def only(stage: list[Instruction], name: str) -> str:
    [found] = [one.value for one in stage if one.name == name]
    return found


def main() -> int:
    """Run what the image would; 0 when it is healthy and ends when it is told to."""
    with tempfile.TemporaryDirectory(prefix="hansard-image-") as name:
        folder = Path(name)
        copy_context(ROOT, BUILD, folder / "src")
        rights = _give_away(folder)
        extras = only(BUILD, "ARG").partition("=")
        for line in (one.value for one in BUILD if one.name == "RUN"):
            wrong = _run_line(line, folder, rights, {extras[0]: extras[2]})
            if wrong:
                sys.stdout.write(f"image: RUN {line.partition(' ')[0]} …: {wrong}\n")
                return 1
        wrong = _serve(folder, rights)
    sys.stdout.write(f"image, without an engine  {wrong or 'ok'}\n")
    return 1 if wrong else 0


def _give_away(folder: Path) -> dict[str, Any]:
    """Return how to run as somebody without rights: as nobody, or as ourselves without root's."""
    if os.getuid() != 0:
        return {}
    as_nobody: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", ""], check=True, cwd="/", timeout=30, **as_nobody)
    except (OSError, subprocess.SubprocessError):  # this Python lies where nobody may go
        return {"preexec_fn": give_up_overrides}
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return as_nobody


def _run_line(line: str, folder: Path, rights: dict[str, Any], more: dict[str, str]) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        ended = subprocess.run(
            ["sh", "-c", line.replace(HOME, str(folder / "opt"))],
            cwd=folder / "src", env=environment(PATH=path, HOME=str(folder), PYTHONPATH="", **more),
            capture_output=True, text=True, timeout=PIP_S, check=False, **rights,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"did not end in {PIP_S} s"
    return ended.stderr.strip()[-800:] if ended.returncode else ""


def _serve(folder: Path, rights: dict[str, Any]) -> str:
    """Start the entry point, ask its health check until it is well, and stop it."""
    told = dict(word.split("=", 1) for word in shlex.split(only(IMAGE, "ENV")))
    own = {name: value for name, value in told.items() if name.startswith("HANSARD_")}
    own |= {"HANSARD_DATA": str(folder / "data"), "HANSARD_HOST": "127.0.0.1"}
    own |= {"HOME": str(folder), "PYTHONPATH": ""}
    command = json.loads(only(IMAGE, "ENTRYPOINT")) + json.loads(only(IMAGE, "CMD"))
    program = str(folder / "opt" / "bin" / command[0])
    with subprocess.Popen(
        [program, *command[1:], "--json", "--http-port", "0", "--grpc-port", "0"],
        cwd=folder, env=environment(**own), stdout=subprocess.PIPE, text=True, **rights,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                return f"the server ended with {process.wait()} before it was ready"
            return _ask_health(folder, json.loads(line)["http"], rights)
        finally:
            process.terminate()
            process.wait(30)


def _ask_health(folder: Path, http: str, rights: dict[str, Any]) -> str:
    _, _, check = only(IMAGE, "HEALTHCHECK").partition("CMD ")
    words: Sequence[str] = json.loads(check.replace("http://127.0.0.1:4318", http))
    program = str(folder / "opt" / "bin" / words[0])
    ends_s = time.monotonic() + READY_S
    while time.monotonic() < ends_s:
        asked = subprocess.run(
            [program, *words[1:]], cwd=folder, env=environment(PYTHONPATH=""), timeout=30,
            capture_output=True, text=True, check=False, **rights,
        )  # fmt: skip
        if not asked.returncode:
            return ""
        time.sleep(1)
    return f"not healthy after {READY_S} s: {asked.stderr[-300:]}"


if __name__ == "__main__":
    raise SystemExit(main())
