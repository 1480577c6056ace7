"""Spans: identity, re-sent reports, and the rows that follow the one that is shown."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.ingest.otlp_records import restore_span
from hansard_store.search.attributes import attribute_token
from hansard_store.steps.flags import SpanFlag
from tests.store.maker import StoreMaker, trace_id

PENDING = SpanProjection(
    role="other", dialect="test", flags=SpanFlag.PENDING, may_have_pending=True
)
REAL = SpanProjection(role="other", dialect="test", may_have_pending=True)


def found_by(store: StoreMaker, key: str, value: str) -> list[Any]:
    token = attribute_token(key, value)
    sql = "SELECT rowid FROM attribute_fts WHERE attribute_fts MATCH ?"
    return [row[0] for row in store.db.execute(sql, (token,))]


REPORTS: dict[str, dict[str, Any]] = {
    "open": {"duration_s": None},
    "poor": {"duration_s": 1},
    "rich": {"duration_s": 1, "attributes": {"a": 1, "b": 2}},
    "later": {"duration_s": 2, "attributes": {"a": 1}},
}


@pytest.mark.parametrize("order", list(itertools.permutations(REPORTS)))
def test_of_any_reports_in_any_order_the_richest_is_shown(
    store: StoreMaker, order: tuple[str, ...]
) -> None:
    for name in order:
        store.span("one", **REPORTS[name])

    (end_ns, start_ns, record) = store.db.execute(
        "SELECT end_ns, start_ns, record FROM span JOIN span_record ON span_record.span = span.id"
    ).get
    assert end_ns - start_ns == 2_000_000_000
    assert restore_span(store.db, record).end_time_unix_nano == end_ns
    # Start records are dropped, all other reports kept.
    assert store.db.execute("SELECT count(*) FROM span_duplicate").get == 2
    assert store.db.execute("SELECT span_count, open_count FROM run").get == (1, 0)


@pytest.mark.parametrize("order", list(itertools.permutations(REPORTS)))
def test_reports_that_are_sent_again_change_nothing(
    store: StoreMaker, order: tuple[str, ...]
) -> None:
    def everything() -> list[Any]:
        return [
            store.db.execute(f"SELECT * FROM {table}").fetchall()
            for table in ("span", "span_record", "span_duplicate", "run", "span_link")
        ]

    for name in order:
        store.span("one", **REPORTS[name])
    before = everything()
    for name in order:
        store.span("one", **REPORTS[name])

    assert everything() == before


def test_what_is_found_and_linked_is_what_is_shown(store: StoreMaker) -> None:
    store.span("one", attributes={"color": "red"}, links=[("x", "a"), ("x", "b")])
    number = store.span("one", duration_s=5, attributes={"color": "blue"}, links=[("x", "c")])

    assert found_by(store, "color", "red") == []
    assert found_by(store, "color", "blue") == [number]
    assert store.db.execute("SELECT to_trace_id, ordinal FROM span_link").fetchall() == [
        (trace_id("x"), 0)
    ]


def test_one_span_id_is_two_steps_in_two_traces_and_on_two_sides(store: StoreMaker) -> None:
    numbers = [store.span("one", run=run, side=side) for run in ("a", "b") for side in (0, 1)]

    assert len(set(numbers)) == 4


@pytest.mark.parametrize("pending_first", [True, False])
def test_a_record_that_announces_a_span_is_folded_into_it(
    store: StoreMaker, pending_first: bool
) -> None:
    def announce() -> None:
        store.span("announcement", "real", projection=PENDING)

    if pending_first:
        announce()
        assert store.db.execute("SELECT step_count FROM run").get == 1
    store.span("real", projection=REAL)
    if not pending_first:
        announce()

    assert store.db.execute("SELECT step_count, span_count FROM run").get == (1, 2)
    folded = f"SELECT name FROM span WHERE flags & {int(SpanFlag.FOLDED)}"
    assert store.db.execute(folded).get == "announcement"


def test_a_folded_record_of_a_tool_is_subtracted_once(store: StoreMaker) -> None:
    tool = REAL._replace(role="tool", tool_name="f")
    store.span("announcement", "real", projection=PENDING._replace(role="tool", tool_name="f"))
    store.span("real", projection=tool)

    assert store.db.execute("SELECT step_count FROM run").get == 1


def test_errors_are_counted_by_the_report_that_is_shown(store: StoreMaker) -> None:
    store.span("one", status=2)
    assert store.db.execute("SELECT error_count, status FROM run").get == (1, "error")

    store.span("one", duration_s=2, status=1)

    assert store.db.execute("SELECT error_count, status FROM run").get == (0, "ok")
