"""The programs of docs/connect and the lines of the README, as they stand: `make test-peers`.

What a page installs goes into a temporary folder, from wherever pip and npm are set to look: in the
versions of `pinned/`, or with `--newest` in those of the day, with a table of what arrived
(`make test-newest`). A model of this machine asks for a tool and then answers; what the server
shows is held against that. `python tests/peers/connect.py litellm` runs one page only, `--keep
FOLDER` keeps what was installed, `--pin` installs anew and writes the versions to `pinned/`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from hansard._clients.instrumentor_packages import NODE, PYTHON, Setup  # noqa: E402
from tests.instrumentation.clients.provider import Provider, json_reply, providing  # noqa: E402
from tests.journeys.processes import Serving, environment, serving  # noqa: E402
from tests.peers.installing import NotInstalled, need, node_path, npm_install, pip_install  # noqa: E402

PAGES = ROOT / "docs" / "connect"
PINNED = Path(__file__).parent / "pinned"
_SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_PROGRAM = re.compile(r"<!-- peer -->\n```(python|js)\n(.*?)```", re.DOTALL)
_MODEL = re.compile(r"<!-- model -->\n```python\n(.*?)```", re.DOTALL)
_RUNNERS: Final = ("opentelemetry-instrument ", "node ")
NEWEST_NODE: Final = 24
ANSWER = "It is in the post."
QUESTION = "Where is order 7?"
# A program without any telemetry of its own.
_PLAIN: Final = {
    "js": """\
import OpenAI from "openai";

const messages = [{ role: "user", content: "Where is order 7?" }];
const asked = { model: "gpt-4o-mini", messages };
const answer = await new OpenAI().chat.completions.create(asked);
console.log(answer.choices[0].message.content);
""",
}
SDK = "hansard"  # this checkout, in the place of a package


@dataclass(frozen=True)
class Page:
    """What a page tells its reader to install, to set and to run."""

    name: str
    install: str
    variables: dict[str, str]
    language: str
    program: str
    command: str = ""  # how the program is started, where that is not the language alone
    files: Mapping[str, str] = field(default_factory=dict)  # beside the program
    warns: str = ""  # what standard error has to say; "" for whatever the library likes


@dataclass(frozen=True)
class Arrived:
    """What the server has of one page's program."""

    wrong: list[str]
    runs: int = 0
    calls: int = 0
    messages: int = 0
    tokens: int = 0


def read_page(path: Path) -> Page | None:
    """Return the page, or None if it has no program."""
    text = path.read_text(encoding="utf-8")
    program = _PROGRAM.search(text)
    shell = _SHELL.search(text)
    if program is None or shell is None:
        return None
    lines = shell[1].splitlines()
    [install] = [line for line in lines if line.startswith(("pip ", "npm "))]
    command = next((line for line in lines if line.startswith(_RUNNERS)), "")
    set_here = "\n".join(line for line in lines if line.startswith("export "))
    variables = dict(re.findall(r"(\w+)=(\S+)", set_here))
    return Page(path.stem, install, variables, program[1], program[2], command)


def pages() -> list[Page]:
    return [page for path in sorted(PAGES.glob("*.md")) if (page := read_page(path))]


def readme_lines() -> list[Page]:
    """Return the README's lines for plain clients as pages: the shell's, and the SDK's five."""
    by_name = {page.name: page for page in pages()}
    [code] = _MODEL.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    sdk = Page(
        "readme-sdk", f"pip install openai {SDK}", {"OTEL_SERVICE_NAME": "clerk"}, "python", code
    )
    v2 = "opentelemetry-instrumentation-openai-v2"
    beside = replace(
        sdk, name="readme-sdk-v2", install=f"{sdk.install} {v2}",
        warns="pip install opentelemetry-instrumentation-genai-openai",
    )  # fmt: skip
    return [
        _with_setup(by_name["openai-python"], PYTHON, "readme-python"),
        _with_setup(by_name["openai-node"], NODE, "readme-node"),
        sdk,
        beside,
    ]


def _with_setup(page: Page, setup: Setup, name: str) -> Page:
    variables = dict(page.variables)
    if setup.content:
        key, _, value = setup.content.partition("=")
        variables[key] = value
    return Page(
        name, f"{setup.lines[0]} openai", variables, page.language,
        _PLAIN.get(page.language, page.program), setup.lines[-1], files={setup.file: setup.text},
    )  # fmt: skip


