"""Errors by cause: the page, its routes and its command."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hansard_store.ingest.derived_rows import SpanProjection
from hansard_web.error_groups.cli import errors as command
from tests.store.maker import NOW, SECOND
from tests.web.html import parse
from tests.web.makers import RunMaker

HOSTILE = '<script>alert(1)</script>" onmouseover="x\u202e\n\n' + "y" * 100_000


class Failing:
    """Runs that fail now."""

    def __init__(self, runs: RunMaker) -> None:
        self.runs = runs
        self._made = 0

    def fail(self, message: str, *, tool: str = "get_order", agent: str = "mender") -> str:
        """Store a run whose tool and agent fail with a message; returns its id."""
        self._made += 1
        run = f"{self._made:032x}"
        now_s = (time.time_ns() - NOW) / SECOND + 3_590
        for name, parent, role in (("agent", None, "agent"), ("tool", "agent", "tool")):
            self.runs.store.span(
                name,
                parent,
                run=run,
                start_s=now_s,
                status=2,
                texts=[("error", message)],
                facets=[("agent", agent)],
                projection=SpanProjection(
                    role=role,
                    dialect="gen_ai",
                    tool_name=tool if role == "tool" else None,
                    agent_name=agent,
                    error_type="ToolError",
                    summary=message[:119],
                ),
            )
        return run


@pytest.fixture
def failing(runs: RunMaker) -> Failing:
    return Failing(runs)


def error_ids(client: TestClient, query: str = "") -> list[str]:
    return [one["error_id"] for one in client.get(f"/v1/errors{query}").json()["items"]]


def test_one_page_names_the_causes_of_all_failed_runs(client: TestClient, failing: Failing) -> None:
    for number in range(36):
        failing.fail(f"cause {'abc'[number % 3]} of order {number}", tool=f"tool_{number % 3}")

    page = parse(client.get("/errors").text)

    rows = page.one("tbody").all("tr")
    assert [row.one("th").one("a").text.split()[-1] for row in rows] == [
        "tool_2",
        "tool_1",
        "tool_0",
    ]
    assert all("12" in row.text for row in rows)
    assert "36 errors in 3 groups" in page.text


def test_a_failed_run_says_its_error_in_the_list_of_runs(
    client: TestClient, failing: Failing
) -> None:
    failing.fail("the provider answered 503")

    (shown,) = parse(client.get("/?kind=any").text).all(class_="run-error")

    assert shown.text == "ToolError: the provider answered 503"
    assert shown["title"] == shown.text


def test_the_runs_of_a_group_are_listed(client: TestClient, failing: Failing) -> None:
    run = failing.fail("the provider answered 503")
    failing.fail("other", tool="refund")
    error_id = next(
        one["error_id"]
        for one in client.get("/v1/errors").json()["items"]
        if one["subject"]["name"] == "get_order"
    )

    items = client.get(f"/v1/runs?error={error_id}").json()["items"]

    assert [one["run_id"] for one in items] == [run]
    assert client.get("/v1/runs?error=zz").status_code == 400
    assert f"error={error_id}" in client.get("/errors").text


def test_any_message_is_text_on_both_pages(client: TestClient, failing: Failing) -> None:
    failing.fail(HOSTILE, tool="<b>" + "x" * 400, agent="\u202ehostile")
    (error_id,) = error_ids(client)

    for path in ("/errors", f"/errors/{error_id}", "/?kind=any"):
        text = client.get(path).text
        assert "<script>alert" not in text
        assert "<b>x" not in text
        assert len(text) < 200_000


def test_filters_narrow_and_what_cannot_be_meant_is_named(
    client: TestClient, failing: Failing
) -> None:
    failing.fail("timed out", agent="mender")
    failing.fail("refused", tool="refund", agent="shopper")

    def count(query: str) -> int:
        return len(parse(client.get(f"/errors?{query}").text).all(class_="err-message"))

    queries = ("", "agent=mender", "q=refused", "q=agent:shopper", "since=1h")
    assert [count(one) for one in queries] == [2, 1, 1, 1, 2]
    assert count("state=closed") == count("q=nothing") == count("cursor=zz") == 0
    assert "never" in client.get("/errors?since=never").text
    assert client.get("/v1/errors?sort=size").status_code == 400


def test_a_group_is_watched_noted_closed_and_opened_over_the_api(
    client: TestClient, failing: Failing
) -> None:
    failing.fail("timed out")
    (error_id,) = error_ids(client)

    def decide(**body: str) -> int:
        return client.post(f"/v1/errors/{error_id}/decide", json=body).status_code

    assert [decide(decision=one) for one in ("watch", "close")] == [200, 200]
    assert decide(decision="note", note="seen") == 200
    found = client.get(f"/v1/errors/{error_id[:8]}").json()["error"]
    assert (found["state"], found["watched"], found["note_count"]) == ("closed", True, 1)
    assert [one["kind"] for one in found["history"]] == ["note", "close", "watch"]
    assert error_ids(client) == []
    assert error_ids(client, "?state=closed") == error_ids(client, "?state=watched") == [error_id]
    assert decide(decision="close", note="again") == 409
    assert decide(decision="note") == decide(decision="forget") == 400
    assert client.get("/v1/errors/" + "0" * 32).status_code == 404


def test_a_group_that_returns_says_so(client: TestClient, failing: Failing) -> None:
    failing.fail("timed out")
    (error_id,) = error_ids(client)
    client.post(f"/v1/errors/{error_id}/decide", json={"decision": "close"})

    failing.runs.store.now_ns = time.time_ns()
    time_ns = time.time_ns()
    while time.time_ns() - time_ns < 10_000_000:  # the clock of the store has passed the change
        pass
    later_s = (time.time_ns() - NOW) / SECOND + 3_600
    failing.runs.store.span(
        "tool", None, run="later", start_s=later_s, status=2, texts=[("error", "timed out")],
        projection=SpanProjection(
            role="tool", dialect="gen_ai", tool_name="get_order", summary="timed out"
        ),
    )  # fmt: skip

    assert "reopened" in parse(client.get("/errors").text).one(class_="errors").text
    assert "after it was closed" in client.get(f"/errors/{error_id}").text


def test_the_list_is_saved_as_a_file(client: TestClient, failing: Failing) -> None:
    failing.fail("=cmd|'/c calc'!A1")
    failing.fail("other", tool="refund", agent="shopper")

    text = client.get("/v1/tables/errors?agent=mender").text
    (link, *_) = [
        one["href"]
        for one in parse(client.get("/errors?agent=mender&since=1h").text).all("a")
        if one["href"].startswith("/v1/tables/errors?format=json")
    ]

    assert len(text.splitlines()) == 2
    assert "get_order" in text
    assert len(client.get(link).json()["rows"]) == 1


def test_the_command_lists_shows_and_closes(runs: RunMaker, failing: Failing) -> None:
    failing.fail("timed out")
    data = ["--data", str(runs.folder.path)]

    def run(*words: str) -> str:
        done = CliRunner().invoke(command, [*words, *data])
        assert done.exit_code == 0, done.output
        return done.output

    listed = json.loads(run("list", "--json"))["items"]
    error_id = listed[0]["error_id"]

    assert "timed out" in run("list", "--agent", "mender")
    run("note", error_id[:8], "seen", "--by", "rosa")
    run("close", error_id, "--note", "fixed", "--by", "rosa")
    shown = run("show", error_id[:8])
    assert "rosa" in shown
    assert "fixed" in shown
    assert json.loads(run("list", "--json"))["items"] == []
