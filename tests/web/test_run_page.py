"""The run page: one run in three readings, every state in its address, without JavaScript."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.requests import Signal
from hansard_web.run_page.geometry import Scale, ticks
from hansard_web.run_page.state import LINES, TABS, VIEWS, Folds, RunPageState, parse_state
from tests.web.html import Element, parse
from tests.web.traces import Trace, submit, tool_loop

RUN = "a" * 32


def read(client: TestClient, path: str) -> Element:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def fragment(client: TestClient, path: str) -> Element:
    answer = client.get(path, headers={"HX-Request": "true"})
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def rows_of(page: Element) -> list[Element]:
    return [row for row in page.all(role="row") if "tg-head" not in row.classes]


def titles(page: Element) -> list[str]:
    return [row.one("a", class_="tg-title").text for row in rows_of(page)]


def forest(trace_id: str, count: int) -> Trace:
    """A run with one root and many steps below it."""
    trace = Trace(trace_id)
    trace.agent(1, duration_s=count / 100)
    for number in range(2, count + 1):
        trace.span(number, 1, f"step {number}", number / 100, 0.005)
    return trace


SPANS = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
KEYS = st.builds(lambda span, side: span + side, SPANS, st.sampled_from(["", ".server"]))
STATES = st.builds(
    RunPageState,
    view=st.sampled_from(VIEWS),
    span=st.none() | KEYS,
    tab=st.sampled_from(TABS),
    find=st.text(st.characters(blacklist_categories=["Cs"]), max_size=20).map(str.strip),
    shut=st.builds(Folds, st.booleans(), st.frozensets(KEYS, max_size=4)),
    errors=st.booleans(),
    critical=st.booleans(),
    hide=st.frozensets(st.sampled_from(LINES)),
    first=st.none() | st.integers(0, 10**6),
)


@given(STATES)
def test_an_address_says_the_whole_state(state: RunPageState) -> None:
    from urllib.parse import parse_qsl

    assert parse_state(dict(parse_qsl(state.query()))) == state


@given(
    st.dictionaries(
        st.sampled_from(["view", "span", "tab", "from", "to", "shut", "first"]), st.text()
    )
)
def test_no_address_is_refused(query: dict[str, str]) -> None:
    state = parse_state(query)

    assert state.view in VIEWS
    assert state.tab in TABS


@pytest.mark.covers("UI-10", "UI-11")
def test_a_run_shows_its_steps_as_a_tree_with_times(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    page = read(client, f"/runs/{RUN}")

    assert page.one("h1").text == "“Make the failing test pass.”"
    assert titles(page) == [
        "mender",
        "gpt-4o-mini",
        "read_file",
        "gpt-4o-mini",
        "apply_patch",
        "gpt-4o-mini",
    ]
    assert [row["aria-level"] for row in rows_of(page)] == ["1", "2", "2", "2", "2", "2"]
    root, _, _, _, failed, last = rows_of(page)
    assert root["aria-expanded"] == "true"
    assert "aria-expanded" not in last.attributes
    assert "is-error" in failed.classes
    assert failed.one("span", class_="tg-mark")["title"] == "error"
    assert "hunk 2 of 2 does not apply" in failed.text
    assert "1,800" in last.text
    assert "4.00 s" in last.text
    assert root.one("svg", class_="wf")["aria-hidden"] == "true"
    shown = page.one("dl", class_="run-totals").all("div")
    totals = {one.one("dt").text: one.one("dd").text for one in shown}
    assert totals == {
        "long": "12.00 s",
        "steps": "6",
        "tokens in": "5.1k",
        "out": "90",
        "cost": "$0.00082",
        "failed step": "1",
    }


def test_a_short_id_leads_to_the_whole_one(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    answer = client.get(f"/runs/{RUN[:10]}?view=log")

    assert answer.status_code == 303
    assert answer.headers["location"] == f"/runs/{RUN}?view=log"


def test_an_unknown_run_is_said_to_be_unknown(client: TestClient) -> None:
    answer = client.get(f"/runs/{'9' * 32}")

    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("query", "shown", "words"),
    [
        ("", 6, "6 steps"),
        ("errors=1", 2, "2 of 6 steps shown"),
        ("shut=all", 1, "1 of 6 steps shown"),
        ("shut=0000000000000001", 1, "1 of 6 steps shown"),
        ("from=2000000000&to=3000000000", 2, "2 of 6 steps shown"),
        ("critical=1", 6, "6 steps"),  # one after the other: all of them count
    ],
)
def test_what_is_not_shown_is_said(
    client: TestClient, pipeline: Pipeline, query: str, shown: int, words: str
) -> None:
    tool_loop().send(pipeline)

    page = read(client, f"/runs/{RUN}?{query}")

    assert len(rows_of(page)) == shown
    said = page.one("span", class_="run-shown")
    assert said.text == words
    assert (said.attributes.get("title", "") != "") == (shown < 6)


def test_folding_a_row_is_a_link_that_unfolds_again(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    page = read(client, f"/runs/{RUN}?span=0000000000000004")

    shut = rows_of(page)[0].one("a", class_="tg-toggle")["href"]
    folded = read(client, shut)
    again = rows_of(folded)[0].one("a", class_="tg-toggle")["href"]

    assert titles(folded) == ["mender"]
    assert rows_of(folded)[0]["aria-expanded"] == "false"
    assert len(rows_of(read(client, again))) == 6
    assert folded.one(id="step").one("h2").text == "chat gpt-4o-mini"


def test_repeats_become_one_line_that_opens(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    for number in range(2, 25):
        trace.tool(number, 1, "search", f"c{number}", number / 10, 0.1)
    trace.tool(25, 1, "search", "c25", 3, 0.1, failed="no index")
    trace.send(pipeline)

    page = read(client, f"/runs/{RUN}?group=1")
    group = rows_of(page)[1]

    assert group.one("a", class_="tg-title").text == "search × 24"
    assert "24 steps, 2.40 s in all, 1 failed" in group.text
    opened = read(client, group.one("a", class_="tg-toggle")["href"])
    assert len(rows_of(opened)) == 26
    assert rows_of(opened)[2]["aria-level"] == "3"


@pytest.mark.slow
@pytest.mark.covers("UI-25")
def test_a_large_run_is_sent_in_windows_with_links_between_them(
    client: TestClient, pipeline: Pipeline
) -> None:
    forest(RUN, 1000).send(pipeline)

    page = read(client, f"/runs/{RUN}")

    assert len(rows_of(page)) == 200
    assert page.one(role="treegrid")["aria-rowcount"] == "1001"
    assert [space["data-lines"] for space in page.all("div", class_="tg-space")] == ["0", "800"]
    seen = titles(page)
    while following := [
        link for link in page.one(id="pager").all("a") if link.text.startswith("Next")
    ]:
        page = read(client, following[0]["href"])
        assert rows_of(page)[0]["aria-rowindex"] == str(len(seen) + 2)
        seen += titles(page)
    assert seen == ["mender", *(f"step {number}" for number in range(2, 1001))]


def test_a_window_stands_around_the_selected_step(client: TestClient, pipeline: Pipeline) -> None:
    forest(RUN, 1000).send(pipeline)

    page = read(client, f"/runs/{RUN}?span={600:016x}")

    lines = [row["data-line"] for row in rows_of(page)]
    assert (lines[0], len(lines)) == ("519", 200)
    assert [row.one("a", class_="tg-title").text for row in rows_of(page)
            if row["aria-selected"] == "true"] == ["step 600"]  # fmt: skip


def test_a_scroll_gets_rows_and_nothing_else(client: TestClient, pipeline: Pipeline) -> None:
    forest(RUN, 1000).send(pipeline)

    answer = client.get(
        f"/fragments/runs/{RUN}/tree?first=400&part=rows", headers={"HX-Request": "true"}
    )

    assert answer.headers["cache-control"] == "no-store"
    assert "hx-partial" not in answer.text
    assert titles(parse(answer.text))[0] == "step 401"


def test_a_fragment_opened_as_a_page_leads_to_the_page(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    for part in ("tree", "step"):
        answer = client.get(f"/fragments/runs/{RUN}/{part}?errors=1&span=0000000000000004")

        assert answer.status_code == 303
        assert answer.headers["location"].startswith(f"/runs/{RUN}?")
        assert "errors=1" in answer.headers["location"]


def test_the_minimap_of_a_finished_run_may_be_kept_for_ever(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)
    page = read(client, f"/runs/{RUN}")

    answer = client.get(page.one(id="minimap")["hx-get"], headers={"HX-Request": "true"})

    assert "immutable" in answer.headers["cache-control"]
    drawn = parse(answer.text)
    assert {path["data-role"] for path in drawn.all("path")} >= {"llm", "error"}
    assert all(
        re.fullmatch(r"(M[\d.]+ [\d.]+h\d+v[\d.]+h-\d+z)+", path["d"]) for path in drawn.all("path")
    )


def test_finding_counts_matches_and_leads_through_them(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = read(client, f"/runs/{RUN}?q=round_half_up")
    found = page.one("span", class_="run-matches")

    assert found.text.startswith("2 matches")
    matches = [row for row in rows_of(page) if "is-match" in row.classes]
    assert [row.one("a", class_="tg-title").text for row in matches] == [
        "read_file",
        "gpt-4o-mini",
    ]
    following = read(client, found.one("a", data_match="next")["href"])
    assert following.one(id="step").one("h2").text == "execute_tool read_file"
    wrapped = read(client, found.one("a", data_match="previous")["href"])
    assert wrapped.one(id="step").one("h2").text == "chat gpt-4o-mini"
    assert page.one("input", id="find")["value"] == "round_half_up"


def test_odd_trees_are_shown_and_marked(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.span(1, None, "first root", 0, 5)
    trace.span(2, None, "second root", 1, 1)
    trace.span(3, 77, "lost child", 2, 1)
    trace.span(4, 5, "loop a", 3, 1)
    trace.span(5, 4, "loop b", 3.1, 1)
    trace.span(6, 6, "own parent", 4, 1)
    trace.send(pipeline)

    page = read(client, f"/runs/{RUN}")

    assert sorted(titles(page)) == sorted(
        ["first root", "second root", "lost child", "loop a", "loop b", "own parent"]
    )
    lost = next(row for row in rows_of(page) if "lost child" in row.text)
    assert "is-orphan" in lost.classes
    assert "parent span not received" in lost.text
    assert lost.one("rect", class_="orphan")
    notes = page.one("ul", class_="run-note").text
    assert "1 step stands at the top because its parent was never received." in notes
    assert "This run has" in notes
    assert "loop" in notes


def test_an_open_step_grows_to_now_and_one_without_news_has_no_end(
    client: TestClient, pipeline: Pipeline
) -> None:
    running = Trace(RUN, began_s_ago=30)
    running.agent(1, duration_s=None)
    running.tool(2, 1, "run_tests", "c", 1, None)
    running.send(pipeline)

    page = read(client, f"/runs/{RUN}")
    root = rows_of(page)[0]

    assert page.one(id="run-facts").one("span", class_="status")["data-status"] == "open"
    assert root.text.endswith("…")
    assert root.one("path", class_="open-end")
    assert root.one("line", class_="now")
    assert "so far" in page.one("dl", class_="run-totals").text
    assert page.one(id="live")["hx-sse:connect"].startswith(f"/live/runs/{RUN}?seq=")


def test_the_log_has_steps_events_and_log_records_in_order(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = tool_loop().send(pipeline)
    trace.log(pipeline, 5, "pytest: 1 failed, 46 passed", at_s=3.22)

    page = read(client, f"/runs/{RUN}?view=log")
    rows = page.one("table").one("tbody").all("tr")

    assert _whats(rows) == [
        "mender",
        "gpt-4o-mini",
        "read_file",
        "gpt-4o-mini",
        "apply_patcherror",
        "log record",
        "exceptionerror",
        "gpt-4o-mini",
    ]
    # On a narrow screen the error stands below its row, once for those who are read to.
    said = [one for row in rows for one in row.all("span", class_="log-say")]
    assert [(one.text, one["aria-hidden"]) for one in said] == [
        ("hunk 2 of 2 does not apply", "true"),
        ("in apply_patch: ValueError: hunk 2 of 2 does not apply", "true"),
    ]
    assert "in apply_patch: ValueError: hunk 2 of 2 does not apply" in page.text
    without = read(client, f"/runs/{RUN}?view=log&hide=steps.logs")
    assert _whats(without.one("tbody").all("tr")) == ["exceptionerror"]


def _whats(rows: list[Element]) -> list[str]:
    return [row.one("th").one("span", class_="row").text for row in rows]


@pytest.mark.slow
def test_a_log_too_long_to_read_says_where_it_stops(client: TestClient, pipeline: Pipeline) -> None:
    trace = forest(RUN, 2).send(pipeline)
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for number in range(20_001):
        records.add(time_unix_nano=trace.start_ns + number, trace_id=bytes.fromhex(RUN))
    submit(pipeline, Signal.LOGS, request.SerializeToString())

    page = read(client, f"/runs/{RUN}?view=log&hide=steps")

    assert "20,000 lines" in page.text
    assert "Log records after the first 20,000 are not shown here." in page.text


def test_the_log_is_read_in_windows(client: TestClient, pipeline: Pipeline) -> None:
    forest(RUN, 700).send(pipeline)

    page = read(client, f"/runs/{RUN}?view=log")
    seen = [row.one("th").text for row in page.one("tbody").all("tr")]
    while later := [link for link in page.all("a") if link.text == "Later lines"]:
        page = read(client, later[0]["href"])
        seen += [row.one("th").text for row in page.one("tbody").all("tr")]

    assert seen == ["mender", *(f"step {number}" for number in range(2, 701))]


def test_the_conversation_says_every_message_once(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop(clock=True).send(pipeline)

    page = read(client, f"/runs/{RUN}?view=conversation")
    speakers = [
        (message.one("b", class_="msg-who").text, message.one("span", class_="msg-no").text)
        for message in page.all("article")
    ]

    # The clock makes each system prompt another text: it is shown again, what follows is not.
    assert speakers == [
        ("System", "1"), ("User", "2"), ("Assistant", "3"),
        ("System", "1"), ("Assistant", "5"),
        ("System", "1"), ("Assistant", "7"),
    ]  # fmt: skip
    assert "9 messages, 3 calls; 6 repeats left out" in page.one("span", class_="run-shown").text
    cards = page.all("div", class_="call")
    assert [card.one("header").text for card in cards] == ["read_file", "apply_patchfailed"]
    assert [state.text for state in cards[0].all("li")] == ["requested", "ran 50 ms", "returned"]
    assert [state.attributes.get("data-state") for state in cards[1].all("li")] == [
        None,
        "fail",
        None,
    ]
    assert "def round_half_up" in cards[0].text
    assert page.one("strong").text == "look"


def test_two_sub_agents_do_not_mix_up_what_is_new(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=9)
    one, two = [said_user("count to two")], [said_user("name a colour")]
    trace.chat(2, 1, one, answer("one"), 0.1)
    trace.chat(3, 1, two, answer("red"), 0.2)
    trace.chat(4, 1, [*one, answer("one"), said_user("go on")], answer("two"), 0.3)
    trace.chat(5, 1, [*two, answer("red"), said_user("another")], answer("blue"), 0.4)
    trace.send(pipeline)

    page = read(client, f"/runs/{RUN}?view=conversation")
    bodies = [message.one("div", class_="msg-body") for message in page.all("article")]
    words = [body.one("pre", class_="msg-source").text for body in bodies]

    assert words == [
        "count to two",
        "one",
        "name a colour",
        "red",
        "go on",
        "two",
        "another",
        "blue",
    ]


def said_user(text: str) -> dict[str, object]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def answer(text: str) -> dict[str, object]:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def test_a_run_without_messages_says_so(client: TestClient, pipeline: Pipeline) -> None:
    forest(RUN, 3).send(pipeline)

    page = read(client, f"/runs/{RUN}?view=conversation")

    assert page.one("div", class_="empty").one("h2").text == "No messages were recorded"


def test_where_the_next_failure_stands_is_told(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)

    found = client.get(f"/fragments/runs/{RUN}/jump?to=error").json()

    assert found == {"line": 4, "key": f"{5:016x}"}
    assert client.get(f"/fragments/runs/{RUN}/jump?to=match&q=nothing-such").json()["line"] is None


def test_a_run_names_what_links_to_it(client: TestClient, pipeline: Pipeline) -> None:
    tool_loop().send(pipeline)
    other = Trace("b" * 32)
    other.span(1, None, "follow up", links=[(RUN, 6)])
    other.send(pipeline)

    page = read(client, f"/runs/{RUN}")

    link = page.one("ul", class_="run-note").one("a")
    assert link.text == f"follow up of run {'b' * 8}"
    assert link["href"] == f"/steps/{'b' * 32}-{1:016x}"


@given(st.integers(0, 10**15), st.integers(5, 10**15))
def test_no_two_labels_of_a_time_axis_are_the_same(first_ns: int, length_ns: int) -> None:
    shown = Scale(first_ns, first_ns + length_ns)

    texts = [tick.text for tick in ticks(shown, 0)]

    assert len(set(texts)) == len(texts), texts
