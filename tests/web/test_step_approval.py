"""A tool step shows the approval of its own call: of no other call, whatever it or others name."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.approvals.service import ApprovalService
from hansard_web.cli import commands
from tests.web.approvals import DEAL, RUN, ask, store_of
from tests.web.html import parse
from tests.web.traces import Trace

TOOL = "create_deal"
OTHER = {**DEAL, "amount": 7}


def calls(pipeline: Pipeline, *arguments: dict[str, Any], tool: str = TOOL, **more: Any) -> Trace:
    """A run with a step for each call; the first is 2."""
    trace = Trace(RUN)
    trace.agent(1)
    for number, given in enumerate(arguments, 2):
        text = json.dumps(given)
        trace.tool(number, 1, tool, f"c{number}", gen_ai__tool__call__arguments=text, **more)
    return trace.send(pipeline)


def shown(client: TestClient, number: int) -> str:
    """Return the text about the gate in the panel of a step, "" where there is none."""
    page = parse(client.get(f"/runs/{RUN}?span={number:016x}").text)
    gate = client.get(f"/v1/steps/{RUN}-{number:016x}").json()["gate"]
    found = page.all("div", class_="gated")
    assert bool(found) == bool(gate)
    return found[0].text if found else ""


@pytest.fixture
def store(client: TestClient) -> ApprovalService:
    return store_of(client)


def test_two_calls_of_one_tool_show_an_approval_each(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, DEAL, OTHER)
    first = ask(store, step_id=trace.step(2))
    second = ask(store, step_id=trace.step(3), arguments=OTHER)
    store.approve(first.approval_id, by="rosa")
    store.reject(second.approval_id, by="noor")

    assert "approved by rosa" in shown(client, 2)
    assert first.approval_id[-8:] in shown(client, 2)
    assert "rejected by noor" in shown(client, 3)
    assert second.approval_id[-8:] in shown(client, 3)


def test_of_several_approvals_that_name_a_step_it_shows_the_one_of_its_arguments(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, DEAL)
    own = ask(store, step_id=trace.step(2))
    store.approve(own.approval_id, by="rosa")
    ask(store, step_id=trace.step(2), arguments=OTHER)

    assert own.approval_id[-8:] in shown(client, 2)
    assert "approved by rosa" in shown(client, 2)


def test_an_approval_of_another_tool_that_names_a_step_is_not_shown_on_it(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, {"sku": 1}, tool="get_stock")
    approval = ask(store, step_id=trace.step(2))
    store.approve(approval.approval_id, by="rosa")

    assert shown(client, 2) == ""


def test_a_span_that_names_the_approval_of_another_call_does_not_take_it(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    approval = ask(store, step_id=f"{RUN}-{2:016x}")
    store.approve(approval.approval_id, by="rosa")
    calls(pipeline, DEAL, OTHER, hansard__approval__id=approval.approval_id)

    assert "approved by rosa" in shown(client, 2)
    assert shown(client, 3) == ""


def test_an_old_approval_of_a_run_with_hundreds_is_found(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, DEAL)
    own = ask(store, step_id=trace.step(2))
    for number in range(220):
        ask(store, step_id=trace.step(9), arguments={**DEAL, "amount": number})

    assert own.approval_id[-8:] in shown(client, 2)


def test_the_note_of_an_approval_is_on_the_step_and_in_every_body(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, DEAL)
    own = ask(store, step_id=trace.step(2))
    store.approve(own.approval_id, by="rosa", comment="only <b>this</b> week")

    page = client.get(f"/runs/{RUN}?span={2:016x}").text
    gate = client.get(f"/v1/steps/{trace.step(2)}").json()["gate"]
    drafts = client.get(f"/v1/approvals/{own.approval_id}").json()["drafts"]

    assert "only <b>this</b> week" in parse(page).text
    assert "<b>this</b>" not in page
    assert gate["notes"] == [{"by": "rosa", "note": "only <b>this</b> week"}]
    [note] = drafts[0]["approval_notes"]
    assert (note["note"], note["by"], note["is_claimed"]) == (
        "only <b>this</b> week", "me:rosa", True,
    )  # fmt: skip
    assert "only <b>this</b> week" in parse(client.get(f"/approvals/{own.approval_id}").text).text
    group = click.Group("hansard")
    commands(group)
    for command in (("approvals", "show", own.approval_id), ("steps", "show", trace.step(2))):
        ran = CliRunner().invoke(group, [*command, "--data", str(store.folder.path)])
        assert "only <b>this</b> week" in ran.output


def test_a_note_of_a_draft_that_was_sent_back_is_not_an_approval_note(
    client: TestClient, pipeline: Pipeline, store: ApprovalService
) -> None:
    trace = calls(pipeline, DEAL)
    own = ask(store, step_id=trace.step(2))
    store.revise(own.approval_id, by="rosa", note="smaller")

    [draft] = client.get(f"/v1/approvals/{own.approval_id}").json()["drafts"]

    assert (draft["note"], draft["approval_notes"]) == ("smaller", [])
