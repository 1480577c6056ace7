"""No id comes twice, what is numbered sorts by its making, and every time is UTC."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from hansard_web.sidecar.idempotency import Ids
from tests.web.sidecar.conftest import Agent

MANY = 100_000


def test_no_id_comes_twice_in_a_hundred_thousand() -> None:
    made, theirs = Ids(bytes(32)), RandomIdGenerator()

    assert len({made.trace_id() for _ in range(MANY)}) == MANY
    assert len({made.span_id("step") for _ in range(MANY)}) == MANY
    assert len({theirs.generate_trace_id() for _ in range(MANY)}) == MANY


def test_runs_and_events_are_numbered_in_the_order_they_were_made(agent: Agent) -> None:
    """Ids are random, as OpenTelemetry's are; these numbers sort by time."""
    made = [agent.start() for _ in range(30)]
    for number in range(30):
        agent.tell("/v1/events", {"type": "tool.called", "tool": f"tool-{number}"})

    runs = {one["run_id"]: one for one in agent.get("/v1/runs?limit=100")["items"]}
    events = agent.get("/v1/events?type=tool.called&limit=100")["items"]

    numbers = [runs[run_id]["first_seen_seq"] for run_id in made]
    assert numbers == sorted(set(numbers))
    assert [one["action"] for one in sorted(events, key=lambda one: one["seq"])] == [
        f"tool-{number}" for number in range(30)
    ]


def test_every_time_that_is_answered_is_aware_and_utc(agent: Agent) -> None:
    run_id = agent.start()
    agent.tell("/v1/approvals", {"tool": "pay", "arguments": {}, "agent": "clerk"})
    bodies = [
        agent.get(path)
        for path in ("/v1/runs", f"/v1/runs/{run_id}/record", "/v1/events", "/v1/approvals")
    ]

    times = [text for body in bodies for text in _times(body)]

    assert len(times) > 5
    for text in times:
        assert datetime.fromisoformat(text).utcoffset() == timedelta(0), text


def _times(value: Any, name: str = "") -> list[str]:
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in _times(one, key)]
    if isinstance(value, list):
        return [text for one in value for text in _times(one, name)]
    return [value] if name.endswith("_at") and isinstance(value, str) else []
