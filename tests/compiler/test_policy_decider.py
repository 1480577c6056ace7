"""The policy as a compile asks it."""

from __future__ import annotations

from dataclasses import replace

from hansard_compiler.policy_decider import RuleDecider
from hansard_compiler.ports import PolicyDecider, Subject, Verdict
from tests.compiler.policy_makers import policy, rule

SUBJECT = Subject(
    item_id="i",
    kind="file",
    sensitivity="secret",
    source_type="file",
    source_uri="file:///a",
    tags=frozenset({"x"}),
    scope={"project": "apollo"},
    metadata={"owner": "ann"},
    provider="openai",
    model="gpt-4o",
    agent="coder",
    task_type=None,
    environment=None,
    compile_scope={"user": "alice"},
)


def test_a_compile_gets_a_verdict_for_each_item_and_every_check_is_kept() -> None:
    decider = RuleDecider(policy(rule("no", priority=500, applies_to={"sensitivity": "secret"})))
    asked: PolicyDecider = decider

    verdicts = [asked.decide(SUBJECT), asked.decide(replace(SUBJECT, sensitivity="public"))]

    assert verdicts == [Verdict("deny", ("no",), 500_000), Verdict("allow")]
    assert [check.effect for check in decider.checks] == ["deny", "allow"]


def test_an_item_is_matched_by_its_scope_tags_and_metadata() -> None:
    for conditions, applies_to in (
        ({"item.tags": {"contains": "x"}}, {}),
        ({"item.metadata.owner": "ann"}, {}),
        ({"item.source_uri": {"starts_with": "file://"}}, {}),
        ({}, {"scope": "project:apollo"}),
        ({}, {"scope": "user:alice"}),
    ):
        decider = RuleDecider(policy(rule("r", conditions=conditions, applies_to=applies_to)))

        assert decider.decide(SUBJECT).effect == "deny"
        assert decider.decide(
            replace(
                SUBJECT, tags=frozenset(), metadata={}, source_uri=None, scope={}, compile_scope={}
            )
        ).effect == ("allow")


def test_redaction_and_failure_are_told() -> None:
    redacting = RuleDecider(policy(rule("r", "redact"))).decide(SUBJECT)
    failing = RuleDecider(
        policy(rule("r", "allow", conditions={"item.metadata.owner": {"at_least": 1}}))
    ).decide(SUBJECT)

    assert (redacting.effect, redacting.redact) == ("redact", ("content",))
    assert (failing.effect, failing.failed, failing.rule_ids) == ("deny", True, ("r",))
