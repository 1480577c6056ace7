"""What the rules say of a tool call, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hansard.gating.arguments import Json
from hansard.gating.tools import GatedTool

if TYPE_CHECKING:
    from hansard_compiler.policy import Policy
    from hansard_compiler.policy_checks import PolicyCheck


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome for one call. Without a policy, the tool's class alone decides."""

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
    def reason(self) -> str:
        return "" if self.check is None else self.check.reason

    @property
    def rule_ids(self) -> list[str]:
        if self.check is None:
            return []
        return [one.rule.id for one in self.check.outcomes if one.outcome != "lost"]

    def json(self) -> Json:
        return {} if self.check is None else self.check.json()


def judged(
    policy: Policy | None, tool: GatedTool, arguments: Json, *, agent: str | None
) -> Judgement:
    """Judge a call; a policy that cannot judge denies, as the engine itself does."""
    is_write = tool.effect == "write"
    if policy is None:
        return Judgement(None, is_write)
    from hansard_compiler.policy_facts import PolicyContext, ToolFacts

    facts = ToolFacts(
        tool.name, tool_class=tool.tool_class, effect=tool.effect, arguments=arguments
    )
    return Judgement(policy.check_tool(PolicyContext(agent=agent), facts), is_write)
