"""From memory to interests: what is read, what is left out, what is written, and never twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.interests.finder import InterestFinder, InterestsResult
from hansard_collector.interests.phrases import PhraseExtractor
from hansard_collector.interests.topics import Topic, TopicEntry
from hansard_collector.judges import InvalidJudgement
from hansard_collector.judges.embedders import HashedPieces
from hansard_compiler.models.memory import EndMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.memory.errors import MemoryNotRetained
from hansard_store.memory.service import MemoryService
from tests.instrumentation.clients.provider import SECRET
from tests.store.empty import empty_store

STEP = f"{1:032x}-{2:016x}"
QUILL = {"project": "quillbook"}
TIMEOUTS = ("The request timeout is too short.", "We raise the request timeout again.")


class Naming:
    """An extractor that names what it is given, and remembers what it was shown."""

    name = "naming/1"

    def __init__(self, *topics: str | Topic) -> None:
        self.topics = [one if isinstance(one, Topic) else Topic(one, None) for one in topics]
        self.shown: list[TopicEntry] = []

    def __call__(self, entries: Any, /, *, limit: int = 5) -> list[Topic]:
        self.shown += entries
        return self.topics


class Store:
    """A store whose memory is written by hand."""

    def __init__(self, path: Path) -> None:
        self.folder = empty_store(path)
        self.memory = MemoryService(self.folder)

    def write(self, content: Any, **more: Any) -> Any:
        told = {"writer": "app", "memory_type": "note", "subject": "work", "namespace": QUILL}
        return self.memory.write_json({**told, "content": content, **more})["memory"]

    def interests(self, **namespace: str) -> list[Any]:
        asked = {"namespace": namespace or QUILL, "memory_types": ["interest"], "limit": 200}
        found: list[Any] = self.memory.read_json(asked)["items"]
        return found

    def find(self, extractor: Any = None, **more: Any) -> InterestsResult:
        mode = RetentionMode.REDACTED_PAYLOADS
        finder = InterestFinder(self.folder, mode, extractor or PhraseExtractor(), **more)
        return finder.find(finder.recent(), step_id=STEP)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "data")
    yield made
    made.memory.close()


@pytest.mark.covers("IN-01")
def test_decisions_notes_and_corrections_are_read_and_nothing_else(store: Store) -> None:
    written = [store.write(f"About {one}.", memory_type=one, subject=one)["memory_id"]
               for one in ("decision", "note", "correction")]  # fmt: skip
    for one in ("fact", "preference", "interest", "constraint"):
        store.write(f"About {one}.", memory_type=one, subject=one)
    ended = store.write("It does not hold.", subject="ended")
    store.memory.invalidate(EndMemory(memory_id=ended["memory_id"], reason="wrong", by="ana"))
    extractor = Naming()

    result = store.find(extractor)

    assert {one.memory_id for one in extractor.shown} == set(written)
    assert result.figures["types"] == {"decision": 1, "note": 1, "correction": 1}


@pytest.mark.covers("IN-01")
def test_only_recent_memory_is_read(store: Store) -> None:
    for text in TIMEOUTS:
        store.write(text)

    assert store.find(window_ns=1).figures["entries"] == 0
    assert store.find().figures["entries"] == 2


@pytest.mark.covers("IN-04", "IN-12")
@pytest.mark.parametrize(
    "more",
    [
        {"content": "[log-review] error trends"},
        {"content": "[evaluation] error trends"},
        {"content": "  [Longitudinal] error trends"},
        {"content": "[peep] error trends"},
        {"content": {"text": "[peep] error trends"}},
        {"content": "[brand-new] error trends", "metadata": {"origin": "diagnostic"}},
        {"content": "error trends", "metadata": {"origin": "diagnostic"}},
        {"content": "error trends", "metadata": {"origin": "maintenance"}},
        {"content": "error trends", "by": "heartbeat:anything"},
        {"content": "error trends", "namespace": {"agent": "hansard.heartbeat"}},
        {"content": "error trends", "metadata": {"origin": "evaluation"},
         "memory_type": "correction"},
    ],
)  # fmt: skip
def test_diagnostics_never_reach_an_extractor(store: Store, more: dict[str, Any]) -> None:
    store.write(**more)
    extractor = Naming("error trends")

    result = store.find(extractor)

    assert extractor.shown == []
    assert result.figures["excluded_diagnostic"] == 1
    assert store.interests() == []


@pytest.mark.covers("IN-12", "IN-13")
@pytest.mark.parametrize(
    "more",
    [{"metadata": {"origin": "external"}}, {"tags": ["external"]}, {"by": "scanner:hackernews"}],
)
def test_what_strangers_wrote_gives_no_interest(store: Store, more: dict[str, Any]) -> None:
    for text in TIMEOUTS:
        store.write(text, confidence=0.0, **more)

    result = store.find()

    assert result.figures["excluded_external"] == 2
    assert store.interests() == []


@pytest.mark.covers("IN-03", "IN-11")
def test_a_new_topic_becomes_an_interest_that_cites_its_entries(store: Store) -> None:
    cited = [store.write(text, namespace={"user": "noor"})["memory_id"] for text in TIMEOUTS]

    store.find()

    [interest] = store.interests(user="noor")
    assert interest["subject"] == interest["content"] == "request timeout"
    assert interest["namespace"] == {"user": "noor"}
    assert interest["writer"] == "post_step_summarizer"
    assert interest["written_by"] == "heartbeat:interests"
    assert interest["source_step_ids"] == [STEP]
    assert set(interest["metadata"]["entries"]) == set(cited)
    assert interest["metadata"]["origin"] == "interests"
    assert interest["metadata"]["extractor"] == "phrases/1"
    assert store.interests() == []


@pytest.mark.covers("IN-03")
def test_what_is_known_is_not_written_again(store: Store) -> None:
    for text in TIMEOUTS:
        store.write(text)

    first, second = store.find(), store.find()
    other = store.find(Naming("timeouts of requests"), embedder=HashedPieces())

    assert (first.figures["written"], second.figures["written"]) == (1, 0)
    assert [one.outcome for one in second.topics] == ["known"]
    assert second.topics[0].memory_id == first.topics[0].memory_id
    assert [one.outcome for one in other.topics] == ["known"]
    assert len(store.interests()) == 1


@pytest.mark.covers("IN-03")
def test_two_names_of_one_topic_are_written_once(store: Store) -> None:
    store.write(TIMEOUTS[0])

    result = store.find(Naming("request timeout", "request timeouts", "timeout of a request"))

    assert [one.outcome for one in result.topics] == ["new", "known", "known"]
    assert len(store.interests()) == 1


def test_an_interest_that_a_person_ended_is_not_written_again(store: Store) -> None:
    for text in TIMEOUTS:
        store.write(text)
    [found] = store.find().topics
    assert found.memory_id is not None
    store.memory.invalidate(EndMemory(memory_id=found.memory_id, reason="no", by="ana"))

    store.find()

    assert store.interests() == []


@pytest.mark.covers("IN-11")
def test_topics_without_support_are_dropped_and_counted(store: Store) -> None:
    store.write(TIMEOUTS[0])

    result = store.find(Naming("quantum timeout", Topic("request timeout", ["f" * 32])))

    assert result.figures["unsupported"] == 2
    assert store.interests() == []


def test_each_namespace_has_topics_of_its_own(store: Store) -> None:
    for project in ("quillbook", "inkwell"):
        for text in TIMEOUTS:
            store.write(text, namespace={"project": project})

    store.find()

    assert len(store.interests(project="quillbook")) == 1
    assert len(store.interests(project="inkwell")) == 1


@pytest.mark.covers("IN-02")
def test_an_answer_that_cannot_be_used_writes_nothing_of_any_namespace(store: Store) -> None:
    store.write(TIMEOUTS[0])
    store.write(TIMEOUTS[0], namespace={"project": "inkwell"})

    class Failing(Naming):
        def __call__(self, entries: Any, /, *, limit: int = 5) -> list[Topic]:
            if self.shown:
                raise InvalidJudgement(self.name, "it is not JSON")
            return super().__call__(entries, limit=limit)

    with pytest.raises(InvalidJudgement):
        store.find(Failing("request timeout"))

    assert store.interests() == store.interests(project="inkwell") == []


def test_no_extractor_sees_a_secret(store: Store, tmp_path: Path) -> None:
    memory = MemoryService(store.folder, RetentionMode.FULL_PAYLOADS)
    told = {"writer": "app", "memory_type": "note", "subject": "key", "namespace": QUILL}
    memory.write_json({**told, "content": f"It is {SECRET} now."})
    memory.close()
    extractor = Naming()

    store.find(extractor)

    assert len(extractor.shown) == 1
    assert SECRET not in json.dumps([one.text for one in extractor.shown])


def test_a_store_without_content_has_no_topics(store: Store) -> None:
    finder = InterestFinder(store.folder, RetentionMode.METADATA_ONLY, PhraseExtractor())

    with pytest.raises(MemoryNotRetained):
        finder.recent()


def test_reading_for_topics_is_no_retrieval(store: Store) -> None:
    written = store.write(TIMEOUTS[0])

    store.find()

    asked = {"namespace": QUILL, "subject": "work"}
    [found] = store.memory.read_json(asked)["items"]
    assert found["memory_id"] == written["memory_id"]
    assert found["reads"] == 0  # this one is counted behind its answer
