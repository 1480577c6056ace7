"""Contradictions in memory: found by stems and a key, judged once, superseded, never deleted."""

from __future__ import annotations

import json
import time

import pytest

from hansard_collector.judges import Judges
from hansard_collector.judges.embedders import HashedPieces
from hansard_collector.maintenance import result_json
from hansard_compiler.classifier import CONTRADICTS, UNRELATED, ClassifierVerdict
from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.ports import Ports
from hansard_compiler.models.memory import EndMemory, UnsupersedeMemory
from hansard_compiler.models.tasks import Decide
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.audit.events import verify_events
from hansard_store.memory.errors import NotCurrent
from hansard_store.memory.maintenance.reviewed_supersessions import superseding
from hansard_store.memory.rows import find_number
from hansard_store.tasks.rows import list_tasks
from hansard_store.verification.integrity import verify_store
from tests.collector.maintenance.maintaining import Answers, Down, Upkeep
from tests.store.memory_maker import PROJECT, SECOND

OLD, NEW = "The staging server listens on port 8080.", "The staging server listens on port 9090."
SURE = ClassifierVerdict(CONTRADICTS, 0.95, "both cannot hold")
DOUBT = ClassifierVerdict(CONTRADICTS, 0.6, "they may both hold")


@pytest.mark.covers("MM-02")
def test_a_pair_that_shares_stems_and_no_word_is_found_by_sql_in_milliseconds(
    upkeep: Upkeep,
) -> None:
    upkeep.write("Deploy jobs are running nightly.", "deploys")
    upkeep.write("A deploy job runs at night.", "schedule")
    upkeep.write("Ada prefers tea.", "Ada")

    found = upkeep.book.candidates("somebody")

    assert found.pairs == [(1, 2)]
    assert (found.entries, found.new) == (3, 3)
    assert found.took_ms < 1_000  # some milliseconds, on a machine that does nothing else


@pytest.mark.covers("MM-02")
def test_running_and_run_are_one_word_of_the_filter(upkeep: Upkeep) -> None:
    upkeep.write("running", "one")
    upkeep.write("run", "two")

    found = upkeep.book.candidates("somebody")

    assert found.pairs == [(1, 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("team blue", "team red"), ("customer 17", "customer 23"), ("Ada", "Kim"),
     ("staging environment", "production environment")],
)  # fmt: skip
def test_records_of_two_subjects_contradict_nothing_however_alike(
    upkeep: Upkeep, one: str, other: str
) -> None:
    upkeep.write("The default region is eu-west-1.", one)
    upkeep.write("The default region is us-east-1.", other)

    upkeep.run()

    assert set(upkeep.states().values()) == {"current"}


def test_a_subject_may_be_named_with_more_words(upkeep: Upkeep) -> None:
    older = upkeep.write(OLD, "staging")
    newer = upkeep.write(NEW, "the staging server")

    upkeep.run(Judges(Answers(SURE), HashedPieces()))

    assert upkeep.states() == {older: "superseded", newer: "current"}


def test_records_of_two_namespaces_or_scopes_are_no_pair(upkeep: Upkeep) -> None:
    upkeep.write(OLD)
    upkeep.write(NEW, namespace={"project": "crm"})
    upkeep.write(NEW, scope={"environment": "ci"})
    upkeep.write(NEW, namespace={**PROJECT, "user": "noor"})

    assert upkeep.book.candidates("somebody").pairs == []


def test_what_shares_common_words_alone_is_no_pair(upkeep: Upkeep) -> None:
    for number in range(60):
        upkeep.write(f"The thing called {number:05x} is here for the team.", f"thing {number}")

    assert len(upkeep.book.candidates("somebody").pairs) < 30


@pytest.mark.covers("MM-03")
def test_the_classifier_is_asked_about_pairs_alone_and_only_once(upkeep: Upkeep) -> None:
    upkeep.write(OLD)
    upkeep.write("The staging server has 12 cores.")
    upkeep.write("Ada prefers tea.", "Ada")
    classifier = Answers(ClassifierVerdict(UNRELATED, 0.9))

    first = upkeep.run(Judges(classifier))
    again = upkeep.run(Judges(classifier))

    assert first.contradictions is not None
    assert first.figures["classifier_calls"] == first.contradictions.pairs == 1
    assert again.figures["classifier_calls"] == 0
    assert [(one.text, one.other) for one in classifier.asked] == [
        (OLD, "The staging server has 12 cores.")
    ]
    assert classifier.asked[0].subject == "staging"


