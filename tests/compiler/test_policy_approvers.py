"""Rules that say who has to approve: what is read, what is refused, and how rules are joined."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.policy.approvers import Approvers
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.facts import PolicyContext, ToolFacts
from hansard_compiler.policy.rules import parse_rule_set


def rules(*metadata: dict[str, Any], effect: str = "require_approval") -> Policy:
    made = [
        {"id": f"r{n}", "name": "n", "effect": effect, "applies_to": {"action": "do"},
         "metadata": one}
        for n, one in enumerate(metadata)
    ]  # fmt: skip
    document = {"schema_version": 1, "name": "s", "version": "1", "rules": made}
    return Policy([parse_rule_set(document)])


def approvers(policy: Policy) -> Approvers:
    return policy.check_tool(PolicyContext(), ToolFacts("wire", effect="write")).approvers


@pytest.mark.parametrize(
    "metadata",
    [
        {"approvals_required": 0}, {"approvals_required": 21}, {"approvals_required": "2"},
        {"approvals_required": True}, {"approvals_required": 2.0}, {"approvers": "ana"},
        {"approvers": []}, {"approvers": ["ana", ""]}, {"approvers": ["ana", 5]},
        {"approvers": ["ana"], "approvals_required": 2},
        {"approvers": ["ana", "ANA"], "approvals_required": 2},
        {"approvers": [f"p{n}" for n in range(21)]}, {"approvers": ["x" * 201]},
    ],
)  # fmt: skip
def test_what_nobody_could_meet_is_no_rule(metadata: dict[str, Any]) -> None:
    with pytest.raises(PolicyRuleError, match=r"metadata\.approv"):
        rules(metadata)


def test_only_a_rule_that_asks_says_who_approves() -> None:
    with pytest.raises(PolicyRuleError, match="only a rule of require_approval"):
        rules({"approvals_required": 2}, effect="allow")


def test_of_several_rules_the_most_people_out_of_those_in_all_of_them() -> None:
    two, named = {"approvals_required": 2}, {"approvers": ["ana", "bo"]}

    assert approvers(rules({})) == Approvers(1, None)
    assert approvers(rules(two, named)) == Approvers(2, ("ana", "bo"))
    assert approvers(rules(named, {"approvers": ["BO", "cid"]})).names == ("bo",)
    assert approvers(rules(named, {"approvers": ["eve"]})).names == ()
