"""The audit log as a page: filters, pages, and whether the chain is whole."""

from __future__ import annotations

from contextlib import closing

import pytest
from starlette.testclient import TestClient

from hansard_compiler.calls import Json
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.memory.service import MemoryService
from tests.store.by_hand import triggers_dropped
from tests.web.approvals import RUN, STEP, ask, read, redraft, store_of
from tests.web.makers import RunMaker

FRAGMENT = {"HX-Request": "true"}


def types(client: TestClient, query: str = "") -> list[str]:
    page = read(client, f"/events{query}").one("main")
    return [one.text for one in page.all("a", class_="rowlink")]


def fill(client: TestClient) -> str:
    """Put one decided action and a tool call into the log; return the action's id."""
    store = store_of(client)
    asked = ask(store)
    store.revise(asked.approval_id, note="Cheaper.", by="Noor")
    redraft(store, asked, amount=1)
    store.approve(asked.approval_id, by="Noor", revision=2)
    store.tool_called("get_quote", {"id": 1}, agent="mender")
    return asked.approval_id


def test_events_are_found_by_what_they_are_of_and_link_there(client: TestClient) -> None:
    approval_id = fill(client)
    whole = ["tool.called", "action.approved", "action.reproposed", "action.revised"]

    assert types(client) == [*whole, "action.created"]
    assert types(client, "?type=action.revised") == ["action.revised"]
    assert types(client, f"?approval={approval_id[:10]}&actor=me") == whole[1:4:2]
    assert types(client, "?action=get_quote&who=mender") == ["tool.called"]
    assert types(client, f"?run={RUN}&until=2001-01-01T00:00Z") == []
    row = read(client, f"/events?run={RUN}&type=action.revised").one("tbody").all("tr")[0]
    links = [one["href"] for one in row.all("a")]
    assert links == ["/events/2", f"/approvals/{approval_id}", f"/steps/{STEP}"]
    assert "create_deal: “Cheaper.”" in row.text


def test_a_step_is_called_by_its_tool_where_it_is_stored_else_by_its_id(
    client: TestClient, runs: RunMaker
) -> None:
    run = runs.run("front-desk", tool="create_deal")
    items = client.get(f"/v1/runs/{run}/steps").json()["items"]
    [step] = [one["step_id"] for one in items if one["role"] == "tool"]
    store = store_of(client)
    ask(store, run_id=run, step_id=step)
    ask(store, run_id=RUN, step_id=STEP, arguments={"title": "Other"})

    rows = read(client, "/events").one("tbody").all("tr")

    named = [row.all("a")[-1] for row in rows]
    assert [(one.text, one["href"]) for one in named] == [
        (STEP[33:41], f"/steps/{STEP}"),
        ("create_deal", f"/steps/{step}"),
    ]
    facts = read(client, "/events/1").one("dl", class_="event-facts")
    assert f"create_deal {step[33:]}" in facts.text


def test_what_cannot_be_asked_is_said(client: TestClient) -> None:
    assert "is 'nonsense'" in read(client, "/events?since=nonsense").one("main").text
    assert "approval" in read(client, "/events?approval=zzzz").one("div", data_tone="wait").text
    assert "No events yet" in read(client, "/events").text
    read(client, "/events/1", status=404)
    read(client, "/events/none", status=404)


def test_older_events_are_on_the_next_page(client: TestClient) -> None:
    store = store_of(client)
    for number in range(103):
        store.message_in(f"conversation-{number}")

    first = read(client, "/events?actor=me")
    more = first.one("a", class_="more")["href"]

    assert more == "/events?actor=me&before=4"
    later = read(client, more)
    assert [one["href"] for one in later.all("a", class_="rowlink")] == [
        "/events/3",
        "/events/2",
        "/events/1",
    ]
    assert later.all("a", class_="more") == []


def test_the_chain_is_checked_when_asked_and_a_moment_later_not_again(client: TestClient) -> None:
    fill(client)
    assert read(client, "/events").one("section", id="chain")["data-state"] == "unknown"

    checked = client.get("/fragments/events/chain", headers=FRAGMENT)

    head = store_of(client).head()
    assert 'data-state="whole"' in checked.text
    assert "5 events" in checked.text
    assert f"--anchor {head.text}" in checked.text
    # Without script the same is a link, and what is known is shown by every later page.
    assert client.get("/fragments/events/chain").headers["location"] == "/events?verify=1"
    assert read(client, "/events").one("section", id="chain")["data-state"] == "whole"