@pytest.mark.covers("MM-03")
def test_calls_are_bounded_and_what_is_left_is_judged_by_the_next_run(upkeep: Upkeep) -> None:
    for number in range(4):
        upkeep.write(f"The staging server listens on port {8080 + number}.")
    classifier = Answers(ClassifierVerdict(UNRELATED, 0.9))

    runs = [upkeep.run(Judges(classifier), most_calls=4) for _ in range(3)]

    told = [(one.figures["classifier_calls"], result_json(one)["contradictions"]) for one in runs]
    assert [calls for calls, _ in told] == [4, 2, 0]
    assert told[0][1]["left"] == 2
    assert len(classifier.asked) == 6


@pytest.mark.covers("MM-04", "MM-05", "MM-12")
def test_the_older_record_is_superseded_with_rationale_and_stays(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)

    result = upkeep.run()

    assert result.figures == {
        "contradictions_found": 1, "corrections_linked": 0, "stale_entries": 0,
        "supersessions_applied": 1, "classifier_calls": 1, "review_tasks_opened": 0,
    }  # fmt: skip
    assert upkeep.states() == {older: "superseded", newer: "current"}
    assert upkeep.memory.contents() == [NEW]
    assert upkeep.memory.contents(text="which port does staging use?") == [NEW]
    hidden = upkeep.memory.read(hidden=True)
    assert [(one["content"], one["superseded_by"]) for one in hidden] == [(NEW, None), (OLD, newer)]
    number = find_number(upkeep.memory.connection, older)
    (link,) = superseding(upkeep.memory.connection, [number])
    assert (link.newer_id, link.cause, link.state) == (newer, "contradiction", "applied")
    assert link.rationale == "another number of the same (certain)"
    assert link.score is not None
    assert link.score >= 0.85
    assert link.judge == "offline/1"
    ((subject, who, body),) = upkeep.events("memory.supersede")
    assert (subject, who) == (f"memory:{older}", "maintain")
    assert json.loads(body)["superseded_by"] == newer
    assert verify_store(upkeep.memory.folder).is_sound


@pytest.mark.covers("MM-05")
def test_a_compile_leaves_out_what_maintenance_superseded_with_a_receipt(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    upkeep.run()
    read = upkeep.memory.book.read_json({"namespace": PROJECT, "hidden": True})
    asked = {
        "request_id": "r", "run_id": "r", "step_id": "s", "provider": "local", "model": "m",
        "now": "2030-01-01T00:00:00Z", "token_budget": 100_000,
        "compile_config": {"scope": read["scope"]}, "memory_records": read["memory_records"],
    }  # fmt: skip

    result = compile_context(asked, Ports(estimator_for("local", "m"), Redactor(b"key")))

    receipts = {one.item_id: one for one in result.receipts}
    assert (receipts[newer].decision, receipts[older].decision) == ("include", "exclude")
    assert (receipts[older].reason, receipts[older].related_item_id) == ("superseded", newer)


@pytest.mark.covers("MM-12")
def test_a_supersession_is_taken_back_and_not_made_again(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    upkeep.run()
    asked = UnsupersedeMemory(memory_id=older[-8:], by="noor", reason="two servers")

    again = upkeep.memory.book.unsupersede(asked)
    second = upkeep.run()
    other = upkeep.run(Judges(Answers(SURE)))

    assert (again.state, again.superseded_by) == ("current", None)
    assert upkeep.states() == {older: "current", newer: "current"}
    assert sorted(upkeep.memory.contents()) == [OLD, NEW]
    assert second.figures["classifier_calls"] == other.figures["classifier_calls"] == 0
    (link,) = superseding(upkeep.memory.connection, [find_number(upkeep.memory.connection, older)])
    assert (link.state, link.undone_by, link.undone_reason) == ("undone", "noor", "two servers")
    ((subject, who, _),) = upkeep.events("memory.unsupersede")
    assert (subject, who) == (f"memory:{older}", "noor")
    assert verify_store(upkeep.memory.folder).is_sound
    assert verify_events(upkeep.memory.connection).is_sound


@pytest.mark.covers("MM-12")
def test_only_what_is_superseded_by_the_named_record_stands_again(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    other = upkeep.write("Ada prefers tea.", "Ada")
    upkeep.run()

    with pytest.raises(NotCurrent, match="superseded by another record"):
        upkeep.memory.book.unsupersede(
            UnsupersedeMemory(memory_id=older, by="noor", superseded_by=other)
        )
    with pytest.raises(NotCurrent, match="is current, not superseded"):
        upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=newer, by="noor"))


@pytest.mark.covers("MM-12")
def test_what_was_written_in_its_place_since_is_not_lost_by_taking_back(upkeep: Upkeep) -> None:
    keyed = {"attribute": "port"}
    first = upkeep.write("8080", **keyed)
    second = upkeep.write("9090", **keyed)

    upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=first, by="noor"))
    assert upkeep.states() == {first: "current", second: "superseded"}
    upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=second, by="noor"))
    assert upkeep.states() == {first: "superseded", second: "current"}
    third = upkeep.write("7070", **keyed)

    with pytest.raises(NotCurrent, match=f"{third} was written in its place since"):
        upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=first, by="noor"))
    assert upkeep.memory.contents() == ["7070"]


