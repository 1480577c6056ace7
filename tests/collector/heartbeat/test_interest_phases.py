"""Interests and the daily scan as phases of the heartbeat, with one classifier for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_collector.heartbeat.cycle import CycleResult, Heartbeat
from hansard_collector.heartbeat.phase import DAY_NS, HeartbeatSettings
from hansard_collector.heartbeat.phases import PHASES
from hansard_collector.judges import (
    Choice,
    ClassifierChoice,
    Judges,
    JudgeSettings,
    judges_from,
)
from hansard_compiler.classifier import CONTRADICTS, ClassifierQuestion, ClassifierVerdict
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.heartbeat import PhaseRecord
from hansard_store.memory.service import MemoryService
from tests.collector.scanning.hacker_news import HackerNewsServer, hacker_news
from tests.instrumentation.clients.provider import CHAT, Provider, json_reply, providing
from tests.journeys.processes import hansard
from tests.store.empty import empty_store

NOW_NS = 1_790_000_000 * 10**9
HOUR_NS = 3_600 * 10**9
QUILL = {"project": "quillbook"}
OFFLINE = judges_from(JudgeSettings())
OURS = tuple(one for one in PHASES if one.name in ("interests", "scan"))


@dataclass
class Fake:
    """A classifier that finds everything near, and remembers what it was asked."""

    name: str = "fake/1"
    asked: list[ClassifierQuestion] = field(default_factory=list)

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        self.asked.append(question)
        label = CONTRADICTS if question.task == "contradiction" else question.labels[0]
        return ClassifierVerdict(label, 0.95, "a fake")


@dataclass
class House:
    """A store, a source of stories, and the time."""

    folder: DataFolder
    source: HackerNewsServer
    now_ns: int = NOW_NS

    def write(self, content: str, **more: Any) -> None:
        told = {"writer": "app", "memory_type": "note", "subject": "work", "namespace": QUILL}
        memory = MemoryService(self.folder, clock=lambda: self.now_ns)
        memory.write_json({**told, "content": content, **more})
        memory.close()

    def memory(self, memory_type: str) -> list[Any]:
        memory = MemoryService(self.folder, clock=lambda: self.now_ns)
        asked = {"namespace": QUILL, "memory_types": [memory_type], "limit": 200}
        items: list[Any] = memory.read_json(asked)["items"]
        memory.close()
        return items

    def beat(self, judges: Judges = OFFLINE, *, outbound: bool = True, **more: Any) -> CycleResult:
        options = {"scan_url": self.source.address}
        settings = HeartbeatSettings(outbound=outbound, options=options)
        return Heartbeat(
            self.folder,
            judges,
            settings=settings,
            phases=OURS,
            clock=lambda: self.now_ns,
            **more,
        ).run()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with hacker_news() as source:
        source.add(11, "How a request timeout is chosen")
        source.add(12, "A history of bread")
        made = House(empty_store(tmp_path / "data"), source)
        made.write("The request timeout is too short.")
        made.write("We raise the request timeout again.")
        yield made


def phase(result: CycleResult, name: str) -> PhaseRecord:
    return next(one for one in result.phases if one.name == name)


@pytest.mark.covers("IN-01", "IN-03")
def test_topics_become_interests_and_stories_near_them_become_notes(house: House) -> None:
    result = house.beat()

    found = phase(result, "interests")
    assert found.status == "done"
    assert found.figures["types"] == {"decision": 0, "note": 2, "correction": 0}
    assert (found.figures["written"], found.figures["model_calls"]) == (1, 0)
    [interest] = house.memory("interest")
    assert interest["subject"] == "request timeout"
    assert interest["source_step_ids"] == [found.step_id]
    scanned = phase(result, "scan")
    assert scanned.status == "done"
    assert (scanned.figures["accepted"], scanned.figures["refused"]) == (1, 1)
    [story] = [one for one in house.memory("note") if "external" in one["tags"]]
    assert story["confidence"] == 0


@pytest.mark.covers("IN-03")
def test_a_second_cycle_with_nothing_new_extracts_nothing(house: House) -> None:
    house.beat()
    again = house.beat()
    house.write("Something else happened.")
    third = house.beat()

    assert phase(again, "interests").status == "skipped"
    assert "no entry came or went" in phase(again, "interests").summary
    assert phase(third, "interests").figures["written"] == 0
    assert len(house.memory("interest")) == 1


@pytest.mark.covers("IN-08")
def test_the_scan_runs_once_a_day(house: House) -> None:
    statuses = []
    for hours in (0, 1, 22, 2, 23, 2):
        house.now_ns += hours * HOUR_NS
        statuses.append(phase(house.beat(), "scan").status)

    assert statuses == ["done", "skipped", "skipped", "done", "skipped", "done"]
    assert house.source.asked.count("/topstories.json") == 3
    assert next(one for one in PHASES if one.name == "scan").every_ns == DAY_NS


@pytest.mark.covers("IN-08")
def test_a_scan_that_failed_is_tried_again_by_the_next_cycle(house: House) -> None:
    house.source.answers["/topstories.json"] = b"<html>"

    failed = phase(house.beat(), "scan")
    del house.source.answers["/topstories.json"]
    done = phase(house.beat(), "scan")

    assert (failed.status, failed.figures["error"]) == ("failed", "invalid_response")
    assert done.status == "done"


@pytest.mark.covers("IN-09")
def test_nobody_is_asked_unless_that_is_permitted(house: House) -> None:
    result = phase(house.beat(outbound=False), "scan")

    assert result.status == "skipped"
    assert "`outbound` is off" in result.summary
    assert house.source.asked == []


@pytest.mark.covers("MM-10")
def test_what_lacks_its_judge_is_skipped_with_the_reason(house: House) -> None:
    off = (ClassifierChoice(Choice("off"), "topic"),)
    judges = judges_from(JudgeSettings(classifier=off, extractor=Choice("off")))
    house.write("request timeout", memory_type="interest")

    result = house.beat(judges)

    assert [(one.status, one.summary) for one in result.phases] == [
        ("skipped", "the extractor of topics is switched off"),
        ("skipped", "the classifier for topic is switched off"),
    ]
    assert house.source.asked == []


def test_without_content_nothing_is_extracted_and_nothing_scanned(house: House) -> None:
    result = house.beat(mode=RetentionMode.METADATA_ONLY)

    assert {one.status for one in result.phases} == {"skipped"}
    assert house.source.asked == []


@pytest.mark.covers("MM-14")
def test_another_classifier_is_asked_by_everything_that_classifies(house: House) -> None:
    """The story filter here; the contradiction check by `for_task`, as maintenance asks it."""
    fake = Fake()
    house.write("request timeout", memory_type="interest")

    result = phase(house.beat(Judges(classifier=fake)), "scan")

    assert (result.figures["classifier"], result.figures["accepted"]) == ("fake/1", 2)
    assert [one.text for one in fake.asked] == [
        "How a request timeout is chosen",
        "A history of bread",
    ]
    judged = Judges(classifier=fake).for_task("contradiction")
    question = ClassifierQuestion("contradiction", "It is 3.", (CONTRADICTS,), "It is 3.")
    assert judged(question) == ClassifierVerdict(CONTRADICTS, 0.95, "a fake")


# ---- a model in place of the offline judges


@pytest.fixture
def server() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


def model_judges(server: Provider) -> Judges:
    large, small = (Choice("model", "openai_compatible", name) for name in ("large", "small"))
    return judges_from(
        JudgeSettings(
            classifier=(ClassifierChoice(small, "topic"),),
            extractor=large,
            model_server=f"{server.address}/v1",
        )
    )


def saying(server: Provider, *texts: str) -> None:
    for text in texts:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 50, "completion_tokens": 10}
        server.replies.append(json_reply({**CHAT, "choices": [choice], "usage": usage}))


@pytest.mark.covers("IN-02", "IN-04", "IN-10")
def test_calls_of_models_are_steps_of_the_cycle_and_counted(house: House, server: Provider) -> None:
    house.write("[evaluation] error trends are rising")
    topics = ["request timeout", "error trends", "request timeout with FTS5"]
    verdict = '{"label": "request timeout", "score": 0.9, "reason": "it says so"}'
    saying(server, json.dumps(topics), verdict, '{"label": null, "score": 0.8}')
    judges = model_judges(server)

    result = house.beat(judges)
    judges.close()

    extracted, scanned = phase(result, "interests"), phase(result, "scan")
    assert "error trends" not in server.received[0].body.decode()
    figures = extracted.figures
    assert (figures["written"], figures["unsupported"], figures["model_calls"]) == (1, 2, 1)
    assert (figures["input_tokens"], figures["output_tokens"]) == (50, 10)
    assert figures["model_ms"] > 0
    assert (scanned.figures["model_calls"], scanned.figures["accepted"]) == (2, 1)
    assert sorted(calls_of(house.folder, result)) == sorted(
        [(extracted.step_id, 60), (scanned.step_id, 60), (scanned.step_id, 60)]
    )


@pytest.mark.covers("IN-02")
def test_a_malformed_answer_is_a_typed_failure_and_no_entry(house: House, server: Provider) -> None:
    saying(server, "Here are your topics: request timeout")
    judges = model_judges(server)

    failed = phase(house.beat(judges, outbound=False), "interests")
    judges.close()

    assert (failed.status, failed.figures["error"]) == ("failed", "invalid_judgement")
    assert house.memory("interest") == []


def test_a_provider_that_is_down_ends_the_scan_after_three_stories(
    house: House, server: Provider
) -> None:
    house.write("request timeout", memory_type="interest")
    for number in range(20, 30):
        house.source.add(number, f"Story {number}")
    server.answer = lambda _: json_reply({"error": {"message": "no"}}, status=400)
    judges = model_judges(server)

    failed = phase(house.beat(judges), "scan")
    judges.close()

    assert (failed.status, failed.figures["error"]) == ("failed", "scan_incomplete")
    assert len(house.source.items_asked) == 3


def calls_of(folder: DataFolder, result: CycleResult) -> list[tuple[str, int]]:
    """Return the model calls of a cycle: the step above each, and its tokens."""
    connection = apsw.Connection(str(folder.database))
    rows = connection.execute(
        "SELECT parent_span_id, tokens_input + tokens_output FROM steps "
        "WHERE run_id = ? AND role = 'llm'",
        (result.cycle_id,),
    ).fetchall()
    connection.close()
    return [(f"{result.cycle_id}-{parent}", tokens) for parent, tokens in rows]


@pytest.mark.slow
@pytest.mark.covers("IN-08", "IN-09")
def test_the_command_scans_a_mirror_where_that_is_permitted(house: House) -> None:
    house.write("request timeout", memory_type="interest")
    given = ("heartbeat", "--once", "--json", "--data", str(house.folder.path))

    fresh = hansard(*given)
    asked = list(house.source.asked)
    scanned = hansard(*given, "--outbound", "on", "--scan-url", house.source.address)

    statuses = [
        [one["status"] for one in json.loads(ran.stdout)["phases"] if one["name"] == "scan"]
        for ran in (fresh, scanned)
    ]
    assert statuses == [["skipped"], ["done"]]
    assert asked == []
    assert "/topstories.json" in house.source.asked
