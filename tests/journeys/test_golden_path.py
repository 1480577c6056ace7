"""The golden path of `hansard demo`: a coding agent, and what its record can be asked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.ports import Ports
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_web.demo.coding.coder import (
    CONSTRAINTS,
    REQUEST,
    constraints,
    instructions,
    of_repository,
)
from hansard_web.demo.coding.workspace import Workspace, make_workspace
from tests.journeys.demo_story import Story

_SENT_BACK = 2  # of the first run's turns


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A copy of the fixture nobody has worked in."""
    return make_workspace(tmp_path / "shop")


@pytest.mark.covers("DE-01", "DE-02", "DE-05")
def test_the_fixture_has_sources_and_one_test_that_fails(workspace: Workspace) -> None:
    sources = [path for path in workspace.paths() if path.startswith("shop/")]

    assert len(sources) >= 3
    assert "1 failed, 3 passed" in workspace.run_tests()


def test_a_path_out_of_the_repository_is_refused(workspace: Workspace) -> None:
    with pytest.raises(PermissionError, match="leads out"):
        workspace.read("../../etc/passwd")


@pytest.mark.covers("DE-03", "DE-08", "DE-09", "DE-10", "DE-11", "DE-12", "DE-27", "EX-10")
def test_the_right_patch_was_made_with_everything_that_matters(story: Story) -> None:
    receipts = story.receipts(story.runs[0], _SENT_BACK + 1)

    told = {one["item_id"]: one["decision"] for one in receipts.values()}
    assert (told["constraint-1"], told["constraint-2"]) == ("include", "include")
    assert told["shop/invoice.py"] == told["CONVENTIONS.md"] == "include"
    asked = [one for one in receipts.values() if one["kind"] == "user_msg"]
    assert [one["decision"] for one in asked] == ["include"]
    results = [one for one in receipts.values() if one["kind"] == "tool_result"]
    assert results
    assert {one["decision"] for one in results} == {"include"}
    prices = receipts["docs/prices-2019.csv"]
    assert (prices["decision"], prices["reason"]) == ("exclude", "over_budget")


@pytest.mark.covers("DE-19", "AC-12")
def test_the_wrong_patch_was_made_without_the_convention_and_the_record_says_why(
    story: Story,
) -> None:
    receipts = story.receipts(story.runs[0], _SENT_BACK)

    left_out = receipts["CONVENTIONS.md"]
    assert (left_out["decision"], left_out["reason"]) == ("exclude", "over_budget")
    assert left_out["missed_by_tokens"] > 0
    assert receipts["README.md"]["decision"] in ("exclude", "redact")


@pytest.mark.covers("DE-13")
def test_what_was_left_out_can_still_be_read(story: Story, workspace: Workspace) -> None:
    left_out = story.receipts(story.runs[0], _SENT_BACK)["CONVENTIONS.md"]

    assert story.payload(left_out["original_ref"]).decode() == workspace.read("CONVENTIONS.md")


@pytest.mark.covers("DE-06")
def test_the_request_stands_word_for_word(story: Story) -> None:
    run = story.get(f"/v1/runs/{story.runs[0]}")

    assert REQUEST.startswith("Make the failing test pass. ")
    assert all(one in REQUEST for one in CONSTRAINTS)
    assert run["first_input"] == REQUEST


@pytest.mark.covers("DE-29", "AC-07")
def test_policy_denies_redacts_and_asks(story: Story) -> None:
    first = story.runs[0]

    refused = [one for one in story.steps(first, "tool") if one["status"] == "error"]
    assert [one["tool_name"] for one in refused] == ["apply_patch"]
    [denied] = story.get(f"/v1/events?type=policy.blocked&run={first}")["items"]
    assert denied["action"]
    assert story.receipts(first, 0)["README.md"]["decision"] == "redact"
    approvals = story.get(f"/v1/approvals?run={first}")["items"]
    assert sorted(one["tool"] for one in approvals) == ["apply_patch", "remember"]


def test_a_note_brought_a_second_draft_and_only_that_one_ran(story: Story) -> None:
    approvals = story.get(f"/v1/approvals?run={story.runs[0]}")["items"]
    [listed] = [one for one in approvals if one["tool"] == "apply_patch"]

    approval = story.get(f"/v1/approvals/{listed['approval_id']}")

    assert (approval["status"], approval["revision"]) == ("approved", 2)
    assert approval["execution"]["state"] == "done"
    first, second = approval["drafts"]
    assert "0.0035" in first["arguments"]["new"]
    assert "round_cents(sum(" in second["arguments"]["new"]


@pytest.mark.covers("DE-20", "DE-28", "AC-13")
def test_the_step_that_went_wrong_was_replayed_byte_for_byte(story: Story) -> None:
    bad = story.call(story.runs[0], _SENT_BACK)
    replays = story.get(f"/v1/replay?step={bad}")["items"]
    [exact] = [one for one in replays if one["mode"] == "exact"]

    told = story.get(f"/v1/replay/{exact['replay_id']}")

    assert told["same_request"] is True
    assert told["request_hash"] == told["recorded_request_hash"]
    assert told["comparison"]["output"]["is_empty"] is True


@pytest.mark.covers("DE-21", "DF-02", "RP-07", "RP-15")
def test_with_room_for_the_convention_the_model_says_something_else(story: Story) -> None:
    bad = story.call(story.runs[0], _SENT_BACK)
    replays = story.get(f"/v1/replay?step={bad}")["items"]
    [mutated] = [one for one in replays if one["mode"] == "mutated"]

    told = story.get(f"/v1/replay/{mutated['replay_id']}")

    changes = {one["item_id"]: one for one in told["comparison"]["compile"]["items"]}
    assert changes["CONVENTIONS.md"]["change"] == "included"
    assert told["comparison"]["output"]["is_empty"] is False


