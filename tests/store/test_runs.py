"""The run projection: what a run tells of itself, whatever the order in which spans come."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.steps.flags import SpanFlag
from tests.store.maker import NOW, SECOND, StoreMaker

OTHER = SpanProjection(role="other", dialect="test")
AGENT = SpanProjection(role="agent", dialect="test")
BEGIN = NOW - 3600 * SECOND  # of what starts at 0 s


def run(store: StoreMaker, *columns: str) -> Any:
    return store.db.execute(f"SELECT {', '.join(columns)} FROM run").get


def test_the_earliest_word_holds_and_of_the_last_answer_the_latest(store: StoreMaker) -> None:
    def saying(words: str) -> SpanProjection:
        return OTHER._replace(
            agent_name=words,
            conversation_id=words,
            user_id=words,
            domain=words,
            first_input=words,
            last_output=words,
        )

    for start_s, words in ((5, "middle"), (1, "early"), (9, "late")):
        store.span(words, "gone", start_s=start_s, projection=saying(words))

    assert run(store, "agent_name", "conversation_id", "user_id", "domain") == ("early",) * 4
    assert run(store, "first_input", "last_output") == ("early", "late")


def test_who_tells_nothing_takes_no_word_away(store: StoreMaker) -> None:
    store.span("teller", start_s=5, projection=OTHER._replace(agent_name="planner"))
    store.span("silent", start_s=1, projection=OTHER)

    assert run(store, "agent_name") == "planner"


def test_a_richer_report_tells_again_and_what_it_told_before_is_forgotten(
    store: StoreMaker,
) -> None:
    poor = OTHER._replace(agent_name="guess", notes=("a note",))
    store.span("one", duration_s=1, projection=poor)
    assert run(store, "agent_name", "notes") == ("guess", '{"a note": 1}')

    store.span("one", duration_s=2, projection=OTHER._replace(user_id="ann"))

    assert run(store, "agent_name", "user_id", "notes") == (None, "ann", "{}")


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["orphan", "root", "agent", "later"]))
)
def test_name_and_status_are_of_the_earliest_root_agent(
    store: StoreMaker, order: tuple[str, ...]
) -> None:
    spans: dict[str, dict[str, Any]] = {
        "orphan": {"parent": "gone", "start_s": 0, "projection": AGENT},
        "root": {"start_s": 1, "projection": OTHER},
        "agent": {"start_s": 2, "projection": AGENT, "status": 2},
        "later": {"start_s": 3, "projection": AGENT},
    }
    for name in order:
        store.span(name, **spans[name])

    assert run(store, "name", "status", "root_rank") == ("agent", "error", 0)


def test_until_a_root_comes_the_earliest_span_stands_in(store: StoreMaker) -> None:
    store.span("second", "gone", start_s=2)
    store.span("first", "gone", start_s=1)
    assert run(store, "name") == "first"

    store.span("root", start_s=9)

    assert run(store, "name") == "root"


def test_a_run_is_open_while_its_root_is(store: StoreMaker) -> None:
    store.span("root", duration_s=None)
    store.span("child", "root")
    assert run(store, "status", "open_count") == ("open", 1)

    store.span("root", duration_s=3)

    assert run(store, "status", "open_count", "started_ns", "ended_ns") == (
        "ok",
        0,
        BEGIN,
        BEGIN + 3 * SECOND,
    )


@pytest.mark.parametrize("odd_first", [True, False])
def test_odd_times_do_not_stretch_a_run(store: StoreMaker, odd_first: bool) -> None:
    def odd() -> None:
        store.span("odd", start_s=-1e6, duration_s=9e6, flags=int(SpanFlag.TIME_ODD))

    if odd_first:
        odd()
    store.span("sane", start_s=1, duration_s=2)
    if not odd_first:
        odd()

    assert run(store, "started_ns", "ended_ns") == (BEGIN + SECOND, BEGIN + 3 * SECOND)


def test_every_change_gets_a_number_of_its_own_and_no_change_gets_none(store: StoreMaker) -> None:
    store.span("one", run="a")
    store.span("two", run="b")
    store.span("three", run="a")
    numbers = "SELECT change_seq, version FROM run ORDER BY id"
    assert store.db.execute(numbers).fetchall() == [(3, 2), (2, 1)]

    store.span("one", run="a")

    assert store.db.execute(numbers).fetchall() == [(3, 2), (2, 1)]


def test_a_run_is_written_once_a_transaction(store: StoreMaker) -> None:
    with store.batch():
        for number in range(50):
            store.span(str(number))

    assert run(store, "version", "span_count") == (1, 50)


def test_a_rolled_back_run_gives_its_number_to_the_next(store: StoreMaker) -> None:
    try:
        with store.batch():
            store.span("one", run="a")
            raise KeyError
    except KeyError:
        store.span("two", run="b")

    assert store.db.execute("SELECT id, name FROM run").fetchall() == [(1, "two")]


def test_facets_of_a_run_are_kept_once(store: StoreMaker) -> None:
    for number in range(3):
        store.span(str(number), facets=[("model", "gpt-4o")])

    rows = store.db.execute("SELECT kind, value FROM run_facet ORDER BY kind").fetchall()
    assert rows == [("model", "gpt-4o"), ("service", "svc")]