@pytest.mark.covers("UI-18")
def test_a_broken_chain_names_its_first_broken_row(client: TestClient) -> None:
    fill(client)
    folder: DataFolder = store_of(client).folder
    connection = open_for_maintenance(folder)
    with triggers_dropped(connection):
        connection.execute("UPDATE event SET who = 'Mallory' WHERE seq = 4")
    connection.close()

    page = read(client, "/events?verify=1")

    chain = page.one("section", id="chain")
    assert chain["data-state"] == "broken"
    assert "The chain is broken at event 4." in chain.text
    assert "its hash is another one" in chain.text
    [row] = page.all("tr", data_broken="")
    assert row.one("a", class_="rowlink")["href"] == "/events/4"


def test_an_event_is_shown_whole_with_its_hashes_and_neighbours(client: TestClient) -> None:
    fill(client)
    store = store_of(client)
    second = store.events(before=3, limit=1)[0]

    page = read(client, "/events/2").one("main")

    assert page.one("p", class_="drafts-note").text == "Cheaper."
    assert second.hash.hex() in page.text
    assert second.prev_hash.hex() in page.text
    hrefs = {one["href"] for one in page.all("a")}
    assert {"/events/1", "/events/3", f"/runs/{RUN}"} <= hrefs


def test_an_event_of_memory_leads_to_the_record(client: TestClient, runs: RunMaker) -> None:
    with closing(MemoryService(runs.folder)) as book:
        told: Json = {"writer": "app", "memory_type": "constraint", "subject": "rounding",
                      "namespace": {"project": "shop"}, "content": "Round once."}  # fmt: skip
        memory_id = book.write_json(told)["memory"]["memory_id"]

    hrefs = [one["href"] for one in read(client, "/events/1").one("main").all("a")]

    assert f"/memory/{memory_id}" in hrefs


def test_a_list_says_how_many_seals_it_leaves_out_and_shows_them(client: TestClient) -> None:
    fill(client)
    store = store_of(client)
    store.seal()
    ask(store, arguments={"title": "Other"})
    store.seal()
    last = store.head().seq

    page = read(client, "/events").one("main")

    listed = [int(one["href"].rpartition("/")[2]) for one in page.all("a", class_="rowlink")]
    seals = page.one("p", id="seals")
    assert seals.text.startswith("2 sealing events (record.sealed) are not listed")
    assert len(listed) + 2 == last
    shown = read(client, seals.one("a")["href"]).one("main")
    assert len(shown.all("a", class_="rowlink")) == last
    assert shown.one("p", id="seals").one("a")["href"] == "/events"
    assert "2 sealing events" in read(client, "/events?actor=system").one("p", id="seals").text
    assert not read(client, "/events?type=record.sealed").all("p", id="seals")
    assert not read(client, "/events?type=action.created").all("p", id="seals")


def test_every_number_up_to_the_head_has_a_page(client: TestClient) -> None:
    fill(client)
    store = store_of(client)
    store.seal()

    for number in range(1, store.head().seq + 1):
        read(client, f"/events/{number}")
    assert "record.sealed" in read(client, f"/events/{store.head().seq}").one("h1").text


def test_a_store_with_nothing_but_a_seal_does_not_say_that_nothing_is_on_record(
    client: TestClient, runs: RunMaker
) -> None:
    runs.run("fix")
    store_of(client).seal()

    page = read(client, "/events").one("main")

    assert page.one("h2").text == "Only seals so far"
    assert page.one("p", id="seals").text.startswith(
        "1 sealing event (record.sealed) is not listed"
    )


def test_the_api_lists_seals_where_it_is_asked_to(client: TestClient) -> None:
    fill(client)
    store = store_of(client)
    store.seal()

    answer = client.get("/v1/events?seals=1").json()["items"]

    assert [one["seq"] for one in answer] == list(range(store.head().seq, 0, -1))
    assert len(client.get("/v1/events").json()["items"]) == len(answer) - 1
