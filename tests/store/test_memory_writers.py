"""Who may write memory: four writers, each with what entitles it, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_store.approval_records import Proposal, Proposed
from hansard_store.facade import Accountability
from hansard_store.memory_errors import WriterRefused
from tests.store.memory_maker import RUN, STEP, MemoryMaker

SUMMARY = {"subject": "CI", "content": "CI runs Python 3.12."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryMaker]:
    maker = MemoryMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def desk(memory: MemoryMaker) -> Iterator[Accountability]:
    desk = Accountability(memory.folder)
    yield desk
    desk.close()


def propose(desk: Accountability, tool: str = "remember", **arguments: Any) -> Proposed:
    return desk.propose(Proposal(tool, arguments or SUMMARY))


@pytest.mark.covers("ME-11")
def test_the_program_itself_may_write(memory: MemoryMaker) -> None:
    assert memory.write(writer="app")["memory"]["confidence"] == 0.8


@pytest.mark.covers("ME-13", "ME-15")
def test_a_summary_is_written_when_a_person_approved_exactly_it(
    memory: MemoryMaker, desk: Accountability
) -> None:
    proposed = propose(desk)
    told = {**SUMMARY, "writer": "human_approved_summary"}
    approval_id = proposed.approval.approval_id

    def refused(**more: Any) -> str:
        with pytest.raises(WriterRefused) as error:
            memory.write(**{**told, **more})
        return str(error.value)

    assert "needs an approval" in refused()
    assert "awaiting" in refused(approval_id=approval_id)
    assert "no approval" in refused(approval_id="00" * 16)
    assert memory.rows("SELECT count(*) FROM memory") == [(0,)]
    desk.approve(approval_id, by="noor")
    assert "was approved" in refused(approval_id=approval_id, content="CI runs anything.")

    written = memory.write(**told, approval_id=approval_id)["memory"]

    assert (written["approval_id"], written["confidence"]) == (approval_id, 0.9)
    rejected = propose(desk, subject="x", content="y").approval.approval_id
    desk.reject(rejected, by="noor")
    assert "rejected" in refused(approval_id=rejected)


@pytest.mark.covers("ME-12")
def test_the_output_of_a_tool_is_written_when_its_call_was_approved_and_ran(
    memory: MemoryMaker, desk: Accountability
) -> None:
    proposed = propose(desk, "read_ci", branch="main")
    approval_id = proposed.approval.approval_id
    told = {"writer": "approved_tool_output", "approval_id": approval_id}

    with pytest.raises(WriterRefused):
        memory.write(**told)
    desk.approve(approval_id, by="noor")
    with pytest.raises(WriterRefused, match="none"):
        memory.write(**told)
    claim = desk.claim(approval_id, {"branch": "main"}, proposal_key=proposed.proposal_key)
    with pytest.raises(WriterRefused, match="claimed"):
        memory.write(**told)
    desk.finish(claim, ok=True)

    assert memory.write(**told)["memory"]["writer"] == "approved_tool_output"


@pytest.mark.covers("ME-14")
def test_a_summarizer_names_its_step_and_is_trusted_less(memory: MemoryMaker) -> None:
    with pytest.raises(WriterRefused, match="step_id"):
        memory.write(writer="post_step_summarizer", step_id=None)

    written = memory.write(writer="post_step_summarizer")["memory"]

    assert (written["source_run_id"], written["source_step_ids"]) == (RUN, [STEP])
    assert written["confidence"] == 0.5