@pytest.mark.covers("DE-04", "DE-22", "DE-25", "AC-14")
def test_the_second_run_knows_what_the_first_one_learned(story: Story) -> None:
    first, second = story.runs
    [record] = story.get("/v1/memory?project=shop")["items"]

    assert (record["source_run_id"], record["writer"]) == (first, "human_approved_summary")
    assert record["approval_id"]
    remembered = [one for one in story.receipts(second, 1).values() if one["kind"] == "memory"]
    assert [one["decision"] for one in remembered] == ["include"]
    assert len(story.steps(second, "llm")) < len(story.steps(first, "llm"))


@pytest.mark.covers("DE-07")
def test_all_that_may_be_told_to_the_model_is_a_candidate(story: Story) -> None:
    told = {
        (one["kind"], one["item_id"])
        for turn in range(len(story.steps(story.runs[0], "compile")))
        for one in story.receipts(story.runs[0], turn).values()
    }

    kinds = {kind for kind, _ in told}
    assert kinds >= {
        "user_msg", "constraint", "summary", "file", "tool_result", "code_diff", "tool_schema",
    }  # fmt: skip
    assert ("file", "CONVENTIONS.md") in told
    tools = {item_id for kind, item_id in told if kind == "tool_schema"}
    assert tools >= {"tool:read_file", "tool:run_shell", "tool:apply_patch"}


@pytest.mark.covers("DE-14")
def test_two_compiles_of_the_same_repository_have_the_same_hashes(tmp_path: Path) -> None:
    first, second = (
        compile_context(
            {
                "request_id": name,
                "run_id": name,
                "step_id": name,
                "provider": "scripted",
                "model": "scripted-1",
                "now": "2026-11-22T12:00:00Z",
                "token_budget": 3_000,
                "context_items": [
                    {**one, "created_at": "2026-11-22T11:00:00Z"}
                    for one in (
                        instructions(),
                        *constraints(),
                        *of_repository(make_workspace(tmp_path / name)),
                    )
                ],
            },
            Ports(counter=estimator_for("scripted", "scripted-1"), redactor=Redactor(b"key")),
        )
        for name in ("first", "second")
    )

    assert first.compile_hash == second.compile_hash
    assert [one.hash for one in first.state.sections] == [one.hash for one in second.state.sections]


@pytest.mark.covers("AC-04")
def test_every_compile_has_a_receipt_for_everything(story: Story) -> None:
    for run_id in story.runs:
        for compiled in story.steps(run_id, "compile"):
            told = story.get(f"/v1/steps/{compiled['step_id']}")
            assert len(told["receipts"]) == told["context"]["items"]["total"] > 0
            assert all(one["reason"] for one in told["receipts"])


@pytest.mark.covers("DE-15", "AC-11")
def test_what_was_sent_and_answered_is_kept_to_the_byte(story: Story) -> None:
    bad = story.call(story.runs[0], _SENT_BACK)
    [exact] = [
        one for one in story.get(f"/v1/replay?step={bad}")["items"] if one["mode"] == "exact"
    ]

    attributes = story.get(f"/v1/steps/{bad}")["attributes"]
    ref = attributes["hansard.request.ref"]
    sent = story.payload(ref)

    assert ref == f"sha256:{hashlib.sha256(sent).hexdigest()}" == exact["request_hash"]
    assert REQUEST in sent.decode()
    assert b"0.0035" in story.payload(attributes["hansard.response.ref"])
    run = story.get(f"/v1/runs/{story.runs[0]}")
    assert run["tokens"]["input"] > 0
    tools = [story.get(f"/v1/steps/{one['step_id']}") for one in story.steps(story.runs[0], "tool")]
    assert any("1 failed, 3 passed" in str(one["tool"]["result"]) for one in tools)


@pytest.mark.covers("DE-16", "TS-16")
def test_the_agent_reads_plans_tests_patches_and_tests_again(story: Story) -> None:
    names = [one["tool_name"] for one in story.steps(story.runs[0], "tool")]

    # What is remembered is asked for in one step and run in another, with a link between them.
    assert names == [
        "read_file", "read_file", "run_shell", "apply_patch", "apply_patch", "apply_patch",
        "run_shell", "remember", "remember",
    ]  # fmt: skip


@pytest.mark.covers("DE-26")
def test_the_prompt_is_a_small_part_of_all_there_was(story: Story) -> None:
    receipts = story.receipts(story.runs[0], 0).values()

    everything = sum(one["tokens_before"] or 0 for one in receipts)
    sent = sum(one["tokens_after"] or 0 for one in receipts)
    assert everything > 4 * sent


@pytest.mark.covers("RP-03", "AC-05")
def test_every_step_can_be_replayed_or_says_why_not(story: Story) -> None:
    every = [
        step
        for run_id in story.runs
        for step in story.get(f"/v1/runs/{run_id}/steps?limit=500")["items"]
    ]
    called = {step["step_id"] for step in every if step["role"] in ("llm", "compile")}

    refused = {step["step_id"]: story.refusal(step["step_id"]) for step in every}

    assert {"llm", "compile", "tool", "agent"} <= {step["role"] for step in every}
    assert {one for one, why in refused.items() if why is None} == called
    assert {why for one, why in refused.items() if one not in called} == {"kind"}


def test_the_log_of_all_that_is_unbroken(story: Story) -> None:
    checked = story.get("/v1/events/verify")

    assert (checked["valid"], checked["broken"]) == (True, None)
    assert checked["checked"] > 20
