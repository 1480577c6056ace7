"""Pass 9: take out what may not be shown, tell what was cut out of the rest."""

from __future__ import annotations

from hansard_compiler.compile.passes.budget import withheld_with_groups
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import Guarded, State, Told


def run(state: State) -> State:
    """Apply the verdicts that every pass since the scores has already worked under."""
    told: dict[str, Told] = {}
    for item_id, cause in withheld_with_groups(state).items():
        guarded = state.guarded[item_id]
        reason = guarded.withheld or ReasonCode.GROUP_WITHHELD
        told[item_id] = Told("exclude", reason, related=cause, rules=guarded.rules)
    for item in state.live:
        guarded = state.guarded[item.id]
        if item.id in told:
            continue
        if guarded.removed:
            told[item.id] = Told("redact", _why(guarded), _cut(guarded), rules=guarded.rules)
        elif guarded.rules:
            told[item.id] = Told("include", ReasonCode.ALLOWED, rules=guarded.rules)
    return state.after("policy", Told("include", ReasonCode.ALLOWED), told)


def _why(guarded: Guarded) -> ReasonCode:
    return ReasonCode.POLICY_REDACTED if guarded.by_policy else ReasonCode.SECRETS_REMOVED


def _cut(guarded: Guarded) -> str:
    names = sorted({one.partition(":")[0] for one in guarded.removed})
    return f"{len(guarded.removed)} cut: {', '.join(names)}"
