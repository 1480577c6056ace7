"""Pass 9: take out what may not be shown, note what was cut out of the rest."""

from __future__ import annotations

from hansard_compiler.compile.passes.budget import withheld_with_groups
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Guarded, Ruling


def run(state: CompileState) -> CompileState:
    """Apply the verdicts that every pass since the scores has already worked under."""
    rulings: dict[str, Ruling] = {}
    for item_id, cause in withheld_with_groups(state).items():
        guarded = state.guarded[item_id]
        reason = guarded.withheld or ReasonCode.GROUP_WITHHELD
        rulings[item_id] = Ruling("exclude", reason, related=cause, rules=guarded.rules)
    for item in state.live:
        guarded = state.guarded[item.id]
        if item.id in rulings:
            continue
        if guarded.removed:
            by_policy = guarded.by_policy
            reason = ReasonCode.POLICY_REDACTED if by_policy else ReasonCode.SECRETS_REMOVED
            rulings[item.id] = Ruling("redact", reason, _cut(guarded), rules=guarded.rules)
        elif guarded.rules:
            rulings[item.id] = Ruling("include", ReasonCode.ALLOWED, rules=guarded.rules)
    return state.after("policy", Ruling("include", ReasonCode.ALLOWED), rulings)


def _cut(guarded: Guarded) -> str:
    names = sorted({one.partition(":")[0] for one in guarded.removed})
    return f"{len(guarded.removed)} cut: {', '.join(names)}"
