"""How a rule came out for a hypothetical item or call, told for people."""

from __future__ import annotations

from collections.abc import Sequence

from hansard_compiler.calls import Json
from hansard_compiler.policy_conditions import explain_condition
from hansard_compiler.policy_facts import Action, Facts, values_of
from hansard_compiler.policy_rules import Rule, fits, rule_json


def explain_rule(rule: Rule, action: Action, facts: Facts) -> Json:
    """Return each dimension and each part of the condition with what was wanted and found."""
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
    told = {**rule_json(rule), "name": rule.name, "description": rule.description}
    if not is_action:
        outcome = f"is about {rule.action!r} and not about {action!r}"
    elif not applies:
        outcome = f"does not apply: {_first_misfit(dimensions)}"
    elif condition.get("error"):
        outcome = f"cannot be judged: {condition['error']}"
    else:
        outcome = "fits" if condition["holds"] else "its conditions do not hold"
    return {**told, "outcome": outcome, "dimensions": dimensions, "conditions": condition}


def _first_misfit(dimensions: Sequence[Json]) -> str:
    one = next(one for one in dimensions if not one["fits"])
    found = ", ".join(one["found"]) or "nothing"
    return f"{one['dimension']} is {found}, wanted {' or '.join(one['wanted'])}"
