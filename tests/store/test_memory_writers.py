"""Who may write memory: four writers, each with what entitles it, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_compiler.canonical import content_digest
from hansard_compiler.models.memory import EndApprovedMemory
from hansard_store.approvals.records import Proposal, Proposed
from hansard_store.approvals.service import ApprovalService
from hansard_store.memory.errors import NotApproved, WriterRefused
from hansard_store.principals.model import CLAIMED, Principal
from tests.store.by_hand import triggers_dropped
from tests.store.memory_maker import RUN, STEP, MemoryMaker

SUMMARY = {"subject": "CI", "content": "CI runs Python 3.12."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryMaker]:
    maker = MemoryMaker(tmp_path / "data")
    yield maker
    maker.close()


@pytest.fixture
def desk(memory: MemoryMaker) -> Iterator[ApprovalService]:
    desk = ApprovalService(memory.folder)
    yield desk
    desk.close()


def propose(desk: ApprovalService, tool: str = "remember", **arguments: Any) -> Proposed:
    return desk.propose(Proposal(tool, arguments or SUMMARY))


@pytest.mark.covers("ME-11")
def test_the_program_itself_may_write(memory: MemoryMaker) -> None:
    assert memory.write(writer="app")["memory"]["confidence"] == 0.8


@pytest.mark.covers("ME-13", "ME-15")
def test_a_summary_is_written_when_a_person_approved_exactly_it(
    memory: MemoryMaker, desk: ApprovalService
) -> None:
    proposed = propose(desk)
    record = {**SUMMARY, "writer": "human_approved_summary"}
    approval_id = proposed.approval.approval_id

    def refused(**more: Any) -> str:
        with pytest.raises(WriterRefused) as error:
            memory.write(**{**record, **more})
        return str(error.value)

    assert "needs an approval" in refused()
    assert "awaiting" in refused(approval_id=approval_id)
    assert "no approval" in refused(approval_id="00" * 16)
    assert memory.rows("SELECT count(*) FROM memory") == [(0,)]
    desk.approve(approval_id, by="noor")
    assert "was approved" in refused(approval_id=approval_id, content="CI runs anything.")

    written = memory.write(**record, approval_id=approval_id)["memory"]

    assert (written["approval_id"], written["confidence"]) == (approval_id, 0.9)
    rejected = propose(desk, subject="x", content="y").approval.approval_id
    desk.reject(rejected, by="noor")
    assert "rejected" in refused(approval_id=rejected)


@pytest.mark.covers("ME-12")
def test_the_output_of_a_tool_is_written_when_its_call_was_approved_and_ran(
    memory: MemoryMaker, desk: ApprovalService
) -> None:
    proposed = propose(desk, "read_ci", branch="main")
    approval_id = proposed.approval.approval_id
    record = {"writer": "approved_tool_output", "approval_id": approval_id}

    with pytest.raises(WriterRefused):
        memory.write(**record)
    desk.approve(approval_id, by="noor")
    with pytest.raises(WriterRefused, match="none"):
        memory.write(**record)
    claim = desk.claim(approval_id, {"branch": "main"}, proposal_key=proposed.proposal_key)
    with pytest.raises(WriterRefused, match="claimed"):
        memory.write(**record)
    desk.finish(claim, ok=True, result_digest=content_digest("Money is Decimal inside."))
    with pytest.raises(WriterRefused, match="not what the approved call returned"):
        memory.write("Money is a float.", **record)

    assert memory.write(**record)["memory"]["writer"] == "approved_tool_output"


def test_an_output_that_was_not_recorded_is_no_approved_one(
    memory: MemoryMaker, desk: ApprovalService
) -> None:
    approval_id = ran(desk, "send_mail")

    with pytest.raises(WriterRefused, match="no digest of the call's result"):
        memory.write(writer="approved_tool_output", approval_id=approval_id)


def ran(
    desk: ApprovalService, tool: str, *, asker: Principal | None = CLAIMED, **result: Any
) -> str:
    """Return the id of an approved action that ran."""
    proposed = propose(desk.acting(asker), tool)
    desk.approve(proposed.approval.approval_id, by="noor")
    desk.finish(desk.claim(proposed.approval.approval_id), ok=True, **result)
    return proposed.approval.approval_id


@pytest.mark.parametrize("writer", ["approved_tool_output", "human_approved_summary"])
def test_an_approval_entitles_to_one_record(
    memory: MemoryMaker, desk: ApprovalService, writer: str
) -> None:
    digest = content_digest(SUMMARY["content"])
    approval_id = ran(desk, "remember", result_digest=digest)
    record = {**SUMMARY, "writer": writer, "approval_id": approval_id}

    first = memory.write(**record)
    again = memory.write(**record)
    for other in ({"namespace": {"project": "other"}}, {"confidence": 0.65}):
        with pytest.raises(WriterRefused, match="one approval entitles to one record"):
            memory.write(**record, **other)
    memory.invalidate(first["memory"]["memory_id"])
    with pytest.raises(WriterRefused, match="one approval entitles to one record"):
        memory.write(**record)

    assert (again["outcome"], again["memory"]["memory_id"]) == (
        "repeat", first["memory"]["memory_id"],
    )  # fmt: skip


@pytest.mark.parametrize("tool", ["send_email", "remembering", "dont_remember", "remember it"])
def test_a_yes_to_something_else_is_no_word_about_memory(
    memory: MemoryMaker, desk: ApprovalService, tool: str
) -> None:
    approval_id = ran(desk, tool)

    with pytest.raises(WriterRefused, match="one that remembers is called"):
        memory.write(**SUMMARY, writer="human_approved_summary", approval_id=approval_id)


@pytest.mark.parametrize(
    "other",
    [{"subject": "deploys"}, {"namespace": {"user": "eve"}}, {"tags": []}, {"confidence": 1.0}],
    ids=lambda one: next(iter(one)),
)
def test_what_was_approved_beside_the_content_is_written_too(
    memory: MemoryMaker, desk: ApprovalService, other: dict[str, Any]
) -> None:
    fact = {
        **SUMMARY, "namespace": {"project": "quillbook"}, "tags": ["ci"], "confidence": 0.6,
    }  # fmt: skip
    proposed = propose(desk, "hansard.remember_fact", **fact)
    desk.approve(proposed.approval.approval_id, by="noor")
    record = {
        **fact, "writer": "human_approved_summary", "approval_id": proposed.approval.approval_id,
    }  # fmt: skip

    with pytest.raises(WriterRefused, match=next(iter(other))):
        memory.write(**{**record, **other})

    assert memory.write(**record)["memory"]["confidence"] == 0.6


@pytest.mark.parametrize("asker", [Principal("bot", frozenset(), "token"), None])
def test_an_approval_of_another_program_entitles_to_nothing(
    memory: MemoryMaker, desk: ApprovalService, asker: Principal | None
) -> None:
    approval_id = ran(desk, "remember", asker=asker)
    record = {
        **SUMMARY, "writer": "human_approved_summary", "approval_id": approval_id,
        "memory_type": "fact", "namespace": {"project": "quillbook"},
    }  # fmt: skip
    other = memory.book.acting(Principal("other", frozenset(), "token"))

    with pytest.raises(WriterRefused, match="requested by another program"):
        other.write_json(record)

    assert memory.book.acting(asker).write_json(record)["outcome"] == "current"


@pytest.mark.covers("ME-14")
def test_a_summarizer_names_its_step_and_is_trusted_less(memory: MemoryMaker) -> None:
    with pytest.raises(WriterRefused, match="step_id"):
        memory.write(writer="post_step_summarizer", step_id=None)

    written = memory.write(writer="post_step_summarizer")["memory"]

    assert (written["source_run_id"], written["source_step_ids"]) == (RUN, [STEP])
    assert written["confidence"] == 0.5


DEPLOYS = {
    "memory_type": "constraint", "namespace": {"project": "ops"}, "subject": "deploys",
    "attribute": "window",
}  # fmt: skip


def approved_summary(desk: ApprovalService, *shown: str) -> dict[str, Any]:
    """Return a summary about deploys of which a person approved the content and what is named."""
    summary = {**DEPLOYS, "content": "Whenever you like.", "writer": "human_approved_summary"}
    arguments = {name: summary[name] for name in ("content", *shown)}
    approval_id = propose(desk, **arguments).approval.approval_id
    desk.approve(approval_id, by="noor")
    return {**summary, "approval_id": approval_id}


def test_a_summary_supersedes_a_record_whose_subject_and_attribute_were_approved(
    memory: MemoryMaker, desk: ApprovalService
) -> None:
    before = memory.write(**DEPLOYS, content="Never on Friday.", writer="app", confidence=0.5)

    written = memory.write(**approved_summary(desk, "subject", "attribute"))

    assert written["superseded"] == [before["memory"]["memory_id"]]


@pytest.mark.parametrize("shown", [(), ("subject",)])
def test_a_summary_does_not_supersede_a_record_that_the_approver_did_not_see(
    memory: MemoryMaker, desk: ApprovalService, shown: tuple[str, ...]
) -> None:
    memory.write(**DEPLOYS, content="Never on Friday.", writer="app", confidence=0.5)
    summary = approved_summary(desk, *shown)

    with pytest.raises(WriterRefused, match=r"name no .*attribute"):
        memory.write(**summary)

    assert memory.rows("SELECT state FROM memory") == [("current",)]


def test_a_summary_replaces_no_record_that_its_approver_did_not_see(
    memory: MemoryMaker, desk: ApprovalService
) -> None:
    place = {"memory_type": "constraint", "namespace": {"project": "ops"}}
    before = memory.write(
        **place, subject="deploys", content="Never on Friday.", writer="app", confidence=0.5
    )["memory"]["memory_id"]
    told = {
        **place, **SUMMARY, "attribute": "", "writer": "human_approved_summary",
        "replaces": before,
    }  # fmt: skip
    approval_id = propose(desk, **SUMMARY).approval.approval_id
    desk.approve(approval_id, by="noor")

    with pytest.raises(WriterRefused, match="name no replaces"):
        memory.write(**told, approval_id=approval_id)

    assert memory.rows("SELECT state FROM memory") == [("current",)]
    seen = propose(desk, **SUMMARY, replaces=before).approval.approval_id
    desk.approve(seen, by="noor")
    assert memory.write(**told, approval_id=seen)["superseded"] == [before]


@pytest.mark.parametrize("name", ["content", "metadata"])
def test_true_is_not_the_one_that_was_approved(
    memory: MemoryMaker, desk: ApprovalService, name: str
) -> None:
    approved = {**SUMMARY, name: {"checks": [{"retries": 1, "share": 1.0}]}}
    approval_id = propose(desk, **approved).approval.approval_id
    desk.approve(approval_id, by="noor")
    told = {**approved, "writer": "human_approved_summary", "approval_id": approval_id}

    with pytest.raises(WriterRefused, match=name):
        memory.write(**{**told, name: {"checks": [{"retries": True, "share": 1.0}]}})

    assert memory.write(**{**told, name: {"checks": [{"retries": 1, "share": 1}]}})


@pytest.mark.parametrize("altered", ["decided_by = 'ana'", "note = 'yes'"])
def test_an_approval_that_was_altered_by_hand_ends_no_memory(
    memory: MemoryMaker, desk: ApprovalService, altered: str
) -> None:
    memory_id = memory.write(writer="app")["memory"]["memory_id"]
    arguments = {"memory_id": memory_id, "reason": "we moved"}
    approval_id = propose(desk, "hansard.invalidate_memory", **arguments).approval.approval_id
    desk.approve(approval_id, by="noor")
    claim = desk.claim(approval_id)
    end = EndApprovedMemory(**arguments, approval_id=approval_id, claim_id=claim.claim_id)
    with closing(apsw.Connection(str(memory.folder.database))) as plain, triggers_dropped(plain):
        plain.execute(f"UPDATE approval SET {altered}")

    with pytest.raises(NotApproved, match="not as Hansard wrote it"):
        memory.book.invalidate_approved(end)

    assert memory.rows("SELECT state FROM memory") == [("current",)]
