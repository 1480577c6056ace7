"""The coding agent of the golden path: python -m hansard_web.demo.coding.coder FOLDER.

An ordinary program with the SDK in it. It prints one JSON line for each thing that happened, for
its caller, and nothing else.
"""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import hansard
from hansard import memory
from hansard.errors import CallRefused
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script
from hansard_compiler.providers.transport.vendor_sdk import Connection
from hansard_web.demo.coding import tools
from hansard_web.demo.coding.workspace import Workspace, make_workspace

# Everything the coding agent could tell its model, as context items: the compiler chooses.

REQUEST: Final = "Make the failing test pass. Do not edit tests. Preserve the public API."
CONSTRAINTS: Final = ("Do not edit tests.", "Preserve the public API.")
CONVENTIONS: Final = "CONVENTIONS.md"
_INSTRUCTIONS: Final = (
    "You are a careful programmer in a small repository. Read before you write, make the smallest "
    "change that does the job, and run the tests after every change."
)
# How far a file is to be trusted to say how things are, and how much it matters by itself.
_IMPORTANCE: Final = {"shop/invoice.py": 0.7, "shop/money.py": 0.3, "shop/tax.py": 0.3}
_USUAL: Final = 0.1


def instructions() -> dict[str, Any]:
    """Return the instructions of the agent."""
    return _item("instructions", "system", _INSTRUCTIONS, source={"source_type": "app_state"})


def constraints() -> list[dict[str, Any]]:
    """Return the hard constraints that the request contains, one item each."""
    source = {"source_type": "user", "title": "the request"}
    return [
        _item(f"constraint-{number}", "constraint", text, source=source)
        for number, text in enumerate(CONSTRAINTS, 1)
    ]


