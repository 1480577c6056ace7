"""A run's page explains itself: where it opens, loops, sums, cache breaks, graph."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_web.run_page.graph import MOST_NODES
from tests.web.html import Element, parse
from tests.web.traces import Trace, said, tool_loop

RUN = "a" * 32
ARGUMENTS = {"gen_ai__tool__call__arguments": '{"sku": "A-17"}'}


def read(client: TestClient, path: str = f"/runs/{RUN}") -> Element:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def rows_of(page: Element) -> list[Element]:
    return [row for row in page.all(role="row") if "tg-head" not in row.classes]


def selected(page: Element) -> list[str]:
    return [row["id"] for row in rows_of(page) if row["aria-selected"] == "true"]


def cell(row: Element, name: str) -> str:
    return next(one for one in row.all(role="gridcell") if name in one.classes).text


def stock_loop(turns: int = 40, *, failed_turn: int | None = None) -> Trace:
    """An agent that looks for the same article again and again, with a growing prompt."""
    trace = Trace(RUN)
    trace.agent(1, name="watcher", duration_s=turns * 2.0)
    messages = [said("user", "Is A-17 in stock?")]
    for turn in range(turns):
        trace.chat(
            2 + 2 * turn, 1, list(messages), said("assistant", f"look {turn}"), turn * 2,
            tokens=(1000 + turn, 10), model="gpt-4o",
        )  # fmt: skip
        messages.append(said("assistant", f"look {turn}"))
        failed = "no answer" if turn == failed_turn else None
        trace.tool(
            3 + 2 * turn, 1, "get_stock", f"c{turn}", turn * 2 + 1, 0.5, failed=failed, **ARGUMENTS
        )
    return trace


def test_a_page_opens_on_the_error_that_is_deepest(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1, failed="the tool failed", duration_s=9)
    trace.chat(2, 1, [said("user", "Go.")], said("assistant", "Going."), 1)
    trace.span(3, 1, "turn", 2, 2, failed="the tool failed")
    trace.tool(4, 3, "fetch", "c1", 2, 1, failed="no route")
    trace.tool(5, 1, "fetch", "c2", 5, 1, failed="later")
    trace.send(pipeline)

    page = read(client)

    assert page.one(id="step").all("h2")[0].text == "execute_tool fetch"
    assert selected(page) == [f"s-{4:016x}"]
    assert page.one("main")["data-at"] == f"{4:016x}"


def test_a_page_without_errors_opens_on_the_last_model_call(
    client: TestClient, pipeline: Pipeline
) -> None:
    stock_loop(2).send(pipeline)

    page = read(client)

    assert selected(page) == [f"s-{4:016x}"]
    assert "run--opened" in page.one("main").classes


@pytest.mark.parametrize(("query", "chosen"), [("step", 3), ("span", 3)])
def test_an_address_that_names_a_step_opens_that(
    client: TestClient, pipeline: Pipeline, query: str, chosen: int
) -> None:
    tool_loop().send(pipeline)

    page = read(client, f"/runs/{RUN}?{query}={chosen:016x}")

    assert selected(page) == [f"s-{chosen:016x}"]
    assert "run--opened" not in page.one("main").classes


def test_a_page_whose_panel_was_closed_opens_without_one(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)
    close = read(client).one("a", **{"data-close": ""})["href"]

    page = read(client, close)

    assert selected(page) == []
    assert "run--alone" in page.one("main").classes


def test_a_row_has_the_name_without_its_operation_and_the_span_name_as_title(
    client: TestClient, pipeline: Pipeline
) -> None:
    tool_loop().send(pipeline)

    page = read(client, f"/runs/{RUN}?q=execute_tool")

    title = rows_of(page)[2].one("a", class_="tg-title")
    assert (title.text, title["title"]) == ("read_file", "execute_tool read_file")
    assert page.one("span", class_="run-matches").text.startswith("2 matches")


def test_a_parent_has_the_sums_of_the_calls_below_it(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    # The agent repeats the sum of its calls, as many libraries do: it is no second use.
    trace.agent(1, duration_s=9, gen_ai__usage__input_tokens=300, gen_ai__usage__output_tokens=30)
    trace.agent(2, 1, name="helper", duration_s=5)
    trace.chat(
        3, 2, [said("user", "a")], said("assistant", "b"), 1, tokens=(200, 20),
        gen_ai__usage__cache_read__input_tokens=150,
    )  # fmt: skip
    trace.chat(4, 1, [said("user", "c")], said("assistant", "d"), 6)
    trace.send(pipeline)

    root, helper, _, _ = rows_of(read(client))
    items = client.get(f"/v1/runs/{RUN}/steps").json()["items"]

    assert (cell(root, "tg-in"), cell(root, "tg-out")) == ("300", "30")
    assert (cell(helper, "tg-in"), cell(helper, "tg-cached")) == ("200", "150")
    assert items[0]["sums"]["tokens"]["input"] == 300
    assert items[0]["sums"]["model_calls"] == 2
    assert items[0]["sums"]["cost_usd"] == client.get(f"/v1/runs/{RUN}").json()["cost_usd"]


def test_a_loop_is_one_line_that_says_what_repeats_and_opens(
    client: TestClient, pipeline: Pipeline
) -> None:
    stock_loop().send(pipeline)

    page = read(client)
    loop = rows_of(page)[1]

    assert len(rows_of(page)) == 2
    assert loop.one("span", class_="tg-chip-text").text == "loop: get_stock ×40, same arguments"
    assert loop["aria-selected"] == "true"  # the last call, on which the page opened, is in it
    assert cell(loop, "tg-in") == f"{sum(range(1000, 1040)):,}"
    opened = read(client, loop.one("a", class_="tg-toggle")["href"])
    assert len(rows_of(opened)) == 82
    assert client.get(f"/v1/runs/{RUN}").json()["loops"] == [
        {
            "first_step_id": f"{RUN}-{2:016x}",
            "last_step_id": f"{RUN}-{81:016x}",
            "times": 40,
            "steps": ["chat gpt-4o", "execute_tool get_stock"],
        }
    ]


def test_an_error_inside_a_loop_is_found_and_opens_it(
    client: TestClient, pipeline: Pipeline
) -> None:
    stock_loop(failed_turn=7).send(pipeline)

    shut = read(client)
    jumped = client.get(f"/fragments/runs/{RUN}/jump?to=error").json()
    chosen = read(client, f"/runs/{RUN}?span={jumped['key']}")

    assert "1 failed" in rows_of(shut)[1].text
    assert jumped["key"] == f"{3 + 14:016x}"
    assert len(rows_of(chosen)) == 82
    assert rows_of(chosen)[jumped["line"]]["aria-selected"] == "true"


def test_calls_with_other_arguments_are_grouped_on_demand_only(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = Trace(RUN)
    trace.agent(1, duration_s=50)
    for turn in range(5):
        trace.chat(2 + 2 * turn, 1, [said("user", "x")], said("assistant", "y"), turn * 2)
        arguments = f'{{"row": {turn}}}'
        trace.tool(
            3 + 2 * turn, 1, "read_row", f"c{turn}", turn * 2 + 1, 0.5,
            gen_ai__tool__call__arguments=arguments,
        )  # fmt: skip
    trace.send(pipeline)

    grouped = rows_of(read(client, f"/runs/{RUN}?group=1"))

    assert len(rows_of(read(client))) == 11
    assert [row.one("a", class_="tg-title").text for row in grouped] == [
        "mender",
        "gpt-4o-mini, read_row × 5",
    ]
    assert client.get(f"/v1/runs/{RUN}").json()["loops"] == []


def broken_cache(turns: int) -> Trace:
    """A run whose system prompt, long enough to be cached, carries the time."""
    trace = Trace(RUN)
    trace.agent(1, duration_s=turns * 2.0)
    messages = [said("user", f"Question {'w ' * 3000}")]
    for turn in range(turns):
        system = said("system", f"It is {turn} o'clock. You help.")
        trace.chat(
            2 + turn, 1, [system, *messages], said("assistant", f"a{turn}"), turn * 2,
            tokens=(3000 + turn, 5),
        )  # fmt: skip
        messages.append(said("assistant", f"a{turn}"))
    return trace


def test_the_head_counts_cache_breaks_and_leads_to_the_context(
    client: TestClient, pipeline: Pipeline
) -> None:
    broken_cache(4).send(pipeline)

    page = read(client)
    note = page.one(id="run-breaks")
    breaks = client.get(f"/v1/runs/{RUN}").json()["cache_breaks"]

    assert (breaks["model_calls"], breaks["breaks"]) == (4, 3)
    assert breaks["lost_tokens"] == sum(one["lost_tokens"] for one in breaks["calls"]) > 3_000
    assert note.one("dd").text == "3"
    assert "tokens paid again" in note.text
    context = read(client, note.one("a")["href"])
    assert "Context" in context.one(id="step").one("a", **{"aria-current": "page"}).text
    marked = [row for row in rows_of(page) if row.all("a", class_="tg-mark--wait")]
    assert [row["id"] for row in marked] == [f"s-{number:016x}" for number in (3, 4, 5)]


def test_breaks_of_many_calls_come_after_the_page(client: TestClient, pipeline: Pipeline) -> None:
    broken_cache(30).send(pipeline)

    pending = read(client).one(id="run-breaks")
    answer = client.get(pending["hx-get"], headers={"HX-Request": "true"})

    assert "hidden" in pending.attributes
    assert "29" in parse(answer.text).text
    assert answer.headers["HX-Trigger"] == "run-marks"
    assert len(read(client).all("a", class_="tg-mark--wait")) == 29


def hand_offs(tools: int = 1) -> Trace:
    trace = Trace(RUN)
    trace.agent(1, name="planner", duration_s=60)
    for at, name in enumerate(("researcher", "writer"), 1):
        trace.agent(at * 10, 1, name=name, start_s=at * 10, duration_s=9)
        trace.chat(at * 10 + 1, at * 10, [said("user", name)], said("assistant", "ok"), at * 10)
        failed = "no page" if name == "writer" else None
        trace.tool(at * 10 + 2, at * 10, "fetch", f"c{at}", at * 10 + 2, 1, failed=failed)
    for number in range(tools):
        trace.tool(100 + number, 1, f"tool {number}", f"t{number}", 40 + number / 10, 0.05)
    return trace


def test_the_graph_has_agents_tools_models_and_who_called_whom(
    client: TestClient, pipeline: Pipeline
) -> None:
    hand_offs().send(pipeline)

    graph = client.get(f"/v1/runs/{RUN}/graph").json()

    names = {node["id"]: node["name"] for node in graph["nodes"]}
    edges = {
        (names[edge["source"]], names[edge["target"]]): (edge["kind"], edge["calls"])
        for edge in graph["edges"]
    }
    assert edges == {
        ("planner", "researcher"): ("hand-off", 1),
        ("planner", "writer"): ("hand-off", 1),
        ("researcher", "gpt-4o-mini"): ("call", 1),
        ("writer", "gpt-4o-mini"): ("call", 1),
        ("researcher", "fetch"): ("call", 1),
        ("writer", "fetch"): ("call", 1),
        ("planner", "tool 0"): ("call", 1),
    }
    fetch = next(node for node in graph["nodes"] if node["name"] == "fetch")
    assert (fetch["calls"], fetch["errors"]) == (2, 1)
    assert fetch["step_id"] == f"{RUN}-{22:016x}"  # the one that failed
    of_models = [
        edge["cost_usd"] for edge in graph["edges"] if names[edge["target"]] == "gpt-4o-mini"
    ]
    assert sum(of_models) == pytest.approx(client.get(f"/v1/runs/{RUN}").json()["cost_usd"])


def test_the_graph_is_drawn_with_a_table_that_says_the_same(
    client: TestClient, pipeline: Pipeline
) -> None:
    hand_offs().send(pipeline)

    page = read(client, f"/runs/{RUN}?view=graph")

    assert len(page.all("a", class_="graph-node")) == 6
    assert len(page.one("table", class_="graph-table").one("tbody").all("tr")) == 7
    chosen = read(client, page.all("a", class_="graph-node")[0]["href"])
    assert chosen.one(id="step").all("h2")[0].text == "invoke_agent planner"


def test_a_graph_of_more_nodes_than_can_be_read_says_what_is_left_out(
    client: TestClient, pipeline: Pipeline
) -> None:
    hand_offs(tools=40).send(pipeline)

    page = read(client, f"/runs/{RUN}?view=graph")

    assert len(page.all("a", class_="graph-node")) == MOST_NODES
    assert "of 45; the table has all" in page.text
    assert len(page.one("table", class_="graph-table").one("tbody").all("tr")) == 46


def test_an_error_says_its_type_once(client: TestClient, pipeline: Pipeline) -> None:
    trace = Trace(RUN)
    trace.agent(1)
    trace.tool(2, 1, "refund", "c1", failed="ValueError: the gateway did not answer")
    trace.send(pipeline)

    note = read(client).one(id="step").one("div", class_="note")

    assert note.text.count("ValueError") == 1
    assert "the gateway did not answer" in note.text


def test_a_conversation_names_the_agent_above_each_call_and_who_called_it(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = hand_offs()
    trace.chat(90, 1, [said("user", "so?")], said("assistant", "done"), 50)
    trace.send(pipeline)

    page = read(client, f"/runs/{RUN}?view=conversation")

    turns = [turn.text for turn in page.all("div", class_="talk-turn")]
    assert [turn.split(" · ")[1] for turn in turns] == [
        "researcher",
        "hand-off planner → writer",
        "back to planner",
    ]


def test_every_call_in_the_graph_leads_forward_and_has_its_figures(
    client: TestClient, pipeline: Pipeline
) -> None:
    trace = hand_offs()
    trace.chat(90, 1, [said("user", "so?")], said("assistant", "done"), 50)
    trace.send(pipeline)

    page = read(client, f"/runs/{RUN}?view=graph")

    edges = page.all("path", class_="graph-edge")
    labels = [one.text for one in page.all("text", class_="graph-label")]
    assert len(labels) == len(edges)
    assert {one["text-anchor"] for one in page.all("text", class_="graph-label")} == {"end"}
