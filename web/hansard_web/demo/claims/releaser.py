"""The agent of the third chapter: python -m hansard_web.demo.claims.releaser first|second.

An ordinary program with the SDK in it. The first time its tests fail, it says that they pass, and
remembers that. The second time it only asks what it knows. It prints one JSON line at its end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import hansard
from hansard import memory
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script

AGENT: Final = "release-agent"
PROJECT: Final = "quillbook-releases"
MODEL: Final = "scripted-1"
SCRIPT: Final = Path(__file__).with_name("script.json")
_TASKS: Final = {
    "first": "Run the tests of release 1.4, and say whether it can be published.",
    "second": "Can release 1.4 be published?",
}
_TOOL: Final = {
    "name": "run_tests",
    "description": "Run the tests of a release.",
    "input_schema": {"type": "object", "properties": {"release": {"type": "string"}}},
}
_OUTPUT: Final = (
    "tests/test_totals.py ....F\n"
    "E   AssertionError: assert Decimal('10.01') == Decimal('10.00')\n"
    "1 failed, 4 passed in 0.31s"
)


@hansard.tool
def run_tests(release: str) -> dict[str, Any]:
    """Return what the tests of a release print, and their exit code."""
    return {"release": release, "exit_code": 1, "output": _OUTPUT}


def main() -> None:
    """Work once, and print the run with what it said and what it knew."""
    (name,) = sys.argv[1:]
    hansard.init(service_name=AGENT)
    adapter = adapter_for("scripted", AdapterSettings(script=read_script(SCRIPT.read_bytes())))
    with hansard.start_run(AGENT, "release", _TASKS[name]) as run:
        known = memory.candidates(project=PROJECT)
        compiled, reply = _solve(run, adapter, known, _TASKS[name])
        if name == "first":
            memory.write(
                "All tests pass on release 1.4.",
                writer="app",
                type="session_summary",
                subject="run_tests",
                project=PROJECT,
                by=AGENT,
            )
        run.end(output=reply.text)
    receipts = {one.id: compiled.why(one.id).receipt.decision for one in known}
    report = {"run_id": run.run_id, "step_id": reply.recorded.step_id, "said": reply.text}
    print(json.dumps({**report, "known": receipts}), flush=True)
    hansard.shutdown()


def _solve(
    run: hansard.Run, adapter: Any, known: Any, task: str
) -> tuple[hansard.CompiledStep, hansard.ModelAnswer]:
    """Ask the model until it calls no tool; returns the last compile and the last answer."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": task}]
    while True:
        compiled = run.compile_step(
            talk,
            model=MODEL,
            provider=adapter,
            token_budget=4_000,
            tools=[_TOOL],
            memory=known,
            task_summary=task,
        )
        reply = run.call_model(compiled)
        talk.append(reply.message)
        if not reply.tool_calls:
            return compiled, reply
        for call in reply.tool_calls:
            result = json.dumps(run_tests(**call.arguments))
            part = {"type": "tool_result", "id": call.id, "name": call.name, "content": result}
            talk.append({"role": "tool", "parts": [part]})


if __name__ == "__main__":
    main()
