"""What differs between two compiles: item by item, and in what each of them had to spend.

`compile_diff` compares what is recorded and guesses nothing; why a decision flipped is found by
`causes.py`, by compiling again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.diff.changes import Change, changes_between
from hansard_compiler.diff.sides import CompileSide, ItemSide, ScoreTerm

ItemChange = Literal[
    "added", "removed", "included", "excluded", "compressed", "redacted",
    "tokens", "reason", "content", "score", "same",
]  # fmt: skip
# An item's decision is another one, or it is a candidate on one side only.
FLIPS: Final = frozenset({"added", "removed", "included", "excluded", "compressed", "redacted"})
_BECAME: Final[Mapping[str, ItemChange]] = {
    "include": "included", "exclude": "excluded", "compress": "compressed", "redact": "redacted",
}  # fmt: skip
_NO_TERM: Final = ScoreTerm(0, 0, 0)


@dataclass(frozen=True, slots=True)
class TermDiff:
    """A term of a score that differs. Points are billionths."""

    term: str
    left: ScoreTerm | None
    right: ScoreTerm | None

    @property
    def delta(self) -> int:
        return (self.right or _NO_TERM).points - (self.left or _NO_TERM).points


@dataclass(frozen=True, slots=True)
class Because:
    """Why an item is decided otherwise.

    `basis` is `verified`: with `changes` taken back on the right, and nothing else, the right
    compile decides as the left one did. Or it is `evidence`: what the receipts say, not tried.
    `is_minimal`: none of the changes can be left out; False where the search ended early.
    """

    kind: str  # budget weight setting rule model task time input order conflict dependency …
    detail: str
    basis: Literal["verified", "evidence"]
    changes: tuple[str, ...] = ()
    is_minimal: bool = True


@dataclass(frozen=True, slots=True)
class ItemDiff:
    """One item on both sides; None where it was no candidate."""

    item_id: str
    left: ItemSide | None
    right: ItemSide | None
    change: ItemChange
    terms: tuple[TermDiff, ...] = ()
    is_redaction_changed: bool = False  # a secret more or less was cut out of it
    is_policy_changed: bool = False  # other rules applied to it
    because: Because | None = None

    @property
    def is_flip(self) -> bool:
        return self.change in FLIPS

    @property
    def tokens_delta(self) -> int | None:
        """Tokens it takes more on the right; None where a side has none."""
        before, after = _sent_tokens(self.left), _sent_tokens(self.right)
        return None if before is None or after is None else after - before

    @property
    def score_delta(self) -> int | None:
        if self.left is None or self.right is None:
            return None
        if self.left.score is None or self.right.score is None:
            return None
        return self.right.score - self.left.score


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens of one thing on both sides; None where a side has none."""

    name: str
    left: int | None
    right: int | None

    @property
    def delta(self) -> int | None:
        return None if self.left is None or self.right is None else self.right - self.left


@dataclass(frozen=True, slots=True)
class RuleDiff:
    """A rule that applied on one side, or differs, or decided about other items."""

    rule_id: str
    change: Literal["added", "removed", "changed", "applies"]
    left: Any  # the rule where the request is here, else None
    right: Any
    left_items: tuple[str, ...] = ()  # to which it applied
    right_items: tuple[str, ...] = ()

    @property
    def versions(self) -> tuple[str | None, str | None]:
        return _version(self.left), _version(self.right)


@dataclass(frozen=True, slots=True)
class CompileDiff:
    """Two compiles side by side. Lists hold what differs; `items` hold every candidate."""

    items: tuple[ItemDiff, ...]
    budget: tuple[Amount, ...] = ()
    by_class: tuple[Amount, ...] = ()
    by_section: tuple[Amount, ...] = ()
    policy: tuple[RuleDiff, ...] = ()
    settings: tuple[Change, ...] = ()  # what went in differently; () where a request is not here
    knows_settings: bool = False
    models: tuple[str | None, str | None] = (None, None)

    @property
    def changed(self) -> tuple[ItemDiff, ...]:
        return tuple(one for one in self.items if one.change != "same")

    @property
    def redactions(self) -> tuple[ItemDiff, ...]:
        return tuple(one for one in self.items if one.is_redaction_changed)

    @property
    def is_empty(self) -> bool:
        amounts = (*self.budget, *self.by_class, *self.by_section)
        return not (
            self.changed
            or self.redactions
            or self.policy
            or self.settings
            or any(one.left != one.right for one in amounts)
            or self.models[0] != self.models[1]
        )


