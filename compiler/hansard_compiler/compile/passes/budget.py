"""Pass 7: give out the tokens, class by class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hansard_compiler.compile.compression import Shortened, Shortener, may_compress
from hansard_compiler.compile.config import CompileConfig
from hansard_compiler.compile.errors import RequiredOverBudget, RequiredWithheld
from hansard_compiler.compile.items import MICRO, CandidateItem
from hansard_compiler.compile.passes.dependencies import closure
from hansard_compiler.compile.passes.layout import is_persistent
from hansard_compiler.compile.passes.score import NANO
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Decide who goes in; what policy will withhold takes nothing and waits for its pass.

    Raises RequiredOverBudget, and RequiredWithheld when policy forbids what may not be dropped.
    """
    withheld = withheld_with_groups(state)
    refused = [
        (one, str(guarded.withheld or ReasonCode.GROUP_WITHHELD), guarded.rules)
        for one in withheld
        if one in state.required and (guarded := state.guarded[one])
    ]
    if refused:
        raise RequiredWithheld(refused)
    done = Allocator(state, withheld=withheld).allocate()
    foreseen = dict.fromkeys(withheld, Ruling("include", ReasonCode.FORESEEN))
    usual = Ruling("exclude", ReasonCode.OVER_BUDGET)
    rulings = {**done.rulings, **foreseen}
    return state.after(
        "budget",
        usual,
        rulings,
        allotted=done.allotted,
        classes=done.classes,
        shortened={one: (str(made.text), made.tokens) for one, made in done.shortened.items()},
        remarks={one: made.note for one, made in done.shortened.items() if made.note},
    )


def withheld_with_groups(state: CompileState) -> dict[str, str | None]:
    """Return what policy withholds, and with it all that cannot be parted from it."""
    withheld: dict[str, str | None] = {
        item.id: None for item in state.live if state.guarded[item.id].withheld
    }
    for item_id in list(withheld):
        for member in state.groups.get(item_id, ()):
            withheld.setdefault(member, item_id)
    return withheld


# Who gets the tokens: six classes in order, within a class by score, groups whole.
#
# A class takes what it needs before the next one. What does not fit whole is shortened
# where its kind allows it, and pays for what is left of it: the rest goes to the next item. Else it
# is left out with the number of tokens it lacked. What was in last turn keeps its place unless what
# would take it is better by the margin: every change breaks the provider's prompt cache.

CLASSES = ("required", "active", "policy", "memory", "evidence", "summary")
_CLASS_OF_KIND = {
    "system": 1, "constraint": 1,
    "task": 2, "plan": 2, "tool_result": 2, "tool_schema": 2, "code_diff": 2, "handoff": 2,
    "policy": 3,
    "memory": 4, "user_msg": 4, "assistant_msg": 4,
    "retrieval_doc": 5, "artifact": 5, "file": 5,
    "summary": 6, "other": 6,
}  # fmt: skip
_MOST_WALKED = 256
_PINNED = Ruling("include", ReasonCode.PINNED)
_WITHIN_BUDGET = Ruling("include", ReasonCode.WITHIN_BUDGET)


def class_of(item: CandidateItem) -> int:
    """Return the budget class of an item, 1 to 6; what is required is of class 1 besides."""
    if item.source is not None and item.source.source_type == "human_approval":
        return 2
    if is_persistent(item):
        return 3  # it stands in the stable prefix: losing it breaks the provider's cache
    return _CLASS_OF_KIND[item.kind]


@dataclass(slots=True)
class Allocation:
    """What was decided so far, and what is left."""

    free: int
    rulings: dict[str, Ruling] = field(default_factory=dict)
    allotted: dict[str, int] = field(default_factory=dict)  # tokens an item must be shortened to
    shortened: dict[str, Shortened] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    last_in: dict[int, int] = field(default_factory=dict)  # class -> lowest score that went in

    def has(self, item_id: str) -> bool:
        return item_id in self.classes


class _Unit(NamedTuple):
    """An item, or a group that goes in whole."""

    members: tuple[str, ...]
    class_: int
    score: int  # of its best member, in billionths


