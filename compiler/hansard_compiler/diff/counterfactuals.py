"""Why decisions flipped: found by taking changes back and compiling again, never guessed.

For every item that is decided otherwise a smallest set of changes is looked for that, taken back on
the right, makes the right compile decide about it as the left one did. Single changes come first;
where none suffices, sets are narrowed by delta debugging (A. Zeller and R. Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering,
2002). With every change taken back the right request is the left one, so a set is always found
where both requests compile to what was recorded. A compile serves all items, and the number of
compiles is bounded: past it the smallest set known is returned and marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.diff.changes import Change, reverted
from hansard_compiler.diff.compiles import Because, CompileDiff, ItemDiff
from hansard_compiler.diff.explanations import evidence, words_for
from hansard_compiler.diff.sides import CompileSide, ItemSide
from hansard_compiler.errors import HansardError

Compile = Callable[[CompilationRequest], CompileResult]

MOST_COMPILES: Final = 64
_MOST_SINGLES = 40  # settings that are tried one by one
_EXPLAINED: Final = frozenset(
    {"added", "removed", "included", "excluded", "compressed", "redacted", "tokens", "reason"}
)
# A decision that nobody can see from here comes before an item that is plainly new or gone.
_LAST: Final = frozenset({"added", "removed"})
_Outcome = tuple[str, str, int | None]  # decision, reason, tokens sent
_Outcomes = dict[str, _Outcome]


def explain(
    diff: CompileDiff,
    left: CompileSide,
    right: CompileSide,
    *,
    compile_again: Compile | None = None,
    most_compiles: int = MOST_COMPILES,
) -> CompileDiff:
    """Return the comparison with the cause of every flip.

    Verified where `compile_again` is set and both sides have their requests; else from what the
    receipts say, and labelled as evidence. A compile of 1,000 items takes a quarter of a second.
    """
    trials = None
    if compile_again is not None and left.request is not None and right.request is not None:
        trials = _Trials(diff.settings, left.request, right.request, compile_again, most_compiles)
    found: dict[str, Because] = {}
    for item in sorted(diff.items, key=lambda one: one.change in _LAST):
        if item.change in _EXPLAINED:
            verified = None if trials is None else _verified(item, trials)
            found[item.item_id] = verified or evidence(item, diff)
    items = tuple(replace(one, because=found.get(one.item_id)) for one in diff.items)
    return replace(diff, items=items)


@dataclass(slots=True)
class _Trials:
    """Compiles of the right request with some changes taken back, each made once."""

    changes: Sequence[Change]
    left: CompilationRequest
    right: CompilationRequest
    compile_again: Compile
    left_over: int
    known: dict[frozenset[str], _Outcomes | None] = field(default_factory=dict)

    @property
    def every(self) -> frozenset[str]:
        return frozenset(one.name for one in self.changes)

    def outcomes(self, names: frozenset[str]) -> _Outcomes | None:
        """Return the outcome of every item; None when it does not compile, or was not tried."""
        if names not in self.known:
            if self.left_over <= 0:
                return None
            self.left_over -= 1
            self.known[names] = self._compiled(names)
        return self.known[names]

    def _compiled(self, names: frozenset[str]) -> _Outcomes | None:
        try:
            request = self.left if names == self.every else reverted(self.right, self.left, names)
            receipts = self.compile_again(request if names else self.right).receipts
        except HansardError:
            return None
        return {one.item_id: (one.decision, one.reason.value, one.final_tokens) for one in receipts}

    def undoes(self, names: frozenset[str], item: ItemDiff) -> bool:
        """Return whether taking these back makes the right decide about an item as the left did."""
        outcomes = self.outcomes(names)
        return outcomes is not None and _is_as_left(item, outcomes.get(item.item_id))


def _is_as_left(item: ItemDiff, found: _Outcome | None) -> bool:
    """Compare what the change is about: being a candidate, the decision, tokens or the reason."""
    left = item.left
    if left is None or found is None:
        return left is None and found is None
    if item.change == "removed":
        return True
    decision, reason, tokens = found
    if item.change == "tokens":
        return (decision, tokens) == (left.decision, left.tokens_after)
    if item.change == "reason":
        return (decision, reason) == (left.decision, left.reason)
    return decision == left.decision


def _verified(item: ItemDiff, trials: _Trials) -> Because | None:
    """Return a cause that was tried; None when compiling again does not give what was recorded."""
    if not _is_repeatable(item, trials):
        return None
    for name in _likely(item, trials.changes):
        single = frozenset([name])
        if trials.undoes(single, item):
            return _because(item, trials, single, is_minimal=True)
    names = _smallest_block(item, trials)
    narrowed, is_minimal = _narrowed(item, trials, names)
    return _because(item, trials, narrowed, is_minimal=is_minimal)


def _is_repeatable(item: ItemDiff, trials: _Trials) -> bool:
    if not trials.changes:
        return False
    sides = ((trials.every, item.left), (frozenset[str](), item.right))
    return all(_is_recorded(trials.outcomes(names), item, one) for names, one in sides)


def _is_recorded(outcomes: _Outcomes | None, item: ItemDiff, recorded: ItemSide | None) -> bool:
    if outcomes is None:
        return False
    found = outcomes.get(item.item_id)
    if recorded is None or found is None:
        return recorded is None and found is None
    if item.change == "tokens" and found[2] != recorded.tokens_after:
        return False
    return found[:2] == (recorded.decision, recorded.reason)


def _likely(item: ItemDiff, changes: Sequence[Change]) -> Iterator[str]:
    """Yield single changes in the order in which they are tried: its own, then all settings."""
    related = {side.related for side in (item.left, item.right) if side is not None}
    rules = {f"rule.{rule}" for side in (item.left, item.right) if side for rule in side.rule_ids}
    tried = []
    tried += [one.name for one in changes if one.subject == item.item_id]
    tried += [one.name for one in changes if one.name in rules]
    tried += [one.name for one in changes if one.subject is not None and one.subject in related]
    tried += [one.name for one in changes if one.kind != "input"][:_MOST_SINGLES]
    yield from dict.fromkeys(tried)


def _smallest_block(item: ItemDiff, trials: _Trials) -> frozenset[str]:
    """Return all inputs, or all settings, where one of the two suffices; else everything."""
    inputs = frozenset(one.name for one in trials.changes if one.kind in ("input", "order"))
    for names in (trials.every - inputs, inputs):
        if names and trials.undoes(names, item):
            return names
    return trials.every


def _narrowed(
    item: ItemDiff, trials: _Trials, names: frozenset[str]
) -> tuple[frozenset[str], bool]:
    """Leave out what is not needed; the second value says whether that was done to the end."""
    order = [one.name for one in trials.changes if one.name in names]
    pieces = 2
    while len(order) > 1:
        if trials.left_over <= 0:
            return frozenset(order), False
        smaller = _first_that_undoes(item, trials, order, pieces)
        if smaller is not None:
            pieces = 2 if len(smaller) <= len(order) // pieces + 1 else max(pieces - 1, 2)
            order = smaller
        elif pieces >= len(order):
            return frozenset(order), trials.left_over > 0
        else:
            pieces = min(pieces * 2, len(order))
    return frozenset(order), True


def _first_that_undoes(
    item: ItemDiff, trials: _Trials, order: Sequence[str], pieces: int
) -> list[str] | None:
    parts = list(_split(order, pieces))
    rests = ([one for one in order if one not in part] for part in parts)
    candidates: Iterable[list[str]] = (*parts, *rests) if pieces > 2 else parts
    for names in candidates:
        if names and trials.undoes(frozenset(names), item):
            return names
    return None


def _split(order: Sequence[str], pieces: int) -> Iterator[list[str]]:
    size, rest = divmod(len(order), pieces)
    at = 0
    for number in range(pieces):
        end = at + size + (number < rest)
        yield list(order[at:end])
        at = end


def _because(
    item: ItemDiff, trials: _Trials, names: frozenset[str], *, is_minimal: bool
) -> Because:
    changes = tuple(one for one in trials.changes if one.name in names)
    kind, detail = words_for(item, changes)
    return Because(kind, detail, "verified", tuple(one.name for one in changes), is_minimal)
