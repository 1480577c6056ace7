"""The demo's third chapter: a claim against the record, its correction, and who reads both."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import hansard
from hansard import memory
from hansard_collector.heartbeat.cycle import CycleResult, Heartbeat
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import Config, judges_of
from hansard_web.app.server_file import Endpoints
from hansard_web.demo.coding.desk import Api
from hansard_web.demo.coding.golden import agent_environment
from hansard_web.demo.story import DemoFailed

# The agent of the third chapter: python -m hansard_web.demo.claims.releaser first|second.
#
# An ordinary program with the SDK in it. The first time its tests fail, it says that they pass, and
# remembers that. The second time it only asks what it knows. It prints one JSON line at its end.

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
        compiled, answer = _solve(run, adapter, known, _TASKS[name])
        if name == "first":
            memory.write(
                "All tests pass on release 1.4.",
                writer="app",
                type="session_summary",
                subject="run_tests",
                project=PROJECT,
                by=AGENT,
            )
        run.end(output=answer.text)
    receipts = {one.id: compiled.why(one.id).receipt.decision for one in known}
    told = {"run_id": run.run_id, "step_id": answer.recorded.step_id, "said": answer.text}
    print(json.dumps({**told, "known": receipts}), flush=True)
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
        answer = run.call_model(compiled)
        talk.append(answer.message)
        if not answer.tool_calls:
            return compiled, answer
        for call in answer.tool_calls:
            result = json.dumps(run_tests(**call.arguments))
            part = {"type": "tool_result", "id": call.id, "name": call.name, "content": result}
            talk.append({"role": "tool", "parts": [part]})


if __name__ == "__main__":
    main()


# The third chapter from outside: an agent claims success, the heartbeat corrects it.

Print = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Release:
    """What one run of the agent printed."""

    run_id: str
    step_id: str  # of its last model call
    said: str
    known: Mapping[str, str]  # the decision of the compile about each memory, by its id


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the third chapter left."""

    first: Release
    second: Release
    cycle: CycleResult
    corrections: Sequence[str]  # ids of memories


def play_claims(config: Config, endpoints: Endpoints, tell: Print) -> Chapter:
    """Let an agent claim success against the record, run a heartbeat, ask again.

    Raises DemoFailed where the record does not show it.
    """
    api = Api(endpoints)
    tell(f"\nAn agent claims success  ({AGENT})")
    first = _release(endpoints, "first")
    tell(f"  it said: {first.said}  {endpoints.http}/runs/{first.run_id}")
    api.until(f"/v1/runs/{first.run_id}", is_there=lambda run: run["status"] == "ok")
    cycle = Heartbeat(DataFolder(config.data), judges_of(config)).run()
    found = next(one for one in cycle.phases if one.name == "evaluation")
    tell(f"  the heartbeat: {found.summary}  {endpoints.http}/reports")
    second = _release(endpoints, "second")
    tell(f"  asked again: {second.said}  {endpoints.http}/runs/{second.run_id}")
    api.until(f"/v1/runs/{second.run_id}", is_there=lambda run: run["status"] == "ok")
    corrections = api.get("/v1/memory", type="correction", project=PROJECT)["items"]
    chapter = Chapter(first, second, cycle, [one["memory_id"] for one in corrections])
    _check(chapter)
    return chapter


def _check(chapter: Chapter) -> None:
    decisions = chapter.second.known
    claims = {
        "no phase of the heartbeat failed": not chapter.cycle.failed,
        "a correction was written": bool(chapter.corrections),
        "the next run was shown a correction": any(
            decisions.get(one) == "include" for one in chapter.corrections
        ),
        "and has a receipt for the claim": len(decisions) > len(chapter.corrections),
        "it does not repeat the claim": chapter.second.said != chapter.first.said,
    }
    wrong = [claim for claim, holds in claims.items() if not holds]
    if wrong:
        raise DemoFailed("this does not hold: " + "; ".join(wrong))


def _release(endpoints: Endpoints, name: str) -> Release:
    """Run the agent in a process of its own, as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "hansard_web.demo.claims", name],
        env=agent_environment(endpoints),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C is for the demo
    )
    if done.returncode:
        raise DemoFailed(f"{AGENT} ended with {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return Release(told["run_id"], told["step_id"], told["said"], told["known"])
