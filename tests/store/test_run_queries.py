"""Lists of runs: filters, sorts and pages, on a real file."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.ingest.derived_rows import SpanProjection, Usage
from hansard_store.runs import queries
from hansard_store.runs.filters import (
    INDEXED_SORTS,
    NEWEST_FIRST,
    RUN_SORTS,
    RunFilter,
    RunSort,
    parse_sort,
)
from hansard_store.runs.queries import (
    changed_runs,
    get_run,
    last_change,
    list_runs,
    run_facets,
    runs_by_number,
)
from hansard_store.runs.status import SILENCE_NS, TokenSums
from tests.store.maker import NOW, SECOND, StoreMaker, call, trace_id
from tests.store.plans import QueryPlans

EVERY_RUN = RunFilter()


def names(store: StoreMaker, wanted: RunFilter = EVERY_RUN, sort: RunSort = NEWEST_FIRST) -> str:
    page = list_runs(store.db, wanted, now_ns=NOW, sort=sort)
    return " ".join(item.name for item in page.items)


def all_pages(store: StoreMaker, wanted: RunFilter, *, sort: RunSort, limit: int) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = list_runs(store.db, wanted, now_ns=NOW, sort=sort, limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += [item.name for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_runs_are_listed_newest_first_with_what_the_list_shows(store: StoreMaker) -> None:
    usage = Usage(tokens_input=100, tokens_output=20, cost_usd_nano=5_000_000)
    asked = SpanProjection(
        role="llm",
        dialect="gen_ai",
        model="gpt-4o",
        usage=usage,
        call=call(usage=usage),
        conversation_id="talk",
        user_id="ann",
        agent_name="planner",
        first_input="hello",
        last_output="hi",
        facets=(("model", "gpt-4o"), ("agent", "planner")),
    )
    store.span("first", run="r1")
    store.span("second", run="r2", duration_s=2.5, projection=asked, service="bot")

    page = list_runs(store.db, RunFilter(), now_ns=NOW)

    assert [item.name for item in page.items] == ["second", "first"]
    assert page.next_cursor is None
    second, first = page.items
    assert second.run_id == trace_id("r2").hex()
    assert second.status == "ok"
    assert second.duration_ns == 2_500_000_000
    assert second.tokens == TokenSums(input=100, output=20)
    assert second.cost_usd == 0.005
    assert second.model_calls == 1
    assert second.models == ("gpt-4o",)
    assert second.service_names == ("bot",)
    assert second.agent_name == "planner"
    assert second.conversation_id == "talk"
    assert second.user_id == "ann"
    assert (second.first_input, second.last_output) == ("hello", "hi")
    assert first.tokens is None
    assert first.cost_usd is None


def test_each_filter_keeps_only_its_runs(store: StoreMaker) -> None:
    talk = SpanProjection(role="agent", dialect="otel", conversation_id="talk", user_id="ann")
    store.span("plain", run="r1", start_s=0)
    store.span("talked", run="r2", start_s=100, projection=talk)
    store.span("failed", run="r3", start_s=200, status=2)
    store.span("slow", run="r4", start_s=300, duration_s=60)
    store.span("tooled", run="r5", start_s=400, facets=[("tool", "sql"), ("agent", "a")])
    store.span("other", run="r6", start_s=500, service="bot", facets=[("agent", "b")])
    store.span("running", run="r7", start_s=600, duration_s=None)
    start_ns = NOW - 3600 * SECOND

    assert names(store, RunFilter(conversation="talk")) == "talked"
    assert names(store, RunFilter(user="ann")) == "talked"
    assert names(store, RunFilter(status=("error",))) == "failed"
    assert names(store, RunFilter(status=("open", "error"))) == "running failed"
    assert names(store, RunFilter(min_duration_ns=60 * SECOND)) == "slow"
    assert names(store, RunFilter(tool=("sql",))) == "tooled"
    assert names(store, RunFilter(agent=("a", "b"))) == "other tooled"
    assert names(store, RunFilter(service=("bot",))) == "other"
    assert names(store, RunFilter(service=("bot",), agent=("a",))) == ""
    assert names(store, RunFilter(since_ns=start_ns + 500 * SECOND)) == "running other"
    assert names(store, RunFilter(until_ns=start_ns + 100 * SECOND)) == "plain"
    window = RunFilter(since_ns=start_ns + 100 * SECOND, until_ns=start_ns + 300 * SECOND)
    assert names(store, window) == "failed talked"


def test_cost_and_duration_sort_both_ways_with_the_unknown_lowest(store: StoreMaker) -> None:
    for run, nano, seconds in (("a", 5, 3), ("b", None, 1), ("c", 9, 2)):
        usage = Usage(tokens_input=1, cost_usd_nano=nano)
        made = SpanProjection(role="llm", dialect="x", usage=usage, call=call(usage=usage))
        store.span(run, run=run, duration_s=seconds, projection=made)

    assert names(store, sort=parse_sort("-cost_usd")) == "c a b"
    assert names(store, sort=parse_sort("cost_usd")) == "b a c"
    assert names(store, sort=parse_sort("-duration_ms")) == "a c b"
    assert names(store, RunFilter(min_cost_usd_nano=6)) == "c"
    assert names(store, RunFilter(min_cost_usd_nano=0)) == "c a"


def test_a_run_that_went_silent_has_no_end(store: StoreMaker) -> None:
    store.span("running", duration_s=None)
    later = NOW + SILENCE_NS + 1
    open_now = get_run(store.db, trace_id("run").hex(), now_ns=NOW)
    open_later = get_run(store.db, trace_id("run").hex(), now_ns=later)

    assert (open_now.status, open_later.status) == ("open", "no_end")
    assert open_now.ended_ns is None
    assert open_later.duration_ns is None
    found = list_runs(store.db, RunFilter(status=("no_end",)), now_ns=later)
    assert [item.name for item in found.items] == ["running"]
    assert list_runs(store.db, RunFilter(status=("open",)), now_ns=later).items == ()


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("key", RUN_SORTS)
@pytest.mark.parametrize(
    "wanted",
    [
        RunFilter(),
        RunFilter(service=("svc",)),
        RunFilter(status=("ok",)),
        RunFilter(status=("ok",), agent=("even",)),
        RunFilter(agent=("even", "odd")),
        RunFilter(since_ns=NOW - 3600 * SECOND + 5 * SECOND),
    ],
)
def test_all_pages_joined_are_one_full_list(
    store: StoreMaker, wanted: RunFilter, key: str, descending: bool
) -> None:
    with store.batch():
        for number in range(23):
            agent = ("agent", "odd" if number % 2 else "even")
            start_s, duration_s = number % 7, number % 3
            name = f"n{number}"
            store.span(name, run=name, start_s=start_s, duration_s=duration_s, facets=[agent])
    sort = RunSort(key, descending=descending)

    whole = all_pages(store, wanted, sort=sort, limit=500)

    assert len(whole) == len(set(whole)) > 4
    assert all_pages(store, wanted, sort=sort, limit=4) == whole
    ways = RunSort(key, descending=not descending)
    assert all_pages(store, wanted, sort=ways, limit=3) == whole[::-1]


@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_that_is_no_cursor_is_refused(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = StoreMaker(tmp_path_factory.mktemp("cursor"))
    try:
        if text:
            with pytest.raises(InvalidCursorError):
                list_runs(store.db, RunFilter(), now_ns=NOW, cursor=text)
    finally:
        store.close()


def test_a_cursor_of_another_sort_is_refused(store: StoreMaker) -> None:
    store.span("a", run="a")
    store.span("b", run="b")
    page = list_runs(store.db, RunFilter(), now_ns=NOW, limit=1)

    with pytest.raises(InvalidCursorError):
        list_runs(
            store.db, RunFilter(), now_ns=NOW, sort=RunSort("cost_usd"), cursor=page.next_cursor
        )


@pytest.mark.parametrize("text", ["", "-", "colour", "--started_at", "+started_at"])
def test_unknown_sorts_are_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="known are first_seen"):
        parse_sort(text)


def test_an_unknown_status_is_refused(store: StoreMaker) -> None:
    with pytest.raises(InvalidQueryError, match="no run has status 'done'"):
        names(store, RunFilter(status=("done",)))


def test_a_run_is_found_by_a_prefix_of_eight_digits_in_any_case(store: StoreMaker) -> None:
    store.span("a", run="abcdef01" + "0" * 24)
    store.span("b", run="abcdef02" + "0" * 24)

    assert get_run(store.db, "ABCDEF01", now_ns=NOW).name == "a"
    assert get_run(store.db, "abcdef020", now_ns=NOW).name == "b"


@pytest.mark.parametrize("wanted", ["abcdef0", "abcdef03", "nothing!", "", "é" * 32, "0" * 33])
def test_what_is_no_id_of_a_run_is_not_found(store: StoreMaker, wanted: str) -> None:
    store.span("a", run="abcdef01" + "0" * 24)

    with pytest.raises(NotFoundError):
        get_run(store.db, wanted, now_ns=NOW)


def test_an_ambiguous_prefix_names_the_runs_it_fits(store: StoreMaker) -> None:
    first, second = "abcdef01" + "0" * 24, "abcdef01" + "1" * 24
    store.span("a", run=first)
    store.span("b", run=second)

    with pytest.raises(AmbiguousIdError) as refused:
        get_run(store.db, "abcdef01", now_ns=NOW)
    assert refused.value.matches == [first, second]


def test_facets_count_the_runs_that_meet_the_filter(store: StoreMaker) -> None:
    store.span("a", run="a", facets=[("model", "m1"), ("agent", "x")])
    store.span("b", run="b", facets=[("model", "m1"), ("model", "m2"), ("agent", "x")], status=2)
    store.span("c", run="c", facets=[("model", "m2"), ("agent", "y")])

    facets = run_facets(store.db, RunFilter(agent=("x",)), now_ns=NOW)

    assert facets.runs == 2
    assert facets.is_complete
    assert [(one.value, one.runs) for one in facets.counts["model"]] == [("m1", 2), ("m2", 1)]
    assert [(one.value, one.runs) for one in facets.counts["status"]] == [("error", 1), ("ok", 1)]


def test_changed_runs_come_in_the_order_of_their_changes(store: StoreMaker) -> None:
    store.span("a", run="a")
    store.span("b", run="b")
    before = last_change(store.db)
    store.span("a2", "a", run="a")

    changed = changed_runs(store.db, since_change=before, now_ns=NOW)

    assert [item.name for item in changed] == ["a"]
    assert changed[0].change_seq == last_change(store.db)


def test_runs_by_number_leaves_out_what_is_gone(store: StoreMaker) -> None:
    store.span("a", run="a")

    assert {n: item.name for n, item in runs_by_number(store.db, [1, 99], now_ns=NOW).items()} == {
        1: "a"
    }


FILTERS: Sequence[RunFilter] = [
    RunFilter(),
    RunFilter(kind="agent"),
    RunFilter(kind="other", status=("error",), service=("s",)),
    RunFilter(status=("error",)),
    RunFilter(status=("open",)),
    RunFilter(status=("no_end",)),
    RunFilter(status=("ok", "error")),
    RunFilter(agent=("a",)),
    RunFilter(agent=("a", "b")),
    RunFilter(agent=("a",), model=("m",), tool=("t",), service=("s",)),
    RunFilter(conversation="c"),
    RunFilter(user="u"),
    RunFilter(since_ns=1),
    RunFilter(until_ns=1),
    RunFilter(since_ns=1, until_ns=2, status=("ok",)),
    RunFilter(min_duration_ns=1),
    RunFilter(min_cost_usd_nano=1),
]


@pytest.mark.covers("SC-22")
@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("key", RUN_SORTS)
def test_no_list_of_runs_scans_a_table(
    store: StoreMaker, plans: QueryPlans, wanted: RunFilter, key: str
) -> None:
    with plans.watch(store.db):
        list_runs(store.db, wanted, now_ns=NOW, sort=RunSort(key))

    assert plans.scans() == []


@pytest.mark.parametrize("key", INDEXED_SORTS)
def test_an_unfiltered_page_is_read_in_order(
    store: StoreMaker, plans: QueryPlans, key: str
) -> None:
    with plans.watch(store.db):
        list_runs(store.db, RunFilter(), now_ns=NOW, sort=RunSort(key))

    assert [found for found in plans.sorts() if "run_facet" not in found[1]] == []


@pytest.mark.parametrize("key", [key for key in RUN_SORTS if key not in INDEXED_SORTS])
def test_an_order_without_an_index_is_of_a_bounded_number_of_the_newest_runs(
    store: StoreMaker, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(queries, "SORTED_RUNS", 3)
    for number in range(5):
        store.span(f"run {number}", run=f"r{number}")

    found = {
        name
        for sort in (RunSort(key), RunSort(key, descending=False))
        for name in all_pages(store, RunFilter(), sort=sort, limit=2)
    }

    assert found == {"run 2", "run 3", "run 4"}


def test_runs_are_sorted_by_what_a_column_shows(store: StoreMaker) -> None:
    def made(name: str, agent: str | None, model: str, tokens: int | None) -> SpanProjection:
        usage = Usage(tokens_input=tokens, tokens_output=None if tokens is None else 1)
        facets = (("model", model),) if model else ()
        return SpanProjection(
            role="llm", dialect="gen_ai", model=model or None, usage=usage, call=call(usage=usage),
            agent_name=agent, user_id=agent, facets=facets,
        )  # fmt: skip

    store.span("b", run="r1", projection=made("b", "Zoe", "m2", 10))
    store.span("A", run="r2", projection=made("A", None, "m1", None))
    store.span("c", run="r3", projection=made("c", "ann", "", 30), status=2)

    assert names(store, sort=parse_sort("name")) == "A b c"
    assert names(store, sort=parse_sort("agent")) == "c b A"  # no agent: behind all that have one
    assert names(store, sort=parse_sort("user")) == "c b A"
    assert names(store, sort=parse_sort("model")) == "A b c"
    assert names(store, sort=parse_sort("-tokens")) == "c b A"
    assert names(store, sort=parse_sort("-input")) == "c b A"
    assert names(store, sort=parse_sort("-errors")) == "c A b"
    assert names(store, sort=parse_sort("status")) == "c b A"


def test_both_kinds_of_runs_are_merged_in_one_order(store: StoreMaker) -> None:
    for number, is_agent in enumerate([True, False, True, False]):
        role = "agent" if is_agent else "other"
        store.span(f"n{number}", run=f"r{number}", projection=SpanProjection(role, "otel"))

    for sort in (RunSort("steps"), RunSort("steps", descending=False)):
        assert len(set(all_pages(store, RunFilter(), sort=sort, limit=1))) == 4
        assert len(all_pages(store, RunFilter(kind="agent"), sort=sort, limit=1)) == 2


def test_facets_scan_no_table(store: StoreMaker, plans: QueryPlans) -> None:
    with plans.watch(store.db):
        run_facets(store.db, RunFilter(), now_ns=NOW)

    assert plans.scans() == []
