"""A model call whose messages were not sent: the pages say why, and what has them sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hansard._clients.instrumentor_packages import PYTHON
from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.traces import Trace, tool_loop

RUN = "7" * 32
SENDERS = {
    "opentelemetry.instrumentation.genai.openai": f"export {PYTHON.content}",
    "@opentelemetry/instrumentation-openai": (
        "export OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
    ),
    "opentelemetry.instrumentation.anthropic": "export TRACELOOP_TRACE_CONTENT=true",
    "hansard": "export HANSARD_RETENTION=redacted_payloads",
}


def read(client: TestClient, path: str) -> Element:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def send_call(pipeline: Pipeline, scope: str, **attributes: object) -> str:
    """Send a run with one model call, and return its step's id."""
    trace = Trace(RUN)
    trace.scope.scope.name = scope
    trace.span(1, None, "chat gpt-4o-mini", gen_ai__operation__name="chat", **attributes)
    trace.send(pipeline)
    return trace.step(1)


@pytest.mark.parametrize("scope", SENDERS)
def test_the_conversation_names_the_switch_of_its_sender_with_a_copy_button(
    scope: str, client: TestClient, pipeline: Pipeline
) -> None:
    send_call(pipeline, scope)

    shown = read(client, f"/runs/{RUN}?view=conversation").one("div", class_="empty")

    assert shown.one("h2").text == "No messages were recorded"
    assert "Message content was not captured" in shown.text
    box = shown.one("div", class_="codebox")
    assert box.one("pre").text == SENDERS[scope]
    assert box.one("button")["aria-label"] == "Copy"


def test_no_reading_of_a_run_without_messages_shows_a_number(
    client: TestClient, pipeline: Pipeline
) -> None:
    """A key to press stood beside the label: *Conversation 2*, on a page of no messages."""
    send_call(pipeline, "hansard")

    page = read(client, f"/runs/{RUN}?view=conversation")
    readings = page.one("nav", class_="seg").all("a")

    assert "0 calls" not in page.text  # there was one: it only has no messages

    assert [one.text.strip() for one in readings] == ["Tree", "Messages", "Log", "Graph"]
    assert [one["aria-keyshortcuts"] for one in readings] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("path", ["/steps/{step}", "/runs/{run}?span={span}"])
def test_the_step_names_it_too(path: str, client: TestClient, pipeline: Pipeline) -> None:
    step = send_call(pipeline, "opentelemetry.instrumentation.genai.openai")

    page = read(client, path.format(step=step, run=RUN, span=step.partition("-")[2]))

    assert [box.text for box in page.all("pre")] == [f"export {PYTHON.content}"]


def test_an_answer_without_its_prompt_is_shown_beneath_the_switch(
    client: TestClient, pipeline: Pipeline
) -> None:
    answer = [{"role": "assistant", "parts": [], "finish_reason": "stop"}]
    send_call(
        pipeline,
        "@opentelemetry/instrumentation-openai",
        gen_ai__output__messages=json.dumps(answer),
    )

    page = read(client, f"/runs/{RUN}?view=conversation")

    assert "CAPTURE_MESSAGE_CONTENT=true" in page.one("section", class_="talk").text


def test_an_unknown_sender_has_a_reason_and_no_switch(
    client: TestClient, pipeline: Pipeline
) -> None:
    send_call(pipeline, "a.library.of.ones.own")

    shown = read(client, f"/runs/{RUN}?view=conversation").one("div", class_="empty")

    assert "Its instrumentation did not send them" in shown.text
    assert shown.all("pre") == []


def test_content_that_retention_withheld_is_said_to_be_so(
    client: TestClient, pipeline: Pipeline
) -> None:
    send_call(pipeline, "hansard", gen_ai__input__messages="‹withheld: 120 bytes›")

    shown = read(client, f"/runs/{RUN}?view=conversation").one("div", class_="empty")

    assert "retention is metadata_only" in shown.text
    assert shown.all("pre") == []


def test_a_run_that_has_its_messages_has_no_such_note(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    every = client.get("/v1/runs").json()["items"]
    for run in every:
        assert "not captured" not in client.get(f"/runs/{run['run_id']}?view=conversation").text
    assert len(every) == 1


def test_the_switches_are_the_names_that_the_documents_use() -> None:
    pages = "".join(
        path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[2] / "docs" / "connect").glob("*.md")
    )

    assert PYTHON.content in pages
