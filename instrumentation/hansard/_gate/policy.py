"""The verdict of the rules on a tool call, before a person decides."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hansard._gate.arguments import Json
from hansard._gate.tools import GatedTool
from hansard_compiler.policy.approvers import ANYBODY, Approvers

if TYPE_CHECKING:
    from hansard_compiler.policy.checks import PolicyCheck
    from hansard_compiler.policy.engine import Policy


@dataclass(frozen=True, slots=True)
class PolicyJudgement:
    """The verdict on one call. Without a policy, the tool's effect alone decides."""

    needs_approval: bool
    check: PolicyCheck | None = None
    is_denied: bool = False
    needs_receipt: bool = False
    approvers: Approvers = ANYBODY  # that the rules require
    reason: str = ""
    obligations: Sequence[str] = ()  # what rules demand before the call runs, as the API names it
    rule_ids: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, check: PolicyCheck, *, is_write: bool) -> PolicyJudgement:
        """Return the verdict of rules. A write needs an approval: none that allows waives it."""
        return cls(
            is_write or check.needs_approval,
            check,
            check.is_denied,
            check.needs_receipt,
            check.approvers,
            check.reason,
            sorted(str(one) for one in check.obligations),
            [one.rule.id for one in check.outcomes if one.outcome != "lost"],
        )

    def json(self) -> Json:
        return {} if self.check is None else self.check.json()

    def demands(self) -> Json:
        """Return what rules demanded, for approvals."""
        demanded: Json = {"rule_ids": self.rule_ids, "reason": self.reason or None}
        return demanded | ({"obligations": self.obligations} if self.obligations else {})


def judged(
    policy: Policy | None, tool: GatedTool, arguments: Json, *, agent: str | None
) -> PolicyJudgement:
    """Judge a call; a policy that cannot judge denies, as the engine itself does.

    Rules about paths judge the arguments as they are and as this machine would open them now, with
    links followed: the more restrictive result counts.
    """
    is_write = tool.effect == "write"
    if policy is None:
        return PolicyJudgement(is_write)
    opened = with_links_followed(arguments) if policy.judges_paths else arguments
    candidates = [_judgement(policy, tool, arguments, agent=agent)]
    if opened != arguments:
        candidates.append(_judgement(policy, tool, opened, agent=agent))
    return max(candidates, key=lambda one: (one.is_denied, one.needs_approval, one.needs_receipt))


def _judgement(
    policy: Policy, tool: GatedTool, arguments: Json, *, agent: str | None
) -> PolicyJudgement:
    from hansard_compiler.policy.facts import PolicyContext, ToolFacts

    facts = ToolFacts(
        tool.name, tool_class=tool.tool_class, effect=tool.effect, arguments=arguments
    )
    check = policy.check_tool(PolicyContext(agent=agent), facts)
    return PolicyJudgement.of(check, is_write=tool.effect == "write")


_MAX_PATH_CHARS = 4_096  # PATH_MAX of Linux


def with_links_followed(value: Any) -> Any:
    """Return arguments with each text that is a path through a link replaced by where it leads.

    Relative paths stay relative to the current folder. A link may be changed before the tool opens
    it; the operating system's own permissions are what holds then.
    """
    if isinstance(value, dict):
        return {key: with_links_followed(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_links_followed(one) for one in value]
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_PATH_CHARS or "\0" in value:
        return value
    try:
        opened = os.path.realpath(value)
        written = os.path.normpath(os.path.abspath(value))
    except (OSError, ValueError):
        return value
    if opened in (written, "/" + written.lstrip("/")):
        return value
    return opened if os.path.isabs(value) else os.path.relpath(opened, os.path.realpath("."))
