"""The verdict of the rules on a tool call, before a person decides."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hansard._gate.arguments import Json
from hansard._gate.tools import GatedTool
from hansard_compiler.policy.approvers import ANYBODY, Approvers

if TYPE_CHECKING:
    from hansard_compiler.policy.checks import PolicyCheck
    from hansard_compiler.policy.engine import Policy


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one call. Without a policy, the tool's effect alone decides."""

    check: PolicyCheck | None
    is_write: bool

    @property
    def is_denied(self) -> bool:
        return self.check is not None and self.check.is_denied

    @property
    def needs_approval(self) -> bool:
        """A write always does: no rule that allows can waive it."""
        return self.is_write or (self.check is not None and self.check.needs_approval)

    @property
    def needs_receipt(self) -> bool:
        return self.check is not None and self.check.needs_receipt

    @property
    def obligations(self) -> list[str]:
        """What the rules demand before the call runs, by the names of the API."""
        return [] if self.check is None else sorted(str(one) for one in self.check.obligations)

    @property
    def approvers(self) -> Approvers:
        """The approvers that the rules require."""
        return ANYBODY if self.check is None else self.check.approvers

    @property
    def reason(self) -> str:
        return "" if self.check is None else self.check.reason

    @property
    def rule_ids(self) -> list[str]:
        if self.check is None:
            return []
        return [one.rule.id for one in self.check.outcomes if one.outcome != "lost"]

    def json(self) -> Json:
        return {} if self.check is None else self.check.json()

    def demands(self) -> Json:
        """Return what rules demanded, for approvals."""
        demanded: Json = {"rule_ids": self.rule_ids, "reason": self.reason or None}
        return demanded | ({"obligations": self.obligations} if self.obligations else {})


def judged(
    policy: Policy | None, tool: GatedTool, arguments: Json, *, agent: str | None
) -> Judgement:
    """Judge a call; a policy that cannot judge denies, as the engine itself does.

    Rules about paths judge the arguments as they are and as this machine would open them now, with
    links followed: the more restrictive result counts.
    """
    is_write = tool.effect == "write"
    if policy is None:
        return Judgement(None, is_write)
    opened = with_links_followed(arguments) if policy.judges_paths else arguments
    candidates = [_judgement(policy, tool, arguments, agent=agent)]
    if opened != arguments:
        candidates.append(_judgement(policy, tool, opened, agent=agent))
    return max(candidates, key=lambda one: (one.is_denied, one.needs_approval, one.needs_receipt))


def _judgement(policy: Policy, tool: GatedTool, arguments: Json, *, agent: str | None) -> Judgement:
    from hansard_compiler.policy.facts import PolicyContext, ToolFacts

    facts = ToolFacts(
        tool.name, tool_class=tool.tool_class, effect=tool.effect, arguments=arguments
    )
    check = policy.check_tool(PolicyContext(agent=agent), facts)
    return Judgement(check, tool.effect == "write")


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
