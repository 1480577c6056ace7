"""Pass 5: of items that contradict each other keep the one to be believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hansard_compiler.compile.items import MICRO, CandidateItem, micro
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling
from hansard_compiler.compile.version1.conflicts import contradictions as contradictions_of_version1
from hansard_compiler.conflicts import Contradiction, Settled, contradictions, settle

_FINDERS = {1: contradictions_of_version1, 2: contradictions}
_MOST_NAMED = 3  # items that one may be contradicted by, in its note


def run(state: CompileState) -> CompileState:
    """Exclude the losers, each with a pointer to its winner; nothing required ever loses.

    Items that may contradict each other stay and are marked `possible_conflict`.
    """
    usual = Ruling("include", ReasonCode.CONSISTENT)
    config = state.request.compile_config
    if not config.detect_conflicts:
        return state.after("conflicts", usual)
    find = _FINDERS[config.compiler_version]
    found = find(state.live, {item.id: item.text for item in state.live})
    if not found:
        return state.after("conflicts", usual)
    gap = micro(config.supersede_trust_gap)
    certain = [one for one in found if one.is_certain]
    settled = settle(state.live, certain, required=state.required, trust_gap=gap)
    known = {item.id: item for item in state.live}
    rulings = {item_id: _ruling(known, item_id, one) for item_id, one in settled.items()}
    for one in settled.values():
        if one.winner not in rulings:
            rulings[one.winner] = Ruling("include", ReasonCode.CONFLICT_WON)
    for item_id, mark in _marks(found, rulings).items():
        rulings.setdefault(item_id, mark)
    return _without_losers(state.after("conflicts", usual, rulings), rulings)


def _marks(found: Sequence[Contradiction], rulings: Mapping[str, Ruling]) -> dict[str, Ruling]:
    """Return the rulings on items that stay although another may contradict them."""
    out = {item_id for item_id, one in rulings.items() if one.decision == "exclude"}
    others: dict[str, dict[str, str]] = defaultdict(dict)
    for one in found:
        if not one.is_certain and not out & {one.first, one.second}:
            others[one.first][one.second] = one.how
            others[one.second][one.first] = one.how
    return {
        item_id: Ruling(
            "include",
            ReasonCode.POSSIBLE_CONFLICT,
            f"possible_conflict: may differ in {next(iter(hows.values()))} from "
            f"{_named(list(hows))}; both are kept",
            next(iter(hows)),
        )
        for item_id, hows in others.items()
    }


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - _MOST_NAMED
    return ", ".join(ids[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _without_losers(state: CompileState, rulings: Mapping[str, Ruling]) -> CompileState:
    """Let what depends on a loser depend on its winner; a group goes on without one."""
    live = {item.id for item in state.live}
    instead = {one: what.related for one, what in rulings.items() if what.decision == "exclude"}
    if not instead:
        return state
    needs = {
        item_id: tuple(
            dict.fromkeys(
                one
                for needed_id in needed
                if (one := instead.get(needed_id, needed_id)) in live and one != item_id
            )
        )
        for item_id, needed in state.needs.items()
        if item_id in live
    }
    groups = {
        item_id: tuple(one for one in group if one in live)
        for item_id, group in state.groups.items()
        if item_id in live
    }
    return replace(
        state,
        needs={item_id: needed for item_id, needed in needs.items() if needed},
        groups={item_id: group for item_id, group in groups.items() if len(group) > 1},
    )


def _ruling(known: dict[str, CandidateItem], item_id: str, settled: Settled) -> Ruling:
    if settled.open:
        reason = ReasonCode.CONFLICT_OPEN
        return Ruling("include", reason, f"differ in {settled.how}", settled.winner)
    winner, loser = known[settled.winner], known[item_id]
    note = f"differ in {settled.how}; {_believed(winner, loser)}"
    reason = ReasonCode.SUPERSEDED if settled.superseded else ReasonCode.CONFLICT_LOST
    return Ruling("exclude", reason, note, settled.winner)


def _believed(winner: CandidateItem, loser: CandidateItem) -> str:
    """Say by how much the winner is believed more, in numbers."""
    if winner.trust != loser.trust:
        return f"trust {loser.trust / MICRO:g} against {winner.trust / MICRO:g}"
    if winner.fresh_us != loser.fresh_us:
        return f"{abs(winner.fresh_us - loser.fresh_us) // MICRO} s apart"
    return "equal in trust and time"
