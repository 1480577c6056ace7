"""Pass 5: of items that contradict each other keep the one to be believed."""

from __future__ import annotations

from hansard_compiler.conflicts import Settled, contradictions, settle
from hansard_compiler.items import MICRO, Item, micro
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.state import State, Told


def run(state: State) -> State:
    """Exclude the losers, each with a pointer to its winner; nothing required ever loses."""
    usual = Told("include", ReasonCode.CONSISTENT)
    config = state.request.compile_config
    if not config.detect_conflicts:
        return state.after("conflicts", usual)
    found = contradictions(state.live, {item.id: item.text for item in state.live})
    if not found:
        return state.after("conflicts", usual)
    gap = micro(config.supersede_trust_gap)
    settled = settle(state.live, found, required=state.required, trust_gap=gap)
    known = {item.id: item for item in state.live}
    told = {item_id: _told(known, item_id, one) for item_id, one in settled.items()}
    for one in settled.values():
        if one.winner not in told:
            told[one.winner] = Told("include", ReasonCode.CONFLICT_WON)
    return state.after("conflicts", usual, told)


def _told(known: dict[str, Item], item_id: str, settled: Settled) -> Told:
    if settled.open:
        reason = ReasonCode.CONFLICT_OPEN
        return Told("include", reason, f"differ in {settled.how}", settled.winner)
    winner, loser = known[settled.winner], known[item_id]
    note = f"differ in {settled.how}; {_believed(winner, loser)}"
    reason = ReasonCode.SUPERSEDED if settled.superseded else ReasonCode.CONFLICT_LOST
    return Told("exclude", reason, note, settled.winner)


def _believed(winner: Item, loser: Item) -> str:
    """Say by how much the winner is believed more, in numbers."""
    if winner.trust != loser.trust:
        return f"trust {loser.trust / MICRO:g} against {winner.trust / MICRO:g}"
    if winner.fresh_us != loser.fresh_us:
        return f"{abs(winner.fresh_us - loser.fresh_us) // MICRO} s apart"
    return "equal in trust and time"
