"""The run page and API over what the session API writes: domain, goal, status, caller."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import parse
from tests.web.traces import Trace

RUN, CALLER = "a" * 32, "b" * 32
SAID: dict[str, Any] = {
    "hansard__run__domain": "research",
    "hansard__run__goal": "Find out who wrote it.",
    "gen_ai__conversation__id": "c-1",
}


def test_the_run_page_shows_domain_goal_and_conversation(
    pipeline: Pipeline, client: TestClient
) -> None:
    trace = Trace(RUN)
    trace.agent(1, name="librarian", **SAID)
    trace.send(pipeline)

    page = parse(client.get(f"/runs/{RUN}").text)

    facts = page.one(id="run-facts").text
    assert "domain research" in facts
    assert "agent librarian" in facts
    assert "Find out who wrote it." in page.one("h1").text
    assert "conversation c-1" in page.one("ol", class_="crumbs").text


def test_a_goal_that_stands_in_a_payload_is_shown_too(
    pipeline: Pipeline, client: TestClient
) -> None:
    goal = b"Find out who wrote it. " * 100
    sent = client.put(f"/v1/payloads/sha256:{hashlib.sha256(goal).hexdigest()}", content=goal)
    trace = Trace(RUN)
    trace.agent(1, hansard__run__goal_ref=f"sha256:{hashlib.sha256(goal).hexdigest()}")
    trace.send(pipeline)

    run = client.get(f"/v1/runs/{RUN}").json()

    assert sent.status_code in (200, 201), sent.text
    assert run["first_input"].startswith("Find out who wrote it. Find")


def test_the_goal_is_the_input_of_the_step_that_has_no_other(
    pipeline: Pipeline, client: TestClient
) -> None:
    trace = Trace(RUN)
    trace.agent(1, **SAID)
    trace.send(pipeline)

    step = client.get(f"/v1/steps/{trace.step(1)}").json()

    assert "Find out who wrote it." in str(step)
    run = client.get(f"/v1/runs/{RUN}").json()
    assert (run["domain"], run["first_input"]) == ("research", "Find out who wrote it.")


@pytest.mark.parametrize(
    ("attributes", "failed", "status", "errors"),
    [
        ({}, None, "ok", 0),
        ({}, "no such book", "error", 1),
        ({"hansard__cancelled": True}, None, "cancelled", 0),
        ({"hansard__cancelled": True}, "stopped by hand", "cancelled", 0),
    ],
)
def test_a_run_has_the_status_of_its_end(
    pipeline: Pipeline,
    client: TestClient,
    attributes: dict[str, Any],
    failed: str | None,
    status: str,
    errors: int,
) -> None:
    trace = Trace(RUN)
    trace.agent(1, failed=failed, **attributes)
    trace.send(pipeline)

    run = client.get(f"/v1/runs/{RUN}").json()

    assert (run["status"], run["error_count"]) == (status, errors)
    listed = client.get(f"/v1/runs?status={status}").json()["items"]
    assert [one["run_id"] for one in listed] == [RUN]
    head = parse(client.get(f"/runs/{RUN}").text).all("span", class_="status")[0]
    assert head.text == {"ok": "OK"}.get(status, status)


def test_a_cancelled_step_says_so(pipeline: Pipeline, client: TestClient) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.span(2, 1, "execute_tool search", hansard__cancelled=True, hansard__kind="tool_call")
    trace.send(pipeline)

    skeleton = client.get(f"/v1/runs/{RUN}/steps").json()["items"][1]

    assert (skeleton["status"], skeleton["role"]) == ("cancelled", "tool")
    assert "cancelled before it was done" in client.get(f"/runs/{RUN}").text


def test_a_run_names_the_step_that_started_it(pipeline: Pipeline, client: TestClient) -> None:
    caller = Trace(CALLER)
    caller.span(7, None, "handle request")
    run = Trace(RUN)
    run.agent(1, links=[(CALLER, 7)])
    caller.send(pipeline)
    run.send(pipeline)

    note = parse(client.get(f"/runs/{RUN}").text).one("ul", class_="run-note")

    assert "Linked to handle request of run bbbbbbbb" in note.text
    assert note.one("a")["href"] == f"/steps/{caller.step(7)}"
    other_side = parse(client.get(f"/runs/{CALLER}").text).one("ul", class_="run-note")
    assert "Linked from invoke_agent mender of run aaaaaaaa" in other_side.text


def test_a_caller_that_was_not_received_is_named_without_a_link(
    pipeline: Pipeline, client: TestClient
) -> None:
    run = Trace(RUN)
    run.agent(1, links=[(CALLER, 7)])
    run.send(pipeline)

    note = parse(client.get(f"/runs/{RUN}").text).one("ul", class_="run-note")

    assert "Linked to a step of run bbbbbbbb that was not received." in note.text


def test_what_the_program_left_open_is_noted(pipeline: Pipeline, client: TestClient) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.span(2, 1, "execute_tool search", hansard__left_open=True)
    trace.send(pipeline)

    note = parse(client.get(f"/runs/{RUN}").text).one("ul", class_="run-note")

    assert "The program never ended it" in note.text
