"""Rule sets read from files: strict, versioned, and refused whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hansard_compiler.errors import ConfigError
from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.errors import PolicyRuleError
from hansard_compiler.policy.files import SHIPPED, read_rule_set, shipped_rule_set
from hansard_compiler.policy.masks import Mask, apply_mask, parse_mask
from hansard_compiler.policy.rules import Effect
from tests.compiler.policy_makers import CONTEXT, item, policy, rule

GOOD: dict[str, Any] = {
    "schema_version": 1,
    "name": "mine",
    "version": "2026-11-22",
    "rules": [{"id": "a", "name": "A", "effect": "deny", "applies_to": {"agent": "coder"}}],
}
YAML = """
schema_version: 1
name: mine
version: "2026-11-22"
rules:
  - id: a
    name: A
    effect: deny
    applies_to: {agent: coder}
"""


def changed(**fields: Any) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def with_rule(**fields: Any) -> bytes:
    return changed(rules=[{"id": "a", "name": "A", "effect": "deny", **fields}])


def test_json_and_yaml_of_the_same_rules_are_the_same_rule_set() -> None:
    from_json = read_rule_set(json.dumps(GOOD).encode(), name="mine.json")
    from_yaml = read_rule_set(YAML.encode(), name="mine.yaml")

    assert from_json == from_yaml
    assert from_json.rules[0].version == "2026-11-22"
    assert Policy([from_json]).check_item(CONTEXT, item()).rule_id == "a"


def test_a_rule_may_carry_a_version_of_its_own() -> None:
    read = read_rule_set(with_rule(metadata={"version": "3"}))

    assert read.rules[0].version == "3"


REFUSED = [
    (b"{", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b"\xff\xfe", "not UTF-8"),
    (b"[]", "expected a mapping"),
    (changed(schema_version=2), "schema_version: expected 1, found 2"),
    (changed(name=""), "name: expected a text"),
    (changed(version=1), "version: expected a text"),
    (changed(rules={}), "rules: expected a list"),
    (changed(extra=1), "extra: no such key"),
    (changed(defaults={"do": "redact"}), "defaults.do: expected one of"),
    (changed(defaults={"be": "deny"}), "defaults.be: no such key"),
    (changed(rules=GOOD["rules"] * 2), "rules[1].id: 'a' is used twice"),
    (with_rule(id=""), "rules[0].id: expected a text"),
    (with_rule(effect="forbid"), "rules[0].effect: expected one of"),
    (with_rule(priority="high"), "rules[0].priority: expected a whole number"),
    (with_rule(priority=True), "rules[0].priority: expected a whole number"),
    (with_rule(applies_to={"agnet": "x"}), "rules[0].applies_to.agnet: no such key"),
    (with_rule(applies_to={"agent": []}), "rules[0].applies_to.agent: expected a text"),
    (with_rule(applies_to={"agent": [1]}), "rules[0].applies_to.agent: expected a text"),
    (with_rule(applies_to={"action": "be"}), "rules[0].applies_to.action: expected 'see'"),
    (with_rule(applies_to={"sensitivity": "top"}), "rules[0].applies_to.sensitivity"),
    (with_rule(conditions={"x": 1}), "rules[0].conditions.x: no such field"),
    (with_rule(effect="redact", metadata={"mask": {}}), "rules[0].metadata.mask"),
    (with_rule(effect="redact", metadata={"mask": {"patterns": ["("]}}), "not a pattern"),
    (b'{"name": "a", "name": "b"}', "the key 'name' stands twice"),
    (b" " * (4 * 1024 * 1024 + 1), "at most 4194304"),
]


@pytest.mark.parametrize(("data", "told"), REFUSED)
def test_a_rule_set_with_a_mistake_is_refused_whole_with_its_place(data: bytes, told: str) -> None:
    with pytest.raises(PolicyRuleError) as refused:
        read_rule_set(data, name="mine.json")

    assert str(refused.value).startswith("mine.json")
    assert told in str(refused.value)
    assert isinstance(refused.value, ConfigError)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "not YAML"),
        ("a: &x 1\nb: *x", "line 1: anchors and aliases are not read"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: tags are not read"),
        ("name: a\nrules:\n  - id: a\n    id: b", "line 3: the key 'id' stands twice"),
        ("schema_version: 1\nname: no\nversion: '1'\nrules: []", "name: expected a text"),
        ("", "expected a mapping"),
    ],
)
def test_yaml_that_could_mean_something_else_is_refused(text: str, told: str) -> None:
    with pytest.raises(PolicyRuleError) as refused:
        read_rule_set(text.encode(), name="mine.yml")

    assert told in str(refused.value)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_rule_set_is_named_as_its_file_and_has_a_version(name: str) -> None:
    read = shipped_rule_set(name)

    assert read.name == name
    assert read.version
    assert all(one.description and one.name for one in read.rules)


def test_an_unknown_shipped_rule_set_is_an_error_that_names_the_known() -> None:
    with pytest.raises(PolicyRuleError, match="there are support-agent, research-agent"):
        shipped_rule_set("../../etc/passwd")


def test_rule_sets_of_one_name_are_refused(tmp_path: Path) -> None:
    read = read_rule_set(json.dumps(GOOD).encode())

    with pytest.raises(PolicyRuleError, match="used twice"):
        Policy([read, read])
    with pytest.raises(PolicyRuleError, match="used twice"):
        policy(rule("a"), rule("a"))


@pytest.mark.covers("PO-04")
def test_a_redacting_rule_takes_out_fields_and_patterns_and_leaves_the_rest() -> None:
    mask = parse_mask({"fields": ["customer.email"], "patterns": ["[0-9]{4}"]})
    content = {"customer": {"email": "a@b.c", "name": "Ann"}, "notes": ["pin 1234", "none"]}

    masked = apply_mask(content, mask, "r")

    assert masked.content == {
        "customer": {"email": "‹masked:r›", "name": "Ann"},
        "notes": ["pin ‹masked:r›", "none"],
    }
    assert masked.count == 2


@pytest.mark.covers("PO-04")
def test_a_redacting_rule_without_a_mask_withholds_everything() -> None:
    check = policy(rule("r", "redact")).check_item(CONTEXT, item())

    ((rule_id, mask),) = check.masks
    assert check.effect is Effect.REDACT
    assert mask == Mask()
    assert apply_mask({"a": "secret"}, mask, rule_id).content == "‹masked:r›"
    assert apply_mask("secret", parse_mask({"fields": ["a"]}), "r").content == "‹masked:r›"


def test_a_masked_key_hides_its_name_too() -> None:
    masked = apply_mask({"user-1234": {"x": 1}}, parse_mask({"patterns": ["[0-9]{4}"]}), "r")

    assert masked.content == {"user-‹masked:r›": {"x": 1}}


def test_masking_a_message_keeps_its_calls_and_results_together() -> None:
    call = {"type": "tool_call", "id": "call_1234", "name": "pay1234", "arguments": {"pin": "1234"}}
    result = {"type": "tool_result", "id": "call_1234", "content": {"card": {"no": 5, "name": "A"}}}
    content = {"parts": [call, result]}

    by_pattern = apply_mask(content, parse_mask({"patterns": ["[0-9]{4}"]}), "r")
    by_field = apply_mask(content, parse_mask({"fields": ["card.no", "pin"]}), "r")

    assert by_pattern.content["parts"][0] == {**call, "arguments": {"pin": "‹masked:r›"}}
    assert by_field.content["parts"][1]["content"] == {"card": {"no": "‹masked:r›", "name": "A"}}
    assert by_field.count == 2


def test_a_mask_of_fields_reaches_into_lists_and_takes_whole_texts() -> None:
    mask = parse_mask({"fields": ["people.email"]})

    assert apply_mask({"people": [{"email": "a@b"}, {"name": "B"}]}, mask, "r").content == {
        "people": [{"email": "‹masked:r›"}, {"name": "B"}]
    }
    assert apply_mask(["a text"], mask, "r").content == ["‹masked:r›"]


def test_a_mask_may_name_rules_of_redaction_which_are_the_redactors_work() -> None:
    mask = parse_mask({"rules": ["pii", "openai"]})

    assert not mask.is_whole
    assert apply_mask("a@b.example", mask, "r").content == "a@b.example"
    with pytest.raises(PolicyRuleError, match="no redaction rule 'pi'"):
        parse_mask({"rules": ["pi"]})
