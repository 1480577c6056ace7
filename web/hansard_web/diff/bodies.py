"""Comparisons as JSON: one form for the API, commands and whatever calls them later."""

from __future__ import annotations

from collections.abc import Sequence

from hansard_compiler.calls import Json
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
from hansard_compiler.diff.changes import Change
from hansard_compiler.diff.compiles import Amount, RuleDiff, TermDiff
from hansard_compiler.diff.json_paths import JsonChange
from hansard_compiler.diff.sides import ScoreTerm
from hansard_store.bodies import body_of, milliseconds
from hansard_web.api.bodies import run_body, skeleton_body
from hansard_web.api.values import plain
from hansard_web.compile_view.labels import ItemNames
from hansard_web.diff import schemas
from hansard_web.diff.runs import AlignedStep, RunDiff
from hansard_web.diff.steps import StepDiff, ValueDiff

_MOST_TEXT = 200_000  # characters of one stretch of text; more is cut, and the cut is shown
_PER_POINT = 1_000_000_000


def step_diff_body(diff: StepDiff) -> schemas.StepDiffBody:
    """Return the comparison of two steps."""
    context = diff.context
    return body_of(
        schemas.StepDiffBody,
        diff,
        kind="steps",
        left=skeleton_body(diff.left.step),
        right=skeleton_body(diff.right.step),
        changed_fields=list(diff.what),
        headline=_headline(diff.figures),
        compile=None if context is None else compile_diff_body(context, diff.item_names),
        messages=[_message(diff, pair) for pair in diff.messages],
        tools=_json_diff(diff.tools),
        parameters=_json_diff(diff.parameters),
        request=None if diff.request is None else request_diff_body(diff.request),
        input=_value(diff.input),
        output=_value(diff.output),
    )


def run_diff_body(
    diff: RunDiff,
    steps: Sequence[AlignedStep],
    *,
    next_cursor: str | None,
    focus: StepDiff | None,
) -> schemas.RunDiffAnswer:
    """Return the comparison of two runs, with one page of their steps.

    `detail` is the comparison of the first compile or call that both have and that differs.
    """
    return body_of(
        schemas.RunDiffAnswer,
        diff,
        kind="runs",
        left=run_body(diff.left),
        right=run_body(diff.right),
        headline=_headline(diff.figures),
        first_divergence=None if diff.parted is None else _aligned(diff.parted),
        steps=[_aligned(one) for one in steps],
        next_cursor=next_cursor,
        total=len(diff.steps),
        detail=None if focus is None else step_diff_body(focus),
    )


def _aligned(one: AlignedStep) -> schemas.AlignedStepBody:
    left = None if one.left is None else one.left.step
    right = None if one.right is None else one.right.step
    return body_of(
        schemas.AlignedStepBody,
        one,
        name=one.row.step.name,
        role=one.row.step.role,
        depth=one.row.depth,
        left=None if left is None else left.step_id,
        right=None if right is None else right.step_id,
        left_duration_ms=None if left is None else milliseconds(left.duration_ns),
        right_duration_ms=None if right is None else milliseconds(right.duration_ns),
        changed_fields=list(one.what),
    )


def _headline(figures: Sequence[Delta]) -> list[schemas.DeltaBody]:
    return [body_of(schemas.DeltaBody, one) for one in figures]


# ---- compiles


def compile_diff_body(diff: CompileDiff, names: ItemNames) -> schemas.CompileDelta:
    """Return the comparison of two compiles; `items` holds every candidate of either."""
    left, right = diff.models
    settings = [
        body_of(schemas.SettingDelta, one, change=one.presence, **_values(one))
        for one in diff.settings
    ]
    return body_of(
        schemas.CompileDelta,
        diff,
        models={"left": left, "right": right},
        items=[_item(one, names) for one in diff.items],
        budget=_amounts(diff.budget),
        by_class=_amounts(diff.by_class),
        by_section=_amounts(diff.by_section),
        policy=[_rule(one) for one in diff.policy],
        redactions=[
            {"item_id": one.item_id, "left": _removed(one.left), "right": _removed(one.right)}
            for one in diff.redactions
        ],
        settings=settings if diff.knows_settings else None,
    )


