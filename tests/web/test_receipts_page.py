"""Receipts of all runs as a page: one item, one reason, every run."""

from __future__ import annotations

from contextlib import closing

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.memory.service import MemoryService
from tests.web.compiles import RULES, candidate, compiled, quillbook, tell
from tests.web.html import Element, parse
from tests.web.makers import RunMaker
from tests.web.test_memory_page import write

FIRST, SECOND = "c" * 32, "e" * 32


@pytest.fixture
def two_runs(pipeline: Pipeline) -> None:
    for run, budget in ((FIRST, 2_600), (SECOND, 2_200)):
        tell(
            pipeline,
            lambda data, media_type: None,
            compiled(quillbook(), run=run, budget=budget, rules=RULES),
            run=run,
            keep_payloads=False,
        )


def read(client: TestClient, query: str) -> Element:
    answer = client.get(f"/receipts{query}")
    assert answer.status_code == 200, answer.text
    return parse(answer.text).one("main")


@pytest.mark.covers("UI-12")
@pytest.mark.usefixtures("two_runs")
def test_every_run_in_which_a_file_was_left_out_for_want_of_room(client: TestClient) -> None:
    page = read(client, "?item=quillbook/invoice.py&reason=over_budget")

    assert "2 receipts in 2 runs" in page.text
    found = page.one("tbody").all("a", class_="rowlink")
    assert [one["href"].partition("?")[0] for one in found] == [
        f"/steps/{SECOND}-{2:016x}/context",
        f"/steps/{FIRST}-{2:016x}/context",
    ]
    there = parse(client.get(found[0]["href"]).text)
    [row] = there.all("tr", aria_selected="true")
    assert "quillbook/invoice.py" in row.text


def test_a_memory_and_a_message_are_called_by_name_not_by_their_hash(
    client: TestClient, pipeline: Pipeline, runs: RunMaker
) -> None:
    with closing(MemoryService(runs.folder)) as book:
        memory_id = write(book)
    items = [
        candidate(memory_id, "memory", "Money is Decimal.", {"source_type": "memory"}),
        candidate("user_msg:dd263445f45dbddd", "user_msg", "Fix it.", "user"),
    ]
    tell(
        pipeline, lambda data, media_type: None, compiled(items, run=FIRST, budget=2_600),
        run=FIRST, keep_payloads=False,
    )  # fmt: skip

    links = read(client, "").one("tbody").all("a", class_="rowlink")

    named = {one.text: one["title"] for one in links}
    assert named == {
        "memory “money: type”": memory_id,
        "user message dd263445": "user_msg:dd263445f45dbddd",
    }


def test_an_item_whose_id_only_begins_as_a_memorys_has_not_its_name(
    client: TestClient, pipeline: Pipeline, runs: RunMaker
) -> None:
    with closing(MemoryService(runs.folder)) as book:
        memory_id = write(book)
    items = [candidate(memory_id[:12], "memory", "Of another store.", {"source_type": "memory"})]
    tell(
        pipeline, lambda data, media_type: None, compiled(items, run=FIRST, budget=2_600),
        run=FIRST, keep_payloads=False,
    )  # fmt: skip

    [link] = read(client, "").one("tbody").all("a", class_="rowlink")

    assert link.text == memory_id[:12]


@pytest.mark.usefixtures("two_runs")
def test_receipts_are_found_by_rule_pass_decision_and_source(client: TestClient) -> None:
    def names(query: str) -> set[str]:
        return {one.text for one in read(client, query).all("a", class_="rowlink")}

    assert names("?rule=restricted-sources") == {"deploy-keys"}
    assert names("?pass=validate") == {"python-3.10", "payroll"}
    assert names("?source=quillbook/money.py&decision=exclude") >= {"money.py, again"}
    assert names(f"?run={FIRST}&decision=redact") == {".env.test"}


@pytest.mark.usefixtures("two_runs")
def test_older_receipts_are_on_the_next_page(client: TestClient, pipeline: Pipeline) -> None:
    tell(pipeline, lambda data, media_type: None, compiled(run="f" * 32), run="f" * 32,
         keep_payloads=False)  # fmt: skip
    everything = read(client, "")
    more = everything.one("a", class_="more")["href"]
    later = parse(client.get(more).text).one("main")
    assert later.all("a", class_="more") == []
    seen = [
        one["href"]
        for one in (*everything.all("a", class_="rowlink"), *later.all("a", class_="rowlink"))
    ]
    assert len(set(seen)) == len(seen) == 63


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?item=nothing", "No receipts match"),
        ("?decision=excluded", "“excluded” is no decision"),
        ("?run=zzzz", "run"),
        ("?cursor=broken", "cursor"),
    ],
)
def test_what_finds_nothing_says_so(client: TestClient, query: str, said: str) -> None:
    assert said in read(client, query).text


def test_an_empty_store_says_where_receipts_come_from(client: TestClient) -> None:
    assert "run.compile_step" in read(client, "").text
