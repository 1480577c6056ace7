"""The audit log over HTTP: filters, cursor, head, verify, and what programs tell."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_web.approvals import bodies as models
from tests.web.answers import check_fits
from tests.web.conftest import MakeClient

RUN = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def api(make_client: MakeClient) -> TestClient:
    return make_client()


def note(api: TestClient, **told: Any) -> int:
    answer = api.post("/v1/events", json=told)
    assert answer.status_code == 201, answer.text
    seq: int = answer.json()["seq"]
    return seq


def test_an_event_does_not_happen_later_than_it_is_written(api: TestClient) -> None:
    told = {"type": "tool.called", "tool": "find"}
    ahead = time.time_ns() + 60_000_000_000

    refused = api.post("/v1/events", json={**told, "time_ns": ahead + 3_600_000_000_000})
    seq = note(api, **told, time_ns=ahead)

    assert (refused.status_code, refused.json()["error"]["details"]) == (
        400,
        {"parameter": "time_ns"},
    )
    (found,) = api.get("/v1/events").json()["items"]
    assert (found["seq"], found["late"]) == (seq, False)
    assert found["time"] < datetime.fromtimestamp(ahead / 1e9, UTC).isoformat()


@pytest.mark.covers("EV-02", "EV-03", "EV-06", "EV-07", "EV-08", "EV-09")
def test_what_programs_tell_is_logged_and_found(api: TestClient) -> None:
    told: list[dict[str, Any]] = [
        {"type": "message.inbound", "conversation": "c1", "text": "pay bob", "by": "ann"},
        {
            "type": "tool.called",
            "tool": "find",
            "arguments": {"q": 1},
            "call_id": "1",
            "run_id": RUN,
        },
        {"type": "tool.returned", "tool": "find", "ok": True, "result": [1], "call_id": "1"},
        {
            "type": "policy.blocked",
            "tool": "pay",
            "arguments": {},
            "reason": "no",
            "agent": "clerk",
        },
        {"type": "action.receipted", "tool": "pay", "arguments": {"sum": 1}},
        {"type": "failure", "action": "pay", "error": "boom"},
        {"type": "message.outbound", "conversation": "c1", "text": "done", "agent": "clerk"},
    ]

    numbers = [note(api, **one) for one in told]
    listed = api.get("/v1/events").json()

    check_fits(models.Events, listed)
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
    assert [one["type"] for one in listed["items"]] == [one["type"] for one in told][::-1]
    assert "pay bob" not in str(listed)

    def found(query: str) -> list[int]:
        return [one["seq"] for one in api.get(f"/v1/events?{query}").json()["items"]]

    assert found("actor=me") == [1]
    assert found("action=pay") == [6, 5, 4]
    assert found("type=tool.returned") == [3]
    assert found("subject=conversation:c1") == [7, 1]
    assert found(f"run={RUN}") == [2]
    assert found("who=clerk") == [7, 4]
    assert found("source=api&limit=2") == [7, 6]
    assert found("since=2100-01-01") == []
    assert found("until=2100-01-01") == [7, 6, 5, 4, 3, 2, 1]
    assert found("until=2020-01-01") == []
    assert found("source=cli") == []


@pytest.mark.covers("EV-02")
def test_the_events_of_one_approval_or_moment_are_found(api: TestClient) -> None:
    ids = []
    for number in (1, 2):
        asked = {"tool": "pay", "arguments": {"sum": number}, "effect": "write"}
        ids.append(api.post("/v1/approvals", json=asked).json()["approval_id"])
    api.post(f"/v1/approvals/{ids[0]}/reject", json={"by": "ann"})

    def found(query: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = api.get(f"/v1/events?{query}").json()["items"]
        return items

    rejected, *before = found("")
    of_first = found(f"approval={ids[0]}")
    assert [one["type"] for one in of_first] == ["action.rejected", "action.created"]
    assert of_first[0] == rejected
    assert [one["type"] for one in found(f"approval={ids[1][-8:]}")] == ["action.created"]
    assert found(f"since={rejected['time']}") == [rejected]
    assert found(f"until={rejected['time']}") == before


def test_events_of_approvals_are_not_told_by_programs(api: TestClient) -> None:
    for type in ("action.approved", "action.executed", "made.up"):
        answer = api.post("/v1/events", json={"type": type, "tool": "x"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_proposal")

    assert api.get("/v1/events/head").json()["seq"] == 0


def test_the_log_is_verified_against_an_anchor(api: TestClient) -> None:
    for number in range(3):
        note(api, type="failure", action=f"a{number}", error="x")
    head = api.get("/v1/events/head").json()
    check_fits(models.HeadBody, head)

    sound = api.get("/v1/events/verify", params={"anchor": head["anchor"]}).json()
    ahead = api.get("/v1/events/verify", params={"anchor": f"9:{head['hash']}"}).json()
    other = api.get("/v1/events/verify", params={"anchor": f"2:{head['hash']}"}).json()
    bad = api.get("/v1/events/verify", params={"anchor": "yesterday"})

    check_fits(models.Verified, sound)
    assert (sound["valid"], sound["checked"]) == (True, 3)
    assert (ahead["valid"], ahead["broken"]["seq"]) == (False, 4)
    assert (other["valid"], other["broken"]["seq"]) == (False, 2)
    assert bad.json()["error"]["code"] == "invalid_query"


def test_pages_of_events_join_without_a_gap(api: TestClient) -> None:
    for number in range(5):
        note(api, type="failure", action=f"a{number}", error="x")

    first = api.get("/v1/events?limit=3").json()
    rest = api.get(f"/v1/events?limit=3&cursor={first['next_cursor']}").json()

    assert [one["seq"] for one in (*first["items"], *rest["items"])] == [5, 4, 3, 2, 1]
    assert rest["next_cursor"] is None


def test_bad_filters_are_refused_in_words(api: TestClient) -> None:
    for query in ("type=made.up", "actor=robot", "cursor=x", "limit=0", "since=never"):
        assert api.get(f"/v1/events?{query}").status_code == 400
    assert api.get("/v1/events?approval=00000000").status_code == 404