def test_what_changes_while_the_classifier_thinks_is_left_as_it_is(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    classifier = Answers(SURE, before=lambda: upkeep.memory.invalidate(newer))

    result = upkeep.run(Judges(classifier))

    assert result.contradictions is not None
    assert (result.contradictions.changed, result.applied) == (1, [])
    assert upkeep.states() == {older: "current", newer: "invalidated"}


@pytest.mark.covers("MM-11")
def test_a_doubtful_pair_waits_for_a_person_and_is_superseded_when_one_approves(
    upkeep: Upkeep,
) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)

    result = upkeep.run(Judges(Answers(DOUBT)))

    assert result.figures["review_tasks_opened"] == 1
    assert upkeep.states() == {older: "current", newer: "current"}
    (task,) = list_tasks(upkeep.memory.connection, limit=10).items
    assert (task.state, task.rule, task.review) == ("blocked", "doubtful_supersession", True)
    assert {one.id for one in task.evidence} == {older, newer}
    assert upkeep.run(Judges(Answers(DOUBT))).figures["review_tasks_opened"] == 0

    done = upkeep.tasks.decide(task.task_id, Decide(decision="approve"), by="noor")
    again = upkeep.tasks.decide(task.task_id, Decide(decision="approve"), by="noor")

    assert (done.state, done.decided_by, again.state) == ("done", "noor", "done")
    assert upkeep.states() == {older: "superseded", newer: "current"}
    (link,) = superseding(upkeep.memory.connection, [find_number(upkeep.memory.connection, older)])
    assert (link.state, link.decided_by, link.score) == ("applied", "noor", 0.6)
    assert len(upkeep.events("memory.supersede")) == 1
    assert verify_store(upkeep.memory.folder).is_sound


