"""Topics by counting: phrases that entries share, and no junk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.interests import measured
from hansard_collector.interests.phrases import COMMON, PhraseExtractor
from hansard_collector.interests.topics import TopicEntry


def entries(*texts: str, subject: str = "x") -> list[TopicEntry]:
    return [TopicEntry(f"{at:032x}", "note", subject, text) for at, text in enumerate(texts)]


def topics(*texts: str, subject: str = "x") -> list[str]:
    return [one.text for one in PhraseExtractor()(entries(*texts, subject=subject))]


def test_a_phrase_that_entries_share_is_a_topic_with_those_entries() -> None:
    found = PhraseExtractor()(
        entries(
            "The request timeout is too short.",
            "Bread is baked.",
            "We raise the request timeout to 40 s.",
        )
    )

    assert [(one.text, one.entries) for one in found] == [
        ("request timeout", [f"{0:032x}", f"{2:032x}"])
    ]


def test_another_order_and_other_endings_are_the_same_phrase() -> None:
    assert topics("Correction linking uses vectors.", "Linking corrections failed twice.") == [
        "correction linking"
    ]


def test_the_longer_phrase_stands_unless_the_shorter_stands_alone() -> None:
    assert topics("Full text search is slow.", "A full text search took 3 s.") == [
        "full text search"
    ]
    assert topics(
        "SQLite migration plan.", "SQLite migration done.", "SQLite migration of memory."
    ) == ["SQLite migration"]


def test_what_notes_are_written_in_is_no_topic() -> None:
    said = "We decided to fix it next week and will check the result again on Monday."

    assert topics(said, said, said) == []


def test_ids_numbers_files_and_removed_secrets_are_no_topic() -> None:
    said = "See 4bf92f3577b34da6 and report.pdf, 20,000 of 1.4.2, ‹redacted:openai_key:ab12› today."

    assert topics(said, said, said) == []


def test_a_remark_that_stands_once_is_no_topic() -> None:
    assert topics("The gearbox vibration grows.", "Panel cleaning is due.") == []


def test_the_subject_of_records_is_a_category_and_no_topic() -> None:
    assert topics("It rains.", "It snows.", "It hails.", subject="weather") == []


def test_at_most_five_topics_are_named() -> None:
    words = ["gear box", "panel dust", "grid curtain", "roast colour", "soil acid", "bridge toll"]
    said = [f"The {word} matters." for word in words]

    assert len(topics(*said, *said)) == 5


@given(st.lists(st.text(max_size=80), max_size=6))
def test_any_text_gives_topics_that_occur_and_are_no_common_words(texts: list[str]) -> None:
    given_entries = entries(*texts)

    found = PhraseExtractor()(given_entries)

    ids = {one.memory_id for one in given_entries}
    for topic in found:
        assert topic.entries
        assert ids.issuperset(topic.entries)
        assert not COMMON.intersection(topic.text.lower().split())


@pytest.mark.covers("IN-10")
def test_topics_of_the_labelled_groups_are_found_as_published() -> None:
    """The small form of `python -m bench interests`; README_interests.md names the halves."""
    held_out = measured(PhraseExtractor(), "held_out")

    assert held_out.precision >= 0.9
    assert held_out.recall >= 0.8
    assert measured(PhraseExtractor(), "tuned").precision >= 0.9
