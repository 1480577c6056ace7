"""Receipts across runs: every filter, in order, page by page, by an index."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_store.compilations.queries import (
    compilation_below,
    compilation_named,
    compilations_with_id,
    remove_compilation,
    spans_awaiting,
    spans_naming_compilation,
)
from hansard_store.compilations.receipts import (
    ReceiptFilter,
    StoredReceipt,
    list_receipts,
    receipts_of,
)
from hansard_store.errors import InvalidCursorError
from tests.store.maker import NOW, SECOND, StoreMaker, span_id, trace_id
from tests.store.plans import QueryPlans
from tests.store.receipt_maker import compile_step, receipt

START = NOW - 3600 * SECOND


@pytest.fixture
def filled(store: StoreMaker) -> StoreMaker:
    """Three runs with four compiles."""
    compile_step(store, "one", [receipt("a"), receipt("b", "include", "within_budget")], run="r1")
    compile_step(
        store,
        "two",
        [
            receipt("a", reason="duplicate", at_pass="dedupe"),
            receipt("key", "redact", "policy_redacted", at_pass="policy", rules="no-keys,pii"),
        ],
        run="r2",
        start_s=10,
    )
    compile_step(store, "three", [receipt("a"), receipt("m", kind="memory")], run="r2", start_s=20)
    compile_step(
        store,
        "four",
        [receipt("a", "include", "pinned", source="other/a.py"), receipt("b")],
        run="r3",
        start_s=30,
    )
    return store


def asked(store: StoreMaker, **wanted: Any) -> list[tuple[str, str]]:
    """Return compile and item of every receipt that meets a filter."""
    page = list_receipts(store.db, ReceiptFilter(**wanted), limit=500)
    assert page.next_cursor is None
    return [(one.compilation_id.partition("-")[0], one.receipt.item_id) for one in page.items]


def test_the_newest_compile_comes_first_and_its_items_in_their_order(filled: StoreMaker) -> None:
    assert asked(filled) == [
        ("four", "a"), ("four", "b"), ("three", "a"), ("three", "m"), ("two", "a"), ("two", "key"),
        ("one", "a"), ("one", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1, 19, 20, 21, 45])
def test_receipts_written_many_at_once_are_each_whole(store: StoreMaker, count: int) -> None:
    told = [receipt(f"item-{at}", rules=f"rule-{at}") for at in range(count)]

    span = compile_step(store, "many", told)

    found = receipts_of(store.db, span)
    assert [(one.ordinal, one.item_id, one.source, one.rules) for one in found] == [
        (at, f"item-{at}", f"src/item-{at}.py", (f"rule-{at}",)) for at in range(count)
    ]


@pytest.mark.covers("RC-27")
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"item": "a"}, ["four a", "three a", "two a", "one a"]),
        ({"item": "a", "reason": "over_budget"}, ["three a", "one a"]),
        ({"source": "src/a.py", "reason": "over_budget"}, ["three a", "one a"]),
        ({"source": "file other/a.py"}, ["four a"]),
        ({"source": "memory other/a.py"}, []),
        ({"source": "memory"}, []),
        ({"reason": "duplicate"}, ["two a"]),
        ({"pass_name": "dedupe"}, ["two a"]),
        ({"rule": "pii"}, ["two key"]),
        ({"rule": "pi"}, []),
        ({"decision": "include"}, ["four a", "one b"]),
        ({"kind": "memory"}, ["three m"]),
        ({"kind": "memory", "decision": "include"}, []),
        ({"decision": "exclude", "pass_name": "budget", "kind": "file"},
         ["four b", "three a", "one a"]),
        ({"run": "r2", "item": "a"}, ["three a", "two a"]),
        ({"run": "r2", "reason": "over_budget"}, ["three a", "three m"]),
        ({"since_ns": START + 20 * SECOND}, ["four a", "four b", "three a", "three m"]),
        ({"until_ns": START + 10 * SECOND}, ["one a", "one b"]),
        ({"item": "a", "since_ns": START + 10 * SECOND, "until_ns": START + 20 * SECOND},
         ["two a"]),
        ({"item": "nothing"}, []),
    ],
)  # fmt: skip
def test_receipts_are_narrowed(
    filled: StoreMaker, wanted: dict[str, Any], found: list[str]
) -> None:
    if "run" in wanted:
        wanted = wanted | {"run": trace_id(wanted["run"]).hex()}

    assert [f"{made} {item}" for made, item in asked(filled, **wanted)] == found


@pytest.mark.parametrize(
    "wanted",
    [
        {"item": "a"}, {"source": "src/a.py"}, {"source": "file"}, {"reason": "over_budget"},
        {"rule": "no-keys"}, {"pass_name": "budget"}, {"decision": "exclude"},
        {"kind": "file"}, {}, {"kind": "file", "decision": "include"}, {"since_ns": 1},
        {"run": trace_id("r2").hex()}, {"run": trace_id("r2").hex(), "kind": "file"},
        {"item": "a", "reason": "over_budget", "until_ns": NOW},
    ],
    ids=str,
)  # fmt: skip
def test_every_filter_is_answered_by_an_index_and_sorts_no_more_than_a_page(
    filled: StoreMaker, plans: QueryPlans, wanted: dict[str, Any]
) -> None:
    with plans.watch(filled.db):
        page = list_receipts(filled.db, ReceiptFilter(**wanted), limit=1)
        list_receipts(filled.db, ReceiptFilter(**wanted), limit=1, cursor=page.next_cursor)

    assert plans.lines
    assert plans.scans() == []
    # The spans that name an item are looked through some at a time.
    assert [sql for _, sql in plans.sorts() if "json_each(:spans)" not in sql] == []


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("wanted", [{}, {"item": "a"}, {"decision": "exclude"}])
def test_pages_have_every_receipt_once(
    filled: StoreMaker, wanted: dict[str, Any], limit: int
) -> None:
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = list_receipts(filled.db, ReceiptFilter(**wanted), limit=limit, cursor=cursor)
        found += [(one.receipt.span, one.receipt.ordinal) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.items) == limit

    whole = list_receipts(filled.db, ReceiptFilter(**wanted), limit=500).items
    assert found == [(one.receipt.span, one.receipt.ordinal) for one in whole]


def test_a_page_goes_on_where_it_was_whatever_came_meanwhile(filled: StoreMaker) -> None:
    first = list_receipts(filled.db, ReceiptFilter(item="a"), limit=2)
    compile_step(filled, "five", [receipt("a")], run="r4", start_s=40)
    second = list_receipts(filled.db, ReceiptFilter(item="a"), limit=2, cursor=first.next_cursor)

    names = [one.compilation_id.partition("-")[0] for one in (*first.items, *second.items)]
    assert names == ["four", "three", "two", "one"]


def test_what_many_spans_name_is_found_to_the_last(store: StoreMaker) -> None:
    with store.batch():
        for at in range(150):
            reason = "duplicate" if at % 70 == 0 else "over_budget"
            compile_step(store, f"c{at}", [receipt("a", reason=reason), receipt("b")], start_s=at)

    assert len(asked(store, item="a")) == 150
    assert [made for made, _ in asked(store, item="a", reason="duplicate")] == ["c140", "c70", "c0"]


def test_a_type_of_a_later_version_is_asked_for_with_its_place(store: StoreMaker) -> None:
    compile_step(store, "one", [receipt("a", source_type="hologram", source="deck 4")])

    assert asked(store, source="hologram deck 4") == [("one", "a")]


def test_a_cursor_of_something_else_is_refused(filled: StoreMaker) -> None:
    with pytest.raises(InvalidCursorError):
        list_receipts(filled.db, ReceiptFilter(), cursor="abc")


def test_a_run_that_is_not_here_is_named(filled: StoreMaker) -> None:
    with pytest.raises(NotFoundError, match="run"):
        list_receipts(filled.db, ReceiptFilter(run="f" * 32))


def test_a_row_that_is_no_receipt_is_refused_by_the_table(filled: StoreMaker) -> None:
    for change in ("reason = ''", "decision = 'include', source_type = NULL"):
        with pytest.raises(apsw.ConstraintError, match="CHECK"):
            filled.ingest.execute(f"UPDATE receipt SET {change} WHERE item_id = 'm'")


# ---- compilations


def test_a_compilation_is_found_by_its_id_or_its_beginning(store: StoreMaker) -> None:
    first = compile_step(store, "one", [receipt("a")], run="r1", made_id="abcdefgh1")
    again = compile_step(store, "two", [receipt("a")], run="r2", made_id="abcdefgh1")
    compile_step(store, "three", [], run="r2", made_id="abcdefghi")

    assert [one.span for one in compilations_with_id(store.db, "abcdefgh1")] == [again, first]
    with pytest.raises(AmbiguousIdError, match="abcdefgh1, abcdefghi"):
        compilations_with_id(store.db, "abcdefgh")
    for wanted in ("abcdefg", "zzzzzzzzz", ""):
        with pytest.raises(NotFoundError, match="no compilation"):
            compilations_with_id(store.db, wanted)


def test_of_one_id_the_compile_of_the_same_run_is_meant(store: StoreMaker) -> None:
    mine = compile_step(store, "one", [], run="r1", made_id="same")
    newest = compile_step(store, "two", [], run="r2", made_id="same")
    run = store.db.execute("SELECT id FROM run WHERE trace_id = ?", (trace_id("r1"),)).get

    here, elsewhere = (compilation_named(store.db, "same", run=number) for number in (run, 0))
    assert here is not None
    assert elsewhere is not None
    assert (here.span, elsewhere.span) == (mine, newest)
    assert compilation_named(store.db, "other", run=run) is None


def test_the_last_compile_below_a_step_is_its_own(store: StoreMaker) -> None:
    store.span("step", run="r1")
    compile_step(store, "late", [], run="r1", start_s=9, parent="step")
    compile_step(store, "early", [], run="r1", start_s=1, parent="step")

    found = compilation_below(store.db, trace_id("r1"), span_id("step"))
    assert found is not None
    assert found.row.id == "late-r1"
    assert compilation_below(store.db, trace_id("r1"), span_id("late")) is None


def test_every_look_up_of_a_compilation_is_by_an_index(
    filled: StoreMaker, plans: QueryPlans
) -> None:
    compile_step(filled, "long", [], made_id="0123456789")
    with plans.watch(filled.db):
        compilations_with_id(filled.db, "three-r2")
        compilations_with_id(filled.db, "01234567")
        compilation_named(filled.db, "one-r1", run=1)
        compilation_below(filled.db, trace_id("r1"), span_id("one"))
        spans_naming_compilation(filled.db, "one-r1")
        spans_awaiting(filled.db, ["sha256:00"])
        receipts_of(filled.db, 1)

    assert [line for line in plans.scans() if "compilation_cut" not in line[0]] == []
    assert plans.sorts() == []


def test_removing_a_compile_takes_the_mark_of_its_run_with_the_last_one(
    filled: StoreMaker,
) -> None:
    def marked() -> int:
        sql = "SELECT has_receipts FROM run WHERE trace_id = ?"
        return int(filled.db.execute(sql, (trace_id("r2"),)).get)

    for left, name in ((1, "two"), (0, "three")):
        span = compilations_with_id(filled.db, f"{name}-r2")[0].span
        with filled.batch() as batch:
            run = batch.runs.get(trace_id("r2"), start_ns=0)
            assert run is not None
            remove_compilation(filled.ingest, run, span=span)
            run.changed = True
        assert marked() == left


def test_the_columns_of_a_receipt_are_those_of_its_table(store: StoreMaker) -> None:
    names = [row[0] for row in store.db.execute("SELECT name FROM pragma_table_info('receipt')")]
    assert len(names) == len(StoredReceipt._fields)