def main() -> int:
    """Run the pages that were named, or all; 0 when all was shown as the model said it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--newest", action="store_true")
    parser.add_argument("--pin", action="store_true")
    asked = parser.parse_args()
    every = [*pages(), *readme_lines()]
    chosen = [page for page in every if not asked.names or page.name in asked.names]
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hansard-connect-") as name:
        folder = asked.keep or Path(name)
        if asked.newest:  # what npm installs depends on the version of Node
            os.environ["PATH"] = node_path(Path(name) / "node", at_least=NEWEST_NODE)
        with serving(Path(name) / "data") as server, ThreadPoolExecutor(2) as pool:
            for page, ready in _installing(
                pool, chosen, folder, unpinned=asked.newest or asked.pin
            ):
                found = check(page, folder / page.name, server, ready)
                failures += bool(found.wrong)
                versions = {} if found.wrong and not found.runs else _versions(page, folder)
                sys.stdout.write(_row(page, found, versions if asked.newest else {}))
                sys.stdout.flush()
                if asked.pin and not found.wrong:
                    _pin(page, folder)
    return min(failures, 1)


def _installing(
    pool: ThreadPoolExecutor, chosen: Sequence[Page], folder: Path, *, unpinned: bool
) -> list[tuple[Page, Future[None]]]:
    """Begin to install, two pages at a time; programs run one by one meanwhile."""
    return [
        (page, pool.submit(install, page, folder / page.name, unpinned=unpinned)) for page in chosen
    ]


def _row(page: Page, found: Arrived, versions: Mapping[str, str]) -> str:
    outcome = "; ".join(found.wrong) if found.wrong else "ok"
    if not versions:
        return f"{page.name:<20} {outcome}\n"
    named = ", ".join(f"{package} {version}" for package, version in versions.items())
    figures = f"{found.runs:>2} {found.calls:>2} {found.messages:>2} {found.tokens:>4}"
    return f"{page.name:<18} runs calls messages tokens {figures}  {outcome:<4} {named}\n"


def check(page: Page, folder: Path, server: Serving, ready: Future[None]) -> Arrived:
    """Run, and return what arrived and what is not shown as it was."""
    try:
        ready.result()
    except NotInstalled as problem:
        return Arrived([str(problem)])
    known = {run["run_id"] for run in runs_of(server)}
    with providing() as model:
        try:
            ended = run(page, folder, server, model)
        except subprocess.TimeoutExpired as slow:
            return Arrived([f"did not end in {slow.timeout:g} s"])
    if ended.returncode or ANSWER not in ended.stdout:
        return Arrived([f"ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-1500:]}"])
    new = [run["run_id"] for run in runs_of(server) if run["run_id"] not in known]
    if len(new) != 1:
        return Arrived([f"{len(new)} runs"], runs=len(new))
    steps = json.loads(server.get(f"/v1/runs/{new[0]}/steps"))["items"]
    calls = [_call(server, s["step_id"]) for s in steps if s["role"] == "llm"]
    said = [(call["input"] or [], call["output"] or []) for call in calls]
    shown = json.loads(server.get(f"/v1/runs/{new[0]}"))
    tokens = shown["tokens"] or {}
    wrong = [
        *_differ("tools", len(model.received) - 1, sum(s["role"] == "tool" for s in steps)),
        *_differ_in_run(shown, page, len(model.received)),
        *_differ("question", True, any(QUESTION in json.dumps(sent) for sent, _ in said)),
        *_differ("answer", True, any(ANSWER in json.dumps(answer) for _, answer in said)),
        *_differ("warning", True, page.warns in ended.stderr),
    ]
    return Arrived(
        wrong,
        runs=1,
        calls=shown["model_calls"],
        messages=sum(len(sent) + len(answered) for sent, answered in said),
        tokens=(tokens.get("input") or 0) + (tokens.get("output") or 0),
    )


def _differ_in_run(shown: dict[str, Any], page: Page, calls: int) -> list[str]:
    tokens = shown["tokens"] or {}
    return [
        *_differ("calls", calls, shown["model_calls"]),
        *_differ("service", [page.variables["OTEL_SERVICE_NAME"]], shown["service_names"]),
        *_differ("input tokens", 100 * calls, tokens.get("input")),
        *_differ("output tokens", 20 * calls, tokens.get("output")),
    ]


def _call(server: Serving, step_id: str) -> dict[str, Any]:
    call: dict[str, Any] = json.loads(server.get(f"/v1/steps/{step_id}"))["call"]
    return call


def _differ(what: str, expected: Any, found: Any) -> list[str]:
    return [] if expected == found else [f"{what}: expected {expected!r}, found {found!r}"]


def runs_of(server: Serving) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.get("/v1/runs?limit=500"))["items"]
    return found


# ---- packages


def install(page: Page, folder: Path, *, unpinned: bool) -> None:
    """Do what the page's first line says, in a folder of its own; once; raises NotInstalled."""
    if folder.exists():
        return
    pinned = {} if unpinned else _pinned(page)
    if page.language == "python":
        words = [str(ROOT) if word == SDK else word for word in _named(page)]
        folder.mkdir(parents=True)
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{name}=={at}\n" for name, at in pinned.items()))
        pip_install(folder / "venv", *words, "-c", str(constraints))
        return
    need("node", "npm")
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    npm_install(folder, *(f"{one}@{pinned[one]}" if pinned else one for one in _named(page)))


