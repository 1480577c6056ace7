"""Payloads on the page of a step: read where they are, named where they are not."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from starlette.testclient import TestClient

from hansard_collector.dialects.engine.references import WRITTEN_BYTES
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.content.payloads import blob_path
from tests.web.html import Element
from tests.web.test_step_page import read
from tests.web.traces import Trace

RUN = "a" * 32
CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o-mini"}


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def said(role: str, text: str) -> bytes:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}]).encode()


def put(client: TestClient, data: bytes, media_type: str = "application/json") -> None:
    headers = {"content-type": media_type}
    answer = client.put(f"/v1/payloads/{ref_of(data)}", content=data, headers=headers)
    assert answer.is_success, answer.text


def step(client: TestClient, tab: str) -> Element:
    return read(client, f"/steps/{RUN}-{1:016x}?tab={tab}").one("main")


def send(pipeline: Pipeline, **attributes: Any) -> None:
    """Export a model call; attribute names use `__` for the dot."""
    trace = Trace(RUN)
    trace.span(1, None, "chat gpt-4o-mini", **CHAT, **attributes)
    trace.send(pipeline)


def cards(page: Element) -> dict[str, Element]:
    """Return name -> card of the payloads on the Input/Output tab."""
    found = page.one(id="payloads").all("div", class_="call")
    return {one.one("header").one("span", class_="mono").text: one for one in found}


def test_a_payload_is_shown_with_its_type_size_link_and_beginning(
    client: TestClient, pipeline: Pipeline
) -> None:
    data = said("user", "What is the weather? " * 500)
    put(client, data)
    send(pipeline, gen_ai__input__messages_ref=ref_of(data))

    card = cards(step(client, "io"))["gen_ai.input.messages"]
    assert "application/json · 10.3 KiB" in card.text
    assert card.one("a")["href"] == f"/v1/payloads/{ref_of(data)}"
    assert card.one("details").one("summary").text == "How it begins"
    shown = card.one("details").one("pre").text
    assert shown.startswith('[{"role": "user"')
    assert len(shown) <= 4_000


def test_bytes_that_were_altered_are_named_and_not_shown(
    client: TestClient, pipeline: Pipeline
) -> None:
    data = said("user", "What is the weather? " * 5_000)
    put(client, data)
    send(pipeline, gen_ai__input__messages_ref=ref_of(data))
    folder = client.app.state.site.folder  # type: ignore[attr-defined]
    blob_path(folder, hashlib.sha256(data).digest()).write_bytes(data.replace(b"What", b"Evil"))

    card = cards(step(client, "io"))["gen_ai.input.messages"]

    assert card["data-payload"] == "altered"
    assert "were altered" in card.text
    assert "Evil" not in card.text
    assert card.all("a") == []


def test_a_missing_payload_is_said_aloud_on_every_tab(
    client: TestClient, pipeline: Pipeline
) -> None:
    ref = ref_of(b"never came")
    send(pipeline, gen_ai__output__messages_ref=ref, gen_ai__output__messages_size=5_000_000)

    card = cards(step(client, "io"))["gen_ai.output.messages"]
    assert "missing" in card.text
    assert "4.8 MiB, as reported" in card.text
    assert "Its bytes are not here" in card.text
    assert card.all("a") == []
    note = f"A payload is missing: gen_ai.output.messages ({ref[:19]}…, 4.8 MiB) is not here."
    for tab in ("conversation", "io", "attributes"):
        assert note in step(client, tab).text


def test_the_conversation_of_a_payload_is_shown(client: TestClient, pipeline: Pipeline) -> None:
    asked, answered = said("user", "What is the weather?"), said("assistant", "Sunny.")
    send(
        pipeline,
        gen_ai__input__messages_ref=ref_of(asked),
        gen_ai__output__messages_ref=ref_of(answered),
    )
    put(client, asked)
    put(client, answered)

    page = step(client, "conversation")
    assert "What is the weather?" in page.text
    assert "Sunny." in page.text
    assert "is missing" not in page.text


def test_a_prompt_too_large_for_rows_is_shown_from_its_payload(
    client: TestClient, pipeline: Pipeline
) -> None:
    asked = said("user", "What is the weather? " * (WRITTEN_BYTES // 20))
    assert len(asked) > WRITTEN_BYTES
    put(client, asked)
    send(pipeline, gen_ai__input__messages_ref=ref_of(asked))

    page = step(client, "conversation")
    assert "What is the weather?" in page.text
    [rest] = [one for one in page.all("a") if one.text.startswith("show all")]
    assert rest["href"] == f"/v1/payloads/{ref_of(asked)}"


def test_arguments_and_results_behind_references_stand_in_their_place(
    client: TestClient, pipeline: Pipeline
) -> None:
    arguments, result = json.dumps({"city": "Bern"}).encode(), b"22 degrees"
    put(client, arguments)
    put(client, result, "text/plain")
    trace = Trace(RUN)
    trace.span(
        1,
        None,
        "execute_tool weather",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="weather",
        gen_ai__tool__call__arguments_ref=ref_of(arguments),
        gen_ai__tool__call__result_ref=ref_of(result),
    )
    trace.send(pipeline)

    sections = step(client, "io").all("section", class_="io-part")
    parts = {one.one("h3").text: one.text for one in sections}
    assert "Bern" in parts["Arguments"]
    assert "22 degrees" in parts["Result"]
    assert "2 payloads" in parts


def test_what_is_hostile_in_a_payload_is_text(client: TestClient, pipeline: Pipeline) -> None:
    page = b"<script>alert(1)</script><img src=x onerror=alert(2)>"
    binary = bytes(range(256)) * 20
    put(client, page, "text/html")
    put(client, binary, "text/plain")
    send(
        pipeline,
        hansard__request__ref=ref_of(page),
        hansard__response__ref=ref_of(binary),
    )

    found = cards(step(client, "io"))
    shown = found["hansard.request"]
    assert shown.one("details").one("summary").text == "Its text"
    assert shown.one("details").one("pre").text == page.decode()
    assert shown.all("script") == shown.all("img") == []
    assert found["hansard.response"].all("details") == []


def test_a_name_that_is_hostile_is_text(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    hostile: dict[str, Any] = {"<b onclick=x>{{7*7}}_ref": ref_of(b"gone")}
    trace.span(1, None, "step", **hostile)
    trace.send(pipeline)

    assert list(cards(step(client, "io"))) == ["<b onclick=x>{{7*7}}"]
