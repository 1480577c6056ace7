"""A coding agent on Anthropic's Messages API: it reads, patches and tests, and asks before writing.

    hansard serve &
    export APPROVER_TOKEN=$(hansard tokens add "$USER" --scope decide)    # yours, to decide with
    export ANTHROPIC_API_KEY=…          # and ANTHROPIC_BASE_URL, for another server of that API
    python examples/anthropic_coding_agent.py --model claude-…
    python examples/anthropic_coding_agent.py --offline      # a model of this machine, and no key

It works in a folder made for this run. The shipped policy `coding-agent` stands before its tools:
commands that only read run unasked, any other and every patch wait for you. The official package
sends (`pip install 'hansard[anthropic]'`); signed thinking goes back unchanged.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import local_models

import hansard
from hansard import approvals
from hansard.errors import CallRefused
from hansard_compiler.errors import HansardError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection

AGENT = "coding-agent"
APPROVER_TOKEN = os.environ.get("APPROVER_TOKEN")  # of the person at this terminal
TASK = "The test fails. Correct the program, and do not touch the test."
MOST_TURNS = 8
FILES = {
    "slug.py": 'def slug(title):\n    return title.lower().replace(" ", "_")\n',
    "test_slug.py": (
        "from slug import slug\n\n"
        'assert slug("Two Words") == "two-words", slug("Two Words")\n'
        'print("passed")\n'
    ),
}
TOOLS = [
    {
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {one: {"type": "string"} for one in parameters},
            "required": parameters,
        },
    }
    for name, description, parameters in (
        ("shell", "Run a command in the folder.", ["command"]),
        ("patch", "Put text in place of other text in a file.", ["path", "old", "new"]),
    )
]


def make_tools(folder: Path) -> list[Any]:
    """What the agent can do in a folder."""

    @hansard.tool(effect="read", tool_class="shell", describe="Run {command}")
    def shell(command: str) -> str:
        """Run a command; the policy decides which ones run unasked."""
        words = shlex.split(command)
        words = [sys.executable if word == "python" else word for word in words]
        ended = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        return ended.stdout + ended.stderr

    @hansard.tool(effect="write", tool_class="files", describe="In {path}, {old} becomes {new}")
    def patch(path: str, old: str, new: str) -> str:
        """Put text in place of other text that stands in a file once."""
        target = (folder / path).resolve()
        if not target.is_relative_to(folder.resolve()):
            return "not done: that is outside the folder"
        text = target.read_text(encoding="utf-8")
        if text.count(old) != 1:
            return f"not done: the text stands there {text.count(old)} times"
        target.write_text(text.replace(old, new), encoding="utf-8")
        return "patched"

    return [shell, patch]


def solve(folder: Path, adapter: Adapter, model: str) -> str:
    """Work until the model has nothing left to do."""
    conversation: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    with (
        hansard.start_run(AGENT, "coding", TASK) as run,
        hansard.gate(agent=AGENT, tools=make_tools(folder), policy="coding-agent") as gate,
    ):
        for number in range(1, MOST_TURNS + 1):
            with run.step(f"turn {number}"):
                compiled = run.compile_step(
                    [*candidates(folder), *conversation],
                    model=model,
                    provider=adapter,
                    token_budget=8_000,
                    response_reserve=2_000,
                    tools=TOOLS,
                    task_summary=TASK,
                )
                gate.note(compiled)
                said = run.call_model(compiled, max_output_tokens=2_000)
            conversation.append(said.message)
            if said.text:
                sys.stdout.write(f"{said.text}\n")
            if not said.tool_calls:
                run.end(output=said.text)
                return said.text
            for call in said.tool_calls:
                result = called(gate, call.name, dict(call.arguments))
                conversation.append({"role": "tool", "tool_call_id": call.id, "content": result})
        run.end(status="failed", output="too many turns")
    return "too many turns"


def candidates(folder: Path) -> Iterator[dict[str, Any]]:
    """The instructions, and every file as it stands now."""
    yield {
        "id": "instructions",
        "kind": "system",
        "content": "You are a careful programmer. Make the smallest change, then run the test.",
        "source_ref": {"source_type": "app_state"},
    }
    for name in FILES:
        yield {
            "id": name,
            "kind": "file",
            "content": (folder / name).read_text(encoding="utf-8"),
            "source_ref": {"source_type": "file", "uri": name},
        }


def called(gate: Any, name: str, arguments: dict[str, Any]) -> str:
    """Call a tool; where the gate wants a decision, ask whoever sits here."""
    try:
        result = gate.call(name, arguments)
        if isinstance(result, hansard.Pending):
            return decided(gate, result.approval_id)
    except (CallRefused, OSError) as error:
        return f"not done: {error}"
    return str(result.for_model())


def decided(gate: Any, approval_id: str) -> str:
    """Approve or reject, here or meanwhile on the page of the approval."""
    asked = approvals.get(approval_id)
    sys.stdout.write(f"  {asked['description']}\n  May it? [y/N] ")
    sys.stdout.flush()
    by = getpass.getuser()
    if sys.stdin.readline().strip().lower() != "y":
        approvals.reject(approval_id, by=by, reason="said no", token=APPROVER_TOKEN)
        return "not done: it was rejected"
    approvals.approve(approval_id, by=by, revision=asked["revision"], token=APPROVER_TOKEN)
    return str(gate.run(approval_id).result)


# ---- without a key


def answer_offline(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as Anthropic's Messages API does, from what the conversation has come to."""
    results = [
        block
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    is_refused = bool(results) and "not done" in str(results[-1]["content"])
    content = LAST_WORDS if is_refused else _turns()[min(len(results), len(_turns()) - 1)]
    is_call = any(block["type"] == "tool_use" for block in content)
    return {
        "id": f"msg_{len(results)}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": "tool_use" if is_call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": len(str(request)) // 4, "output_tokens": len(str(content)) // 4},
    }


LAST_WORDS = [{"type": "text", "text": "Then I leave it as it is."}]


def _turns() -> list[list[dict[str, Any]]]:
    patch = {"path": "slug.py", "old": '"_"', "new": '"-"'}
    return [
        _turn("I read the test.", "shell", {"command": "cat test_slug.py"}),
        _turn("Words are joined by hyphens.", "patch", patch),
        _turn("I run the test.", "shell", {"command": "python test_slug.py"}),
        [{"type": "text", "text": "Done: the words of a slug are joined by hyphens."}],
    ]


def _turn(text: str, name: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{len(text)}", "name": name, "input": arguments}
    return [{"type": "text", "text": text}, call]


@contextmanager
def connection(*, offline: bool) -> Iterator[Connection]:
    """Reach the provider that the environment names, or one that lives as long as this block."""
    if not offline:
        yield Connection()
        return
    answers = {
        "/v1/messages": answer_offline,
        "/v1/messages/count_tokens": lambda asked: {"input_tokens": len(str(asked)) // 4},
    }
    with local_models.serving(answers) as base_url:
        yield Connection(api_key="none", base_url=base_url)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="claude-haiku-5-5")
    parser.add_argument("--offline", action="store_true", help="ask a model of this machine")
    parser.add_argument("--embedded", action="store_true", help="store without a server")
    asked = parser.parse_args()
    hansard.init(service_name=AGENT, embedded=asked.embedded)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hansard-coding-") as name,
            connection(offline=asked.offline) as reached,
        ):
            for file, text in FILES.items():
                (Path(name) / file).write_text(text, encoding="utf-8")
            solve(Path(name), adapter_for("anthropic", AdapterSettings(reached)), asked.model)
            sys.stdout.write((Path(name) / "slug.py").read_text(encoding="utf-8"))
    except HansardError as error:  # no key, no package, no answer: it says what to do
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
