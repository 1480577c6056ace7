"""Runs found by attribute and by text: exact and in order, however common the hits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_store.errors import InvalidQueryError
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.runs import candidates as run_candidates
from hansard_store.runs.filters import RunFilter, RunSort
from hansard_store.runs.queries import list_runs, run_facets
from tests.store.maker import NOW, StoreMaker, call, message
from tests.store.plans import QueryPlans

WORDS = ("red", "green", "blue")


def listed(store: StoreMaker, wanted: RunFilter, *, limit: int = 500) -> list[str]:
    names: list[str] = []
    cursor = None
    while True:
        page = list_runs(store.db, wanted, now_ns=NOW, limit=limit, cursor=cursor)
        names += [item.run_id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return names


@pytest.fixture(params=[4000, 2], ids=["few hits", "many hits"])
def regime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores take the way of rare values; a lower border sends them the common one."""
    monkeypatch.setattr(run_candidates, "_FEW", request.param)
    monkeypatch.setattr(run_candidates, "_RUNS_AT_ONCE", 2)


def test_runs_are_found_by_attribute_key_and_element(store: StoreMaker, regime: None) -> None:
    store.span("a", run="a", attributes={"tier": "gold", "n": 5})
    store.span("b", run="b", attributes={"tier": "free"})
    store.span("c", run="c")

    def names(*attributes: tuple[str, str | None]) -> list[str]:
        page = list_runs(store.db, RunFilter(attributes=attributes), now_ns=NOW)
        return [item.name for item in page.items]

    assert names(("tier", "gold")) == ["a"]
    assert names(("tier", None)) == ["b", "a"]
    assert names(("tier", None), ("n", "5")) == ["a"]
    assert names(("service.name", "svc")) == ["c", "b", "a"]
    assert names(("tier", "silver")) == []


def test_attributes_on_different_spans_of_a_run_meet(store: StoreMaker, regime: None) -> None:
    store.span("root", run="r", attributes={"a": 1})
    store.span("child", "root", run="r", attributes={"b": 2})
    store.span("root", run="other", attributes={"a": 1})

    assert len(listed(store, RunFilter(attributes=(("a", "1"), ("b", "2"))))) == 1


def test_a_value_too_long_for_the_index_is_refused(store: StoreMaker) -> None:
    with pytest.raises(InvalidQueryError, match="found by q"):
        listed(store, RunFilter(attributes=(("key", "x" * 513),)))


def test_a_run_is_found_by_messages_that_another_run_sent_first(
    store: StoreMaker, regime: None
) -> None:
    system = message("system", "You are a pirate.")
    for run in ("r1", "r2"):
        made = call(input=[system, message("user", run)], output=[message("assistant", "ay")])
        store.span("chat", run=run, projection=SpanProjection("llm", "gen_ai", call=made))
    store.span("chat", run="r3")

    assert len(listed(store, RunFilter(q="pirate"))) == 2
    assert len(listed(store, RunFilter(q="r2"))) == 1
    assert len(listed(store, RunFilter(q="ay"))) == 2


def test_other_sorts_see_all_candidates(store: StoreMaker, regime: None) -> None:
    for number, seconds in enumerate([3, 1, 2]):
        store.span(f"n{seconds}", run=f"r{number}", duration_s=seconds, attributes={"k": "v"})
    store.span("none", run="r9", duration_s=9)
    wanted = RunFilter(attributes=(("k", "v"),))

    page = list_runs(store.db, wanted, now_ns=NOW, sort=RunSort("duration_ms"), limit=2)

    assert [item.name for item in page.items] == ["n3", "n2"]
    rest = list_runs(
        store.db, wanted, now_ns=NOW, sort=RunSort("duration_ms"), cursor=page.next_cursor
    )
    assert [item.name for item in rest.items] == ["n1"]


def test_facets_count_candidates(store: StoreMaker, regime: None) -> None:
    for number in range(5):
        store.span("s", run=f"r{number}", attributes={"even": number % 2 == 0})

    assert run_facets(store.db, RunFilter(attributes=(("even", "true"),)), now_ns=NOW).runs == 3


spans = st.lists(
    st.tuples(
        st.integers(0, 9),  # run
        st.sampled_from(WORDS),  # attribute and text
        st.lists(st.sampled_from(WORDS), max_size=3),  # a conversation
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(spans, st.sampled_from(WORDS), st.sampled_from(WORDS), st.integers(1, 4))
@pytest.mark.parametrize("few", [4000, 2])
def test_pages_of_candidates_are_exactly_the_runs_that_carry_them(
    tmp_path_factory: pytest.TempPathFactory,
    few: int,
    made: Sequence[tuple[int, str, Sequence[str]]],
    attribute: str,
    word: str,
    limit: int,
) -> None:
    store = StoreMaker(tmp_path_factory.mktemp("candidates"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_candidates, "_FEW", few)
        patch.setattr(run_candidates, "_RUNS_AT_ONCE", 2)
        with store.batch():
            for number, (run, colour, talk) in enumerate(made):
                messages = [message("user", text) for text in talk]
                projection = SpanProjection("llm", "x", call=call(input=messages))
                store.span(
                    f"s{number}",
                    run=f"r{run}",
                    attributes={"colour": colour},
                    projection=projection,
                    texts=[("output", f"say {colour}")] if run % 2 else [],
                )
        seen = list(dict.fromkeys(run for run, _, _ in made))[::-1]
        by_attribute = {run for run, colour, _ in made if colour == attribute}
        by_word = {
            run for run, colour, talk in made if word in talk or (run % 2 and colour == word)
        }

        found = listed(store, RunFilter(attributes=(("colour", attribute),)), limit=limit)
        texts = listed(store, RunFilter(q=word), limit=limit)
        both = listed(store, RunFilter(q=word, attributes=(("colour", attribute),)), limit=limit)

    runs = dict(zip(listed(store, RunFilter()), seen, strict=True))
    store.close()
    assert [runs[run] for run in found] == [run for run in seen if run in by_attribute]
    assert [runs[run] for run in texts] == [run for run in seen if run in by_word]
    assert [runs[run] for run in both] == [run for run in seen if run in by_word & by_attribute]


def test_no_candidate_query_scans_a_table(
    store: StoreMaker, plans: QueryPlans, regime: None
) -> None:
    for run in range(5):
        made = call(input=[message("user", "needle"), message("user", f"and {run}")])
        projection = SpanProjection("llm", "x", call=made)
        texts = [("output", "needle"), ("input", f"needle {run}")]
        store.span("s", run=f"r{run}", projection=projection, texts=texts, attributes={"k": "v"})

    with plans.watch(store.db):
        assert len(listed(store, RunFilter(q="needle", attributes=(("k", "v"),)))) == 5

    assert plans.scans() == []