def compile_diff(left: CompileSide, right: CompileSide) -> CompileDiff:
    """Compare two compiles item by item; causes are left open (`causes.explain`)."""
    knows = left.request is not None and right.request is not None
    return CompileDiff(
        items=tuple(_items(left, right)),
        budget=_amounts(left.budget, right.budget),
        by_class=_amounts(left.by_class, right.by_class),
        by_section=_amounts(left.by_section, right.by_section),
        policy=tuple(_rules(left, right)),
        settings=changes_between(left.request, right.request)
        if left.request is not None and right.request is not None
        else (),
        knows_settings=knows,
        models=(left.model, right.model),
    )


# ---- items


def _items(left: CompileSide, right: CompileSide) -> Iterator[ItemDiff]:
    """Yield every candidate of either side, by id: an order that both sides share."""
    before = {one.item_id: one for one in left.items}
    after = {one.item_id: one for one in right.items}
    for item_id in sorted(before.keys() | after.keys()):
        yield _item(item_id, before.get(item_id), after.get(item_id))


def _item(item_id: str, left: ItemSide | None, right: ItemSide | None) -> ItemDiff:
    terms = tuple(_terms(left, right))
    return ItemDiff(
        item_id,
        left,
        right,
        _change(left, right, terms),
        terms,
        is_redaction_changed=_removed(left) != _removed(right),
        is_policy_changed=_rules_of(left) != _rules_of(right),
    )


def _change(
    left: ItemSide | None, right: ItemSide | None, terms: tuple[TermDiff, ...]
) -> ItemChange:
    if left is None:
        return "added"
    if right is None:
        return "removed"
    if left.decision != right.decision:
        return _BECAME.get(right.decision, "reason")
    if left.tokens_after != right.tokens_after:
        return "tokens"
    if left.reason != right.reason:
        return "reason"
    if left.original_ref != right.original_ref:
        return "content"
    if left != right:
        return "score" if terms or left.score != right.score else "reason"
    return "same"


def _terms(left: ItemSide | None, right: ItemSide | None) -> Iterator[TermDiff]:
    if left is None or right is None:
        return
    for term in sorted(left.terms.keys() | right.terms.keys()):
        one, other = left.terms.get(term), right.terms.get(term)
        if one != other:
            yield TermDiff(term, one, other)


def _removed(side: ItemSide | None) -> tuple[str, ...]:
    return () if side is None else tuple(sorted(side.removed))


def _rules_of(side: ItemSide | None) -> tuple[str, ...]:
    return () if side is None else tuple(sorted(side.rule_ids))


def _sent_tokens(side: ItemSide | None) -> int | None:
    """Return the tokens an item takes of the prompt: none where it is no candidate, or is out."""
    if side is None or not side.is_sent:
        return 0
    return side.tokens_after


# ---- budget and policy


def _amounts(
    left: Mapping[str, int | None] | Mapping[str, int],
    right: Mapping[str, int | None] | Mapping[str, int],
) -> tuple[Amount, ...]:
    names = dict.fromkeys(sorted(left.keys() | right.keys()))
    return tuple(Amount(name, left.get(name), right.get(name)) for name in names)


def _rules(left: CompileSide, right: CompileSide) -> Iterator[RuleDiff]:
    """Yield the rules that changed, or that applied to other items."""
    left_rules, right_rules = _given_rules(left), _given_rules(right)
    before, after = _applied(left), _applied(right)
    for rule_id in sorted(left_rules.keys() | right_rules.keys() | before.keys() | after.keys()):
        one, other = left_rules.get(rule_id), right_rules.get(rule_id)
        items, others = before.get(rule_id, ()), after.get(rule_id, ())
        if one == other and items == others:
            continue
        change: Literal["added", "removed", "changed", "applies"] = "applies"
        if one != other:
            change = "added" if one is None else "removed" if other is None else "changed"
        yield RuleDiff(rule_id, change, one, other, items, others)


def _given_rules(side: CompileSide) -> dict[str, Any]:
    if side.request is None:
        return {}
    return {rule.id: rule.model_dump(mode="json") for rule in side.request.policy_rules}


def _applied(side: CompileSide) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for item in side.items:
        for rule_id in item.rule_ids:
            found.setdefault(rule_id, []).append(item.item_id)
    return {rule_id: tuple(sorted(items)) for rule_id, items in found.items()}


def _version(rule: Any) -> str | None:
    found = rule.get("metadata", {}).get("version") if isinstance(rule, dict) else None
    return None if found is None else str(found)
