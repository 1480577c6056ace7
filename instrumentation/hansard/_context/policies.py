"""A policy of whatever a program has: a Policy, rule sets, names of shipped ones, or rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, cast

from hansard_compiler.compile.models import Json, PolicyRule
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.files import shipped_rule_set
from hansard_compiler.policy.rules import RuleSet, parse_rules

RuleLike: TypeAlias = RuleSet | PolicyRule | Mapping[str, Any] | str
PolicyLike: TypeAlias = Policy | RuleLike | Iterable[RuleLike]


def policy_of(value: PolicyLike) -> tuple[list[Json] | None, Policy]:
    """Return the rules that travel with a request (None: none do), and the policy.

    Raises PolicyRuleError for a rule that cannot be used.
    """
    if isinstance(value, Policy):
        return None, value
    is_one = isinstance(value, str | RuleSet | PolicyRule | Mapping)
    several: list[Any] = [value] if is_one else list(cast("Iterable[Any]", value))
    read = [shipped_rule_set(one) if isinstance(one, str) else one for one in several]
    rule_sets = [one for one in read if isinstance(one, RuleSet)]
    rules = [_rule(one) for one in read if not isinstance(one, RuleSet)]
    policy = Policy(rule_sets, rules=parse_rules(rules))
    return (None if rule_sets else rules), policy


def _rule(rule: PolicyRule | Mapping[str, Any]) -> Json:
    """Return a rule's fields; one without a name is called by its id."""
    fields = rule.model_dump() if isinstance(rule, PolicyRule) else dict(rule)
    return {"name": fields.get("id"), **fields}
