"""Relevance: what BM25 finds, in words, identifiers and scripts without spaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.recall import recall, word_overlap
from hansard_compiler.compile.items import MICRO
from hansard_compiler.relevance import Bm25
from hansard_compiler.words import stem, terms


@pytest.mark.covers("CP-59")
@pytest.mark.parametrize("domain", ["coding", "support"])
def test_labelled_fixtures_are_found_better_than_by_word_overlap(domain: str) -> None:
    found = recall(domain, Bm25())

    assert found >= 0.8
    assert found > recall(domain, word_overlap)


def _best(query: str, *texts: str) -> int:
    rated = Bm25()(query, texts)
    return max(range(len(texts)), key=lambda at: rated[at])


@pytest.mark.parametrize(
    ("query", "other", "wanted"),
    [
        ("to_cents", "recent percentage", "def toCents(amount):"),
        ("rounding", "the ground is dry", "totals are rounded once"),
        ("currency", "a current account", "all currencies"),
        ("HTTPClient timeout", "a client of ours", "class HTTPClient: timeout = 3"),
        ("error 404", "error 40412", "it answered 404: error"),
        ("支付网关超时", "数据库很快", "网关在支付时超时了"),
    ],
)
def test_words_are_found_in_the_forms_they_take(query: str, other: str, wanted: str) -> None:
    assert _best(query, other, wanted) == 1
    assert Bm25()(query, [other, wanted])[1] > 0


def test_rare_words_count_more_than_common_ones() -> None:
    texts = ["invoice " * 3, "invoice rounding", *["invoice total"] * 20]

    assert _best("invoice rounding", *texts) == 1


def test_a_longer_text_needs_more_to_be_as_relevant() -> None:
    rated = Bm25()("rounding", ["rounding rule", "rounding rule " + "of other things " * 50])

    assert rated[0] > rated[1] > 0


@given(query=st.text(max_size=40), texts=st.lists(st.text(max_size=60), max_size=8))
def test_ratings_are_shares_and_repeatable(query: str, texts: list[str]) -> None:
    rated = list(Bm25()(query, texts))

    assert len(rated) == len(texts)
    assert all(0 <= one <= MICRO for one in rated)
    assert rated == list(Bm25()(query, texts))


def test_a_query_of_stop_words_finds_nothing() -> None:
    assert list(Bm25()("what is the", ["what is the point"])) == [0]


@pytest.mark.parametrize(
    ("word", "expected"),
    [("rounding", "round"), ("rounded", "round"), ("policies", "policy"), ("class", "class"),
     ("planned", "plan"), ("use", "use"), ("tests", "test")],
)  # fmt: skip
def test_endings_are_cut(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_identifiers_are_taken_apart() -> None:
    found = terms("parseHTTPResponse and max_item_bytes")

    assert {"pars", "http", "max", "item"} <= set(found)
    assert set(terms("parse http response")) <= set(found)
