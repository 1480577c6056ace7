"""Two compiles as a page shows them: items, causes, settings, tokens, rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from hansard_compiler.compile.passes.budget import CLASSES
from hansard_compiler.diff import Because, Change, CompileDiff, ItemDiff, ItemSide
from hansard_compiler.diff.compiles import Amount, RuleDiff, TermDiff
from hansard_compiler.diff.explanations import setting_words, value_words
from hansard_compiler.diff.sides import ScoreTerm
from hansard_web.compile_view.labels import (
    DECISIONS,
    SECTIONS,
    ItemNames,
    icon_of,
    kind_words,
    points,
)
from hansard_web.diff.labels import signed, tokens_text
from hansard_web.diff.page.state import DiffState
from hansard_web.diff.steps import StepDiff
from hansard_web.ui.format import count, plural, shorten

_MOST_ITEMS: Final = 200  # of one kind in a table; the API has all
_MOST_NAMED: Final = 6
_OF_DAY, _TO_SECOND, _TO_MS = 11, 19, 23  # where parts of `2026-11-21T14:02:57.123` begin, end


@dataclass(frozen=True, slots=True)
class ComparedSetting:
    """Something that went in differently."""

    name: str
    left: str | None
    right: str | None


@dataclass(frozen=True, slots=True)
class SectionBar:
    """Tokens of a part of the prompt, or of a class of items, on both sides."""

    label: str
    left: int | None
    right: int | None
    left_pct: float
    right_pct: float
    delta: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one compile did with an item."""

    decision: str
    label: str
    tokens: str


