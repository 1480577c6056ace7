"""The policy engine: what an agent may see and do, decided by rules, recorded every time.

Every rule that fits is judged, whatever its place. The most restrictive effect among them decides
(deny, require_approval, redact, require_receipt, allow); among rules of that effect the one of
highest priority is named, then by rule set and id. What weaker rules demand besides still holds: a
call that needs approval is also redacted if a rule says so. Where no rule fits that allows, denies
or requires approval, the rule sets' defaults decide the same way; without any, allow. A rule that
cannot be judged denies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hansard_compiler.calls import Json
from hansard_compiler.canonical import stable_hash
from hansard_compiler.policy.checks import PolicyCheck, ReasonCode, RuleOutcome
from hansard_compiler.policy.conditions import (
    condition_json,
    explain_condition,
    holds,
    uses_operator,
)
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.facts import (
    CONTEXT_FIELDS,
    Action,
    Facts,
    ItemFacts,
    PolicyContext,
    ToolFacts,
    context_facts,
    item_facts,
    tool_facts,
    values_of,
)
from hansard_compiler.policy.rules import (
    ACTIONS,
    Effect,
    Rule,
    RuleSet,
    fits,
    parse_rules,
    rule_json,
)

# Rules of these effects say whether; the others only add a demand, and permit nothing.
_DECIDING = (Effect.DENY, Effect.REQUIRE_APPROVAL, Effect.ALLOW)
_EFFECTS_TO_MEET = (Effect.REQUIRE_APPROVAL, Effect.REDACT, Effect.REQUIRE_RECEIPT)


class Policy:
    """A set of rules to check against. Nothing changes after construction: share it freely."""

    def __init__(self, rule_sets: Sequence[RuleSet] = (), *, rules: Sequence[Rule] = ()) -> None:
        self.rule_sets, self.own_rules = tuple(rule_sets), tuple(rules)
        every = [*(rule for rule_set in rule_sets for rule in rule_set.rules), *rules]
        _refuse_doubles(every, rule_sets)
        self.rules = tuple(sorted(every, key=_order))
        self.defaults: dict[Action, Effect] = {
            action: _strictest(one.defaults.get(action, Effect.ALLOW) for one in rule_sets)
            for action in ACTIONS
        }
        identity = sorted(one.hash for one in rule_sets), [_identity(rule) for rule in rules]
        self.hash = stable_hash(identity).hex()
        self.judges_paths = any(uses_operator(rule.conditions, "under") for rule in self.rules)

    def check_item(self, context: PolicyContext, item: ItemFacts) -> PolicyCheck:
        """Decide whether an item may be seen. For many items of one step, `for_context` first."""
        return self._check("see", item_facts(context_facts(context), item))

    def check_tool(self, context: PolicyContext, tool: ToolFacts) -> PolicyCheck:
        """Decide whether a tool call may be made."""
        return self._check("do", tool_facts(context_facts(context), tool))

    def for_context(self, context: PolicyContext) -> ContextPolicy:
        """Return the policy of one step: rules that cannot fit it are put aside once."""
        facts = context_facts(context)
        usable = [
            replace(rule, applies_to=_without_context(rule.applies_to))
            for rule in self.rules
            if all(
                fits(patterns, values_of(facts, key))
                for key, patterns in rule.applies_to.items()
                if key in CONTEXT_FIELDS
            )
        ]
        return ContextPolicy(self, facts, tuple(usable))

    def explain_item(self, context: PolicyContext, item: ItemFacts) -> Json:
        """Return how every rule came out for an item, and what would be decided."""
        return self._explain("see", item_facts(context_facts(context), item))

    def explain_tool(self, context: PolicyContext, tool: ToolFacts) -> Json:
        """Return how every rule came out for a tool call, and what would be decided."""
        return self._explain("do", tool_facts(context_facts(context), tool))

    def _check(
        self, action: Action, facts: Facts, rules: Sequence[Rule] | None = None
    ) -> PolicyCheck:
        fitting, failed = [], []
        for rule in self.rules if rules is None else rules:
            if not _applies(rule, action, facts):
                continue
            try:
                if holds(rule.conditions, facts):
                    fitting.append(rule)
            except Exception as error:  # a gate that cannot judge is shut, whatever went wrong
                failed.append(RuleOutcome(rule, "error", f"{error}"[:500] or type(error).__name__))
        return self._decide(action, facts, fitting, failed)

    def _decide(
        self,
        action: Action,
        facts: Facts,
        fitting: Sequence[Rule],
        failed: Sequence[RuleOutcome],
    ) -> PolicyCheck:
        if not fitting and not failed:
            effect = self.defaults[action]
            obligations = _obligations(effect, ())
            return PolicyCheck(action, effect, "default", None, (), obligations, self.hash, facts)
        ranked = sorted(fitting, key=lambda rule: (rule.effect.rank, *_order(rule)))
        effect, rule, code = self._outcome(action, ranked, failed)
        rest = (RuleOutcome(one, _standing(one, effect, is_winner=one is rule)) for one in ranked)
        outcomes = (*failed, *rest)
        obligations = _obligations(effect, outcomes)
        return PolicyCheck(action, effect, code, rule, outcomes, obligations, self.hash, facts)

    def _outcome(
        self, action: Action, ranked: Sequence[Rule], failed: Sequence[RuleOutcome]
    ) -> tuple[Effect, Rule | None, ReasonCode]:
        if failed:
            return Effect.DENY, failed[0].rule, "condition_error"
        default = self.defaults[action]
        is_decided = any(rule.effect in _DECIDING for rule in ranked)
        if ranked and (is_decided or default is Effect.ALLOW):
            return ranked[0].effect, ranked[0], "rule"
        return default, None, "default"

    def _explain(self, action: Action, facts: Facts) -> Json:
        return {
            "decision": self._check(action, facts).json(),
            "rules": [explain_rule(rule, action, facts) for rule in self.rules],
        }


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """A policy for the items of one step."""

    policy: Policy
    facts: Facts
    rules: tuple[Rule, ...]

    def check_item(self, item: ItemFacts) -> PolicyCheck:
        return self.policy._check("see", item_facts(self.facts, item), self.rules)


def policy_document(policy: Policy) -> Json | None:
    """Return what `policy_from` makes an equal policy of; None where a rule was not parsed.

    `{"rule_sets": [{"name", "version", "hash", "defaults", "rules"}], "rules": [{"rule_set",
    "version", "rule"}]}`, each rule as its author wrote it.
    """
    every = [*(rule for one in policy.rule_sets for rule in one.rules), *policy.own_rules]
    if any(rule.source is None for rule in every):
        return None
    return {
        "rule_sets": [
            {
                "name": one.name,
                "version": one.version,
                "hash": one.hash,
                "defaults": {action: str(effect) for action, effect in one.defaults.items()},
                "rules": [rule.source for rule in one.rules],
            }
            for one in policy.rule_sets
        ],
        "rules": [
            {"rule_set": rule.rule_set, "version": rule.version, "rule": rule.source}
            for rule in policy.own_rules
        ],
    }


def policy_from(document: Mapping[str, Any]) -> Policy:
    """Return the policy of a document; raises PolicyRuleError, KeyError or ValueError."""
    sets = [
        RuleSet(
            name=one["name"],
            version=one["version"],
            rules=parse_rules(one["rules"], rule_set=one["name"], version=one["version"]),
            defaults={action: Effect(effect) for action, effect in one["defaults"].items()},
            hash=one["hash"],
        )
        for one in document["rule_sets"]
    ]
    rules = [
        parse_rules([one["rule"]], rule_set=one["rule_set"], version=one["version"])[0]
        for one in document["rules"]
    ]
    return Policy(sets, rules=rules)


def _applies(rule: Rule, action: Action, facts: Facts) -> bool:
    if rule.action is not None and rule.action != action:
        return False
    return not rule.applies_to or all(
        fits(patterns, values_of(facts, key)) for key, patterns in rule.applies_to.items()
    )


def _without_context(applies_to: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {key: patterns for key, patterns in applies_to.items() if key not in CONTEXT_FIELDS}


def _order(rule: Rule) -> tuple[int, str, str]:
    return (-rule.priority, rule.rule_set, rule.id)


def _strictest(effects: Iterable[Effect]) -> Effect:
    return min(effects, key=lambda effect: effect.rank, default=Effect.ALLOW)


def _standing(rule: Rule, decided: Effect, *, is_winner: bool) -> Literal["won", "held", "lost"]:
    if is_winner:
        return "won"
    is_moot = decided is Effect.DENY and rule.effect is not Effect.DENY
    is_overruled = rule.effect is Effect.ALLOW and decided is not Effect.ALLOW
    return "lost" if is_moot or is_overruled else "held"


def _obligations(effect: Effect, outcomes: Sequence[RuleOutcome]) -> frozenset[Effect]:
    if effect is Effect.DENY:
        return frozenset()
    held = {effect, *(one.rule.effect for one in outcomes if one.outcome != "lost")}
    return frozenset(held.intersection(_EFFECTS_TO_MEET))


def _refuse_doubles(rules: Sequence[Rule], rule_sets: Sequence[RuleSet]) -> None:
    names = [one.name for one in rule_sets]
    if len(set(names)) < len(names):
        raise PolicyRuleError("rule sets", f"a name is used twice: {sorted(names)}")
    keys = [(rule.rule_set, rule.id) for rule in rules]
    if len(set(keys)) < len(keys):
        raise PolicyRuleError("rules", "a rule id is used twice in one rule set")


def _identity(rule: Rule) -> Json:
    return {
        **rule_json(rule),
        "action": rule.action,
        "applies_to": {key: list(values) for key, values in rule.applies_to.items()},
        "conditions": condition_json(rule.conditions),
        "mask": rule.metadata.get("mask"),
    }


# How a rule came out for a hypothetical item or call, in words for people.


def explain_rule(rule: Rule, action: Action, facts: Facts) -> Json:
    """Return each dimension and each part of the condition with what was expected and found."""
    dimensions = [
        {
            "dimension": key,
            "wanted": list(patterns),
            "found": list(values_of(facts, key)),
            "fits": fits(patterns, values_of(facts, key)),
        }
        for key, patterns in rule.applies_to.items()
    ]
    is_action = rule.action in (None, action)
    condition = explain_condition(rule.conditions, facts)
    applies = is_action and all(one["fits"] for one in dimensions)
    made = {**rule_json(rule), "name": rule.name, "description": rule.description}
    if not is_action:
        outcome = f"is about {rule.action!r} and not about {action!r}"
    elif not applies:
        outcome = f"does not apply: {_first_misfit(dimensions)}"
    elif condition.get("error"):
        outcome = f"cannot be judged: {condition['error']}"
    else:
        outcome = "fits" if condition["holds"] else "its conditions do not hold"
    return {**made, "outcome": outcome, "dimensions": dimensions, "conditions": condition}


def _first_misfit(dimensions: Sequence[Json]) -> str:
    one = next(one for one in dimensions if not one["fits"])
    found = ", ".join(one["found"]) or "nothing"
    return f"{one['dimension']} is {found}, wanted {' or '.join(one['wanted'])}"