def of_repository(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Return the repository's files: the README as its summary, everything else as it stands."""
    for path in workspace.paths():
        kind = "summary" if path == "README.md" else "file"
        item = _item(path, kind, workspace.read(path), source=_file(path))
        yield {**item, "importance_score": _IMPORTANCE.get(path, _USUAL)}
    diff = workspace.diff()
    if diff:
        source = {"source_type": "app_state", "title": "changes so far"}
        yield _item("diff", "code_diff", diff, source=source)


def _file(path: str) -> dict[str, Any]:
    return {"source_type": "file", "uri": path, "title": PurePosixPath(path).name}


def _item(name: str, kind: str, content: str, *, source: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "kind": kind, "content": content, "source_ref": source}


AGENT: Final = "coding-agent"
MODEL: Final = "scripted-1"
SCRIPT: Final = Path(__file__).with_name("script.json")
_ROOMY, _TIGHT = 6_000, 1_960  # tokens; the tight one is the mistake that the demo finds
_RESERVE: Final = 300
_MOST_TURNS: Final = 12


@dataclass(slots=True)
class Coder:
    """One task: the conversation so far, and how much the model may be shown."""

    workspace: Workspace
    adapter: Adapter
    model: str
    talk: hansard.Transcript  # every message word for word, beside what the model was shown
    pace_s: float = 0.0
    conversation: list[dict[str, Any]] = field(default_factory=list)
    recalled: Any = ()  # records of earlier tasks, as `hansard.memory` finds them
    budget: int = _ROOMY
    is_reviewed: bool = False
    permit: tools.Permit = field(default_factory=tools.Permit)
    sent_back: str | None = None  # the approval whose note is being answered
    previous: hansard.CompiledStep | None = None

    def solve(self, run: hansard.Run, gate: Any) -> str:
        """Work until the model has nothing left to do; returns its last words."""
        self._keep({"role": "user", "content": REQUEST})
        for number in range(_MOST_TURNS):
            reply = self._turn(run, gate, "plan" if number == 0 else f"turn {number + 1}")
            self._keep(reply.message)
            if not reply.tool_calls:
                return reply.text
            for call in reply.tool_calls:
                self._call(gate, call)
            time.sleep(self.pace_s)
        return "it did not get there"

    def _turn(self, run: hansard.Run, gate: Any, name: str) -> hansard.ModelAnswer:
        with run.step(name):
            compiled = run.compile_step(
                [
                    instructions(),
                    *constraints(),
                    *of_repository(self.workspace),
                    *self.conversation,
                ],
                model=self.model,
                provider=self.adapter,
                token_budget=self.budget,
                response_reserve=_RESERVE,
                tools=tools.DEFINITIONS,
                memory=self.recalled,
                policy=tools.RULES,
                task_summary=REQUEST,
                previous=self.previous,
            )
            gate.note(compiled)
            reply = run.call_model(compiled)
        report = {"step_id": reply.recorded.step_id, "compilation_id": compiled.id, "name": name}
        _tell("turn", said=reply.text, **report)
        self.previous = compiled
        self.budget = _ROOMY if self.is_reviewed else _TIGHT
        return reply

    def _call(self, gate: Any, call: Any) -> None:
        answered, self.sent_back = self.sent_back, None
        try:
            outcome = gate.call(call.name, call.arguments, repropose=answered)
            if isinstance(outcome, hansard.Revised):
                self.sent_back = outcome.approval_id
            if isinstance(outcome, hansard.Pending):
                result = self._when_approved(gate, outcome.approval_id)
            else:
                result = outcome.for_model()
        except CallRefused as error:
            result = f"not done: {error}"
        except OSError as error:
            result = f"failed: {error}"
        result = result["message"] if isinstance(result, dict) else result
        if call.name == "apply_patch" and (self.sent_back or result.startswith("patched")):
            # Somebody looked at the result of too little room: from here on there is enough.
            self.is_reviewed, self.budget = True, _ROOMY
        _tell("tool", name=call.name, about=_about(call.arguments), result=_last_line(result))
        part = {"type": "tool_result", "id": call.id, "name": call.name, "content": str(result)}
        self._keep({"role": "tool", "parts": [part]})

    def _keep(self, message: dict[str, Any]) -> None:
        self.conversation.append(message)
        self.talk.append(message)

    def _when_approved(self, gate: Any, approval_id: str) -> str:
        """Wait for a decision and run the call under it: what is remembered names its approval."""
        decided = hansard.approvals.wait_decision(approval_id)
        if decided["status"] != "approved":
            return f"not done: it was {decided['status']}"
        self.permit.approval_id = approval_id
        return str(gate.run(approval_id).result)


def _about(arguments: Any) -> str:
    return str(next(iter(arguments.values()), "")) if isinstance(arguments, dict) else ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""


def _tell(kind: str, **what: Any) -> None:
    print(json.dumps({"kind": kind, **what}), flush=True)


def make_adapter(provider: str, model_server: str = "") -> Adapter:
    """Return the adapter of a provider; one with a key finds it where its package looks for it."""
    if provider == "local":
        connection = Connection(base_url=model_server)
        return adapter_for("openai_compatible", AdapterSettings(connection=connection))
    if provider != "scripted":
        return adapter_for(provider)
    return adapter_for(provider, AdapterSettings(script=read_script(SCRIPT.read_bytes())))


def main() -> None:
    """Make a copy of the fixture in a folder, and do the task in it."""
    folder, provider, model, model_server, pace_s = sys.argv[1:]
    workspace = make_workspace(Path(folder))
    hansard.init(service_name=AGENT)
    talk = hansard.transcript(f"{tools.PROJECT}-{secrets.token_hex(2)}")
    coder = Coder(workspace, make_adapter(provider, model_server), model, talk, float(pace_s))
    gated = tools.make_tools(workspace, coder.permit)
    with (
        hansard.start_run(AGENT, "coding", REQUEST, conversation_id=talk.name) as run,
        hansard.gate(agent=AGENT, tools=gated, policy=tools.RULES) as gate,
    ):
        coder.recalled = memory.candidates(project=tools.PROJECT)
        memories = [one.id for one in coder.recalled]
        _tell("run", run_id=run.run_id, transcript=talk.id, memory=memories)
        text = coder.solve(run, gate)
        run.end(output=text)
    _tell("end", said=text, diff=workspace.diff())
    hansard.shutdown()


if __name__ == "__main__":
    main()
