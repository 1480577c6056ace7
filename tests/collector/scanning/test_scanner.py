"""A scan: what is asked, what is classified and how often, what is kept, and of whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hansard._runtime.locks import hold_lock
from hansard_collector.scanning import InvalidVerdict, NoInterests, Scanner, ScanRunning
from hansard_compiler.classifier import ClassifierQuestion, ClassifierVerdict
from hansard_compiler.compile.passes.score import TERMS
from hansard_compiler.compile.state import Receipt
from hansard_compiler.models.memory import EndMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.memory.errors import MemoryNotRetained
from hansard_store.stories.rows import Story
from hansard_store.stories.service import StoryService, SubjectConflict
from tests.collector.scanning.scanning_maker import PROJECT, Counting, Scanning
from tests.compiler.compiling import compiled, item
from tests.journeys.processes import environment
from tests.store.by_hand import failing

KILLED_BETWEEN = """
import os, signal, sys
from pathlib import Path
from hansard_collector.scanning import HackerNews, Scanner
from hansard_store.database.connections import DataFolder
from hansard_store.stories.service import StoryService

class Killing:
    name = "killing/1"
    def __call__(self, question):
        os.kill(os.getpid(), signal.SIGKILL)

data, address = sys.argv[1:]
Scanner(HackerNews(address), StoryService(DataFolder(Path(data))), Killing()).scan()
"""


@pytest.fixture
def searching(scanning: Scanning) -> Scanning:
    """Two interests, and four stories of which two are near one of them."""
    scanning.write("SQLite full text search", subject="search")
    scanning.write("OpenTelemetry", namespace={"user": "noor"})
    scanning.server.add(11, "Full-text search in SQLite, explained")
    scanning.server.add(12, "A history of bread")
    scanning.server.add(13, "OpenTelemetry profiles are stable", url=None)
    scanning.server.add(14, "Searching for a flat")
    return scanning


@pytest.mark.covers("IN-05")
def test_top_stories_are_fetched_and_each_is_held_against_the_interests(
    searching: Scanning,
) -> None:
    result = searching.scan()

    assert searching.server.asked[0] == "/topstories.json"
    assert searching.server.items_asked == [f"/item/{one}.json" for one in (11, 12, 13, 14)]
    assert len(searching.classifier.asked) == 4
    accepted, refused = "accepted", "refused"
    assert [one.outcome for one in result.stories] == [accepted, refused, accepted, refused]
    assert (result.interests, result.classifier) == (2, "counting/1")
    near = [(one.interest.subject if one.interest else None, one.score) for one in result.stories]
    assert near == [("search", 1.0), (None, 0.0), ("OpenTelemetry", 1.0), ("search", 0.25)]


@pytest.mark.covers("IN-06")
def test_an_accepted_story_is_a_note_with_its_source_address_and_score(
    searching: Scanning,
) -> None:
    searching.scan()

    [note] = searching.notes()
    assert note["content"] == "Full-text search in SQLite, explained\nhttps://example.com/11"
    told = {"source": "hackernews", "story_id": "11", "url": "https://example.com/11", "score": 110}
    assert note["metadata"].items() >= told.items()
    assert (note["writer"], note["written_by"]) == ("app", "scanner:hackernews")
    assert (note["confidence"], note["tags"]) == (0.0, ["external", "hackernews"])
    assert (note["subject"], note["attribute"]) == ("search", "hackernews:11")


def test_a_note_is_where_its_interest_is_and_a_question_leads_to_its_discussion(
    searching: Scanning,
) -> None:
    searching.scan()

    [note] = searching.notes(namespace={"user": "noor"})
    assert note["content"].endswith("\nhttps://news.ycombinator.com/item?id=13")
    assert note["namespace"] == {"user": "noor"}


@pytest.mark.covers("IN-07")
def test_a_second_scan_asks_for_the_list_and_classifies_nothing(searching: Scanning) -> None:
    searching.scan()
    searching.server.asked.clear()
    again = Counting()

    result = searching.scan(classifier=again)

    assert again.asked == []
    assert searching.server.asked == ["/topstories.json"]
    assert result.figures["known"] == 4
    assert searching.rows("SELECT count(*), sum(accepted) FROM processed_story") == [(4, 2)]
    assert len(searching.notes()) == 1


def test_only_what_is_new_on_the_list_is_fetched(searching: Scanning) -> None:
    searching.scan(limit=2)
    searching.server.asked.clear()

    result = searching.scan(limit=3)

    assert searching.server.items_asked == ["/item/13.json"]
    assert searching.outcomes(result) == {"11": "known", "12": "known", "13": "accepted"}


def test_each_call_of_a_classifier_stands_in_its_row(searching: Scanning) -> None:
    searching.scan(threshold=0.9)

    rows = searching.rows(
        "SELECT story_id, classifier, classifier_score, threshold, interest IS NOT NULL, accepted"
        " FROM processed_story ORDER BY story_id"
    )
    assert [row[:2] for row in rows] == [(str(one), "counting/1") for one in (11, 12, 13, 14)]
    assert rows[1][2:] == (0.0, 0.9, 0, 0)
    assert rows[2][2:] == (1.0, 0.9, 1, 1)


def test_interests_that_do_not_stand_are_none(scanning: Scanning) -> None:
    gone = scanning.write("bread")
    scanning.memory.invalidate_json({"memory_id": gone["memory_id"], "reason": "no", "by": "noor"})
    scanning.server.add(12, "A history of bread")

    with pytest.raises(NoInterests, match="write one"):
        scanning.scan()

    assert scanning.server.asked == []


def test_the_interests_of_a_scan_were_read_by_it(searching: Scanning) -> None:
    searching.scan()

    rows = searching.rows("SELECT kind, agent, origin FROM memory_access WHERE kind = 'read'")
    assert rows == [("read", "scanner", "cli")] * 2


def test_a_dry_scan_keeps_nothing(searching: Scanning) -> None:
    result = searching.scan(is_dry=True)

    assert result.figures["accepted"] == 2
    assert searching.rows("SELECT * FROM processed_story") == []
    assert searching.notes() == []


@dataclass
class Almanac:
    """Another source: three lines in memory."""

    name: str = "almanac"
    lines: dict[str, str] = field(default_factory=lambda: {"a": "Rain", "b": "OpenTelemetry rains"})

    def top(self, limit: int) -> list[str]:
        return list(self.lines)[:limit]

    def story(self, story_id: str) -> Story:
        return Story(self.name, story_id, self.lines[story_id], "https://example.com/", 1)


@pytest.mark.covers("IN-09")
def test_another_source_takes_the_place_of_hacker_news(searching: Scanning) -> None:
    book = StoryService(searching.folder)

    result = Scanner(Almanac(), book).scan()

    book.close()
    assert searching.outcomes(result) == {"a": "refused", "b": "accepted"}
    assert searching.server.asked == []
    [note] = searching.notes(namespace={"user": "noor"})
    assert note["attribute"] == "almanac:b"


@pytest.mark.covers("IN-13")
def test_a_note_is_a_candidate_from_outside_that_nobody_trusts(searching: Scanning) -> None:
    searching.write("Search goes through FTS5.", memory_type="fact", subject="own")
    searching.scan()
    told = searching.memory.read_json({"namespace": PROJECT, "text": "search"})

    result = compiled(
        [item("asked", "user_msg", "How does search work?")],
        memory_records=told["memory_records"],
        compile_config={"scope": told["scope"]},
    )

    by_source = {one.source.partition(":")[0]: one for one in result.receipts}
    outside, own = by_source["external_api https"], by_source["memory memory"]
    assert outside.source == "external_api https://example.com/11"
    assert (outside.kind, outside.decision) == ("memory", "include")
    assert (trust_of(outside), trust_of(own)) == (0, 800_000)
    made = next(one for one in result.state.items if one.id == outside.item_id)
    assert made.tags >= {"external", "hackernews", "writer:app"}


def trust_of(receipt: Receipt) -> int:
    """Return what a receipt says of an item's trust, in millionths."""
    assert receipt.score is not None
    return receipt.score.terms[TERMS.index("trust")]


