"""Tasks over HTTP: listed, shown, decided about, and refused in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Response

from hansard_store.database.readers import open_reader
from hansard_store.detection.scan import scan
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.store.maker import StoreMaker
from tests.store.task_maker import TaskMaker
from tests.web.api.conftest import Api
from tests.web.api.otlp import SECOND, START, span, traces
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mender"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "compile_file"}


@pytest.fixture
def failing(api: Api) -> Iterator[TaskMaker]:
    """Steps that fail in the store of the API: written by another process, as it were."""
    store = StoreMaker(api.folder.path)
    maker = TaskMaker(store, now_ns=time.time_ns())
    yield maker
    maker.close()
    store.close()


def decide(api: Api, task_id: str, decision: str, **more: Any) -> Response:
    return api.http.post(f"/v1/tasks/{task_id}/decide", json={"decision": decision, **more})


def test_a_task_says_what_repeats_how_often_since_when_and_where(
    api: Api, failing: TaskMaker
) -> None:
    failing.fail_often(6, "no such file: '/tmp/x.json'")
    failing.detect()

    (task,) = api.get("/v1/tasks")["items"]

    assert api.get(f"/v1/tasks/{task['task_id'][-8:]}")["task"] == task
    assert (task["state"], task["review"], task["level"]) == ("blocked", True, "action")
    assert task["subject"] == {"kind": "tool", "name": "run_tests"}
    assert task["sample"] == "no such file: '/tmp/x.json'"
    assert (task["count"], len(task["evidence"]), sum(task["activity"])) == (6, 6, 6)
    assert (task["threshold"], task["window_ns"]) == (5, str(24 * 3600 * 10**9))
    assert task["evidence"][0]["at"] == task["first_at"]
    step = task["evidence"][-1]["id"]
    assert api.http.get(f"/v1/steps/{step}").json()["status"] == "error"
    assert (task["decision"], task["done"]) == (None, None)


@pytest.mark.covers("DI-02", "DI-03")
def test_errors_of_real_telemetry_are_told_by_their_tool_and_their_whole_words(api: Api) -> None:
    for number in range(5):
        path = "/srv/" + "/".join(f"{number}{'x' * 30}" for _ in range(number + 1)) + ".py"
        message = f"SyntaxError: cannot read {path} at line {number}: it is not closed"
        api.send(
            traces(
                span("root", run=f"r{number}", status=2, message=message, attributes=AGENT),
                span(
                    "tool", "root", run=f"r{number}", status=2, message=message,
                    attributes={**TOOL, "error.type": "SyntaxError"},
                    events=[("exception", {"exception.message": message})],
                ),
            )
        )  # fmt: skip
    connection = open_reader(api.folder)

    found = scan(connection, now_ns=START + 3600 * SECOND).findings

    connection.close()
    assert [(one.subject_kind, one.subject, len(one.occurrences)) for one in found] == [
        ("tool", "compile_file", 5)
    ]
    assert found[0].signature == ("SyntaxError: cannot read <path> at line <#>: it is not closed")


@pytest.mark.covers("DI-13")
def test_a_task_is_approved_before_it_is_done_and_the_first_decision_stands(
    api: Api, failing: TaskMaker
) -> None:
    failing.fail_often(5)
    task_id = failing.detect_one().task_id

    early = decide(api, task_id, "done")
    approved = decide(api, task_id, "approve", by="noor", note="look at the fixture")
    again = decide(api, task_id, "approve", by="noor")
    other = decide(api, task_id, "dismiss", by="kim")
    done = decide(api, task_id, "done", by="mender")

    assert early.status_code == 409
    assert api.error_of(early)["code"] == "task_not_approved"
    told = api.checked(approved)["task"]
    assert (told["state"], told["review"]) == ("approved", False)
    decision = {name: told["decision"][name] for name in ("decision", "by", "origin", "note")}
    assert decision == {
        "decision": "approve", "by": "noor", "origin": "api", "note": "look at the fixture",
    }  # fmt: skip
    assert api.checked(again)["task"] == told
    error = api.error_of(other)
    assert (other.status_code, error["code"]) == (409, "task_decided")
    assert error["details"]["decision"]["by"] == "noor"
    assert api.checked(done)["task"]["done"]["by"] == "mender"
    assert api.get("/v1/tasks", state="open")["items"] == []


def test_lists_have_pages_states_and_levels(api: Api, failing: TaskMaker) -> None:
    for number in range(5):
        failing.fail_often(5, tool=f"tool {number}")
    failing.detect()
    decide(api, failing.tasks()[0].task_id, "dismiss")

    assert [one["task_id"] for one in api.items("/v1/tasks", limit=2)] == [
        one.task_id for one in failing.tasks()
    ]
    assert len(api.items("/v1/tasks", state="blocked", level="action", limit=3)) == 4
    assert api.items("/v1/tasks", level="component") == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"state": "waiting"}, "invalid_query"),
        ({"level": "metric"}, "invalid_query"),
        ({"limit": "501"}, "invalid_query"),
        ({"cursor": "x"}, "invalid_cursor"),
    ],
)
def test_what_cannot_be_meant_is_refused(api: Api, query: dict[str, str], code: str) -> None:
    assert api.refused(400, "/v1/tasks", **query)["code"] == code


def test_a_decision_about_no_task_and_one_that_is_none_are_refused(api: Api) -> None:
    assert api.refused(404, f"/v1/tasks/{'00' * 16}")["code"] == "not_found"
    assert decide(api, "00" * 16, "approve").status_code == 404
    assert decide(api, "00" * 16, "delete").status_code == 400


def test_a_sender_cannot_decide(make_client: MakeClient, runs: RunMaker) -> None:
    token = AccessToken("a-token-for-senders", frozenset({Scope.INGEST, Scope.READ}))
    client = make_client(WebSettings(tokens=(token,)))

    answer = client.post(
        f"/v1/tasks/{'00' * 16}/decide",
        json={"decision": "approve"},
        headers={"Authorization": "Bearer a-token-for-senders"},
    )

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "scope_missing")
