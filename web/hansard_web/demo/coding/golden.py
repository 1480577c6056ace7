"""The golden path from outside: the agent works twice, a person decides, one step is replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hansard_web.app.server_file import Endpoints
from hansard_web.demo.coding.coder import AGENT
from hansard_web.demo.coding.reviewer import Reviewer
from hansard_web.demo.coding.settings import DemoSettings
from hansard_web.demo.story import Api, DemoFailed, hold, reports_of, sdk_environment

ROOMY: Final = 6_000  # tokens: what the mutated replay gives the step that had too few
_WAIT_S: Final = 30.0
Tell = Callable[[str], None]


@dataclass(slots=True)
class _Work:
    """What one run of the agent reported."""

    run_id: str = ""
    transcript: str = ""
    turns: list[dict[str, Any]] = field(default_factory=list)
    memory: list[str] = field(default_factory=list)
    said: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Golden:
    """What the golden path left, by what a sceptic would ask."""

    first: _Work
    second: _Work
    approval_id: str | None  # of the patch that was sent back, else of what was decided last
    plan: str  # steps: model calls
    bad: str
    exact: dict[str, Any]
    mutated: dict[str, Any]


def play(endpoints: Endpoints, settings: DemoSettings, tell: Tell, *, token: str) -> Golden:
    """Let the agent do the same task twice, and replay what went wrong. Raises DemoFailed.

    `token` is that of the person who decides.
    """
    api = Api(endpoints)

    def on_decision(word: str, approval: dict[str, Any]) -> None:
        tell(f"      {word} by rosa  {endpoints.http}/approvals/{approval['approval_id']}")

    reviewer = Reviewer(
        Api(endpoints, token=token), pace_s=settings.pace_s, on_decision=on_decision
    )
    if not settings.asks:
        reviewer.start()
    try:
        first = _work(endpoints, settings, "first", tell)
        second = _work(endpoints, settings, "second", tell)
    finally:
        if not settings.asks:
            reviewer.go_home()
    for work in (first, second):
        api.until(f"/v1/runs/{work.run_id}", is_there=lambda run: run["status"] == "ok")
    golden = _looked_back(api, first, second)
    if settings.is_scripted:
        _check(golden)
    return golden


def _looked_back(api: Api, first: _Work, second: _Work) -> Golden:
    """Replay the step whose patch was sent back: exactly, and with the room it should have had.

    A real model may need fewer calls, or no note: then it is the last one, and what was decided.
    """
    bad = first.turns[: _SENT_BACK + 1][-1]["step_id"]
    budget = {"op": "set_budget", "token_budget": ROOMY}
    decided = api.get("/v1/approvals", run=first.run_id)["items"]
    decided.sort(key=lambda one: one["revision"])
    return Golden(
        first,
        second,
        approval_id=decided[-1]["approval_id"] if decided else None,
        plan=first.turns[0]["step_id"],
        bad=bad,
        exact=_replay(api, {"step_id": bad, "mode": "exact"}),
        mutated=_replay(api, {"step_id": bad, "mode": "mutated", "mutations": [budget]}),
    )


def _check(golden: Golden) -> None:
    """Hold the story to what it claims; raises DemoFailed."""
    exact, mutated = golden.exact, golden.mutated
    claims = {
        "the exact replay sent the recorded bytes": exact["same_request"] is True,
        "and was answered as before": exact["comparison"]["output"]["is_empty"],
        "the mutated replay sent others": mutated["same_request"] is False,
        "and was answered otherwise": not mutated["comparison"]["output"]["is_empty"],
        "a patch was sent back": golden.approval_id is not None,
        "the first run began without memory": not golden.first.memory,
        "the second one with it": bool(golden.second.memory),
        "both made the same patch": golden.first.diff == golden.second.diff != "",
        "the second at once": len(golden.second.turns) < len(golden.first.turns),
    }
    hold(claims)


_SENT_BACK: Final = 2  # the turn whose patch the reviewer sends back


def _replay(api: Api, request: dict[str, Any]) -> dict[str, Any]:
    replay = api.post("/v1/replay", {**request, "wait_s": _WAIT_S})
    if replay["state"] != "done":
        raise DemoFailed(
            f"the {request['mode']} replay is {replay['state']}: {replay['reason_text']}"
        )
    return replay


def _work(endpoints: Endpoints, settings: DemoSettings, name: str, tell: Tell) -> _Work:
    work = _Work()
    reports = reports_of(
        "coding.coder",
        str(settings.folder / name),
        settings.provider,
        settings.model,
        settings.model_server or "",
        str(settings.pace_s),
        name=AGENT,
        **sdk_environment(endpoints),  # and a key for a real model, which is inherited
    )
    for report in reports:
        if report["kind"] == "run":
            work.run_id, work.memory = report["run_id"], report["memory"]
            work.transcript = report["transcript"]
            tell(f"\nThe {name} run  {endpoints.http}/runs/{work.run_id}")
        elif report["kind"] == "turn":
            work.turns.append(report)
            tell(f"  {report['said']}")
        elif report["kind"] == "tool":
            shown = "" if report["name"] == "read_file" else f": {report['result']}"
            tell(f"      {report['name']} {report['about']}{shown}")
        else:
            work.said, work.diff = report["said"], report["diff"]
    return work
