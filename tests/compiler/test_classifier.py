"""Which label a text is about: words in common, the same everywhere; and anything in its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.classifier import (
    Classifier,
    ClassifierQuestion,
    ClassifierVerdict,
    WordOverlap,
)

SEARCH, TRACING = "SQLite full text search", "OpenTelemetry"


def topic(text: str, labels: list[str]) -> ClassifierVerdict:
    return WordOverlap()(ClassifierQuestion("topic", text, labels))


@pytest.mark.parametrize(
    ("text", "label", "score"),
    [
        ("Full-text searching in sqlite", SEARCH, 1.0),
        ("Full text search in PostgreSQL", SEARCH, 0.75),
        ("A search for Amelia Earhart", SEARCH, 0.25),
        ("Profiles come to opentelemetry", TRACING, 1.0),
        ("A history of bread", None, 0.0),
        ("", None, 0.0),
    ],
)
def test_the_nearest_label_is_the_one_most_of_whose_words_are_said(
    text: str, label: str | None, score: float
) -> None:
    assert topic(text, [SEARCH, TRACING]) == ClassifierVerdict(label, score)


def test_a_name_is_one_word() -> None:
    assert topic("An open letter on AI", ["OpenAI"]).label is None
    assert topic("What OpenAI does", ["OpenAI"]).score == 1.0


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    assert topic("全文検索の速さ", ["全文検索"]).score == 1.0


def test_of_labels_as_near_the_one_that_says_more_is_taken_then_the_first() -> None:
    assert topic("SQLite search", ["SQLite", "SQLite search"]).label == "SQLite search"
    assert topic("SQLite search", ["search", "SQLite"]).label == "search"


@pytest.mark.parametrize("labels", [[], [""], ["of the and"], ["…"]])
def test_labels_without_words_are_near_nothing(labels: list[str]) -> None:
    assert topic("of the and … nothing", labels) == ClassifierVerdict(None, 0.0)


@given(st.text(max_size=60), st.lists(st.text(max_size=30), max_size=5))
def test_a_score_is_a_share_and_needs_a_label(text: str, labels: list[str]) -> None:
    found = topic(text, labels)

    assert 0 <= found.score <= 1
    assert (found.label is None) == (found.score == 0)
    assert found.label is None or found.label in labels
    assert found == topic(text, labels)


def test_a_function_with_a_name_is_a_classifier() -> None:
    class First:
        name = "first/1"

        def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
            return ClassifierVerdict(question.labels[0], 1.0)

    classifier: Classifier = First()

    assert classifier(ClassifierQuestion("topic", "anything", ["a", "b"])).label == "a"


def test_the_classifier_of_topics_answers_nothing_of_other_tasks() -> None:
    question = ClassifierQuestion("irreversible", "rm -rf /", ["irreversible", "reversible"])

    assert WordOverlap()(question).label is None
