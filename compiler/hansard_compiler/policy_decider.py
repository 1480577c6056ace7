"""The policy as a compile asks it: one verdict an item, every check kept."""

from __future__ import annotations

from hansard_compiler.policy import ContextPolicy, Policy
from hansard_compiler.policy_checks import PolicyCheck
from hansard_compiler.policy_facts import ItemFacts, PolicyContext
from hansard_compiler.ports import Subject, Verdict

_WHOLE_CONTENT = ("content",)
_HIGHEST_PRIORITY = 1_000  # what counts as 1.0 in the score; priorities have no other bound


class RuleDecider:
    """Answers a compile from rules and keeps the records; one for each compile, one thread.

    `checks` holds a record for every item asked about, allows included, in the order asked.
    """

    def __init__(self, policy: Policy) -> None:
        self.checks: list[PolicyCheck] = []
        self._policy = policy
        self._asked: PolicyContext | None = None
        self._step: ContextPolicy | None = None

    def decide(self, subject: Subject) -> Verdict:
        """Return what the rules say of an item, and note the check."""
        check = self._for(_context(subject)).check_item(_item(subject))
        self.checks.append(check)
        deciding = check.rule
        priority = deciding.priority if deciding else 0
        masks = check.masks if check.must_redact else ()
        return Verdict(
            effect=check.effect.value,
            rule_ids=tuple(one.rule.id for one in check.outcomes if one.outcome != "lost"),
            priority_micro=min(max(priority, 0), _HIGHEST_PRIORITY) * 1_000,
            masks=masks,
            redact=_WHOLE_CONTENT if any(mask.is_whole for _, mask in masks) else (),
            failed=check.reason_code == "condition_error",
        )

    def _for(self, context: PolicyContext) -> ContextPolicy:
        if self._step is None or context != self._asked:
            self._asked, self._step = context, self._policy.for_context(context)
        return self._step


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
        tags=sorted(subject.tags),
        scope=subject.scope,
        metadata=subject.metadata,
    )