@dataclass
class Answering:
    """A classifier that answers whatever it was made with."""

    verdict: ClassifierVerdict
    name: str = "answering/1"

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        return self.verdict


@pytest.mark.parametrize(
    "verdict",
    [
        ClassifierVerdict("weather", 1.0),
        ClassifierVerdict(None, -1.0),
        ClassifierVerdict("OpenTelemetry", float("nan")),
    ],
)
def test_a_classifier_that_answers_nonsense_decides_nothing(
    searching: Scanning, verdict: ClassifierVerdict
) -> None:
    result = searching.scan(classifier=Answering(verdict))

    assert {one.outcome for one in result.stories} == {"failed"}
    assert {type(one.error) for one in result.stories} == {InvalidVerdict}
    assert searching.scan().figures["accepted"] == 2


# ---- what else is in memory


def test_a_record_of_somebody_else_is_never_taken_over(searching: Scanning) -> None:
    own = {"subject": "search", "attribute": "hackernews:11", "memory_type": "note"}
    mine = searching.write("Mine.", **own, confidence=0.1)

    result = searching.scan()

    [failed] = [one for one in result.stories if one.outcome == "failed"]
    assert isinstance(failed.error, SubjectConflict)
    [standing] = searching.notes()
    assert (standing["memory_id"], standing["content"]) == (mine["memory_id"], "Mine.")
    assert searching.rows("SELECT count(*) FROM processed_story WHERE story_id = '11'") == [(0,)]


