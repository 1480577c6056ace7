"""Causes in words: of changes that were tried, and of what receipts alone show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.passes.score import decimal_text
from hansard_compiler.diff.changes import Change
from hansard_compiler.diff.compiles import Because, CompileDiff, ItemDiff
from hansard_compiler.diff.sides import ItemSide

_MOST_NAMED = 4
_LONGEST_VALUE = 60
_CONFLICTS: Final = ("conflict_lost", "superseded", "conflict_won")
_NEEDS: Final = ("dependency", "group_withheld", "required_group")
_RULED: Final = (
    "policy_denied", "approval_required", "policy_failed", "policy_redacted",
    "sensitivity_withheld",
)  # fmt: skip
_NO_ROOM: Final = ("over_budget", "compressed_to_fit", "compression_failed")
_SETTING_WORDS: Final[Mapping[str, str]] = {
    "token_budget": "budget, tokens",
    "response_reserve": "kept for the answer, tokens",
    "task_summary": "task summary",
    "now": "time of the compile",
}


def setting_words(name: str) -> str:
    """Return the name of a setting in words."""
    if name.startswith("weight."):
        return f"weight of {name.removeprefix('weight.')}"
    field, _, rest = name.partition(".")
    if field == "left_out":
        return rest
    if field == "order":
        return f"order of {rest.replace('_', ' ')}"
    if field == "setting":
        return rest.replace("_", " ").replace(".", ", ")
    return _SETTING_WORDS.get(name, f"{field} {rest}" if rest else field.replace("_", " "))


def words_for(item: ItemDiff, changes: Sequence[Change]) -> tuple[str, str]:
    """Return kind and sentence of the changes that, taken back, undo the outcome of an item."""
    kinds = {_kind(item, one) for one in changes}
    kind = kinds.pop() if len(kinds) == 1 else "several"
    sentences = [_sentence(item, one) for one in changes[:_MOST_NAMED]]
    if len(changes) > _MOST_NAMED:
        sentences.append(f"{len(changes) - _MOST_NAMED} more")
    together = "together: " if len(changes) > 1 else ""
    return kind, together + ", ".join(sentences) + _lacking(item, changes)


def value_words(value: Any) -> str:
    """Return a value in a few words: numbers with separators, long texts cut."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _kind(item: ItemDiff, change: Change) -> str:
    """Return the kind of a cause; another item that did it has the reason."""
    subject = change.subject
    if subject is None or subject == item.item_id:
        return change.kind
    sides = (item.left, item.right)
    reasons = {side.reason for side in sides if side is not None and side.related == subject}
    if reasons & set(_CONFLICTS):
        return "conflict"
    if "duplicate" in reasons:
        return "duplicate"
    if reasons & set(_NEEDS):
        return "dependency"
    return "removal" if change.presence == "removed" else "competition"


def _sentence(item: ItemDiff, change: Change) -> str:
    if change.kind in ("input", "rule"):
        return _input_sentence(item, change)
    if change.kind == "order":
        return f"{setting_words(change.name)} differs"
    values = f"{value_words(change.left)} → {value_words(change.right)}"
    return f"{setting_words(change.name)} {values}{_points(item, change)}"


def _input_sentence(item: ItemDiff, change: Change) -> str:
    subject = "it" if change.subject == item.item_id else setting_words(change.name)
    if change.name.startswith("left_out."):
        return f"{subject} is {'left out' if change.presence == 'removed' else 'let in again'}"
    if change.presence == "added":
        return f"{subject} is new"
    if change.presence == "removed":
        return f"{subject} is not there any more"
    fields = _fields(change.left, change.right)
    return f"{subject} differs{f' in {fields}' if fields else ''}"


def _fields(left: Any, right: Any) -> str:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return ""
    differing = [
        name
        for name in sorted({*left, *right} - {"stable_hash"})
        if canonical_json(left.get(name)) != canonical_json(right.get(name))
    ]
    return ", ".join(name.replace("_", " ") for name in differing[:_MOST_NAMED])


def _points(item: ItemDiff, change: Change) -> str:
    """Return how many points a weight gave or took."""
    term = change.name.removeprefix("weight.")
    for one in item.terms if change.kind == "weight" else ():
        if one.term == term and one.delta:
            sign = "+" if one.delta > 0 else "−"
            return f" ({sign}{decimal_text(abs(one.delta))} points)"
    return ""


def _lacking(item: ItemDiff, changes: Sequence[Change]) -> str:
    """Say how much was lacking on the side where it is out."""
    for side, when in ((item.left, "before"), (item.right, "now")):
        if side is None or side.is_sent:
            continue
        if side.missed_tokens is not None and any(one.kind == "budget" for one in changes):
            return f"; lacked {side.missed_tokens:,} tokens {when}"
        if side.missed_score and any(one.kind == "weight" for one in changes):
            return f"; lacked {decimal_text(side.missed_score)} points {when}"
    return ""


# ---- without requests: what the receipts say


def evidence(item: ItemDiff, diff: CompileDiff) -> Because:
    """Return the reasons of a flip in the receipts of both sides, labelled as not tried."""
    kind, detail = _reason(item, diff)
    return Because(kind, detail, "evidence")