def _named(page: Page) -> list[str]:
    """Return what the page installs, as it says it."""
    return shlex.split(page.install)[2:]


def _pinned(page: Page) -> dict[str, str]:
    file = PINNED / f"{page.name}.txt"
    if not file.exists():
        raise NotInstalled(f"{page.name}: no versions are pinned; --pin writes them")
    lines = file.read_text(encoding="utf-8").split()
    return {name: at for name, _, at in (line.rpartition("==") for line in lines)}


def _versions(page: Page, folder: Path) -> dict[str, str]:
    """Return the installed versions of the packages that the page names."""
    everything = _installed(page, folder)
    names = [re.split(r"[\[<>=]", word)[0] for word in _named(page)]
    return {name: everything[name] for name in names if name in everything and name != SDK}


def _installed(page: Page, folder: Path) -> dict[str, str]:
    own = folder / page.name
    if page.language == "python":
        pip = [str(own / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        told = subprocess.run(
            [*pip, "list", "--format=json"], capture_output=True, text=True, check=True, timeout=240
        )
        return {one["name"]: one["version"] for one in json.loads(told.stdout)}
    modules = own / "node_modules"
    return {
        name: json.loads((modules / name / "package.json").read_text())["version"]
        for name in _named(page)
    }


def _pin(page: Page, folder: Path) -> None:
    found = _installed(page, folder)
    kept = {name: at for name, at in found.items() if name not in (SDK, "pip", "setuptools")}
    PINNED.mkdir(exist_ok=True)
    lines = "".join(f"{name}=={at}\n" for name, at in sorted(kept.items()))
    (PINNED / f"{page.name}.txt").write_text(lines, encoding="utf-8")


# ---- programs


def run(
    page: Page, folder: Path, server: Serving, model: Provider
) -> subprocess.CompletedProcess[str]:
    """Run the program with the variables of its page, but for the addresses."""
    tools = "tools" in page.program
    model.replies.extend(json_reply(answer) for answer in _answers(page, with_tool=tools))
    name = "my_agent.py" if page.language == "python" else "my_agent.js"
    for file, text in {name: page.program, **page.files}.items():
        if file:
            (folder / file).write_text(text, encoding="utf-8")
    here = {
        key: value.replace("http://127.0.0.1:4318", server.http)
        for key, value in page.variables.items()
    }
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    runner = "python" if page.language == "python" else "node"
    words = shlex.split(page.command or f"{runner} {name}")
    return subprocess.run(
        [shutil.which(words[0], path=path) or words[0], *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(
            **here,
            PATH=path,
            HANSARD_ENDPOINT=server.http,
            HANSARD_DATA=str(folder / "data"),
            OPENAI_API_KEY="none",
            OPENAI_BASE_URL=f"{model.address}/v1",
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=model.address,
        ),
        timeout=120,
    )


def _answers(page: Page, *, with_tool: bool) -> list[dict[str, Any]]:
    """Return what the model says: a call of the tool where there is one, then the answer."""
    if "anthropic" in page.name:
        return [_message()]
    make = _response if "openai-agents" in page.install else _completion
    called = [make(calls="call_1")] if with_tool or "tool" in page.program else []
    return [*called, make()]


def _message() -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": ANSWER}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


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
