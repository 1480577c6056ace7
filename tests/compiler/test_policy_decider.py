"""The policy as a compile asks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.ports import PolicyDecider, PolicyVerdict, Subject
from hansard_compiler.policy.decider import RuleDecider
from hansard_compiler.policy.files import shipped_rule_set
from hansard_compiler.providers.adapter import request_bytes
from hansard_compiler.providers.base import WireFormat, from_payload
from tests.compiler.compiling import item, ports, reasons, request
from tests.compiler.policy_makers import policy, rule
from tests.compiler.render_inputs import FORMATS

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

    assert verdicts == [PolicyVerdict("deny", ("no",), 500_000), PolicyVerdict("allow")]
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


def test_a_mask_that_names_rules_of_redaction_hands_their_names_on() -> None:
    masks = {"mask": {"rules": ["pii"], "patterns": ["[0-9]{4}"]}}

    verdict = RuleDecider(policy(rule("r", "redact", metadata=masks))).decide(SUBJECT)

    assert verdict.redact == ("pii",)
    assert [rule_id for rule_id, _ in verdict.masks] == ["r"]


SEEN = [
    item("ask", "user_msg", "What about the card?"),
    item("secret", "file", "the launch code is heron-cloud", sensitivity="secret"),
    item("card", "file", "card 4111 1111 1111 1111 declined", sensitivity="restricted"),
    item("mail", "file", "write to ann@mail.example today"),
]
_NO_MAIL = {
    "id": "no-mail",
    "name": "No addresses",
    "effect": "redact",
    "metadata": {"mask": {"rules": ["pii"]}},
}


@pytest.mark.covers("PO-03", "PO-04", "PO-15", "CP-13")
@pytest.mark.parametrize("form", FORMATS, ids=lambda one: one.provider)
def test_what_policy_withholds_or_masks_never_reaches_the_bytes_of_a_request(
    form: WireFormat,
) -> None:
    config = {"agent": "support", "clearance": "secret"}
    asked = request(SEEN, compile_config=config, policy_rules=[_NO_MAIL])
    rules = [rule.model_dump() for rule in asked.policy_rules]
    decider = RuleDecider.of(rules, [shipped_rule_set("support-agent")])

    result = compile_context(asked, ports(policy=decider))
    sent = request_bytes(form.render(from_payload(result.payload, model="m"))).decode()

    assert all(hidden not in sent for hidden in ("heron-cloud", "4111", "ann@mail"))
    assert all(shown in sent for shown in ("declined", "write to", "today"))
    assert "‹masked:support.mask-card-numbers›" in sent
    assert reasons(result)["secret"] == "policy_denied"
    receipts = {receipt.item_id: receipt for receipt in result.receipts}
    assert receipts["secret"].rule_ids == ("support.no-secrets",)
    assert {check.effect.value for check in decider.checks} == {"deny", "redact"}