def _removed(side: ItemSide | None) -> list[str]:
    return [] if side is None else list(side.removed)


def _item(one: ItemDiff, names: ItemNames) -> schemas.DiffItem:
    """Return one item on both sides, what became of it, and why."""
    because = one.because
    return body_of(
        schemas.DiffItem,
        one,
        name=names.of(one),
        left=None if one.left is None else _side(one.left),
        right=None if one.right is None else _side(one.right),
        score_delta=_points(one.score_delta),
        terms=[_term(term) for term in one.terms],
        policy_changed=one.is_policy_changed,
        redaction_changed=one.is_redaction_changed,
        cause=None if because is None else body_of(schemas.DiffBecause, because),
    )


def _side(side: ItemSide) -> schemas.DiffItemSide:
    return body_of(
        schemas.DiffItemSide,
        side,
        **{"pass": side.pass_name},
        score=_points(side.score),
        related_item_id=side.related,
        missed_by_tokens=side.missed_tokens,
        missed_by_score=_points(side.missed_score),
    )


def _term(one: TermDiff) -> schemas.TermDelta:
    return {
        "term": one.term,
        "left": _term_side(one.left),
        "right": _term_side(one.right),
        "delta": _points(one.delta),
    }


def _term_side(term: ScoreTerm | None) -> schemas.TermSide | None:
    if term is None:
        return None
    return {
        "value": term.value / 1_000_000,
        "weight": term.weight / 1_000,
        "points": term.points / _PER_POINT,
    }


def _points(billionths: int | None) -> float | None:
    return None if billionths is None else billionths / _PER_POINT


def _amounts(amounts: Sequence[Amount]) -> list[schemas.DiffAmount]:
    return [body_of(schemas.DiffAmount, one) for one in amounts]


def _rule(one: RuleDiff) -> schemas.RuleDelta:
    before, after = one.versions
    return body_of(schemas.RuleDelta, one, left_version=before, right_version=after, **_values(one))


# ---- messages, requests, values


def _message(diff: StepDiff, pair: MessagePair) -> schemas.MessageDelta:
    left = None if pair.left is None else diff.left.messages[pair.left]
    right = None if pair.right is None else diff.right.messages[pair.right]
    message = right or left
    return body_of(
        schemas.MessageDelta,
        pair,
        role=None if message is None else message.role,
        left_hash=None if left is None else left.hash.hex(),
        right_hash=None if right is None else right.hash.hex(),
        text=_ops(diff.message_text(pair) or ()),
    )


def request_diff_body(one: RequestDiff) -> schemas.RequestDelta:
    """Return the comparison of two requests as they were sent."""
    by_path = None if one.json is None else _json_diff(one.json)
    return body_of(schemas.RequestDelta, one, json=by_path)


def _values(one: Change | JsonChange | RuleDiff) -> Json:
    """Return the values of both sides as JSON can say them."""
    return {"left": plain(one.left), "right": plain(one.right)}


def _json_diff(diff: JsonDiff) -> schemas.PathDelta:
    changes = [body_of(schemas.PathChange, one, **_values(one)) for one in diff.changes]
    return {"is_truncated": diff.is_cut, "changes": changes}


def _value(diff: ValueDiff) -> schemas.ValueDelta:
    return body_of(
        schemas.ValueDelta, diff, text=_ops(diff.text), json=_json_diff(diff.json)["changes"]
    )


def _ops(ops: Sequence[TextOp]) -> list[schemas.TextOpBody]:
    return [{"op": one.kind, "text": _cut(one.text)} for one in ops]


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}… ({len(text):,} characters)"
