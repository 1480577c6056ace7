"""Processed stories as rows: each once, found by id, listed the last first, without a scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hansard_store.database.transactions import transaction
from hansard_store.stories.rows import (
    AlreadyProcessed,
    JudgedStory,
    Story,
    add,
    known_ids,
    list_processed,
)
from hansard_store.stories.service import StoryService
from tests.store.memory_maker import MemoryMaker
from tests.store.plans import QueryPlans

STORY = Story("hackernews", "11", "Bread", "https://example.com/11", 110)
REFUSED = JudgedStory(STORY, interest=None, classifier="some/1", score=0.0, threshold=0.6)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryMaker]:
    made = MemoryMaker(tmp_path / "data")
    yield made
    made.close()


def keep(
    store: MemoryMaker, judged: JudgedStory, *, now_ns: int, memory: int | None = None
) -> None:
    with transaction(store.connection):
        add(store.connection, judged, memory=memory, now_ns=now_ns)


def numbered(number: int, source: str = "hackernews") -> JudgedStory:
    return replace(REFUSED, story=replace(STORY, source=source, story_id=str(number)))


def test_a_story_is_known_by_its_source_and_id(store: MemoryMaker) -> None:
    keep(store, numbered(11), now_ns=1)
    keep(store, numbered(12, source="almanac"), now_ns=2)

    assert known_ids(store.connection, "hackernews", ["11", "12", "13"]) == {"11"}
    assert known_ids(store.connection, "almanac", ["11", "12"]) == {"12"}
    assert known_ids(store.connection, "almanac", []) == set()


def test_what_was_said_first_of_a_story_stands(store: MemoryMaker) -> None:
    keep(store, numbered(11), now_ns=1)

    with pytest.raises(AlreadyProcessed):
        keep(store, replace(numbered(11), classifier="other/1"), now_ns=2)

    [kept] = list_processed(store.connection, limit=9)
    assert (kept.classifier, kept.processed_ns) == ("some/1", 1)


def test_the_last_are_listed_first_with_their_interest_and_note(store: MemoryMaker) -> None:
    interest = store.write("bread", memory_type="interest", subject="baking")["memory"]
    book = StoryService(store.folder, clock=lambda: 7)
    [found] = book.interests()

    note = book.record(replace(REFUSED, interest=found.id, score=0.75), found)
    keep(store, numbered(12), now_ns=8)
    book.close()

    later, earlier = list_processed(store.connection, limit=9)
    assert (later.story.story_id, later.memory_id, later.interest) == ("12", None, "")
    assert note is not None
    assert (earlier.story, earlier.memory_id) == (STORY, note.memory_id)
    assert (earlier.interest_id, earlier.interest) == (interest["memory_id"], "baking")
    assert (earlier.score, earlier.threshold) == (0.75, 0.6)
    assert list_processed(store.connection, limit=1) == [later]


def test_a_story_near_no_interest_is_refused_whatever_its_score(store: MemoryMaker) -> None:
    assert not replace(REFUSED, score=1.0).is_accepted
    assert replace(REFUSED, interest=1, score=0.6).is_accepted
    assert not replace(REFUSED, interest=1, score=0.59).is_accepted


def test_nothing_is_found_by_reading_the_whole_table(store: MemoryMaker) -> None:
    plans = QueryPlans()

    with plans.watch(store.connection):
        known_ids(store.connection, "hackernews", ["11"])
        list_processed(store.connection, limit=9)

    # The list walks its index from the newest, as far as its limit, and sorts nothing.
    assert {line for line, _ in plans.scans()} == {"SCAN story USING INDEX processed_story_time"}
