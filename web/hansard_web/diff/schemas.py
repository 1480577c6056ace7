"""What comparisons answer: one form for the API, commands and whatever calls them later."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from hansard_store.bodies import Answer, Body, Page
from hansard_web.api.schemas import RunItem, StepMention

ItemChange = Literal[
    "added", "removed", "included", "excluded", "compressed", "redacted",
    "tokens", "reason", "content", "score", "same",
]  # fmt: skip


class DeltaBody(Body):
    """A figure of both sides; null is unknown, never zero."""

    name: str
    left: int | float | str | None
    right: int | float | str | None
    delta: int | float | None
    share: Annotated[float | None, Field(description="of the left side")]
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


_Pass = TypedDict("_Pass", {"pass": str | None})


class DiffItemSide(Body, _Pass):
    """What one compile did with the item; scores are points."""

    kind: str | None
    decision: str
    reason: str
    tokens_before: int | None
    tokens_after: int | None
    score: float | None
    section: str | None
    source: str | None
    rule_ids: list[str]
    related_item_id: str | None
    missed_by_tokens: int | None
    missed_by_score: float | None
    original_ref: str | None
    final_ref: str | None


class DiffBecause(Body):
    kind: Annotated[
        str,
        Field(
            description="budget, weight, setting, rule, model, task, time, input, order, conflict, "
            "duplicate, dependency, removal, competition, score, several, unknown"
        ),
    ]
    detail: str
    basis: Annotated[
        Literal["verified", "evidence"],
        Field(description="verified: with `changes` taken back, compiling again undoes the flip"),
    ]
    changes: list[str]
    is_minimal: Annotated[
        bool, Field(description="false: trying was given up before the set was smallest")
    ]


class DiffItem(Body):
    """A candidate of either compile; null where it was none."""

    item_id: str
    name: Annotated[
        str, Field(description="what people call it: of an id that is a hash, what it says")
    ]
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
    settings: Annotated[
        list[SettingDelta] | None, Field(description="null: a request is not stored")
    ]


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
    text: Annotated[list[TextOpBody], Field(description="of a changed one, word by word")]


class RequestDelta(Body):
    is_equal: bool
    left_size: int | None
    right_size: int | None
    left_ref: str | None
    right_ref: str | None
    first_difference: Annotated[
        int | None, Field(description="offset of the first byte that differs")
    ]
    json: PathDelta | None
    unified: Annotated[
        str | None, Field(description="the bytes as a unified diff; null where json is")
    ]
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
    compile: Annotated[
        CompileDelta | None, Field(description="null unless both compiled their context")
    ]
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
    left: RunItem
    right: RunItem
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
