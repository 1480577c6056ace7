"""The phase of the heartbeat that maintains memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_collector.heartbeat.cycle import Heartbeat
from hansard_collector.heartbeat.phase import Phase
from hansard_collector.heartbeat.phases import run_maintenance
from hansard_collector.judges import Judges
from hansard_collector.judges.embedders import HashedPieces
from hansard_collector.judges.offline import OfflineClassifier
from hansard_store.heartbeat import last_phase, list_diagnostics
from hansard_store.memory.maintenance.reviewed_supersessions import superseding
from hansard_store.memory.queries import MemoryFilter, list_memories
from hansard_store.memory.rows import find_number
from tests.collector.maintenance.maintaining import Upkeep

PHASES = (Phase("maintenance", run_maintenance),)


@pytest.fixture
def upkeep(tmp_path: Path) -> Iterator[Upkeep]:
    made = Upkeep(tmp_path)
    yield made
    made.close()


def beat(upkeep: Upkeep, judges: Judges | None = None) -> None:
    judges = judges or Judges(OfflineClassifier(), HashedPieces())
    Heartbeat(upkeep.memory.folder, judges, phases=PHASES, clock=upkeep.clock).run()


@pytest.mark.covers("MM-09", "MM-15")
def test_a_cycle_maintains_memory_and_keeps_the_result_as_a_diagnostic_note(
    upkeep: Upkeep,
) -> None:
    older = upkeep.write("The port of the staging server is 8080.")
    newer = upkeep.write("The port of the staging server is 9090.")

    beat(upkeep)

    connection = upkeep.memory.connection
    phase = last_phase(connection, "maintenance")
    assert phase is not None
    assert phase.figures["supersessions_applied"] == 1
    (line,) = list_diagnostics(connection, component="heartbeat.maintenance")
    assert line.message == phase.summary
    wanted = MemoryFilter(writer="post_step_summarizer", agent="hansard.heartbeat")
    (note,) = list_memories(connection, wanted, now_ns=upkeep.clock()).items
    assert note.metadata["origin"] == "diagnostic"
    assert (note.writer, note.written_by) == ("post_step_summarizer", "heartbeat:maintenance")
    assert note.source_steps == (phase.step_id,)
    assert "1 contradictions" in str(note.content)
    (link,) = superseding(connection, [find_number(connection, older)])
    assert (link.newer_id, link.step_id) == (newer, phase.step_id)
    ((_, who, _),) = upkeep.events("memory.supersede")
    assert who == "heartbeat:maintenance"
    assert upkeep.memory.contents() == ["The port of the staging server is 9090."]


@pytest.mark.covers("MM-10", "MM-09")
def test_a_cycle_without_judges_says_what_it_left_out(upkeep: Upkeep) -> None:
    upkeep.write("The port of the staging server is 8080.")
    upkeep.write("The port of the staging server is 9090.")

    beat(upkeep, Judges())

    phase = last_phase(upkeep.memory.connection, "maintenance")
    assert phase is not None
    assert "contradictions skipped" in phase.summary
    assert [one["part"] for one in phase.figures["skipped"]] == ["contradictions", "corrections"]


def test_notes_of_cycles_are_not_maintained(upkeep: Upkeep) -> None:
    for _ in range(2):
        beat(upkeep)

    phase = last_phase(upkeep.memory.connection, "maintenance")
    assert phase is not None
    assert phase.figures["classifier_calls"] == 0