class Allocator:
    """Fills the budget of one compile."""

    def __init__(self, state: CompileState, *, withheld: Iterable[str]) -> None:
        self._state = state
        self._config: CompileConfig = state.request.compile_config
        self._items = {item.id: item for item in state.live}
        self._tokens = state.tokens
        self._withheld = set(withheld)
        least = self._config.min_score
        self._floor = None if least is None else round(least * NANO)
        self._shrinks: Callable[[CandidateItem], bool] = may_compress(state)
        # 0.1 shortened later, and left what was not used unused.
        is_first = self._config.compiler_version == 1
        self._shortener = None if is_first else Shortener(state)

    def allocate(self) -> Allocation:
        """Return who is in, who is out and who has to be shortened; raises RequiredOverBudget."""
        request = self._state.request
        done = Allocation(request.token_budget - request.response_reserve)
        self._take_required(done)
        plain = self._filled(done, margin=0)
        if not self._config.previous_selected:
            return plain
        steady = self._filled(done, margin=round(self._config.hysteresis_margin * NANO))
        for item_id, ruling in steady.rulings.items():
            if ruling.reason is ReasonCode.WITHIN_BUDGET and not plain.has(item_id):
                steady.rulings[item_id] = ruling._replace(reason=ReasonCode.KEPT_STABLE)
        return steady

    def _take_required(self, done: Allocation) -> None:
        required = self._state.required
        needed = sum(self._tokens[item_id] for item_id in required)
        if needed > done.free:
            request = self._state.request
            raise RequiredOverBudget(
                needed_tokens=needed,
                available_tokens=done.free,
                token_budget=request.token_budget,
                response_reserve=request.response_reserve,
                items=[(one, reason, self._tokens[one]) for one, reason in required.items()],
            )
        done.free -= needed
        for item_id, reason in required.items():
            done.rulings[item_id] = Ruling("include", reason)
            done.classes[item_id] = 1

    def _filled(self, start: Allocation, *, margin: int) -> Allocation:
        done = Allocation(start.free, dict(start.rulings), classes=dict(start.classes))
        for item_id in self._state.required:
            for needed in self._state.needs.get(item_id, ()):
                self._offer(done, (needed,), class_=1, needed_by=item_id)
        for unit in self._units(margin):
            if done.has(unit.members[0]):
                continue
            if self._floor is not None and unit.score < self._floor:
                self._leave_out(done, unit, ReasonCode.BELOW_FLOOR, score=self._floor - unit.score)
            elif not self._offer(done, unit.members, class_=unit.class_, unit=unit):
                continue
            elif unit.members[0] not in done.allotted:
                done.last_in[unit.class_] = min(
                    unit.score, done.last_in.get(unit.class_, unit.score)
                )
        return done

    def _units(self, margin: int) -> Iterator[_Unit]:
        """Yield what is to be offered, best first; what was in last turn is `margin` better.

        Numbers are sorted, and units made one by one: thousands that live at the same time would
        be walked again and again by Python's collector.
        """
        groups, scores = self._state.groups, self._state.scores
        before = set(self._config.previous_selected) if margin else set()
        firsts: list[str] = []  # of each unit its first member
        classes: dict[str, int] = {}
        best: dict[str, int] = {}
        rank: dict[str, int] = {}
        seen: set[str] = set()
        for item in self._state.live:
            first = item.id
            if first in seen or first in self._withheld or first in self._state.required:
                continue
            firsts.append(first)
            members = groups.get(first)
            if members is None:
                class_, score = class_of(item), scores[first].total
                was_in = first in before
            else:
                seen.update(members)
                class_ = min(class_of(self._items[one]) for one in members)
                score = max(scores[one].total for one in members)
                was_in = before.issuperset(members)
            classes[first], best[first] = max(class_, 2), score
            rank[first] = score + margin if was_in else score
        # Twice by one number takes half as long as once by two; among equals the order is kept.
        firsts.sort(key=rank.__getitem__, reverse=True)
        firsts.sort(key=classes.__getitem__)
        for first in firsts:
            yield _Unit(groups.get(first) or (first,), classes[first], best[first])

    def _offer(
        self,
        done: Allocation,
        members: Sequence[str],
        *,
        class_: int,
        unit: _Unit | None = None,
        needed_by: str | None = None,
    ) -> bool:
        """Take members and all they need, whole or shortened; else return what was lacking."""
        bundle, is_whole = self._bundle(done, members)
        cost = sum(map(self._tokens.__getitem__, bundle))
        if cost > done.free:
            allotted = self._allotted(bundle, done.free) if is_whole else {}
            made = self._shortened(allotted) if allotted else {}
            failed = {one: what for one, what in made.items() if what.text is None}
            if not allotted or failed:
                if unit is not None:
                    self._lacks(done, unit, cost, at_least=not is_whole, failed=failed)
                return False
            done.allotted.update(allotted)
            done.shortened.update(made)
            taken = {**allotted, **{one: done.shortened[one].tokens for one in made}}
            cost = sum(taken.get(one, self._tokens[one]) for one in bundle)
        done.free -= cost
        for one in bundle:
            done.classes[one] = class_ if one in members else class_of(self._items[one])
            done.rulings[one] = self._ruling_in(one, members, needed_by)
        return True

    def _shortened(self, allotted: Mapping[str, int]) -> dict[str, Shortened]:
        """Return what is left of each item in what it was allotted; nothing where 0.1 decides."""
        if self._shortener is None:
            return {}
        return {
            one: self._shortener.shorten(self._items[one], most) for one, most in allotted.items()
        }

    def _bundle(self, done: Allocation, members: Sequence[str]) -> tuple[Sequence[str], bool]:
        """Return what would have to go in, and whether that is all of it.

        Of what cannot fit any more the first 256 are enough to know: the rest is not walked, or a
        long chain would be walked for every link.
        """
        groups, needs = self._state.groups, self._state.needs
        if len(members) == 1 and members[0] not in needs:
            return members, True  # most items: nothing comes with them
        bundle: list[str] = []
        least = 0

        def without(item_id: str) -> bool:
            return item_id in done.classes or item_id in self._withheld

        for one in closure(members, groups=groups, needs=needs, without=without):
            bundle.append(one)
            least += self._least(one)
            if len(bundle) >= _MOST_WALKED and least > done.free:
                return bundle, False
        return bundle, True

    def _least(self, item_id: str) -> int:
        """Return the fewest tokens an item may be brought down to."""
        settings, tokens = self._config.compression, self._tokens[item_id]
        if tokens < settings.long_tokens or not self._shrinks(self._items[item_id]):
            return tokens
        return settings.min_tokens

    def _ruling_in(self, item_id: str, members: Sequence[str], needed_by: str | None) -> Ruling:
        if needed_by is not None or item_id not in members:
            return Ruling("include", ReasonCode.DEPENDENCY, related=needed_by or members[0])
        return _PINNED if self._state.scores[item_id].pin > 0 else _WITHIN_BUDGET

    def _allotted(self, bundle: Sequence[str], free: int) -> dict[str, int]:
        """Return what each item that may be shortened gets; nothing when that is not enough."""
        settings = self._config.compression
        is_stuck = self._shortener is not None and self._shortener.is_stuck
        if free < settings.min_tokens or is_stuck:
            return {}
        ratio = round(settings.ratio * MICRO)
        shrinking = {
            one: max(settings.min_tokens, self._tokens[one] * ratio // MICRO)
            for one in bundle
            if self._tokens[one] >= settings.long_tokens and self._shrinks(self._items[one])
        }
        whole = sum(self._tokens[one] for one in bundle if one not in shrinking)
        left = free - whole - sum(shrinking.values())
        if left >= 0 or not shrinking or len(shrinking) > 1:
            return shrinking if left >= 0 else {}
        # One item alone may be cut below the ratio, down to the least that is of use.
        (only,) = shrinking
        return {only: free - whole} if free - whole >= settings.min_tokens else {}

    def _lacks(
        self,
        done: Allocation,
        unit: _Unit,
        cost: int,
        *,
        at_least: bool,
        failed: Mapping[str, Shortened],
    ) -> None:
        last = done.last_in.get(unit.class_)
        score = None if last is None else max(0, last - unit.score)
        tokens = cost - done.free
        note = f"needs more than {_MOST_WALKED} others: lacks at least this" if at_least else None
        self._leave_out(done, unit, ReasonCode.OVER_BUDGET, tokens=tokens, score=score, note=note)
        for cause, what in failed.items():
            why = Ruling("exclude", ReasonCode.GROUP_WITHHELD, related=cause)
            done.rulings.update(dict.fromkeys(unit.members, why))
            reason = ReasonCode.COMPRESSION_FAILED
            done.rulings[cause] = Ruling("exclude", reason, what.note, None, tokens, score)

    def _leave_out(
        self,
        done: Allocation,
        unit: _Unit,
        reason: ReasonCode,
        *,
        score: int | None,
        tokens: int | None = None,
        note: str | None = None,
    ) -> None:
        ruling = Ruling("exclude", reason, note, None, tokens, score)
        for one in unit.members:
            done.rulings[one] = ruling


def by_class(classes: Mapping[str, int], tokens: Mapping[str, int]) -> dict[str, int]:
    """Return the tokens each class got, all six named."""
    used = dict.fromkeys(CLASSES, 0)
    for item_id, class_ in classes.items():
        used[CLASSES[class_ - 1]] += tokens[item_id]
    return used
