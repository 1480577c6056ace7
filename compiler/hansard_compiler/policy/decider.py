"""The policy as a compile uses it: one verdict an item, every check recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hansard_compiler.compile.ports import PolicyVerdict, Subject
from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import ContextPolicy, Policy
from hansard_compiler.policy.facts import ItemFacts, PolicyContext
from hansard_compiler.policy.masks import Mask
from hansard_compiler.policy.rules import RuleSet, parse_rules

_WHOLE_CONTENT = ("content",)
_HIGHEST_PRIORITY = 1_000  # what counts as 1.0 in the score; priorities have no other bound


class RuleDecider:
    """Answers a compile from rules and keeps the records; one for each compile, one thread.

    `checks` holds a record for every item checked, allows included, in the order of the checks.
    """

    def __init__(self, policy: Policy) -> None:
        self.checks: list[PolicyCheck] = []
        self.policy = policy
        self._request: object = None
        self._step: ContextPolicy | None = None

    @classmethod
    def of(
        cls, rules: Sequence[Mapping[str, Any]], rule_sets: Sequence[RuleSet] = ()
    ) -> RuleDecider:
        """Return a decider for a compile request's own rules and the rule sets in force.

        Raises PolicyRuleError where a rule cannot be used.
        """
        return cls(Policy(rule_sets, rules=parse_rules(rules, rule_set="request")))

    def decide(self, subject: Subject) -> PolicyVerdict:
        """Return the rules' decision about an item, and note the check."""
        check = self._for(subject).check_item(_item(subject))
        self.checks.append(check)
        deciding = check.rule
        priority = deciding.priority if deciding else 0
        masks = check.masks if check.must_redact else ()
        return PolicyVerdict(
            effect=check.effect.value,
            rule_ids=tuple(one.rule.id for one in check.outcomes if one.outcome != "lost"),
            priority_micro=min(max(priority, 0), _HIGHEST_PRIORITY) * 1_000,
            masks=masks,
            redact=_redacted(masks),
            failed=check.reason_code == "condition_error",
        )

    def _for(self, subject: Subject) -> ContextPolicy:
        """Return the policy of an item's step, the same one while it lasts."""
        facts = (
            subject.agent,
            subject.task_type,
            subject.environment,
            subject.provider,
            subject.model,
            subject.compile_scope,
        )
        if self._step is None or facts != self._request:
            self._request = facts
            self._step = self.policy.for_context(_context(subject))
        return self._step


def _redacted(masks: Sequence[tuple[str, Mask]]) -> tuple[str, ...]:
    """Return the names for a compile's redaction; one whole mask takes everything."""
    if any(mask.is_whole for _, mask in masks):
        return _WHOLE_CONTENT
    return tuple(dict.fromkeys(name for _, mask in masks for name in mask.rules))


def _context(subject: Subject) -> PolicyContext:
    user, project = (subject.compile_scope.get(key) for key in ("user", "project"))
    return PolicyContext(
        agent=subject.agent,
        task_type=subject.task_type,
        provider=subject.provider,
        model=subject.model,
        environment=subject.environment,
        user=user if isinstance(user, str) else None,
        project=project if isinstance(project, str) else None,
    )


def _item(subject: Subject) -> ItemFacts:
    return ItemFacts(
        id=subject.item_id,
        kind=subject.kind,
        sensitivity=subject.sensitivity,
        source_type=subject.source_type,
        source_uri=subject.source_uri,
        tags=sorted(subject.tags) if subject.tags else (),
        scope=subject.scope,
        metadata=subject.metadata,
    )
