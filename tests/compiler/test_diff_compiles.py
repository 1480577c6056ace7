"""Two compiles compared: what flipped, and why, proved by taking the cause back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.errors import CompileError
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.diff import (
    CompileDiff,
    CompileSide,
    ItemDiff,
    compile_diff,
    explain,
    reverted,
    side_of_context,
    side_of_result,
)
from tests.compiler.compiling import NOW, compiled, item, ports, request
from tests.compiler.mirrors import mirrored_compile

LONG = "one two three four five six seven eight nine ten " * 8


def again(wanted: CompilationRequest) -> CompileResult:
    return compile_context(wanted, ports())


def compared(left: CompileResult, right: CompileResult, **limits: int) -> CompileDiff:
    one, other = side_of_result(left), side_of_result(right)
    return explain(compile_diff(one, other), one, other, compile_again=again, **limits)


def of(diff: CompileDiff, item_id: str) -> ItemDiff:
    return next(one for one in diff.items if one.item_id == item_id)


def documents(count: int, **more: Any) -> list[Any]:
    return [
        item(f"doc-{number}", content=f"{number} {LONG}", importance_score=number / count, **more)
        for number in range(count)
    ]


@pytest.mark.covers("DF-04", "DF-05")
def test_an_item_that_is_new_and_one_that_is_gone_are_told() -> None:
    left, right = compiled([item("a"), item("b")]), compiled([item("b"), item("c")])
    diff = compared(left, right)
    assert [(one.item_id, one.change) for one in diff.changed if one.is_flip] == [
        ("a", "removed"),
        ("c", "added"),
    ]
    because = of(diff, "c").because
    assert because is not None
    assert (because.kind, because.basis, because.changes) == ("input", "verified", ("item.c",))


@pytest.mark.covers("DF-06", "DF-09", "DF-12")
def test_a_smaller_budget_is_named_as_the_cause_of_what_falls_out() -> None:
    items = documents(6)
    diff = compared(compiled(items, budget=700), compiled(items, budget=300))
    flips = [one for one in diff.items if one.is_flip]
    assert flips
    for one in flips:
        assert one.because is not None
        assert (one.because.kind, one.because.basis) == ("budget", "verified")
        assert "budget, tokens 700 → 300" in one.because.detail
    assert {one.change for one in flips} <= {"excluded", "compressed"}
    amounts = {one.name: one.delta for one in diff.budget}
    assert amounts["budget"] == -400
    assert any(one.delta for one in diff.by_class)
    assert any(one.delta for one in diff.by_section)


@pytest.mark.covers("DF-07", "DF-12")
def test_a_weight_is_named_with_the_points_it_took() -> None:
    items = [
        item("fresh", content=LONG, importance_score=0),
        item("old", content=f"old {LONG}", created_at="2026-03-01T00:00:00Z", importance_score=0.9),
    ]
    left = compiled(items, budget=120, compile_config={"compression": {"enabled": False}})
    right = compiled(
        items,
        budget=120,
        compile_config={"compression": {"enabled": False}, "weights": {"importance": 0.0}},
    )
    diff = compared(left, right)
    old = of(diff, "old")
    assert old.change == "excluded"
    assert old.because is not None
    assert old.because.kind == "weight"
    assert "weight of importance 0.4 → 0.0 (−0.36 points)" in old.because.detail
    (term,) = [one for one in old.terms if one.term == "importance"]
    assert term.delta == -360_000_000
    assert old.score_delta == -360_000_000


@pytest.mark.covers("DF-08", "DF-12")
def test_a_rule_is_named_with_its_id() -> None:
    rule = {
        "id": "no-files",
        "name": "no files",
        "applies_to": {},
        "effect": "deny",
        "conditions": {"item.source_type": "file"},
    }
    left = compiled([item("a")])
    right = compiled([item("a")], policy_rules=[rule])
    diff = compared(left, right)
    one = of(diff, "a")
    assert one.change == "excluded"
    assert one.is_policy_changed
    assert one.because is not None
    assert (one.because.kind, one.because.changes) == ("rule", ("rule.no-files",))
    (changed,) = diff.policy
    assert (changed.rule_id, changed.change, changed.right_items) == ("no-files", "added", ("a",))


@pytest.mark.covers("DF-10")
def test_a_redaction_is_told_with_what_was_cut_out() -> None:
    left = compiled([item("a", content="nothing to hide")])
    right = compiled([item("a", content="the key is sk-proj-Zt7qWm3XbL9vKc2RnY5hPd8JfA4sGe6U")])
    diff = compared(left, right)
    (one,) = diff.redactions
    assert (one.item_id, one.change) == ("a", "redacted")
    assert one.right is not None
    assert one.right.removed
    assert one.because is not None
    assert one.because.changes == ("item.a",)


def test_the_winner_of_a_conflict_is_named() -> None:
    def fact(item_id: str, content: str, trust: float) -> Any:
        return item(item_id, "memory", content, trust_score=trust, metadata={"subject": "port"})

    old = fact("old", "The port of the server is 4000.", 0.4)
    new = fact("new", "The port of the server is 5000.", 0.9)
    loser = of(compared(compiled([old]), compiled([old, new])), "old")
    because = loser.because
    assert loser.change == "excluded"
    assert because is not None
    assert (because.kind, because.changes) == ("conflict", ("item.new",))


@pytest.mark.covers("DF-12")
def test_two_changes_that_only_together_do_it_are_both_named() -> None:
    items = documents(3, sensitivity="internal")
    config = {"compression": {"enabled": False}, "min_score": -5.0}
    left = compiled(items, budget=1_000, compile_config=config)
    # Over the floor or over the budget: either alone keeps it out.
    right = compiled(items, budget=250, compile_config={**config, "min_score": 0.75})
    diff = compared(left, right)
    first = of(diff, "doc-0")
    assert first.change == "excluded"
    assert first.because is not None
    assert first.because.kind == "several"
    assert set(first.because.changes) == {"token_budget", "setting.min_score"}
    assert first.because.is_minimal


def test_without_requests_there_is_evidence_and_it_says_so() -> None:
    items = documents(6)
    sides = [
        side_of_context(compiled(items, budget=budget).context().model_dump(mode="json"))
        for budget in (700, 300)
    ]
    diff = explain(compile_diff(*sides), *sides, compile_again=again)
    flips = [one for one in diff.items if one.is_flip]
    assert flips
    assert {one.because.basis for one in flips if one.because} == {"evidence"}
    assert {one.because.kind for one in flips if one.because} == {"budget"}
    assert not diff.knows_settings


def test_what_was_recorded_otherwise_than_it_compiles_is_no_proof() -> None:
    items = documents(6)
    left, right = (side_of_result(compiled(items, budget=one)) for one in (700, 300))
    told = [one for one in right.items if one.decision == "exclude"]
    lying = tuple(
        one if one is not told[0] else replace(one, reason="expired") for one in right.items
    )
    wrong = CompileSide(right.hash, right.provider, right.model, lying, request=right.request)
    diff = explain(compile_diff(left, wrong), left, wrong, compile_again=again)
    because = of(diff, told[0].item_id).because
    assert because is not None
    assert because.basis == "evidence"


def test_trying_is_bounded_and_what_is_known_so_far_is_given() -> None:
    left = compiled(documents(12), budget=500)
    right = compiled(
        [one | {"importance_score": 1 - one["importance_score"]} for one in documents(12)],
        budget=490,
    )
    diff = compared(left, right, most_compiles=3)
    told = [one.because for one in diff.items if one.because is not None]
    assert told
    verified = [one for one in told if one.basis == "verified"]
    assert all(one.changes for one in verified)
    assert not all(one.is_minimal for one in verified)


# ---- laws


@st.composite
def requests(draw: st.DrawFn) -> CompilationRequest:
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=7))
    items = [
        item(
            name,
            draw(st.sampled_from(["retrieval_doc", "memory", "user_msg", "file"])),
            f"{name} {draw(st.sampled_from([LONG, 'short', 'a b c ' * 30]))}",
            importance_score=draw(st.sampled_from([0.1, 0.5, 0.9])),
            trust_score=draw(st.sampled_from([0.2, 0.8])),
            sensitivity=draw(st.sampled_from(["public", "secret"])),
        )
        for name in names
    ]
    weights = {"importance": draw(st.sampled_from([0.0, 0.4, 2.0]))}
    config = {"weights": weights, "min_score": draw(st.sampled_from([None, 0.5, 0.9]))}
    return request(items, budget=draw(st.sampled_from([250, 400, 900])), compile_config=config)


def compiled_or_none(wanted: CompilationRequest) -> CompileResult | None:
    try:
        return again(wanted)
    except CompileError:
        return None


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(requests(), requests())
@pytest.mark.covers("DF-12")
def test_taking_the_named_changes_back_undoes_the_flip(
    left: CompilationRequest, right: CompilationRequest
) -> None:
    one, other = compiled_or_none(left), compiled_or_none(right)
    if one is None or other is None:
        return
    for flip in compared(one, other).items:
        if not flip.is_flip and flip.change != "tokens":
            continue
        assert flip.because is not None
        assert flip.because.basis == "verified"
        receipts = again(reverted(right, left, flip.because.changes)).receipts
        if flip.change == "tokens":
            tokens = {receipt.item_id: receipt.final_tokens for receipt in receipts}
            assert flip.left is not None
            assert tokens[flip.item_id] == flip.left.tokens_after
        found = {receipt.item_id: receipt.decision for receipt in receipts}
        if flip.change == "removed":
            assert flip.item_id in found
        else:
            assert found.get(flip.item_id) == (flip.left.decision if flip.left else None)


@settings(max_examples=40)
@given(requests(), requests())
def test_taking_everything_back_is_the_left_request(
    left: CompilationRequest, right: CompilationRequest
) -> None:
    one, other = side_of(left), side_of(right)
    names = [change.name for change in compile_diff(one, other).settings]
    ids = {"request_id", "run_id", "step_id"}
    assert reverted(right, left, names).model_dump(exclude=ids) == left.model_dump(exclude=ids)
    assert reverted(right, left, []).model_dump(exclude=ids) == right.model_dump(exclude=ids)


def side_of(wanted: CompilationRequest) -> CompileSide:
    return CompileSide(None, None, None, (), request=wanted)


@settings(max_examples=40)
@given(requests(), requests())
def test_a_compile_diff_is_empty_against_itself_and_mirrors(
    left: CompilationRequest, right: CompilationRequest
) -> None:
    one, other = compiled_or_none(left), compiled_or_none(right)
    if one is None or other is None:
        return
    before, after = side_of_result(one), side_of_result(other)
    assert compile_diff(before, before).is_empty
    assert compile_diff(after, before) == mirrored_compile(compile_diff(before, after))


def test_a_changed_time_is_a_cause_too() -> None:
    stale = item("a", ttl_seconds=60)
    left = compiled([stale])
    right = compiled([stale], now="2026-03-04T13:00:00Z")
    because = of(compared(left, right), "a").because
    assert because is not None
    assert (because.kind, because.changes) == ("time", ("now",))
    assert NOW.replace("Z", "") in because.detail
