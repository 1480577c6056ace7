"""The programs of docs/connect, as their pages say: part of `make test-peers`.

What a page installs goes into a temporary folder, from wherever pip and npm are set to look. A
model of this machine asks for a tool and then answers; what the server shows is held against that.
`python tests/peers/connect.py pydantic-ai litellm` runs some pages only, `--keep FOLDER` keeps
what was installed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.instrumentation.clients.provider import Provider, json_reply, providing  # noqa: E402
from tests.journeys.processes import Serving, environment, serving  # noqa: E402
from tests.peers.installing import NotInstalled, need, npm_install, pip_install  # noqa: E402

PAGES = ROOT / "docs" / "connect"
_SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_PROGRAM = re.compile(r"<!-- peer -->\n```(python|js)\n(.*?)```", re.DOTALL)
ANSWER = "It is in the post."


@dataclass(frozen=True)
class Page:
    """What a page tells its reader to install, to set and to run."""

    name: str
    install: str
    variables: dict[str, str]
    language: str
    program: str


def read_page(path: Path) -> Page | None:
    """Return the page, or None if it has no program."""
    text = path.read_text(encoding="utf-8")
    program = _PROGRAM.search(text)
    shell = _SHELL.search(text)
    if program is None or shell is None:
        return None
    [install] = [line for line in shell[1].splitlines() if line.startswith(("pip ", "npm "))]
    variables = dict(re.findall(r"(\w+)=(\S+)", shell[1].replace(install, "")))
    return Page(path.stem, install, variables, program[1], program[2])


def pages() -> list[Page]:
    return [page for path in sorted(PAGES.glob("*.md")) if (page := read_page(path))]


def main() -> int:
    """Run the pages that were named, or all; 0 when all was shown as the model said it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    chosen = [page for page in pages() if not asked.names or page.name in asked.names]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hansard-connect-") as name:
        folder = asked.keep or Path(name)
        with serving(Path(name) / "data") as server:
            for page in chosen:
                wrong = check(page, folder / page.name, server)
                failures += bool(wrong)
                sys.stdout.write(f"{page.name:<20} {'; '.join(wrong) if wrong else 'ok'}\n")
    return min(failures, 1)


def check(page: Page, folder: Path, server: Serving) -> list[str]:
    """Install, run, and return what is not shown as it was."""
    try:
        install(page, folder)
    except NotInstalled as problem:
        return [str(problem)]
    known = {run["run_id"] for run in runs_of(server)}
    with providing() as model:
        try:
            ended = run(page, folder, server, model)
        except subprocess.TimeoutExpired as slow:
            return [f"did not end in {slow.timeout:g} s"]
    if ended.returncode or ANSWER not in ended.stdout:
        return [f"ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-1500:]}"]
    new = [run["run_id"] for run in runs_of(server) if run["run_id"] not in known]
    if len(new) != 1:
        return [f"{len(new)} runs"]
    steps = json.loads(server.get(f"/v1/runs/{new[0]}/steps"))["items"]
    answers = [_output(server, s["step_id"]) for s in steps if s["role"] == "llm"]
    return [
        *_differ("tools", len(model.received) - 1, sum(s["role"] == "tool" for s in steps)),
        *_differ_in_run(json.loads(server.get(f"/v1/runs/{new[0]}")), page, len(model.received)),
        *_differ("answer", True, any(ANSWER in answer for answer in answers)),
    ]


def _differ_in_run(shown: dict[str, Any], page: Page, calls: int) -> list[str]:
    return [
        *_differ("calls", calls, shown["model_calls"]),
        *_differ("service", [page.variables["OTEL_SERVICE_NAME"]], shown["service_names"]),
        *_differ("input tokens", 100 * calls, shown["tokens"]["input"]),
        *_differ("output tokens", 20 * calls, shown["tokens"]["output"]),
    ]


def _output(server: Serving, step_id: str) -> str:
    call = json.loads(server.get(f"/v1/steps/{step_id}"))["call"]
    return json.dumps(call["output"])


def _differ(what: str, expected: Any, found: Any) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]


def runs_of(server: Serving) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.get("/v1/runs?limit=500"))["items"]
    return found


def install(page: Page, folder: Path) -> None:
    """Do what the page's first line says, in a folder of its own; once; raises NotInstalled."""
    if folder.exists():
        return
    words = [word.strip("'") for word in page.install.split()[2:]]
    if page.language == "python":
        pip_install(folder / "venv", *words)
        return
    need("node", "npm")
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    npm_install(folder, *words)


def run(
    page: Page, folder: Path, server: Serving, model: Provider
) -> subprocess.CompletedProcess[str]:
    """Run the program with the variables of its page, but for the addresses."""
    tools = "tools" in page.program
    model.replies.extend(json_reply(answer) for answer in _answers(page, with_tool=tools))
    name, runner = (
        ("program.py", str(folder / "venv" / "bin" / "python"))
        if page.language == "python"
        else ("program.js", shutil.which("node") or "node")
    )
    (folder / name).write_text(page.program, encoding="utf-8")
    here = {
        key: value.replace("http://127.0.0.1:4318", server.http)
        for key, value in page.variables.items()
    }
    return subprocess.run(
        [runner, name],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(
            **here,
            PATH=os.environ["PATH"],
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=f"{model.address}/v1",
        ),
        timeout=120,
    )


def _answers(page: Page, *, with_tool: bool) -> list[dict[str, Any]]:
    """Return what the model says: a call of the tool where there is one, then the answer."""
    make = _response if "openai-agents" in page.install else _completion
    called = [make(calls="call_1")] if with_tool or "tool" in page.program else []
    return [*called, make()]


def _completion(calls: str = "") -> dict[str, Any]:
    function = {"name": "find_order", "arguments": '{"number": 7}'}
    asked = [{"id": calls, "type": "function", "function": function}]
    message = (
        {"role": "assistant", "content": None, "tool_calls": asked}
        if calls
        else {"role": "assistant", "content": ANSWER}
    )
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _response(calls: str = "") -> dict[str, Any]:
    function = {"type": "function_call", "id": "fc_1", "call_id": calls, "name": "find_order"}
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    output = (
        {**function, "arguments": '{"number": 7}', "status": "completed"}
        if calls
        else {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        | {"content": [text]}
    )
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4o-mini",
        "status": "completed",
        "output": [output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 120,
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