def test_the_words_of_a_story_go_with_its_note(searching: Scanning) -> None:
    searching.scan()
    [note] = searching.notes()

    searching.memory.purge(EndMemory(memory_id=note["memory_id"], reason="asked", by="noor"))

    kept = searching.rows("SELECT title, url, accepted FROM processed_story WHERE story_id = '11'")
    assert kept == [("", "", 1)]
    assert searching.scan().figures["known"] == 4


def test_a_store_that_keeps_no_content_is_not_scanned_for(searching: Scanning) -> None:
    with pytest.raises(MemoryNotRetained):
        searching.scan(mode=RetentionMode.METADATA_ONLY)

    assert searching.server.asked == []


# ---- at any moment


@pytest.mark.slow
@pytest.mark.covers("IN-07")
def test_a_scan_killed_between_fetch_and_record_leaves_the_story_to_the_next(
    searching: Scanning,
) -> None:
    command = [sys.executable, "-c", KILLED_BETWEEN, str(searching.folder.path)]
    ended = subprocess.run(
        [*command, searching.server.address], env=environment(), timeout=240, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert searching.server.items_asked == ["/item/11.json"]
    assert searching.rows("SELECT * FROM processed_story") == []

    searching.scan()

    assert searching.rows("SELECT count(*), sum(accepted) FROM processed_story") == [(4, 2)]
    assert len(searching.notes()) == 1


def test_a_note_and_its_row_are_written_together_or_not_at_all(searching: Scanning) -> None:
    with (
        failing("BEFORE INSERT ON processed_story WHEN new.accepted"),
        pytest.raises(Exception, match="fault"),
    ):
        searching.scan()
    assert searching.notes() == []
    assert searching.rows("SELECT count(*) FROM event") == [(2,)]  # of the interests

    searching.scan()

    assert len(searching.notes()) == 1
    assert len(searching.rows("SELECT memory FROM processed_story WHERE accepted")) == 2


def test_two_scans_at_once_are_one_scan(searching: Scanning) -> None:
    with (
        hold_lock(searching.folder.scanning, ScanRunning),
        pytest.raises(ScanRunning),
        hold_lock(searching.folder.scanning, ScanRunning),
    ):
        pass

    with hold_lock(searching.folder.scanning, ScanRunning):
        assert oct(os.stat(searching.folder.scanning).st_mode & 0o777) == "0o700"


def test_nothing_else_of_the_product_scans() -> None:
    root = Path(__file__).parents[3]
    users = {
        path.name
        for folder in ("compiler", "store", "instrumentation", "collector", "web")
        for path in (root / folder).rglob("*.py")
        if "hansard_collector.scanning" in path.read_text(encoding="utf-8")
    }

    # The command, the phase of the heartbeat, and where its lock lies.
    assert users == {"scan_cli.py", "phases.py", "data_folder.py"}
