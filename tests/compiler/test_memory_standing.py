"""Memory in a compile: what stands may go in, what does not is out, and the receipt says why."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.compile.models import MemoryRecord, parse
from hansard_compiler.compile.passes.score import TERMS
from hansard_compiler.models.memory import ReadMemory, WriteMemory, as_compile_record
from tests.compiler.compiling import compiled, item

RUN = "ab" * 16


def told(memory_id: str, state: str = "current", **more: Any) -> dict[str, Any]:
    """Return a record as the store answers it."""
    answer = {
        "memory_id": memory_id, "memory_type": "fact", "subject": memory_id, "attribute": "",
        "content": f"{memory_id} is so.", "state": state, "version": 2,
        "namespace": {"project": "quillbook"}, "scope": {}, "confidence": 0.9,
        "freshness_at": "2026-03-04T11:00:00.000000001Z", "expires_at": None, "tags": ["ci"],
        "metadata": {}, "writer": "app", "source_run_id": RUN, "source_step_ids": [],
        "approval_id": None, "superseded_by": None, "contests": None, "ended": None,
    }  # fmt: skip
    return {**answer, **more}


def result_of(*answers: dict[str, Any], **config: Any) -> Any:
    records = [as_compile_record(one) for one in answers]
    asked = item("asked", "user_msg", "What is so?")
    scope = {"project": "quillbook", **config.pop("scope", {})}
    return compiled([asked], memory_records=records, compile_config={"scope": scope, **config})


@pytest.mark.covers("ME-09", "ME-21")
def test_a_memory_that_stands_is_a_candidate_with_its_confidence_and_source() -> None:
    result = result_of(told("m1"))

    (receipt,) = [one for one in result.receipts if one.item_id == "m1"]
    assert (receipt.decision, receipt.kind) == ("include", "memory")
    assert receipt.source == "memory memory:m1"
    (made,) = [one for one in result.state.items if one.id == "m1"]
    assert made.trust == 900_000
    assert made.source is not None
    assert made.source.metadata["run_id"] == RUN
    assert made.metadata["writer"] == "app"
    assert made.tags >= {"ci", "fact", "writer:app"}


@pytest.mark.covers("IN-13")
@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        (
            {"origin": "external", "url": "https://example.com/a"},
            "external_api https://example.com/a",
        ),
        ({"origin": "external"}, "external_api memory:m1"),
        ({"origin": "external", "url": ["https://example.com/a"]}, "external_api memory:m1"),
        ({"origin": "here", "url": "https://example.com/a"}, "memory memory:m1"),
    ],
)
def test_a_memory_from_outside_says_so_in_its_receipt(
    metadata: dict[str, Any], source: str
) -> None:
    result = result_of(told("m1", confidence=0.0, metadata=metadata))

    (receipt,) = [one for one in result.receipts if one.item_id == "m1"]
    assert (receipt.source, receipt.kind) == (source, "memory")
    assert receipt.score is not None
    assert receipt.score.terms[TERMS.index("trust")] == 0


@pytest.mark.covers("ME-18")
@pytest.mark.parametrize(
    ("state", "reason", "more"),
    [
        ("invalidated", "invalidated", {"ended": {"reason": "it moved"}}),
        ("superseded", "superseded", {"superseded_by": "m2"}),
        ("expired", "expired", {}),
        ("review", "review_pending", {"contests": "m2"}),
    ],
)
def test_a_memory_that_does_not_stand_is_out_with_its_reason(
    state: str, reason: str, more: dict[str, Any]
) -> None:
    result = result_of(told("m1", state, **more), told("m2"), required_kinds=["memory"])

    receipts = {one.item_id: one for one in result.receipts}
    out = receipts["m1"]
    assert (out.decision, out.pass_name, out.reason.value) == ("exclude", "validate", reason)
    assert out.related_item_id == (more.get("superseded_by") or more.get("contests"))
    assert out.note == (more.get("ended") or {}).get("reason")
    assert receipts["m2"].decision == "include"
    assert "m1 is so" not in str(result.context().rendered_payload)


def test_a_memory_of_another_namespace_is_out_of_scope() -> None:
    result = result_of(told("m1", namespace={"project": "crm"}), told("m2"))

    assert {one.item_id: one.reason.value for one in result.receipts}["m1"] == "out_of_scope"


def test_working_memory_needs_no_scope() -> None:
    record = as_compile_record(told("m1", memory_type="working", namespace={}))

    assert record["scope"] == {}
    assert parse(MemoryRecord, record).memory_type == "working"


@pytest.mark.parametrize(
    ("asked", "is_working"),
    [
        ({"run_id": RUN}, True),
        ({"run_id": RUN, "namespace": {"user": "noor"}}, False),
        ({"run_id": RUN, "namespace": {"user": "noor"}, "slots": ["plan"]}, True),
        ({"namespace": {"user": "noor"}, "memory_types": ["working"]}, False),
    ],
)
def test_a_read_is_of_working_memory_where_nothing_else_is_named(
    asked: dict[str, Any], is_working: bool
) -> None:
    assert parse(ReadMemory, asked).is_working is is_working


def test_working_memory_is_written_for_a_run() -> None:
    asked = {"writer": "app", "memory_type": "working", "content": "x", "slot": "plan"}

    written = parse(WriteMemory, {**asked, "step_id": f"{RUN}-{'1' * 16}"})

    assert written.run == RUN
