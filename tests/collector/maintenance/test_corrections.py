"""Corrections: linked to the nearest record of their namespace, with a minimum and a margin."""

from __future__ import annotations

import pytest

from hansard_collector.judges import Judges
from hansard_collector.judges.embedders import HashedPieces, WordVectors
from hansard_collector.maintenance import result_json
from hansard_compiler.models.tasks import Decide
from hansard_compiler.relevance import Embedder
from hansard_store.memory.maintenance.reviewed_supersessions import superseding
from hansard_store.memory.rows import find_number
from hansard_store.tasks.rows import list_tasks
from tests.collector.maintenance.maintaining import Down, Upkeep

CLAIM = "Uploads above 20 MB are refused by the gateway."
OTHER = "Search results are ranked by date."
CORRECTION = "Correction: the gateway refuses uploads above 50 MB, not above 20 MB."
EMBEDDERS = (HashedPieces(), WordVectors())


@pytest.mark.covers("MM-06")
@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda one: one.name)
def test_a_correction_supersedes_the_record_that_is_nearest_in_meaning(
    upkeep: Upkeep, embedder: Embedder
) -> None:
    claim, other = upkeep.write(CLAIM, "uploads"), upkeep.write(OTHER, "search")
    made = upkeep.correct(CORRECTION, "file size")

    result = upkeep.run(Judges(None, embedder))

    assert result.figures["corrections_linked"] == 1
    states = upkeep.states()
    assert (states[claim], states[other], states[made]) == ("superseded", "current", "current")
    (link,) = superseding(upkeep.memory.connection, [find_number(upkeep.memory.connection, claim)])
    assert (link.newer_id, link.cause, link.judge) == (made, "correction", embedder.name)
    assert link.score is not None
    assert link.score >= 0.4
    assert "more than the second" in link.rationale
    again = upkeep.run(Judges(None, embedder))
    assert result_json(again)["corrections"]["embedded"] == 0


@pytest.mark.covers("MM-11")
@pytest.mark.parametrize("embedder", EMBEDDERS, ids=lambda one: one.name)
def test_a_correction_without_a_true_match_is_not_linked(
    upkeep: Upkeep, embedder: Embedder
) -> None:
    upkeep.write(CLAIM, "uploads")
    upkeep.write(OTHER, "search")
    upkeep.correct("Correction: the zoo in Bern has no pandas.", "zoo")

    result = upkeep.run(Judges(None, embedder))

    assert result.corrections is not None
    assert (result.corrections.unlinked, result.applied, result.proposed) == (1, [], [])
    assert set(upkeep.states().values()) == {"current"}


@pytest.mark.covers("MM-11")
def test_a_correction_that_is_as_near_to_two_records_waits_for_a_person(upkeep: Upkeep) -> None:
    first = upkeep.write("Worker 1 handles the queue orders.", "worker one")
    second = upkeep.write("Worker 1 handles the queue refunds.", "worker one too")
    made = upkeep.correct("Correction: worker 1 handles the queue mails.", "worker 1")

    result = upkeep.run(Judges(None, HashedPieces()))

    (act,) = result.proposed
    assert "margin below" in act.link.rationale
    assert set(upkeep.states().values()) == {"current"}
    (task,) = list_tasks(upkeep.memory.connection, limit=10).items
    assert task.rule == "doubtful_correction"
    upkeep.tasks.decide(task.task_id, Decide(decision="approve"), by="noor")
    states = upkeep.states()
    assert sorted((states[first], states[second])) == ["current", "superseded"]
    assert states[made] == "current"


@pytest.mark.covers("MM-11")
def test_a_correction_that_names_another_thing_waits_for_a_person(upkeep: Upkeep) -> None:
    upkeep.write("Worker 1 handles the queue orders.", "worker 1")
    upkeep.write(OTHER, "search")
    upkeep.correct("Correction: worker 4 handles the queue orders.", "worker 4")

    result = upkeep.run(Judges(None, HashedPieces()))

    assert result.applied == []
    assert [act.link.rationale.rpartition("; ")[2] for act in result.proposed] == [
        "the correction names something that the record does not"
    ]


def test_what_the_evaluation_linked_is_left_to_it(upkeep: Upkeep) -> None:
    claim = upkeep.write(CLAIM, "uploads")
    upkeep.correct(
        CORRECTION, "uploads", metadata={"origin": "evaluation", "corrects": claim, "evidence": []}
    )

    result = upkeep.run()

    assert result.corrections is not None
    assert (result.corrections.corrections, result.applied) == (0, [])
    assert upkeep.states()[claim] == "current"


def test_a_correction_is_linked_in_its_namespace_and_to_nothing_later(upkeep: Upkeep) -> None:
    upkeep.write(CLAIM, "uploads", namespace={"project": "crm"})
    upkeep.correct(CORRECTION, "uploads")
    upkeep.write(CLAIM, "uploads")

    result = upkeep.run(Judges(None, HashedPieces()))

    assert (result.applied, result.proposed) == ([], [])


@pytest.mark.covers("MM-10")
def test_an_embedder_that_is_down_links_nothing_and_is_asked_again(upkeep: Upkeep) -> None:
    upkeep.write(CLAIM, "uploads")
    upkeep.correct(CORRECTION, "uploads")

    told = result_json(upkeep.run(Judges(None, Down())))
    later = upkeep.run(Judges(None, HashedPieces()))

    assert [one["part"] for one in told["skipped"]] == ["contradictions", "corrections"]
    assert told["corrections_linked"] == 0
    assert later.figures["corrections_linked"] == 1
