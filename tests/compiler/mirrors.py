"""Comparisons with their sides exchanged, put together without comparing again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hansard_compiler.diff import (
    CompileDiff,
    ItemDiff,
    JsonChange,
    JsonDiff,
    StepPair,
    TextOp,
)
from hansard_compiler.diff.compiles import Amount, RuleDiff, TermDiff

_OTHER: dict[Any, Any] = {
    "added": "removed", "removed": "added", "del": "ins", "ins": "del",
    "only_left": "only_right", "only_right": "only_left",
}  # fmt: skip
_BECAME: dict[str, Any] = {
    "include": "included", "exclude": "excluded", "compress": "compressed", "redact": "redacted",
}  # fmt: skip


def _other(state: Any) -> Any:
    return _OTHER.get(state, state)


def mirrored_text(ops: Sequence[TextOp]) -> tuple[TextOp, ...]:
    """Return the diff of the same texts; what went stands before what came on both sides."""
    mirrored = [TextOp(_other(op.kind), op.text) for op in ops]
    for at in range(len(mirrored) - 1):
        if (mirrored[at].kind, mirrored[at + 1].kind) == ("ins", "del"):
            mirrored[at], mirrored[at + 1] = mirrored[at + 1], mirrored[at]
    return tuple(mirrored)


def left_text(ops: Sequence[TextOp]) -> str:
    return "".join(op.text for op in ops if op.kind != "ins")


def right_text(ops: Sequence[TextOp]) -> str:
    return "".join(op.text for op in ops if op.kind != "del")


def mirrored_json(diff: JsonDiff) -> JsonDiff:
    """Return the changes in the order they have."""
    changes = (
        JsonChange(_other(one.state), one.right_path, one.left_path, one.right, one.left)
        for one in diff.changes
    )
    return replace(diff, changes=tuple(changes))


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def mirrored_steps(pairs: Sequence[StepPair]) -> tuple[StepPair, ...]:
    """Return the pairs, again with what is only on the left first."""
    mirrored: list[StepPair] = []
    waiting: list[StepPair] = []  # what is only on the right now, behind what is only on the left
    for pair in pairs:
        other = StepPair(_other(pair.state), pair.right, pair.left)
        if other.state == "only_right":
            waiting.append(other)
            continue
        if other.state != "only_left":
            mirrored += waiting
            waiting = []
        mirrored.append(other)
    return (*mirrored, *waiting)


def mirrored_compile(diff: CompileDiff) -> CompileDiff:
    """Return the comparison without causes: those are of one direction."""
    return replace(
        diff,
        items=tuple(map(_item, diff.items)),
        budget=tuple(map(_amount, diff.budget)),
        by_class=tuple(map(_amount, diff.by_class)),
        by_section=tuple(map(_amount, diff.by_section)),
        policy=tuple(map(_rule, diff.policy)),
        settings=tuple(
            replace(one, presence=_other(one.presence), left=one.right, right=one.left)
            for one in diff.settings
        ),
        models=diff.models[::-1],
    )


def _item(one: ItemDiff) -> ItemDiff:
    change = _other(one.change)
    if one.left is not None and one.change in _BECAME.values():
        change = _BECAME[one.left.decision]
    terms = tuple(TermDiff(term.term, term.right, term.left) for term in one.terms)
    return replace(one, left=one.right, right=one.left, change=change, terms=terms, because=None)


def _amount(one: Amount) -> Amount:
    return Amount(one.name, one.right, one.left)


def _rule(one: RuleDiff) -> RuleDiff:
    change = _other(one.change)
    return RuleDiff(one.rule_id, change, one.right, one.left, one.right_items, one.left_items)
