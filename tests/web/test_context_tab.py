"""The derived Context tab: every claim is one that the recorded messages show."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_web.diff.page.words import word_diff
from tests.web.html import Element, parse
from tests.web.traces import Trace, asks, returns, said, tool_loop

RUN = "a" * 32


def context(client: TestClient, number: int, more: str = "", run: str = RUN) -> Element:
    answer = client.get(f"/steps/{run}-{number:016x}?tab=context{more}")
    assert answer.status_code == 200, answer.text
    return parse(answer.text).one("main")


def rows(page: Element) -> list[tuple[str, ...]]:
    """Return number, change, message, origin and cache of each row of the table."""
    found: list[tuple[str, ...]] = []
    for row in page.one("table", class_="derived").one("tbody").all("tr"):
        if "cachebreak" in row.classes:
            found.append(("break",))
            continue
        cells = row.all("td")
        title = row.one("a", class_="rowlink").text
        found.append((cells[0].text, cells[1].text, title, cells[2].text, cells[4].text))
    return found


def test_a_call_is_compared_with_the_one_it_continues(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = context(client, 6)

    assert "derived" in page.one("span", class_="flag").text
    assert "No receipts were recorded" in page.text
    assert page.one(id="say-context").text.startswith(
        "Against the previous call: 5 items kept, 2 added."
    )
    assert rows(page) == [
        ("0", "kept", "1 tool definition", "tool list", "equal"),
        ("1", "kept", "System prompt", "system prompt", "equal"),
        ("2", "kept", "User", "user", "equal"),
        ("3", "kept", "Assistant → read_file (tool call)", "output of chat gpt-4o-mini", "equal"),
        ("4", "kept", "Result of read_file", "result of read_file", "equal"),
        ("5", "added", "Assistant → apply_patch (tool call)", "output of chat gpt-4o-mini", "new"),
        ("6", "added", "Result of apply_patch", "result of apply_patch", "new"),
    ]
    assert (
        page.one("div", class_="why-tools").one("a", class_="link").text.startswith("call 2 of 3")
    )


def test_a_clock_in_the_system_prompt_breaks_the_cache_and_is_shown(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop(clock=True).send(pipeline)

    page = context(client, 6)

    assert rows(page)[1:3] == [
        ("break",),
        ("1", "rewritten", "System prompt", "system prompt", "read uncached"),
    ]
    assert {row[4] for row in rows(page)[3:6]} == {"lost"}
    say = page.one(id="say-context").text
    assert "The prompt cache broke at message 1" in say
    assert "that had not changed were paid again" in say
    changes = page.one("div", class_="wdiff")
    assert (changes.one("del").text, changes.one("ins").text) == ("02", "03")
    assert "Only numbers changed, as with a clock" in page.text
    assert "this run: 2 breaks in 3 calls" in page.text


def test_tokens_of_messages_add_up_to_what_was_billed(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = context(client, 6)
    cells = page.one("table", class_="derived").one("tbody").all("tr")

    assert sum(int(row.all("td")[3].text.replace(",", "")) for row in cells) == 1800
    assert "scaled to what was billed" in page.text


def test_prompts_too_short_to_be_cached_lose_nothing_and_say_so(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.chat(1, None, [said("system", "It is 10:00."), said("user", "hi")], None, 0)
    trace.chat(2, None, [said("system", "It is 10:01."), said("user", "hi")], None, 1)
    trace.send(pipeline)

    page = context(client, 2)

    assert ("break",) not in rows(page)
    assert "too short for a provider to cache" in page.one(id="say-context").text


def test_changes_can_be_narrowed_to_one_kind(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    page = context(client, 6)
    choices = {one.text: one["href"] for one in page.one("nav", class_="seg").all("a")}
    only = parse(client.get(choices["Added 2"]).text).one("main")

    assert list(choices) == ["All 7", "Kept 5", "Added 2"]
    assert [row[1] for row in rows(only)] == ["added", "added"]
    assert "2 of 7 shown" in only.text


def test_the_first_call_has_nothing_to_be_compared_with(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = context(client, 2)

    assert "there is nothing to compare with" in page.text
    assert page.one(id="say-context").text == "The first call of its kind: 3 items added."
    assert not page.all("svg", class_="twin-bar")


def test_a_cut_and_a_dropped_message_are_told_apart(client: TestClient, pipeline: Pipeline) -> None:
    whole = "\n".join(f"line {number} of the file" for number in range(400))
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    begin = [said("system", "Be careful. " * 400), said("user", "read it")]
    asked, aside = asks("read_file", "c1", {}), said("user", "by the way, hello")
    trace.chat(2, 1, [*begin, asked, returns("c1", whole), aside], said("assistant", "ok"), 0.1)
    trace.chat(3, 1, [*begin, asked, returns("c1", whole[:2000] + "… [cut]")], None, 0.2)
    trace.send(pipeline)

    page = context(client, 3)

    assert [row[1] for row in rows(page) if row != ("break",)] == [
        "kept", "kept", "kept", "truncated", "dropped",
    ]  # fmt: skip
    assert "cut: 2,000 characters of its beginning remain" in page.text
    dropped = [row for row in rows(page) if row[1:2] == ("dropped",)]
    assert dropped == [("", "dropped", "User", "user", "not sent")]


def test_a_sub_agent_in_between_is_not_what_a_call_is_compared_with(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.agent(1, name="main", duration_s=9)
    history = [said("system", "You lead."), said("user", "go")]
    trace.chat(2, 1, history, said("assistant", "one"), 0.1)
    trace.agent(3, 1, name="helper", start_s=0.2, duration_s=1)
    trace.chat(4, 3, [said("system", "You help."), said("user", "go")], said("assistant", "x"), 0.3)
    trace.chat(5, 1, [*history, said("assistant", "one"), said("user", "on")], None, 0.4)
    trace.send(pipeline)

    page = context(client, 5)

    assert "call 1 of 3" in page.one("div", class_="why-tools").text
    assert [row[1] for row in rows(page)] == ["kept", "kept", "added", "added"]


def test_the_next_run_of_a_conversation_continues_the_last_one(
    client: TestClient, pipeline: Pipeline
) -> None:
    history: list[dict[str, Any]] = [said("user", "hello"), said("assistant", "hi")]
    for at, run in enumerate(("b" * 32, RUN)):
        trace = Trace(run, began_s_ago=100 - at * 50)
        trace.agent(1, gen_ai__conversation__id="c-9")
        trace.chat(2, 1, history[: 1 + at * 2], said("assistant", "hi"), 0.1)
        history.append(said("user", "again"))
        trace.send(pipeline)

    page = context(client, 2)

    assert "of an earlier run" in page.one("div", class_="why-tools").text
    assert [row[1] for row in rows(page)] == ["kept", "added", "added"]
    assert rows(page)[1][3] == "output of chat gpt-4o-mini"


def test_a_message_that_a_memory_step_found_is_traced_to_it(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    trace.tool(2, 1, "lookup", "c7", 0.1, result="The user likes tea very much.")
    trace.chat(
        3,
        1,
        [said("user", "The user likes tea very much."), said("user", "what do I like?")],
        None,
        0.5,
    )
    trace.send(pipeline)

    page = context(client, 3)

    assert [row[3] for row in rows(page)] == ["result of execute_tool lookup", "user"]


def test_a_sender_that_tells_only_what_is_new_dropped_nothing(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.scope.scope.name = "com.anthropic.claude_code.tracing"
    for number, words in ((1, "What is the weather?"), (2, "And tomorrow?")):
        trace.span(
            number,
            None,
            "claude_code.llm_request",
            number,
            span__type="llm_request",
            model="claude-sonnet-4-5",
            input_tokens=4000 * number,
            new_context=json.dumps([{"role": "user", "content": words}]),
        )
    trace.send(pipeline)

    page = context(client, 2)

    assert [row[1:3] for row in rows(page)] == [("added", "User")]
    assert "records only what is new in each call" in page.text
    assert page.one(id="say-context").text == "New in this call: 1 message added."


def test_the_pane_shows_the_same_in_short(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop(clock=True).send(pipeline)

    answer = client.get(f"/runs/{RUN}?span={6:016x}&tab=context")
    pane = parse(answer.text).one(id="step")

    changes = [
        row["data-decision"]
        for row in pane.one("tbody").all("tr")
        if "data-decision" in row.attributes
    ]
    assert changes == ["kept", "rewritten", "kept", "kept", "kept", "added", "added"]
    assert "Prompt cache breaks here." in pane.text


@given(st.text(max_size=300), st.text(max_size=300))
def test_both_texts_can_be_read_back_from_a_word_diff(old: str, new: str) -> None:
    pieces = word_diff(old, new)

    if all(piece.kind != "gap" for piece in pieces):
        assert "".join(one.text for one in pieces if one.kind in ("same", "del")) == old
        assert "".join(one.text for one in pieces if one.kind in ("same", "ins")) == new


def test_long_equal_stretches_of_a_diff_are_said_to_be_equal() -> None:
    same = "word " * 500

    pieces = word_diff(same + "old" + same, same + "new" + same)

    assert [piece.kind for piece in pieces] == ["gap", "same", "del", "ins", "same", "gap"]
    assert pieces[0].text == "2,340 more characters, the same"
