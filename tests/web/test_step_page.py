"""A step: its tabs beside the run and on its own page, its figures and where they come from."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.traces import Trace, asks, returns, said, tool_loop

RUN = "a" * 32
SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2


def read(client: TestClient, path: str) -> Element:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def step(client: TestClient, number: int, tab: str = "", more: str = "") -> Element:
    return read(client, f"/steps/{RUN}-{number:016x}?tab={tab}{more}").one("main")


def figures(page: Element) -> dict[str, tuple[str, str]]:
    """Return label -> (text, title) of the figures."""
    found = {}
    for one in page.one("dl", class_="figures").all("div"):
        value = one.one("dd")
        unknown = value.all("span", class_="unknown")
        title = unknown[0]["title"] if unknown else value.attributes.get("title", "")
        found[one.one("dt").text] = ("–" if unknown else value.text, title)
    return found


def test_the_pane_and_the_page_show_the_same_tabs(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    pane = read(client, f"/runs/{RUN}?span={4:016x}").one(id="step")
    page = step(client, 4)

    labels = ["Messages", "Context 4", "Input/Output", "Attributes", "Events", "Raw"]
    for place in (pane, page):
        tabs = place.one("nav", class_="tabs").all("a")
        assert [tab.text for tab in tabs] == labels
        assert [tab["href"] for tab in tabs if "aria-current" in tab.attributes] == [
            tabs[0]["href"]
        ]


def test_only_what_is_new_since_the_last_call_is_shown(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = step(client, 4)

    divider = page.all("div", class_="msg-divider")[0]
    assert divider.text == "3 earlier messages, already sent or answered in call 1 of 3 · show"
    assert [one.one("b", class_="msg-who").text for one in page.all("article")] == [
        "Tool",
        "Assistant",
    ]
    everything = read(client, divider.one("a")["href"])
    assert [one.one("b", class_="msg-who").text for one in everything.all("article")] == [
        "System",
        "User",
        "Assistant",
        "Tool",
        "Assistant",
    ]


def test_a_tool_card_tells_requested_ran_and_returned_apart(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    asked = {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "id": f"c{n}", "name": name, "arguments": {"n": n}}
            for n, name in enumerate(["ran", "broke", "open", "unseen"])
        ],
    }
    trace.chat(2, 1, [said("user", "go")], asked)
    trace.tool(3, 1, "ran", "c0", 1)
    trace.tool(4, 1, "broke", "c1", 1, failed="no such file")
    trace.tool(5, 1, "open", "c2", 1, None)
    trace.chat(6, 1, [said("user", "go"), asked, returns("c0", "fine")], None, 2)
    trace.send(pipeline)

    cards = step(client, 2).all("div", class_="call")

    assert [[state.text for state in card.all("li")] for card in cards] == [
        ["requested", "ran 50 ms", "returned"],
        ["requested", "ran, failed after 50 ms", "Result not yet returned to the model"],
        ["requested", "running", "Result not yet returned to the model"],
        ["requested", "No tool span found", "Result not yet returned to the model"],
    ]
    assert cards[0].one("header").one("a")["href"] == f"/steps/{RUN}-{3:016x}"
    assert "fine" in cards[0].text


@pytest.mark.covers("RC-26")
def test_a_number_nobody_told_is_unknown_with_the_reason(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", "hi")], said("assistant", "hello"), tokens=None)
    trace.send(pipeline)

    shown = figures(step(client, 1))

    assert shown["tokens in"] == ("–", "not reported")
    assert shown["from cache"] == ("–", "not reported")
    assert shown["cost"] == ("–", "not reported")
    assert shown["finish"] == ("–", "no finish reason was sent")


def test_every_figure_names_the_attribute_it_came_from(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(
        1,
        None,
        [said("user", "hi")],
        said("assistant", "hello"),
        tokens=(9731, 477),
        gen_ai__usage__cache_read__input_tokens=7168,
        gen_ai__response__finish_reasons=["stop"],
    )
    trace.send(pipeline)

    shown = figures(step(client, 1))

    assert shown["tokens in"] == ("9,731", "gen_ai.usage.input_tokens")
    assert shown["from cache"][0] == "7,168 74%"
    assert shown["out"] == ("477", "gen_ai.usage.output_tokens")
    assert "genai-prices" in shown["cost"][1]
    assert shown["finish"][0] == "stop"


def test_a_duration_is_placed_among_the_last_of_its_name(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    for number in range(2, 9):
        trace.tool(number, 1, "search", f"c{number}", number / 10, number / 100)
    trace.send(pipeline)

    strip = step(client, 7).one("div", class_="among")

    assert "longer than 5 of the last 6" in strip.text
    assert len(strip.all("rect")) == 7


def test_a_failed_call_says_why_and_invents_no_answer(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", "hi")], None, tokens=None, failed="rate limited")
    trace.send(pipeline)

    page = step(client, 1)

    assert "rate limited" in page.one("div", class_="note").text
    assert page.all("div", class_="msg-divider")[-1].text == "The call failed; there is no answer."


def test_steps_that_are_no_call_open_with_what_went_in_and_out(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = step(client, 3)

    tabs = [tab.text for tab in page.one("nav", class_="tabs").all("a")]
    assert tabs[0] == "Input/Output"
    assert "Messages" not in tabs
    assert [part.one("h3").text for part in page.all("section", class_="io-part")] == ["Result"]
    assert "def round_half_up(value): ..." in page.text


def test_a_step_without_content_says_so(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.span(1, None, "GET /")
    trace.send(pipeline)

    page = step(client, 1)

    assert page.one("div", class_="empty").one("h2").text == "Nothing was recorded"
    assert read(client, page.one("div", class_="empty").one("a")["href"])


def test_attributes_are_shown_as_sent_and_found_by_key_or_value(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.span(
        1,
        None,
        "GET /",
        http__route="/things",
        count=3,
        ok=True,
        ratio=0.5,
        names=["a", "b"],
        ref="sha256:" + "e" * 64,
        long=json.dumps({"nested": [{"deep": "x" * 200}]}),
    )
    trace.send(pipeline)

    page = step(client, 1, "attributes")
    shown = {row.one("dt").text: row.all("dd")[0] for row in page.all("div", class_="attr")}

    assert shown["http.route"].text == "/things"
    assert (shown["count"].text, shown["ok"].text, shown["ratio"].text) == ("3", "true", "0.5")
    assert shown["names"].text == '["a", "b"]'
    assert shown["ref"].one("a")["href"] == "/v1/payloads/sha256:" + "e" * 64
    assert shown["long"].all("details")
    assert shown["service.name"].text == "mender"
    link = next(
        a["href"] for a in page.all("a") if "http.route" in a.attributes.get("aria-label", "")
    )
    assert link == "/?attribute=http.route%3A%2Fthings"
    found = step(client, 1, "attributes", "&find=THING")
    assert [row.one("dt").text for row in found.all("div", class_="attr")] == ["http.route"]
    assert "1 of 7" in found.text


def test_events_logs_and_links_stand_under_events(client: TestClient, pipeline: Pipeline) -> None:
    trace = tool_loop().send(pipeline)
    trace.log(pipeline, 5, "pytest: 1 failed", at_s=3.21)
    other = Trace("b" * 32)
    other.span(1, None, "follow up", links=[(RUN, 5), ("c" * 32, 9)])
    other.send(pipeline)

    page = step(client, 5, "events")
    rows = page.one("ol", class_="evlist").all("li")

    assert [row.one("b").text for row in rows] == ["log record", "exception"]
    assert "pytest: 1 failed" in rows[0].text
    assert "warning" in rows[0].text
    assert "ValueError: hunk 2 of 2 does not apply" in rows[1].text
    assert "+50 ms" in rows[1].text
    assert (
        page.all("section", class_="io-part")[0].one("a")["href"] == f"/steps/{'b' * 32}-{1:016x}"
    )
    there = read(client, f"/steps/{'b' * 32}-{1:016x}?tab=events").one("main")
    assert "execute_tool apply_patch" in there.text
    assert f"of trace {'c' * 32}, not here" in there.text


def test_raw_is_the_span_as_otlp_json(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.span(1, None, "GET /", http__route="/things")
    trace.send(pipeline)

    page = step(client, 1, "raw")
    raw = json.loads("".join(str(part) for part in page.one("pre").children))

    span = raw["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["name"] == "GET /"
    assert span["traceId"] == RUN
    assert span["attributes"] == [{"key": "http.route", "value": {"stringValue": "/things"}}]
    assert page.one("a", class_="btn", download="")["href"] == f"/v1/steps/{RUN}-{1:016x}/raw"


def test_what_was_removed_before_storing_is_listed(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", f"my key is {SECRET}")], said("assistant", "thanks"))
    trace.send(pipeline)

    page = step(client, 1)

    assert "Removed before storing: 1 value by" in page.text
    assert "gen_ai.input.messages" in page.text
    assert SECRET not in client.get(f"/steps/{RUN}-{1:016x}?tab=raw").text
    copied = client.get(f"/steps/{RUN}-{1:016x}/copy/curl").text
    assert SECRET not in copied
    assert "# Note: 1 value was redacted before storing" in copied


def test_a_call_can_be_copied_in_three_forms(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    links = {
        link.text: link["href"] for link in step(client, 4).one("details", class_="copies").all("a")
    }

    assert list(links) == ["curl", "Python", "messages as JSON"]
    for link in links.values():
        answer = client.get(link)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "Make the failing test pass." in answer.text
    assert not step(client, 3).all("details", class_="copies")
    assert client.get(f"/steps/{RUN}-{3:016x}/copy/curl").status_code == 404


def test_a_long_text_is_cut_with_a_way_to_all_of_it(client: TestClient, pipeline: Pipeline) -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", words)], said("assistant", "long"))
    trace.tool(2, 1, "read", "c", result=words)
    trace.send(pipeline)

    page = client.get(f"/steps/{RUN}-{1:016x}")
    rest = [a for a in parse(page.text).all("a") if a.text.startswith("show all")]

    assert len(page.content) < 60_000
    assert rest[0].text == f"show all {len(words):,} characters"
    assert client.get(rest[0]["href"]).text == words
    of_tool = step(client, 2)
    more = next(a for a in of_tool.all("a") if a.text.startswith("show all"))
    assert client.get(more["href"]).text == words


def test_the_same_prompt_again_still_shows_what_was_asked(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("user", "hi")], asks("search", "c1", {}), 0)
    trace.chat(2, None, [said("user", "hi")], said("assistant", "done"), 1)
    trace.send(pipeline)

    page = step(client, 2)

    assert [one.one("b", class_="msg-who").text for one in page.all("article")] == [
        "User",
        "Assistant",
    ]


def test_the_numbers_of_what_was_sent_before_and_of_what_is_new_make_up_the_prompt(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop(clock=True).send(pipeline)

    page = step(client, 6)
    run = read(client, f"/runs/{RUN}?view=conversation")

    divider = page.all("div", class_="msg-divider")[0].text
    assert divider.startswith("4 earlier messages (2–5), already sent or answered in call 2 of 3")
    assert [one.text for one in page.all("span", class_="msg-no")] == ["1", "6", "7"]
    calls = [one.text for one in run.all("div", class_="msg-divider")]
    assert "4 earlier messages (2–5) · message 6 in the card of its call" in calls[2]