def test_a_dismissed_pair_is_not_compared_again_by_any_classifier(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    upkeep.run(Judges(Answers(DOUBT)))
    (task,) = list_tasks(upkeep.memory.connection, limit=10).items

    upkeep.tasks.decide(task.task_id, Decide(decision="dismiss"), by="noor")
    result = upkeep.run(Judges(Answers(SURE, name="another/1")))

    assert result.figures["classifier_calls"] == 0
    assert upkeep.states() == {older: "current", newer: "current"}


def test_an_approval_of_what_does_not_stand_any_more_changes_nothing(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    upkeep.run(Judges(Answers(DOUBT)))
    (task,) = list_tasks(upkeep.memory.connection, limit=10).items
    upkeep.memory.invalidate(older)

    upkeep.tasks.decide(task.task_id, Decide(decision="approve"), by="noor")

    assert upkeep.states() == {older: "invalidated", newer: "current"}
    (link,) = superseding(upkeep.memory.connection, [find_number(upkeep.memory.connection, older)])
    assert link.state == "lapsed"


@pytest.mark.covers("MM-11")
def test_a_newer_record_that_is_much_less_trusted_waits_for_a_person(upkeep: Upkeep) -> None:
    older = upkeep.write(OLD, confidence=0.9)
    newer = upkeep.write("port: 9090", "staging", confidence=0.5)

    result = upkeep.run(Judges(Answers(SURE)))

    assert upkeep.states() == {older: "current", newer: "current"}
    (act,) = result.proposed
    assert "less trusted" in act.link.rationale


def test_more_than_two_records_that_contradict_each_other_may_be_a_list(upkeep: Upkeep) -> None:
    for city in ("Bern", "Oslo", "Porto"):
        upkeep.write(f"The team has an office in {city}.", "offices")

    result = upkeep.run(Judges(Answers(SURE)))

    assert (len(result.applied), len(result.proposed)) == (0, 3)
    assert all("may be a list" in act.link.rationale for act in result.proposed)


def test_tasks_of_a_run_are_bounded_and_the_rest_is_opened_without_another_call(
    upkeep: Upkeep,
) -> None:
    for number in range(3):
        upkeep.write(f"The staging server listens on port {8080 + number}.")
    classifier = Answers(DOUBT)

    runs = [upkeep.run(Judges(classifier), most_tasks=2) for _ in range(3)]

    assert [one.figures["review_tasks_opened"] for one in runs] == [2, 1, 0]
    assert [one.figures["classifier_calls"] for one in runs] == [3, 0, 0]


def test_a_dry_run_writes_nothing(upkeep: Upkeep) -> None:
    older, newer = upkeep.write(OLD), upkeep.write(NEW)
    upkeep.correct("Correction: staging listens on 9091.", "staging")

    dry = upkeep.run(is_dry=True)

    assert dry.figures["supersessions_applied"] >= 1
    assert set(upkeep.states().values()) == {"current"}
    for table in (
        "memory_supersession",
        "memory_pair",
        "memory_compared",
        "memory_embedding",
        "task",
    ):
        assert upkeep.memory.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    assert {older, newer} <= upkeep.states().keys()


@pytest.mark.covers("MM-10")
def test_without_a_classifier_or_an_embedder_parts_are_skipped_in_words(upkeep: Upkeep) -> None:
    upkeep.write(OLD)
    upkeep.write(NEW)
    upkeep.correct("Correction: staging listens on 9091.", "staging")

    told = result_json(upkeep.run(Judges()))

    assert [one["part"] for one in told["skipped"]] == ["contradictions", "corrections"]
    assert all(one["reason"] for one in told["skipped"])
    assert (told["contradictions"], told["corrections"]) == (None, None)
    assert told["supersessions_applied"] == told["classifier_calls"] == 0
    assert set(upkeep.states().values()) == {"current"}


@pytest.mark.covers("MM-10")
def test_a_classifier_that_is_down_supersedes_nothing_and_is_asked_again_later(
    upkeep: Upkeep,
) -> None:
    for number in range(5):
        upkeep.write(f"The staging server listens on port {8080 + number}.")
    down = Down()

    told = result_json(upkeep.run(Judges(down, down)))
    later = upkeep.run(Judges(Answers(ClassifierVerdict(UNRELATED, 1.0), name=down.name)))

    assert down.asked == 3  # in a row, then it is down
    assert told["contradictions"]["failed"] == 3
    assert [one["part"] for one in told["skipped"]] == ["contradictions"]
    assert set(upkeep.states().values()) == {"current"}
    assert later.figures["classifier_calls"] == 10


def test_an_answer_that_was_not_asked_for_is_none(upkeep: Upkeep) -> None:
    upkeep.write(OLD)
    upkeep.write(NEW)

    for verdict in (ClassifierVerdict("maybe", 1.0), ClassifierVerdict(CONTRADICTS, 1.5)):
        result = upkeep.run(Judges(Answers(verdict)))
        assert result.contradictions is not None
        assert (result.contradictions.failed, result.applied) == (1, [])


def test_what_came_from_outside_and_notes_of_the_heartbeat_supersede_nothing(
    upkeep: Upkeep,
) -> None:
    upkeep.write(OLD)
    for origin in ("external", "diagnostic", "evaluation"):
        upkeep.write(NEW, metadata={"origin": origin}, memory_type="fact", confidence=0.8)

    assert upkeep.run(Judges(Answers(SURE))).figures["classifier_calls"] == 0


def test_a_purge_takes_the_words_beside_a_supersession(upkeep: Upkeep) -> None:
    older = upkeep.write(OLD)
    upkeep.write(NEW)
    upkeep.correct("Correction: staging listens on 9091.", "staging")
    upkeep.run(
        Judges(Answers(ClassifierVerdict(CONTRADICTS, 0.95, "8080 is not 9090")), HashedPieces())
    )

    upkeep.memory.book.purge(EndMemory(memory_id=older, by="noor", reason="asked"))

    number = find_number(upkeep.memory.connection, older)
    (link,) = superseding(upkeep.memory.connection, [number])
    assert link.rationale == ""
    for table, column in (("memory_embedding", "memory"), ("memory_pair", "first")):
        sql = f"SELECT count(*) FROM {table} WHERE {column} = ?"
        assert upkeep.memory.rows(sql, number) == [(0,)]
    stems = "SELECT count(*) FROM memory_stem_fts WHERE memory_stem_fts MATCH '8080'"
    assert upkeep.memory.rows(stems) == [(0,)]
    assert verify_store(upkeep.memory.folder).is_sound


def test_a_record_that_stands_again_is_compared_with_what_was_written_meanwhile(
    upkeep: Upkeep,
) -> None:
    first = upkeep.write(OLD)
    upkeep.write(NEW)
    upkeep.run()
    third = upkeep.write("The staging server listens on port 7070.")
    upkeep.run()
    upkeep.memory.book.unsupersede(UnsupersedeMemory(memory_id=first, by="noor"))

    result = upkeep.run()

    assert [(act.older.memory_id, act.newer.memory_id) for act in result.applied] == [
        (first, third)
    ]


def test_a_second_run_over_many_records_takes_no_time(upkeep: Upkeep) -> None:
    for number in range(200):
        upkeep.write(f"Sensor {number} is in hall {number % 7}.", f"sensor {number}")
    upkeep.run()

    began = time.perf_counter()
    again = upkeep.run()

    assert again.figures["classifier_calls"] == 0
    assert time.perf_counter() - began < 5
    assert upkeep.memory.now_ns % SECOND == 0
