"""Comparisons as JSON: one form for the API, commands and whatever calls them later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hansard_compiler.diff import (
    CompileDiff,
    Delta,
    ItemDiff,
    ItemSide,
    JsonDiff,
    MessagePair,
    RequestDiff,
    TextOp,
)
from hansard_compiler.diff.compiles import Amount, RuleDiff, TermDiff
from hansard_compiler.diff.sides import ScoreTerm
from hansard_web.api.bodies import run_body, skeleton_body
from hansard_web.api.values import Body, fields_of, milliseconds, plain
from hansard_web.compile_view.labels import ItemNames
from hansard_web.diff.runs import AlignedStep, RunDiff
from hansard_web.diff.steps import StepDiff, ValueDiff

_MOST_TEXT = 200_000  # characters of one stretch of text; more is cut, and the cut is shown
_PER_POINT = 1_000_000_000


def step_diff_body(diff: StepDiff) -> Body:
    """Return the comparison of two steps."""
    return {
        "kind": "steps",
        "left": skeleton_body(diff.left.step),
        "right": skeleton_body(diff.right.step),
        "is_empty": diff.is_empty,
        "changed_fields": list(diff.what),
        "headline": [_delta(one) for one in diff.figures],
        "compile": None
        if diff.context is None
        else compile_diff_body(diff.context, diff.item_names),
        "messages": [_message(diff, pair) for pair in diff.messages],
        "tools": json_diff_body(diff.tools),
        "parameters": json_diff_body(diff.parameters),
        "request": None if diff.request is None else request_diff_body(diff.request),
        "input": _value(diff.input),
        "output": _value(diff.output),
        "notes": list(diff.notes),
    }


def run_diff_body(
    diff: RunDiff,
    steps: Sequence[AlignedStep],
    *,
    next_cursor: str | None,
    focus: StepDiff | None,
) -> Body:
    """Return the comparison of two runs, with one page of their steps.

    `detail` is the comparison of the first compile or call that both have and that differs.
    """
    parted = diff.parted
    return {
        "kind": "runs",
        "left": run_body(diff.left),
        "right": run_body(diff.right),
        "is_empty": diff.is_empty,
        "headline": [_delta(one) for one in diff.figures],
        "counts": dict(diff.counts),
        "first_divergence": None if parted is None else _aligned(parted),
        "steps": [_aligned(one) for one in steps],
        "next_cursor": next_cursor,
        "total": len(diff.steps),
        "detail": None if focus is None else step_diff_body(focus),
        "notes": list(diff.notes),
    }


def _aligned(one: AlignedStep) -> Body:
    """Return a row of two trees laid side by side."""
    left = None if one.left is None else one.left.step
    right = None if one.right is None else one.right.step
    return {
        **fields_of(one, "number", "state"),
        **fields_of(one.row.step, "name", "role"),
        "depth": one.row.depth,
        "left": None if left is None else left.step_id,
        "right": None if right is None else right.step_id,
        "left_duration_ms": None if left is None else milliseconds(left.duration_ns),
        "right_duration_ms": None if right is None else milliseconds(right.duration_ns),
        "changed_fields": list(one.what),
    }


def _delta(one: Delta) -> Body:
    return fields_of(one, "name", "left", "right", "delta", "share", "direction", "verdict")


# ---- compiles


def compile_diff_body(diff: CompileDiff, names: ItemNames) -> Body:
    """Return the comparison of two compiles; `items` holds every candidate of either."""
    left, right = diff.models
    return {
        "is_empty": diff.is_empty,
        "models": {"left": left, "right": right},
        "items": [_item(one, names) for one in diff.items],
        "budget": [_amount(one) for one in diff.budget],
        "by_class": [_amount(one) for one in diff.by_class],
        "by_section": [_amount(one) for one in diff.by_section],
        "policy": [_rule(one) for one in diff.policy],
        "redactions": [
            {
                "item_id": one.item_id,
                "left": list(one.left.removed) if one.left else [],
                "right": list(one.right.removed) if one.right else [],
            }
            for one in diff.redactions
        ],
        "settings": [
            {**fields_of(one, "name", "kind"), "change": one.presence,
             **fields_of(one, "left", "right")}
            for one in diff.settings
        ]
        if diff.knows_settings
        else None,
    }  # fmt: skip


def _item(one: ItemDiff, names: ItemNames) -> Body:
    """Return one item on both sides, what became of it, and why."""
    return {
        "item_id": one.item_id,
        "name": names.of(one),
        "change": one.change,
        "left": None if one.left is None else _side(one.left),
        "right": None if one.right is None else _side(one.right),
        "tokens_delta": one.tokens_delta,
        "score_delta": _points(one.score_delta),
        "terms": [_term(term) for term in one.terms],
        "policy_changed": one.is_policy_changed,
        "redaction_changed": one.is_redaction_changed,
        "cause": None if one.because is None else plain(asdict(one.because)),
    }


def _side(side: ItemSide) -> Body:
    return {
        **fields_of(side, "kind", "decision", "reason"),
        "pass": side.pass_name,
        **fields_of(side, "tokens_before", "tokens_after"),
        "score": _points(side.score),
        **fields_of(side, "section", "source", "rule_ids"),
        "related_item_id": side.related,
        "missed_by_tokens": side.missed_tokens,
        "missed_by_score": _points(side.missed_score),
        **fields_of(side, "original_ref", "final_ref"),
    }


def _term(one: TermDiff) -> Body:
    return {
        "term": one.term,
        "left": _term_side(one.left),
        "right": _term_side(one.right),
        "delta": _points(one.delta),
    }


def _term_side(term: ScoreTerm | None) -> Body | None:
    if term is None:
        return None
    return {
        "value": term.value / 1_000_000,
        "weight": term.weight / 1_000,
        "points": _points(term.points),
    }


def _points(billionths: int | None) -> float | None:
    return None if billionths is None else billionths / _PER_POINT


def _amount(one: Amount) -> Body:
    return fields_of(one, "name", "left", "right", "delta")


def _rule(one: RuleDiff) -> Body:
    before, after = one.versions
    return {
        **fields_of(one, "rule_id", "change", "left", "right"),
        "left_version": before,
        "right_version": after,
        **fields_of(one, "left_items", "right_items"),
    }


# ---- messages, requests, values


def _message(diff: StepDiff, pair: MessagePair) -> Body:
    left = None if pair.left is None else diff.left.messages[pair.left]
    right = None if pair.right is None else diff.right.messages[pair.right]
    message = right or left
    return {
        **fields_of(pair, "state", "left", "right"),
        "role": None if message is None else message.role,
        "left_hash": None if left is None else left.hash.hex(),
        "right_hash": None if right is None else right.hash.hex(),
        "text": _ops(diff.message_text(pair) or ()),
    }


def request_diff_body(one: RequestDiff) -> Body:
    """Return the comparison of two requests as they were sent."""
    body = asdict(one)
    return {**body, "json": None if one.json is None else json_diff_body(one.json)}


def json_diff_body(diff: JsonDiff) -> Body:
    """Return changes by path."""
    return {
        "is_truncated": diff.is_cut,
        "changes": [fields_of(one, "path", "state", "left", "right") for one in diff.changes],
    }


def _value(diff: ValueDiff) -> Body:
    return {
        "is_empty": diff.is_empty,
        "text": _ops(diff.text),
        "json": json_diff_body(diff.json)["changes"],
    }


def _ops(ops: Sequence[TextOp]) -> list[Any]:
    return [{"op": one.kind, "text": _cut(one.text)} for one in ops]


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}… ({len(text):,} characters)"