def _reason(item: ItemDiff, diff: CompileDiff) -> tuple[str, str]:
    left, right = item.left, item.right
    if left is None or right is None:
        return "input", "was no candidate before" if left is None else "is no candidate now"
    for side, when in ((right, "now"), (left, "before")):
        by_side = _reason_by(side, when)
        if by_side is not None:
            return by_side
    if {left.reason, right.reason} & set(_NO_ROOM):
        return _reason_by_room(item, diff)
    if item.is_redaction_changed:
        return "rule", "other parts were cut out of it"
    return "unknown", f"recorded is only {left.reason} before and {right.reason} now"


def _reason_by(side: ItemSide, when: str) -> tuple[str, str] | None:
    related = f" ({side.related})" if side.related else ""
    if side.reason in _RULED:
        rules = f": {', '.join(side.rule_ids)}" if side.rule_ids else ""
        return "rule", f"{side.reason} {when}{rules}"
    if side.reason in _CONFLICTS:
        return "conflict", f"{side.reason} {when}{related}"
    if side.reason == "duplicate":
        return "duplicate", f"a copy is in {when}{related}"
    if side.reason in _NEEDS:
        return "dependency", f"{side.reason} {when}{related}"
    if side.reason in ("expired", "out_of_scope"):
        return "input", f"{side.reason} {when}"
    if side.reason == "below_floor" and side.missed_score:
        return "score", f"{decimal_text(side.missed_score)} points below the floor {when}"
    return None


def _reason_by_room(item: ItemDiff, diff: CompileDiff) -> tuple[str, str]:
    budget = next((one for one in diff.budget if one.name == "available"), None)
    lacking = next(
        (
            f"; lacked {side.missed_tokens:,} tokens {when}"
            for side, when in ((item.left, "before"), (item.right, "now"))
            if side is not None and side.missed_tokens
        ),
        "",
    )
    if budget is not None and budget.delta:
        values = f"{value_words(budget.left)} → {value_words(budget.right)}"
        return "budget", f"room for {values} tokens{lacking}"
    if item.score_delta:
        sign = "+" if item.score_delta > 0 else "−"
        return "score", f"its score moved by {sign}{decimal_text(abs(item.score_delta))}{lacking}"
    return "competition", f"the same room was given out otherwise{lacking}"


# The figures of two runs or steps side by side, and which way they moved.

Figure = int | float | str | None
Direction = Literal["more", "less", "same", "other", "unknown"]
Verdict = Literal["better", "worse", "neutral", "unknown"]

# Of these, less is better (-1) or more is (1); of all others neither.
_WISHED: Final[Mapping[str, int]] = {
    "duration_ms": -1,
    "cost_usd": -1,
    "tokens.input": -1,
    "tokens.output": -1,
    "tokens.reasoning": -1,
    "cache_share": 1,  # of the input tokens, in per cent
    "errors": -1,
}
# Times differ between any two runs: they are shown, and make no difference by themselves.
TIMES: Final = frozenset({"duration_ms"})
_RANK_OF_STATUS: Final[Mapping[str, int]] = {
    "ok": 0, "unset": 0, "open": 1, "no_end": 2, "cancelled": 2, "blocked": 3, "error": 4,
}  # fmt: skip
_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of both sides. None is unknown, never zero, and nothing is said of it then."""

    name: str
    left: Figure
    right: Figure

    @property
    def delta(self) -> int | float | None:
        """How much more there is on the right; None for words, and where a side is unknown."""
        if isinstance(self.left, int | float) and isinstance(self.right, int | float):
            return self.right - self.left
        return None

    @property
    def share(self) -> float | None:
        """The change in proportion to the left side; None where that is 0 or unknown."""
        if self.delta is None or not isinstance(self.left, int | float) or not self.left:
            return None
        return self.delta / self.left

    @property
    def direction(self) -> Direction:
        if self.left == self.right and type(self.left) is type(self.right):
            return "same"
        if self.left is None or self.right is None:
            return "unknown"
        if self.delta is None:
            return "other"
        return "more" if self.delta > 0 else "less" if self.delta < 0 else "same"

    @property
    def verdict(self) -> Verdict:
        """Whether that is wished for: less cost, time, tokens and errors; more from the cache."""
        if self.direction == "unknown":
            return "unknown"
        moved = self._moved()
        return "better" if moved > 0 else "worse" if moved < 0 else "neutral"

    @property
    def is_difference(self) -> bool:
        """Whether the two are known to differ; times always do, and count for nothing."""
        return self.direction not in ("same", "unknown") and self.name not in TIMES

    def _moved(self) -> float:
        if self.name == _STATUS and isinstance(self.left, str) and isinstance(self.right, str):
            before, after = (_RANK_OF_STATUS.get(one) for one in (self.left, self.right))
            return 0 if before is None or after is None else before - after
        return (self.delta or 0) * _WISHED.get(self.name, 0)


def headline(left: Mapping[str, Figure], right: Mapping[str, Figure]) -> tuple[Delta, ...]:
    """Return the figures of both sides by name, in the order of the left; those of neither, not."""
    names = dict.fromkeys((*left, *right))
    found = (Delta(name, left.get(name), right.get(name)) for name in names)
    return tuple(one for one in found if one.left is not None or one.right is not None)


def cache_share(cached: int | None, sent: int | None) -> float | None:
    """Return how much of the input came from the provider's cache, in per cent of one decimal."""
    return None if cached is None or not sent else round(100 * cached / sent, 1)
