"""Asking policy about an action: the question, the answer, and the rules that a store holds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from hansard_compiler.policy.checks import PolicyCheck
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.facts import PolicyContext, ToolFacts
from hansard_compiler.policy.rules import Effect, parse_rule_set
from hansard_store.approvals.records import Approval, PolicyNote, Proposal
from hansard_store.content.retention import Retention
from hansard_store.database.data_folder import DataFolder
from hansard_store.policy.checks import check_row, record_check
from hansard_store.policy.rules import check_unaltered, latest_policy, rule_sets_of

# What a proposal may tell policy beside tool, arguments, effect and agent.
_CONTEXT_FACTS: Final = ("environment", "task_type", "project", "user")
FACTS: Final = ("tool_class", "sensitivity", *_CONTEXT_FACTS)


@dataclasses.dataclass(frozen=True, slots=True)
class PolicyQuestion:
    """May this be done? Arguments are the exact ones."""

    tool: str
    arguments: Mapping[str, Any]
    effect: str
    agent: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def about(
        cls, action: Proposal | Approval, arguments: Mapping[str, Any], facts: Mapping[str, str]
    ) -> PolicyQuestion:
        """Return the question about an action, as it is or is to be proposed."""
        return cls(
            action.tool,
            arguments,
            action.effect,
            agent=action.agent,
            run_id=action.run_id,
            step_id=action.step_id,
            facts=facts,
        )

    def check(self, policy: Policy) -> PolicyCheck:
        """Return what rules decide."""
        tool = ToolFacts(
            name=self.tool,
            tool_class=self.facts.get("tool_class"),
            effect=self.effect,
            arguments=self.arguments,
            sensitivity=self.facts.get("sensitivity"),
        )
        facts: dict[str, Any] = {
            name: self.facts[name] for name in _CONTEXT_FACTS if name in self.facts
        }
        return policy.check_tool(PolicyContext(agent=self.agent, **facts), tool)


EvaluatePolicy = Callable[[PolicyQuestion], PolicyNote]

DENY, APPROVAL, RECEIPT = (
    str(one) for one in (Effect.DENY, Effect.REQUIRE_APPROVAL, Effect.REQUIRE_RECEIPT)
)


def note_of(check: PolicyCheck, question: PolicyQuestion, *, check_id: int) -> PolicyNote:
    """Return what an approval keeps of a check that was recorded."""
    return PolicyNote(
        effect=str(check.effect),
        rule_ids=tuple(one.rule.id for one in check.outcomes if one.outcome != "lost"),
        reason=check.reason,
        obligations=tuple(sorted(str(one) for one in check.obligations)),
        check_id=check_id,
        facts=question.facts,
        approvals_required=check.approvers.required,
        approvers=check.approvers.names,
    )


class StoredPolicy:
    """The rules that were put through the API or the command line. Every check is recorded."""

    def __init__(
        self, folder: DataFolder, retention: Retention, connect: Callable[[], apsw.Connection]
    ) -> None:
        """Make it; `connect` gives the calling thread's connection, outside a transaction."""
        self._folder = folder
        self._connect = connect
        self._retention = retention
        # The version that was read and its rules; replaced whole, as threads may share it.
        self._read: tuple[int, Policy | None] | None = None

    def __call__(self, question: PolicyQuestion) -> PolicyNote:
        """Return what the rules in force decide; a note without an effect where there are none.

        Raises PolicyAlteredError where something other than Hansard altered them.
        """
        policy = self._in_force()
        if policy is None:
            return PolicyNote(facts=question.facts)
        check = question.check(policy)
        trace_id, span_id = ids_of(question)
        number = record_check(
            self._folder,
            check_row(self._retention, check, now_ns=time.time_ns()),
            trace_id=trace_id,
            span_id=span_id,
        )
        return note_of(check, question, check_id=number)

    def _in_force(self) -> Policy | None:
        connection = self._connect()
        latest = latest_policy(connection, "api")
        number = latest.id if latest else 0
        read = self._read
        if read is None or read[0] != number:
            check_unaltered(self._folder, number)
            documents = rule_sets_of(connection, number)
            rules = Policy([parse_rule_set(one) for one in documents]) if latest else None
            read = self._read = number, rules
        return read[1]


def ids_of(question: PolicyQuestion) -> tuple[bytes | None, bytes | None]:
    """Return trace and span id of the step that asks; both None unless both are known."""
    if question.run_id is None or question.step_id is None:
        return None, None
    return bytes.fromhex(question.run_id), bytes.fromhex(question.step_id.partition("-")[2])
