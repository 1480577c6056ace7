"""Pass 7: give out the tokens, class by class."""

from __future__ import annotations

from hansard_compiler.budget import Allocator
from hansard_compiler.compile_errors import RequiredWithheld
from hansard_compiler.reasons import ReasonCode
from hansard_compiler.state import State, Told


def run(state: State) -> State:
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
    foreseen = dict.fromkeys(withheld, Told("include", ReasonCode.FORESEEN))
    usual = Told("exclude", ReasonCode.OVER_BUDGET)
    told = {**done.told, **foreseen}
    return state.after(
        "budget",
        usual,
        told,
        allotted=done.allotted,
        classes=done.classes,
        shortened={one: (str(made.text), made.tokens) for one, made in done.shortened.items()},
        remarks={one: made.note for one, made in done.shortened.items() if made.note},
    )


def withheld_with_groups(state: State) -> dict[str, str | None]:
    """Return what policy withholds, and with it whatever cannot be parted from it."""
    withheld: dict[str, str | None] = {
        item.id: None for item in state.live if state.guarded[item.id].withheld
    }
    for item_id in list(withheld):
        for member in state.groups.get(item_id, ()):
            withheld.setdefault(member, item_id)
    return withheld
