"""The third chapter from outside: an agent claims success, the heartbeat corrects it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hansard_collector.heartbeat.cycle import CycleResult, Heartbeat
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import Config, judges_of
from hansard_web.app.server_file import Endpoints
from hansard_web.demo.claims.releaser import AGENT, PROJECT
from hansard_web.demo.coding.golden import Tell
from hansard_web.demo.story import Api, hold, reports_of, sdk_environment


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


def play_claims(config: Config, endpoints: Endpoints, tell: Tell) -> Chapter:
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
    hold(claims)


def _release(endpoints: Endpoints, name: str) -> Release:
    reports = reports_of("claims.releaser", name, name=AGENT, **sdk_environment(endpoints))
    (release,) = (Release(**report) for report in reports)
    return release
