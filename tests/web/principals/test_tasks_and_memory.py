"""Decisions on tasks and memory over HTTP: refused without a token, and kept under its name."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_store.verification.integrity import verify_store
from tests.signing import add_token, bearer
from tests.store.task_maker import TaskMaker
from tests.web.makers import RunMaker
from tests.web.principals.conftest import folder_of


def last_event(client: TestClient, subject: str) -> dict[str, Any]:
    found = client.get("/v1/events", params={"subject": subject}).json()["items"]
    told: dict[str, Any] = found[0]
    return told


def remember(client: TestClient, content: str, confidence: float) -> dict[str, Any]:
    body = {
        "writer": "app", "memory_type": "fact", "content": content, "subject": "alice",
        "attribute": "payer", "namespace": {"project": "books"}, "confidence": confidence,
    }  # fmt: skip
    answer = client.post("/v1/memory/write", json=body)
    assert answer.status_code in (200, 201), answer.text
    told: dict[str, Any] = answer.json()["memory"]
    return told


@pytest.mark.parametrize("decision", ["approve", "dismiss"])
def test_a_task_is_decided_in_the_name_of_a_token(
    api: TestClient, runs: RunMaker, decision: str
) -> None:
    with closing(TaskMaker(runs.store)) as tasks:
        with runs.store.batch():
            tasks.fail_often(5)
        task = tasks.detect_one()
    path, body = f"/v1/tasks/{task.task_id}/decide", {"decision": decision, "by": "kim"}

    refused = api.post(path, json=body)
    decided = api.post(path, json=body, headers=bearer(add_token(folder_of(api), "ana")))

    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "credentials_required")
    assert decided.status_code == 200
    stored = decided.json()["task"]["decision"]
    assert (stored["by"], stored["method"]) == ("ana", "token")
    event = last_event(api, f"task:{task.task_id}")
    assert (event["type"], event["who"]) == ("task.decided", "ana")
    assert event["body"].items() >= {
        "principal": "ana", "auth_method": "token", "stated_by": "kim",
    }.items()  # fmt: skip
    assert [one for one in verify_store(folder_of(api)).findings if one.check == "decisions"] == []


@pytest.mark.parametrize("verb", ["accept", "invalidate"])
def test_memory_is_accepted_and_ended_in_the_name_of_a_token(api: TestClient, verb: str) -> None:
    remember(api, "Alice pays.", 1.0)
    rival = remember(api, "Bob pays.", 0.1)
    body = {"memory_id": rival["memory_id"], "by": "kim", "reason": "looked"}

    refused = api.post(f"/v1/memory/{verb}", json=body)
    secret = add_token(folder_of(api), "ana")
    decided = api.post(f"/v1/memory/{verb}", json=body, headers=bearer(secret))

    assert rival["state"] == "review"
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "credentials_required")
    assert decided.status_code == 200, decided.text
    event = last_event(api, f"memory:{rival['memory_id']}")
    assert (event["action"], event["who"]) == (f"memory.{verb}", "ana")
    assert event["body"].items() >= {
        "principal": "ana", "auth_method": "token", "stated_by": "kim",
    }.items()  # fmt: skip
    assert [one for one in verify_store(folder_of(api)).findings if one.check == "decisions"] == []
