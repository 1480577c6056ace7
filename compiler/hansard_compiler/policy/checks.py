"""The record of one policy check, and how each rule came out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Literal, TypeAlias

from hansard_compiler.calls import Json
from hansard_compiler.policy.approvers import ANYBODY, Approvers
from hansard_compiler.policy.facts import Action, Facts, inputs_of
from hansard_compiler.policy.masks import Mask
from hansard_compiler.policy.rules import Effect, Rule, rule_json

ReasonCode: TypeAlias = Literal["rule", "default", "condition_error"]


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """A rule that fitted: `won` names the decision, `held` adds its demand, `lost` is overruled."""

    rule: Rule
    outcome: Literal["won", "held", "lost", "error"]
    error: str | None = None

    def json(self) -> Json:
        made = {**rule_json(self.rule), "outcome": self.outcome}
        return {**made, "error": self.error} if self.error else made


@dataclass(frozen=True, slots=True)
class PolicyCheck:
    """The record of one check, allows included: what was asked, what matched, what was decided."""

    action: Action
    effect: Effect
    reason_code: ReasonCode
    rule: Rule | None  # the one that decided; None where a default did
    outcomes: tuple[RuleOutcome, ...]  # every rule that fitted or failed, the winner first
    obligations: frozenset[Effect]  # all that must be met: redact, approval, receipt
    policy_hash: str  # of all rules together, hex
    facts: Facts = field(repr=False)  # what the rules were judged on, arguments included

    @property
    def is_denied(self) -> bool:
        return self.effect is Effect.DENY

    @property
    def needs_approval(self) -> bool:
        return Effect.REQUIRE_APPROVAL in self.obligations

    @property
    def needs_receipt(self) -> bool:
        return Effect.REQUIRE_RECEIPT in self.obligations

    @property
    def must_redact(self) -> bool:
        return Effect.REDACT in self.obligations

    @property
    def inputs(self) -> Json:
        """What the rules were judged on, without content: arguments as their hash."""
        return inputs_of(self.facts)

    @property
    def rule_id(self) -> str | None:
        return self.rule.id if self.rule else None

    @property
    def masks(self) -> tuple[tuple[str, Mask], ...]:
        """What to take out, by rule id, when the item must be redacted."""
        return tuple((rule.id, rule.mask) for rule in self._in_force(Effect.REDACT))

    @property
    def approvers(self) -> Approvers:
        """Who has to approve it, by all rules that demand approval."""
        rules = self._in_force(Effect.REQUIRE_APPROVAL)
        return reduce(Approvers.joined, (rule.approvers for rule in rules), ANYBODY)

    def _in_force(self, effect: Effect) -> list[Rule]:
        """Return the rules of an effect that nothing overrules."""
        return [
            one.rule
            for one in self.outcomes
            if one.rule.effect is effect and one.outcome in ("won", "held")
        ]

    @property
    def reason(self) -> str:
        """The decision in a sentence."""
        if self.rule is None:
            return f"no rule decides this; {self.effect} is the default"
        named = f"rule {self.rule.id!r} (version {self.rule.version or 'none'})"
        if self.reason_code == "condition_error":
            return f"{named} could not be judged, so this is denied: {self.outcomes[0].error}"
        return (
            f"{named} says {self.effect}: {self.rule.description or self.rule.name or self.rule.id}"
        )

    def json(self) -> Json:
        """Return the record for the API, the event log and spans; it holds no content."""
        return {
            "action": self.action,
            "effect": str(self.effect),
            "reason_code": self.reason_code,
            "reason": self.reason,
            "rule_id": self.rule_id,
            "rules": [one.json() for one in self.outcomes],
            "obligations": sorted(str(one) for one in self.obligations),
            "inputs": self.inputs,
            "policy_hash": self.policy_hash,
        }