@dataclass(frozen=True, slots=True)
class _TermRow:
    term: str
    left: str
    right: str
    delta: str


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One candidate whose decision differs."""

    item_id: str
    name: str
    source: str
    icon: str
    change: str
    left: Verdict | None
    right: Verdict | None
    tokens: str
    kind: str  # of the cause
    detail: str
    is_verified: bool
    undone_by: str  # what was taken back
    score: str
    terms: tuple[_TermRow, ...]
    href: str


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """An item that is decided the same way with another score."""

    name: str
    decision: str
    label: str
    left: str
    right: str
    delta: str
    terms: str  # those that moved


@dataclass(frozen=True, slots=True)
class ContextDiffView:
    """Two compiles side by side."""

    say: str
    left_used: str
    right_used: str
    rows: tuple[ItemRow, ...]
    more: int  # rows that are not shown
    scores: tuple[ScoreRow, ...]
    same: int
    same_href: str | None
    settings: tuple[ComparedSetting, ...]
    inputs: str  # how many items are new, gone, changed
    knows_settings: bool
    same_settings: str
    sections: tuple[SectionBar, ...]
    classes: tuple[SectionBar, ...]
    reserve: str
    rules: tuple[tuple[str, str, str], ...]  # rule, change, items
    redactions: tuple[tuple[str, str, str], ...]  # item, A, B


def context_view(step: StepDiff, diff: CompileDiff, state: DiffState) -> ContextDiffView:
    differing = sorted(
        (one for one in diff.items if one.change not in ("same", "score")),
        key=lambda one: (not one.is_flip, -abs(one.tokens_delta or 0), one.item_id),
    )
    scored = [one for one in diff.items if one.change == "score"]
    same = len(diff.items) - len(differing) - len(scored)
    listed = differing + [one for one in diff.items if one.change == "same" and state.everything]
    candidates = [sum(getattr(one, side) is not None for one in diff.items) for side in _BOTH]
    settings = [one for one in diff.settings if one.kind != "input"]
    names = step.item_names
    return ContextDiffView(
        say=f"{plural(candidates[0], 'candidate')} in A, {count(candidates[1])} in B",
        left_used=_used(diff, "left"),
        right_used=_used(diff, "right"),
        rows=tuple(_item(step, one, names) for one in listed[:_MOST_ITEMS]),
        more=max(len(listed) - _MOST_ITEMS, 0),
        scores=tuple(_score_row(one, names) for one in scored[:_MOST_ITEMS]),
        same=0 if state.everything else same,
        same_href=state.href(everything=True) + "#h-items" if same else None,
        settings=tuple(map(_setting, settings)),
        inputs=_inputs(diff.settings),
        knows_settings=diff.knows_settings,
        same_settings=_same_settings(diff),
        sections=_bars(diff.by_section, SECTIONS),
        classes=_bars([one for one in diff.by_class if one.left or one.right], {}),
        reserve=_reserve(diff),
        rules=tuple(map(_rule, diff.policy)),
        redactions=tuple(_redaction(one, names) for one in diff.redactions),
    )


_PRESENCE: Final = (("new in B", "added"), ("only in A", "removed"), ("changed", "changed"))
_BOTH: Final = ("left", "right")


def _used(diff: CompileDiff, side: str) -> str:
    amounts = {one.name: getattr(one, side) for one in diff.budget}
    used, available = amounts.get("used"), amounts.get("available")
    if used is None:
        return "unknown"
    return f"{count(used)} of {count(available)}" if available is not None else count(used)


def _reserve(diff: CompileDiff) -> str:
    reserve = next((one for one in diff.budget if one.name == "reserve"), None)
    if reserve is None or reserve.left is None or reserve.right is None:
        return ""
    if reserve.left == reserve.right:
        return f"Unchanged: {count(reserve.left)} reserved for the response."
    return f"Kept for the answer: {count(reserve.left)} in A, {count(reserve.right)} in B."


def _setting(one: Change) -> ComparedSetting:
    if one.kind == "rule":
        return ComparedSetting(setting_words(one.name), _rule_text(one.left), _rule_text(one.right))
    if one.name == "now":
        return ComparedSetting(setting_words(one.name), *_moments(one.left, one.right))
    left = None if one.left is None else shorten(value_words(one.left), 60)
    right = None if one.right is None else shorten(value_words(one.right), 60)
    if one.kind == "order":
        return ComparedSetting(setting_words(one.name), "differs", "differs")
    return ComparedSetting(setting_words(one.name), left, right)


def _moments(left: object, right: object) -> tuple[str | None, ...]:
    """Return two times as short as they still differ: of one day without it, `14:02:57`."""
    texts = [None if one is None else value_words(one) for one in (left, right)]
    first = _OF_DAY if texts[0] and texts[1] and texts[0][:10] == texts[1][:10] else 0
    for last in _TO_SECOND, _TO_MS:
        short = [one and one[first:last].replace("T", " ") for one in texts]
        if short[0] != short[1]:
            return tuple(short)
    return tuple(texts)


def _rule_text(rule: object) -> str | None:
    if not isinstance(rule, dict):
        return None
    version = rule.get("metadata", {}).get("version")
    return f"version {version}" if version else str(rule.get("effect") or "there")


def _inputs(settings: Sequence[Change]) -> str:
    texts = []
    for word, presence in _PRESENCE:
        number = sum(one.kind == "input" and one.presence == presence for one in settings)
        if number:
            texts.append(f"{count(number)} {word}")
    return ", ".join(texts)


def _same_settings(diff: CompileDiff) -> str:
    differing = {one.kind for one in diff.settings}
    names = (("model", "model"), ("task", "task"), ("rule", "rules"), ("weight", "weights"))
    same = [label for kind, label in names if kind not in differing]
    items = sum(one.change == "same" for one in diff.items)
    return ", ".join([*same, plural(items, "item")]) if diff.knows_settings else ""


def _bars(amounts: Sequence[Amount], labels: Mapping[str, str]) -> tuple[SectionBar, ...]:
    longest = max((max(one.left or 0, one.right or 0) for one in amounts), default=0) or 1
    order = {name: at for at, name in enumerate((*labels, *CLASSES))}
    return tuple(
        SectionBar(
            labels.get(one.name, one.name.replace("_", " ")).lower(),
            one.left,
            one.right,
            round(100 * (one.left or 0) / longest, 1),
            round(100 * (one.right or 0) / longest, 1),
            signed(one.delta),
        )
        for one in sorted(amounts, key=lambda one: order.get(one.name, len(order)))
    )


def _rule(one: RuleDiff) -> tuple[str, str, str]:
    before, after = one.versions
    versions = f"version {before} → {after}" if before and after and before != after else ""
    words = {
        "added": "only in B",
        "removed": "only in A",
        "changed": versions or "changed",
        "applies": "applies to other items",
    }
    names = sorted({*one.left_items} ^ {*one.right_items})
    return one.rule_id, words[one.change], shorten(", ".join(names), 120)


def _redaction(one: ItemDiff, names: ItemNames) -> tuple[str, str, str]:
    left, right = (
        ", ".join(sorted({cut.partition(":")[0] for cut in side.removed})) if side else ""
        for side in (one.left, one.right)
    )
    return names.of(one), left or "nothing", right or "nothing"


def _item(step: StepDiff, one: ItemDiff, names: ItemNames) -> ItemRow:
    side = one.right or one.left
    assert side is not None  # an item is a candidate on one side at least
    because = one.because
    detail = "the same decision about other content" if one.change == "content" else ""
    compiled = (step.right if one.right else step.left).compiled
    where = "" if compiled is None else compiled.compilation.step_id
    return ItemRow(
        item_id=one.item_id,
        name=names.of(one),
        source=" · ".join(part for part in (kind_words(side.kind), side.source or "") if part),
        icon=icon_of(side.kind),
        change=one.change,
        left=_verdict(one.left),
        right=_verdict(one.right),
        tokens=signed(one.tokens_delta),
        kind="" if because is None else because.kind,
        detail=detail if because is None else because.detail,
        is_verified=because is not None and because.basis == "verified",
        undone_by="" if because is None else _undone_by(because),
        score="" if not one.score_delta else _signed_points(one.score_delta),
        terms=tuple(map(_term, one.terms)),
        href=f"/steps/{where}/context?{urlencode({'item': one.item_id})}" if where else "",
    )


def _undone_by(because: Because) -> str:
    if because.basis == "evidence":
        return "Evidence of the receipts; it was not tried, as a request is not here."
    names = ", ".join(because.changes[:_MOST_NAMED])
    rest = len(because.changes) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    minimal = "" if because.is_minimal else " Fewer might do: trying was given up."
    return f"Verified: with {names}{more} as in A, B compiles to what A decided.{minimal}"


def _verdict(side: ItemSide | None) -> Verdict | None:
    if side is None:
        return None
    label = DECISIONS.get(side.decision, side.decision)
    return Verdict(side.decision, label, tokens_text(side))


def _term(one: TermDiff) -> _TermRow:
    return _TermRow(
        one.term.replace("_", " "), _term_text(one.left), _term_text(one.right),
        _signed_points(one.delta),
    )  # fmt: skip


def _score_row(one: ItemDiff, names: ItemNames) -> ScoreRow:
    left, right = one.left, one.right
    assert left is not None  # candidates of both sides alone are decided the same way
    assert right is not None
    moved = ", ".join(
        f"{term.term.replace('_', ' ')} {_signed_points(term.delta)}" for term in one.terms
    )
    return ScoreRow(
        names.of(one),
        right.decision,
        DECISIONS.get(right.decision, right.decision),
        "none" if left.score is None else points(left.score),
        "none" if right.score is None else points(right.score),
        _signed_points(one.score_delta or 0),
        moved,
    )


def _term_text(term: ScoreTerm | None) -> str:
    if term is None:
        return "none"
    return f"{term.value / 1_000_000:.3f} × {abs(term.weight) / 1_000:g}"


def _signed_points(nano: int) -> str:
    return f"{'+' if nano > 0 else '−'}{points(abs(nano))}" if nano else "0"
