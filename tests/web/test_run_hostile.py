"""Recorded text is hostile: whatever it holds, it is shown as text, and pages stay small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.traces import Trace, asks, returns, said

RUN = "a" * 32
TABS = ("conversation", "context", "io", "attributes", "events", "raw")
PLANTED = [
    "<script>window.owned = 1</script>",
    "<img src=x onerror=window.owned=1>",
    '"><svg onload=window.owned=1>',
    "</pre></details></main><h1>owned</h1>",
    "[click](javascript:window.owned=1) ![pixel](http://evil.test/p.png)",
    "<hx-partial hx-target='#main'>owned</hx-partial>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "\u202egnp.exe\u202c \u2066x\u2069 \x00 \x1b[31m \ufffd",
]


def hostile(text: str, run: str = RUN) -> Trace:
    """A run with one text in every place that a sender fills."""
    trace = Trace(run, service=text)
    trace.agent(1, name=text, duration_s=9)
    asked = asks(text, text, {text: [text, {"deep": text}]}, text)
    trace.chat(
        2,
        1,
        [said("system", text), said("user", text)],
        asked,
        0.1,
        model=text,
        tools=[text],
        planted=text,
    )
    trace.tool(3, 1, text, text, 0.5, failed=text)
    trace.chat(4, 1, [said("user", text), asked, returns(text, text)], said("assistant", text), 1)
    trace.span(5, 1, text, 2, links=[("b" * 32, 7)])
    return trace


def every_page(client: TestClient) -> list[tuple[str, str]]:
    paths = [f"/runs/{RUN}?view={view}&group=1" for view in ("tree", "conversation", "log")]
    for number in range(1, 6):
        key = f"{number:016x}"
        paths += [f"/runs/{RUN}?span={key}&tab={tab}" for tab in TABS]
        paths += [f"/steps/{RUN}-{key}?tab={tab}&all=1" for tab in TABS]
    answers = [(path, client.get(path)) for path in paths]
    assert [path for path, answer in answers if answer.status_code != 200] == []
    return [(path, answer.text) for path, answer in answers]


def dangers(page: Element) -> list[str]:
    """Return what may not be in a page of recorded text."""
    found = []
    for element in page.walk():
        for name, value in element.attributes.items():
            if name.startswith("on") or name == "style":
                found.append(f"{name}={value}")
            if name in ("href", "src") and value.lower().strip().startswith(
                ("javascript:", "data:")
            ):
                found.append(f"{name}={value}")
            if name == "src" and not value.startswith("/"):
                found.append(f"src={value}")
        if element.tag in ("script", "img", "iframe", "object") and "owned" in str(element):
            found.append(element.tag)
        if element.tag == "hx-partial":
            found.append("hx-partial")
    if len(page.all("main")) != 1 or len(page.all("h1")) != 1:
        found.append("elements of its own")
    return found


@pytest.mark.covers("UI-22")
@pytest.mark.parametrize("text", PLANTED)
def test_what_is_recorded_is_shown_as_text_on_every_page(
    client: TestClient, pipeline: Pipeline, text: str
) -> None:
    hostile(text).send(pipeline)

    for path, body in every_page(client):
        assert dangers(parse(body)) == [], path


def test_links_in_recorded_markdown_tell_their_target_nothing(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", "see [this](https://example.com/x)")], None)
    trace.send(pipeline)

    page = parse(client.get(f"/steps/{RUN}-{1:016x}").text)

    link = next(a for a in page.all("a") if a["href"] == "https://example.com/x")
    assert set(link["rel"].split()) >= {"noopener", "noreferrer"}


def test_texts_that_are_no_valid_unicode_are_shown(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [], None, gen_ai__input__messages=(
        '[{"role":"user","parts":[{"type":"text","content":"half a pair: \\ud83d, here"}]}]'
    ))  # fmt: skip
    trace.send(pipeline)

    for path in (f"/steps/{RUN}-{1:016x}", f"/runs/{RUN}?view=conversation"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "half a pair" in answer.text
    for tab in TABS:
        assert client.get(f"/steps/{RUN}-{1:016x}?tab={tab}").status_code == 200


@pytest.mark.covers("UI-25")
def test_a_text_of_five_megabytes_leaves_every_page_small(
    client: TestClient, pipeline: Pipeline
) -> None:
    text = "lorem ipsum " * 430_000
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    trace.chat(2, 1, [said("user", text)], said("assistant", text), 0.1)
    trace.chat(3, 1, [said("user", text + "!")], said("assistant", "done"), 0.2)
    trace.tool(4, 1, "read", "c1", 0.5, result=text, failed=text[:100_000])
    trace.send(pipeline)

    for number in (2, 3, 4):
        for tab in TABS:
            answer = client.get(f"/runs/{RUN}?span={number:016x}&tab={tab}")
            assert answer.status_code == 200
            assert len(answer.content) < 400_000, (number, tab, len(answer.content))
    assert len(client.get(f"/runs/{RUN}?view=conversation").content) < 400_000
    assert len(client.get(f"/runs/{RUN}?view=log").content) < 100_000


def test_json_as_deep_and_as_wide_as_it_may_come_is_cut(
    client: TestClient, pipeline: Pipeline
) -> None:
    deep: Any = "bottom"
    for _ in range(300):
        deep = {"down": deep}
    trace = Trace(RUN)
    trace.chat(1, None, [], asks("dig", "c1", {"wide": list(range(50_000))}), deep=json.dumps(deep))
    trace.send(pipeline)

    for tab in TABS:
        answer = client.get(f"/steps/{RUN}-{1:016x}?tab={tab}")
        assert answer.status_code == 200
        assert len(answer.content) < 300_000, (tab, len(answer.content))
    assert "more, not shown here" in client.get(f"/steps/{RUN}-{1:016x}").text


def test_a_conversation_of_a_thousand_messages_opens(
    client: TestClient, pipeline: Pipeline
) -> None:
    history = [said("user" if at % 2 == 0 else "assistant", f"message {at}") for at in range(1_000)]
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    trace.chat(2, 1, history[:990], said("assistant", "one"), 0.1)
    trace.chat(3, 1, history, said("assistant", "two"), 0.2)
    trace.send(pipeline)

    page = parse(client.get(f"/steps/{RUN}-{3:016x}").text)
    everything = client.get(f"/steps/{RUN}-{3:016x}?tab=conversation&all=1").text

    assert [one.one("span", class_="msg-no").text for one in page.all("article")] == [
        *(str(number) for number in range(991, 1002))
    ]
    assert len(parse(everything).all("article")) == 1001
    context = parse(client.get(f"/steps/{RUN}-{3:016x}?tab=context").text)
    assert "990 messages kept" in context.one(id="say-context").text


@pytest.mark.parametrize("amount", [1e300, -1e300, 1.7e308, 1e15, float("inf"), float("nan")])
def test_amounts_that_nobody_can_have_measured_break_no_page(
    client: TestClient, pipeline: Pipeline, amount: float
) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    figures: dict[str, Any] = {
        "gen_ai__response__time_to_first_chunk": amount,
        "ai__response__msToFirstChunk": amount,
        "llm__cost__total": amount,
        "gen_ai__request__temperature": amount,
        "gen_ai__request__top_p": amount,
        "gen_ai__usage__cache_read__input_tokens": amount,
        "gen_ai__evaluation__score__value": amount,
    }
    for number, model in ((2, "gpt-4o-mini"), (3, "unknown"), (4, "unknown")):
        trace.chat(number, 1, [said("user", "x")], said("assistant", "y"), model=model, **figures)
    trace.tool(5, 1, "search", "{}", 0.5, **figures)
    trace.send(pipeline)

    every_page(client)
    steps = [f"{RUN}-{number:016x}" for number in (2, 3)]
    for path in ("/", "/usage", f"/v1/runs/{RUN}", f"/diff/{steps[0]}/{steps[1]}"):
        assert client.get(path).status_code == 200
