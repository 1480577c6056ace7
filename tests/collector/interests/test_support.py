"""A topic stands on what an entry says; two topics in other words are one."""

from __future__ import annotations

import pytest

from bench.quality.interests import groups
from hansard_collector.interests.finder import Likeness, is_one_topic, supporting
from hansard_collector.interests.topics import Topic
from hansard_collector.judges.embedders import HashedPieces, WordVectors

[ARTICLE] = [one for one in groups() if one.name == "article-eight"]


@pytest.mark.covers("IN-11")
@pytest.mark.parametrize(
    "topic",
    [
        "Escalation scoring with FTS5",  # words of two components
        "Escalation scoring with full-text search",
        "contradiction scoring",
        "Log-review evaluation",  # diagnostics that were never shown
        "Longitudinal analysis",
        "quantum computing",
        "the",
        "",
    ],
)
def test_a_topic_that_no_entry_says_has_no_support(topic: str) -> None:
    assert supporting(Topic(topic, None), ARTICLE.entries) == []
    assert (
        supporting(Topic(topic, [one.memory_id for one in ARTICLE.entries]), ARTICLE.entries) == []
    )


@pytest.mark.covers("IN-11")
@pytest.mark.parametrize(
    "topic",
    ["SQLite migration", "contradiction detection", "escalation scoring", "deficiency detection",
     "correction linking", "vector space", "correction linking in vector space"],
)  # fmt: skip
def test_a_topic_that_an_entry_says_is_supported_by_it(topic: str) -> None:
    assert supporting(Topic(topic, None), ARTICLE.entries)


@pytest.mark.covers("IN-11")
def test_entries_that_are_cited_must_say_it_themselves() -> None:
    said = supporting(Topic("SQLite migration", None), ARTICLE.entries)
    other = next(one.memory_id for one in ARTICLE.entries if one.memory_id not in said)

    assert supporting(Topic("SQLite migration", [other]), ARTICLE.entries) == []
    assert supporting(Topic("SQLite migration", [other, said[0]]), ARTICLE.entries) == [said[0]]
    assert supporting(Topic("SQLite migration", ["f" * 32]), ARTICLE.entries) == []


@pytest.mark.covers("IN-03")
@pytest.mark.parametrize(
    ("a", "b", "one"),
    [
        ("SQLite migration", "sqlite migrations", True),
        ("detection of contradictions", "contradiction detection", True),
        ("escalation scoring", "escalation scoring calibration", True),
        ("SQLite migration", "SQLite locking", False),
        ("search", "SQLite full text search", False),
        ("payment retries", "payment disputes", False),
        ("图书馆系统", "图书馆系统", True),
        ("…", "…", True),
        ("…", "search", False),
    ],
)
def test_topics_are_one_by_their_words(a: str, b: str, one: bool) -> None:
    assert is_one_topic(a, b) is one
    assert is_one_topic(b, a) is one


@pytest.mark.covers("IN-03")
def test_topics_are_one_by_meaning_where_an_embedder_says_so() -> None:
    known = ["refund window", "fulltext search"]

    assert Likeness(None).find("full text search", known) is None
    assert Likeness(WordVectors()).find("full text search", known) == 1
    assert Likeness(WordVectors()).find("payment retries", known) is None
    assert Likeness(HashedPieces()).find("retried payments", ["payment retries"]) == 0
    assert Likeness(HashedPieces()).find("anything", []) is None
