"""Comparisons as JSON: one form for the API, commands and whatever calls them later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

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
from hansard_compiler.diff.compiles import Amount, ItemChange, RuleDiff, TermDiff
from hansard_compiler.diff.json_paths import JsonChange
from hansard_compiler.diff.sides import ScoreTerm
from hansard_store.bodies import Answer, Body, Description, Page, body_of, milliseconds
from hansard_web.api.bodies import RunBody, StepMention, run_body, skeleton_body
from hansard_web.api.values import plain
from hansard_web.compile_view.labels import ItemNames
from hansard_web.diff.runs import AlignedStep, RunDiff
from hansard_web.diff.steps import StepDiff, ValueDiff
from hansard_web.receipts.bodies import ItemOutcome

_MOST_TEXT = 200_000  # characters of one stretch of text; more is cut, and the cut is shown
_PER_POINT = 1_000_000_000


class DeltaBody(Body):
    """A figure of both sides; null is unknown, never zero."""

    name: str
    left: int | float | str | None
    right: int | float | str | None
    delta: int | float | None
    share: Annotated[float | None, Description("of the left side")]
    direction: Literal["more", "less", "same", "other", "unknown"]
    verdict: Literal["better", "worse", "neutral", "unknown"]


class TermSide(Body):
    value: float
    weight: float
    points: float


class TermDelta(Body):
    term: str
    left: TermSide | None
    right: TermSide | None
    delta: float | None


class DiffItemSide(ItemOutcome):
    """What one compile did with the item; scores are points."""

    decision: str
    section: str | None
    score: float | None
    missed_by_score: float | None


class DiffBecause(Body):
    kind: Annotated[
        str,
        Description(
            "budget, weight, setting, rule, model, task, time, input, order, conflict, "
            "duplicate, dependency, removal, competition, score, several, unknown"
        ),
    ]
    detail: str
    basis: Annotated[
        Literal["verified", "evidence"],
        Description("verified: with `changes` taken back, compiling again undoes the flip"),
    ]
    changes: list[str]
    is_minimal: Annotated[
        bool, Description("false: trying was given up before the set was smallest")
    ]


class DiffItem(Body):
    """A candidate of either compile; null where it was none."""

    item_id: str
    name: Annotated[str, Description("what people call it: of an id that is a hash, what it says")]
    change: ItemChange
    left: DiffItemSide | None
    right: DiffItemSide | None
    tokens_delta: int | None
    score_delta: float | None
    terms: list[TermDelta]
    policy_changed: bool
    redaction_changed: bool
    cause: DiffBecause | None


class DiffAmount(Body):
    name: str
    left: int | None
    right: int | None
    delta: int | None


class RuleDelta(Body):
    rule_id: str
    change: Literal["added", "removed", "changed", "applies"]
    left: dict[str, Any] | None
    right: dict[str, Any] | None
    left_version: str | None
    right_version: str | None
    left_items: list[str]
    right_items: list[str]


class RedactionDelta(Body):
    item_id: str
    left: list[str]
    right: list[str]


class SettingDelta(Body):
    """Something that went into the compile differently."""

    name: str
    kind: str
    change: Literal["added", "removed", "changed"]
    left: Any
    right: Any


class Models(Body):
    left: str | None
    right: str | None


class CompileDelta(Body):
    is_empty: bool
    models: Models
    items: list[DiffItem]
    budget: list[DiffAmount]
    by_class: list[DiffAmount]
    by_section: list[DiffAmount]
    policy: list[RuleDelta]
    redactions: list[RedactionDelta]
    settings: Annotated[list[SettingDelta] | None, Description("null: a request is not stored")]


class TextOpBody(Body):
    op: Literal["same", "del", "ins"]
    text: str


class PathChange(Body):
    path: str
    state: Literal["changed", "only_left", "only_right"]
    left: Any
    right: Any


class PathDelta(Body):
    is_truncated: bool
    changes: list[PathChange]


class MessageDelta(Body):
    """`retold`: the same was said with other ids, parts or reasoning; it is no difference."""

    state: Literal["same", "retold", "changed", "moved", "only_left", "only_right"]
    left: int | None
    right: int | None
    role: str | None
    left_hash: str | None
    right_hash: str | None
    text: Annotated[list[TextOpBody], Description("of a changed one, word by word")]


class RequestDelta(Body):
    is_equal: bool
    left_size: int | None
    right_size: int | None
    left_ref: str | None
    right_ref: str | None
    first_difference: Annotated[int | None, Description("offset of the first byte that differs")]
    json: PathDelta | None
    unified: Annotated[str | None, Description("the bytes as a unified diff; null where json is")]
    is_unified_truncated: bool


class ValueDelta(Body):
    is_empty: bool
    text: list[TextOpBody]
    json: list[PathChange]


class StepDiffBody(Body):
    """Two steps; `what` names the parts in which they differ, empty where nothing does."""

    kind: Literal["steps"]
    left: StepMention
    right: StepMention
    is_empty: bool
    changed_fields: list[str]
    headline: list[DeltaBody]
    compile: Annotated[CompileDelta | None, Description("null unless both compiled their context")]
    messages: list[MessageDelta]
    tools: PathDelta
    parameters: PathDelta
    request: RequestDelta | None
    input: ValueDelta
    output: ValueDelta
    notes: list[str]


class StepDiffAnswer(Answer, StepDiffBody):
    pass


class AlignedStepBody(Body):
    number: int
    state: Literal["same", "changed", "only_left", "only_right"]
    name: str
    role: str
    depth: int
    left: str | None
    right: str | None
    left_duration_ms: float | None
    right_duration_ms: float | None
    changed_fields: list[str]


class StepCounts(Body):
    same: int
    changed: int
    only_left: int
    only_right: int


class RunDiffAnswer(Page):
    """Two runs, with one page of their aligned steps."""

    kind: Literal["runs"]
    left: RunBody
    right: RunBody
    is_empty: bool
    headline: list[DeltaBody]
    counts: StepCounts
    first_divergence: AlignedStepBody | None
    steps: list[AlignedStepBody]
    total: int
    detail: StepDiffBody | None
    notes: list[str]


class CompactionSides(Answer):
    """The calls before and after a compaction, and their comparison."""

    step_id: str
    before: str
    after: str
    diff: StepDiffBody


def step_diff_body(diff: StepDiff) -> StepDiffBody:
    """Return the comparison of two steps."""
    context = diff.context
    return body_of(
        StepDiffBody,
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
) -> RunDiffAnswer:
    """Return the comparison of two runs, with one page of their steps.

    `detail` is the comparison of the first compile or call that both have and that differs.
    """
    return body_of(
        RunDiffAnswer,
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


def _aligned(one: AlignedStep) -> AlignedStepBody:
    left = None if one.left is None else one.left.step
    right = None if one.right is None else one.right.step
    return body_of(
        AlignedStepBody,
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


def _headline(figures: Sequence[Delta]) -> list[DeltaBody]:
    return [body_of(DeltaBody, one) for one in figures]


# ---- compiles


def compile_diff_body(diff: CompileDiff, names: ItemNames) -> CompileDelta:
    """Return the comparison of two compiles; `items` holds every candidate of either."""
    left, right = diff.models
    settings = [
        body_of(SettingDelta, one, change=one.presence, **_values(one)) for one in diff.settings
    ]
    return body_of(
        CompileDelta,
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


def _item(one: ItemDiff, names: ItemNames) -> DiffItem:
    """Return one item on both sides, what became of it, and why."""
    because = one.because
    return body_of(
        DiffItem,
        one,
        name=names.of(one),
        left=None if one.left is None else _side(one.left),
        right=None if one.right is None else _side(one.right),
        score_delta=_points(one.score_delta),
        terms=[_term(term) for term in one.terms],
        policy_changed=one.is_policy_changed,
        redaction_changed=one.is_redaction_changed,
        cause=None if because is None else body_of(DiffBecause, because),
    )


def _side(side: ItemSide) -> DiffItemSide:
    return body_of(
        DiffItemSide,
        side,
        **{"pass": side.pass_name},
        score=_points(side.score),
        related_item_id=side.related,
        missed_by_tokens=side.missed_tokens,
        missed_by_score=_points(side.missed_score),
    )


def _term(one: TermDiff) -> TermDelta:
    return {
        "term": one.term,
        "left": _term_side(one.left),
        "right": _term_side(one.right),
        "delta": _points(one.delta),
    }


def _term_side(term: ScoreTerm | None) -> TermSide | None:
    if term is None:
        return None
    return {
        "value": term.value / 1_000_000,
        "weight": term.weight / 1_000,
        "points": term.points / _PER_POINT,
    }


def _points(billionths: int | None) -> float | None:
    return None if billionths is None else billionths / _PER_POINT


def _amounts(amounts: Sequence[Amount]) -> list[DiffAmount]:
    return [body_of(DiffAmount, one) for one in amounts]


def _rule(one: RuleDiff) -> RuleDelta:
    before, after = one.versions
    return body_of(RuleDelta, one, left_version=before, right_version=after, **_values(one))


# ---- messages, requests, values


def _message(diff: StepDiff, pair: MessagePair) -> MessageDelta:
    left = None if pair.left is None else diff.left.messages[pair.left]
    right = None if pair.right is None else diff.right.messages[pair.right]
    message = right or left
    return body_of(
        MessageDelta,
        pair,
        role=None if message is None else message.role,
        left_hash=None if left is None else left.hash.hex(),
        right_hash=None if right is None else right.hash.hex(),
        text=_ops(diff.message_text(pair) or ()),
    )


def request_diff_body(one: RequestDiff) -> RequestDelta:
    """Return the comparison of two requests as they were sent."""
    by_path = None if one.json is None else _json_diff(one.json)
    return body_of(RequestDelta, one, json=by_path)


def _values(one: Change | JsonChange | RuleDiff) -> Json:
    """Return the values of both sides as JSON can say them."""
    return {"left": plain(one.left), "right": plain(one.right)}


def _json_diff(diff: JsonDiff) -> PathDelta:
    changes = [body_of(PathChange, one, **_values(one)) for one in diff.changes]
    return {"is_truncated": diff.is_cut, "changes": changes}


def _value(diff: ValueDiff) -> ValueDelta:
    return body_of(ValueDelta, diff, text=_ops(diff.text), json=_json_diff(diff.json)["changes"])


def _ops(ops: Sequence[TextOp]) -> list[TextOpBody]:
    return [{"op": one.kind, "text": _cut(one.text)} for one in ops]


def _cut(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    return f"{text[:_MOST_TEXT]}… ({len(text):,} characters)"
