"""The pages of users and of a conversation's messages, with ids that are anyone's text."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_web.conversations.cli import conversations as conversations_command
from hansard_web.runs.cli import runs as runs_command
from hansard_web.users.cli import users as users_command
from tests.web.html import Element, parse
from tests.web.makers import RunMaker
from tests.web.traces import Trace, asks, returns, said

HOSTILE = (
    "x" * 400,
    "a/b/../c",
    "..",
    ".",
    "/",
    "<script>alert(1)</script>",
    "ada+test@example.com",
    "\u202eevil\u202c",
    "שלום",
    "100% & more?#frag",
    " lead and trail ",
    "back\\slash",
)


def read(client: TestClient, path: str, status: int = 200) -> Element:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return parse(answer.text)


def run_of(
    pipeline: Pipeline, number: int, user: str, *, conversation: str = "", failed: bool = False
) -> str:
    trace = Trace(f"{number:032x}", began_s_ago=600 - number)
    more = {"gen_ai__conversation__id": conversation} if conversation else {}
    trace.agent(1, name="desk", duration_s=3, user__id=user, **more)
    trace.chat(2, 1, [said("user", f"question {number}")], said("assistant", f"answer {number}"))
    if failed:
        trace.span(3, 1, "lookup", failed="no such order")
    trace.send(pipeline)
    return trace.trace_id


def figures(page: Element) -> dict[str, str]:
    pairs = page.one("dl", class_="figures").all("div")
    return {one.one("dt").text: one.one("dd").text for one in pairs}


def test_users_are_listed_with_their_figures_and_lead_to_their_page(
    client: TestClient, pipeline: Pipeline
) -> None:
    run_of(pipeline, 1, "ann", conversation="c1")
    run_of(pipeline, 2, "ann", conversation="c2")
    run_of(pipeline, 3, "bob")

    page = read(client, "/users?sort=-runs")
    rows = page.one("tbody").all("tr")
    one = read(client, rows[0].one("a")["href"])

    assert [row.one("th").text for row in rows] == ["ann", "bob"]
    assert rows[0].all("td")[0].text == "2"
    assert one.one("h1").text == "ann"
    assert figures(one)["runs"] == "2"
    assert figures(one)["conversations"] == "2"
    shown = [row.one("th").text for row in one.all("table")[-1].one("tbody").all("tr")]
    assert len(shown) == 2
    heads = [head for head in page.all("th") if head.attributes.get("aria-sort")]
    assert [(head["aria-sort"], head.one("a")["href"]) for head in heads] == [
        ("descending", "/users?sort=runs")
    ]


def test_a_users_page_names_the_causes_of_errors(client: TestClient, pipeline: Pipeline) -> None:
    run_of(pipeline, 1, "ann", failed=True)
    run_of(pipeline, 2, "ann", failed=True)
    run_of(pipeline, 3, "bob")

    table = read(client, "/users/ann").one("section", **{"aria-labelledby": "h-errors"})

    [row] = table.one("tbody").all("tr")
    assert "no such order" in row.one("th").text
    assert row.one("a")["href"].startswith("/errors/")
    assert [cell.text for cell in row.all("td")][1:3] == ["2", "2"]
    assert "h-errors" not in client.get("/users/bob").text


@pytest.mark.parametrize("user", HOSTILE)
def test_a_user_is_anyones_text(client: TestClient, pipeline: Pipeline, user: str) -> None:
    run_of(pipeline, 1, user, conversation=user)

    answer = client.get("/users")
    link = parse(answer.text).one("tbody").one("a")["href"]
    page = read(client, link)
    listed_at = read(client, "/conversations").one("tbody").one("a", class_="rowlink")["href"]
    talk = read(client, listed_at)

    assert "<script>alert" not in answer.text
    assert user.strip() in page.one("h1")["title"]
    assert figures(page)["runs"] == figures(talk)["runs"] == "1"
    found = client.get("/v1/users", params={"prefix": user}).json()["items"]
    assert [one["user_id"] for one in found] == [user]
    listed = client.get("/v1/conversations", params={"user": user}).json()["items"]
    assert [one["conversation_id"] for one in listed] == [user]


def test_unknown_and_odd_addresses_are_answered_in_words(
    client: TestClient, pipeline: Pipeline
) -> None:
    run_of(pipeline, 1, "ann")

    read(client, "/users/nobody", status=404)
    read(client, "/users?id=", status=200)
    read(client, "/users?since=yesterday", status=200)
    read(client, "/users?sort=age", status=400)
    read(client, "/users?cursor=abc", status=400)
    read(client, "/users/ann?since=24h")
    assert "No user" in read(client, "/users?prefix=zed").one("main").text
    assert client.get("/v1/users/nobody").json()["error"]["code"] == "not_found"


def test_a_store_without_users_and_conversations_teaches(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("plain")

    assert 'set_attribute("user.id"' in read(client, "/users").one("main").text
    assert "gen_ai.conversation.id" in read(client, "/conversations").one("main").text


def test_the_messages_of_a_conversation_stand_once_in_the_order_of_its_runs(
    client: TestClient, pipeline: Pipeline
) -> None:
    history = [said("system", "Be kind."), said("user", "Where is order 7?")]
    first = Trace("1" * 32, began_s_ago=500)
    first.agent(1, name="desk", duration_s=5, gen_ai__conversation__id="c")
    request = asks("find_order", "call_1", {"id": 7})
    first.chat(2, 1, history, request, 0.1)
    first.tool(3, 1, "find_order", "call_1", 1, result="shipped")
    history += [request, returns("call_1", "shipped")]
    first.chat(4, 1, history, said("assistant", "It was shipped."), 2)
    history += [said("assistant", "It was shipped."), said("user", "When?")]
    second = Trace("2" * 32, began_s_ago=400)
    second.agent(1, name="desk", duration_s=5, gen_ai__conversation__id="c")
    second.chat(2, 1, history, said("assistant", "On Monday."), 0.1)
    second.send(pipeline)
    first.send(pipeline)

    page = read(client, "/conversations?id=c")
    turns = page.all("section", class_="turn")

    def speakers(turn: Element) -> list[str]:
        return [one["data-speaker"] for one in turn.all("article", class_="msg")]

    assert [turn["id"] for turn in turns] == [f"run-{'1' * 32}", f"run-{'2' * 32}"]
    assert speakers(turns[0]) == ["system", "user", "assistant"]
    assert speakers(turns[1]) == ["user", "assistant"]
    tools = turns[0].one("details", class_="turn-tools")
    assert "1 tool call" in tools.all("summary")[0].text
    assert "shipped" in tools.text
    assert "When?" in turns[1].text
    assert "Where is order 7?" not in turns[1].text


def test_a_long_conversation_is_read_a_page_at_a_time(
    client: TestClient, pipeline: Pipeline
) -> None:
    for number in range(1, 26):
        run_of(pipeline, number, "ann", conversation="long")

    seen: list[str] = []
    page = read(client, "/conversations?id=long")
    while True:
        seen += [one["id"] for one in page.all("section", class_="turn")]
        more = page.all("a", rel="next")
        if not more:
            break
        answer = client.get(more[0]["hx-get"], headers={"HX-Request": "true"})
        assert answer.status_code == 200
        page = parse(answer.text)

    assert seen == [f"run-{number:032x}" for number in range(1, 26)]


def test_commands_show_what_the_api_answers(
    client: TestClient, runs: RunMaker, pipeline: Pipeline
) -> None:
    run_of(pipeline, 1, "ann", conversation="c1")
    run_of(pipeline, 2, "bob")
    data = ["--data", str(runs.folder.path)]

    listed = CliRunner().invoke(users_command, ["list", *data])
    shown = CliRunner().invoke(users_command, ["show", "ann", *data])
    talk = CliRunner().invoke(conversations_command, ["show", "c1", *data])
    talks = CliRunner().invoke(conversations_command, ["list", "--user", "ann", *data])

    assert {result.exit_code for result in (listed, shown, talk, talks)} == {0}, listed.output
    assert "ann" in listed.output
    assert "bob" in listed.output
    assert (
        "conversations  1" in " ".join(shown.output.split("\n")) or "conversations" in shown.output
    )
    assert "c1" in talk.output
    assert "c1" in talks.output


def test_all_runs_of_a_user_are_deleted_and_no_others(
    client: TestClient, runs: RunMaker, pipeline: Pipeline, tmp_path: Path
) -> None:
    gone = [run_of(pipeline, number, "ann") for number in (1, 2)]
    stays = run_of(pipeline, 3, "annabel")
    data = ["--data", str(runs.folder.path)]

    refused = CliRunner().invoke(runs_command, ["delete", stays, "--user", "ann", *data])
    nobody = CliRunner().invoke(runs_command, ["delete", "--user", "nobody", "--yes", *data])
    deleted = CliRunner().invoke(runs_command, ["delete", "--user", "ann", "--yes", *data])

    assert refused.exit_code == 2
    assert nobody.exit_code != 0
    assert deleted.exit_code == 0, deleted.output
    assert client.get("/v1/users/ann").status_code == 404
    answers = [client.get(f"/v1/runs/{run}").json()["error"]["code"] for run in gone]
    assert answers == ["run_deleted"] * 2
    assert client.get(f"/v1/runs/{stays}").status_code == 200
