"""Full text search: what can be typed, what is found, and in which order."""

from __future__ import annotations

import json

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hansard_store.errors import InvalidCursorError
from hansard_store.ingest.derived_rows import SpanProjection
from hansard_store.search.full_text import search_texts, snippet
from hansard_store.search.match_query import InvalidSearchError, parse_match
from tests.store.maker import NOW, StoreMaker, call, message
from tests.store.plans import QueryPlans

_FTS = "CREATE VIRTUAL TABLE t USING fts5 (body, content = '', tokenize = 'unicode61')"


def said(*input: str, output: str = "fine") -> SpanProjection:
    messages = [message("user", text) for text in input]
    made = call(input=messages, output=[message("assistant", output)])
    return SpanProjection(role="llm", dialect="gen_ai", call=made)


def found(store: StoreMaker, q: str) -> list[str]:
    return [hit.snippet.text for hit in search_texts(store.db, q, now_ns=NOW).items]


@given(st.text())
@example('" OR 1')
@example("a AND NOT b OR NEAR(c, 2) ^d {e}: f + g")
@example("body: x*y* (((")
@example("col:word -\x00")
@example('"\x00"')
@example("ſs İi ß ǆ \ud800")
def test_whatever_is_typed_runs_or_is_refused_in_words(text: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute(_FTS)
    try:
        query = parse_match(text)
    except InvalidSearchError:
        return

    db.execute("SELECT rowid FROM t WHERE t MATCH ?", (query.expression,)).fetchall()
    line = snippet(text, query)
    assert all(0 <= start < end <= len(line.text) for start, end in line.highlights)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("two words", '"two" AND "words"'),
        ('"a phrase" more', '"a phrase" AND "more"'),
        ("gpt-4o", '"gpt 4o"'),
        ("inv*", '"inv"*'),
        ("found -lost", '("found") NOT ("lost")'),
        ('found -"not this" -lost', '("found") NOT ("not this" OR "lost")'),
        ("this OR that", '"this" AND "OR" AND "that"'),
        ("run_sql", '"run sql"'),
    ],
)
def test_the_grammar_of_a_search(text: str, expression: str) -> None:
    assert parse_match(text).expression == expression


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('"open', "quotation mark"),
        ("", "at least one word"),
        ("-only", "at least one word"),
        ("!!! ***", "at least one word"),
        ("ab*", "at least 3 letters"),
        ("x" * 1001, "at most 1000 characters"),
        ("a b " * 20, "at most 32 words"),
    ],
)
def test_a_search_that_cannot_be_meant_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSearchError, match=complaint):
        parse_match(text)


def test_messages_are_found_in_the_step_that_carried_them_first(store: StoreMaker) -> None:
    store.span("turn 1", run="r1", projection=said("Where is the invoice?"))
    store.span("turn 2", run="r1", projection=said("Where is the invoice?", "And now?"))

    page = search_texts(store.db, "invoice", now_ns=NOW)

    [hit] = page.items
    assert (hit.field, hit.role, hit.step.name) == ("message", "user", "turn 1")
    assert hit.uses == 2
    assert hit.snippet.text == "Where is the invoice?"
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.highlights] == ["invoice"]


def test_other_texts_are_found_by_their_field_with_the_runs_that_use_them(
    store: StoreMaker,
) -> None:
    store.span("a", run="r1", texts=[("error", "TimeoutError: too slow")])
    store.span("b", run="r2", texts=[("error", "TimeoutError: too slow")])

    [hit] = search_texts(store.db, "timeouterror", now_ns=NOW).items

    assert (hit.field, hit.role, hit.uses, hit.step.name) == ("error", None, 2, "a")


def test_words_phrases_prefixes_and_exclusions(store: StoreMaker) -> None:
    texts = ["red green blue", "green red", "invoices are green", "Crème brûlée is red"]
    for number, text in enumerate(texts):
        store.span("s", run=f"r{number}", texts=[("output", text)])

    assert found(store, "green red") == ["green red", "red green blue"]
    assert found(store, '"red green"') == ["red green blue"]
    assert found(store, "invo*") == ["invoices are green"]
    assert found(store, "red -green") == ["Crème brûlée is red"]
    assert found(store, "CREME") == ["Crème brûlée is red"]
    assert found(store, "nothing") == []


def test_pages_of_hits_join_to_the_whole_list(store: StoreMaker) -> None:
    with store.batch():
        for number in range(11):
            store.span("s", run=f"r{number}", texts=[("output", f"same word {number}")])
    whole = found(store, "word")

    joined: list[str] = []
    cursor = None
    while True:
        page = search_texts(store.db, "word", now_ns=NOW, limit=3, cursor=cursor)
        joined += [hit.snippet.text for hit in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert joined == whole == [f"same word {number}" for number in range(10, -1, -1)]


def test_a_broken_cursor_is_refused(store: StoreMaker) -> None:
    with pytest.raises(InvalidCursorError):
        search_texts(store.db, "word", now_ns=NOW, cursor="AAAA")


def test_a_text_whose_first_run_was_deleted_is_shown_where_it_is_still_used(
    store: StoreMaker,
) -> None:
    store.span("gone", run="r1", texts=[("output", "kept words")])
    store.span("kept", run="r2", texts=[("output", "kept words")])
    with store.batch():
        for table in ("span_record", "span"):
            column = "span" if table == "span_record" else "id"
            store.ingest.execute(f"DELETE FROM {table} WHERE {column} = 1")
        store.ingest.execute("DELETE FROM text_use WHERE run = 1")

    [hit] = search_texts(store.db, "kept", now_ns=NOW).items

    assert (hit.step.name, hit.uses) == ("kept", 1)


def test_a_snippet_is_a_line_around_the_first_match() -> None:
    text = "x " * 300 + "the\nneedle   in the hay " + "y " * 300

    line = snippet(text, parse_match("needle"))

    assert line.text.startswith("…x x")
    assert line.text.endswith("…")
    assert "the needle in the hay" in line.text
    [(start, end)] = line.highlights
    assert line.text[start:end] == "needle"


def test_a_snippet_highlights_whole_words_phrases_and_beginnings() -> None:
    query = parse_match('"green tea" inv*')

    line = snippet("Green  tea, greenhouse, invoice", query)

    assert [line.text[start:end] for start, end in line.highlights] == ["Green tea", "invoice"]


def test_tool_calls_are_found_by_name_and_arguments(store: StoreMaker) -> None:
    store.span("s", run="r", projection=said(json.dumps({"city": "Bern"})))

    assert len(found(store, "Bern")) == 1


def test_no_search_scans_a_table(store: StoreMaker, plans: QueryPlans) -> None:
    store.span("a", run="r1", projection=said("needle"), texts=[("output", "needle")])

    with plans.watch(store.db):
        assert len(search_texts(store.db, "needle", now_ns=NOW).items) == 2

    assert plans.scans() == []
