"""What the policy engine decides, and the record it leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.policy.engine import Policy
from hansard_compiler.policy.facts import PolicyContext
from hansard_compiler.policy.rules import Effect, parse_rule_set, parse_rules
from tests.compiler.policy_makers import CONTEXT, item, policy, rule, tool

effects = st.sampled_from([effect.value for effect in Effect])
rule_lists = st.lists(
    st.tuples(effects, st.integers(-5, 5), st.booleans()), min_size=1, max_size=6
).map(
    lambda drawn: [
        rule(
            f"r{index}",
            effect,
            priority=priority,
            conditions={"agent": "coder" if is_fitting else "someone else"},
        )
        for index, (effect, priority, is_fitting) in enumerate(drawn)
    ]
)


@given(rule_lists, st.randoms())
def test_the_order_of_rules_never_changes_a_decision(rules: list[Any], random: Any) -> None:
    shuffled = rules[:]
    random.shuffle(shuffled)

    first = policy(*rules).check_item(CONTEXT, item())
    second = policy(*shuffled).check_item(CONTEXT, item())

    assert (first.effect, first.rule_id, first.obligations) == (
        second.effect,
        second.rule_id,
        second.obligations,
    )


@given(rule_lists)
def test_no_fitting_rule_is_more_restrictive_than_the_decision(rules: list[Any]) -> None:
    check = policy(*rules).check_item(CONTEXT, item())

    assert all(check.effect.rank <= one.rule.effect.rank for one in check.outcomes)


@pytest.mark.covers("PO-14", "TS-08")
def test_of_two_clashing_rules_the_stricter_wins_and_the_other_is_named_as_the_loser() -> None:
    for order in permutations([rule("open", "allow", priority=900), rule("shut", "deny")]):
        check = policy(*order).check_item(CONTEXT, item())

        assert check.effect is Effect.DENY
        assert [(one.rule.id, one.outcome) for one in check.outcomes] == [
            ("shut", "won"),
            ("open", "lost"),
        ]


@pytest.mark.covers("TS-08", "PO-14")
def test_among_equally_strict_rules_the_higher_priority_is_named() -> None:
    check = policy(rule("a", priority=1), rule("b", priority=2)).check_item(CONTEXT, item())

    assert check.rule_id == "b"


@pytest.mark.covers("PO-14", "TS-08")
def test_without_a_fitting_rule_the_strictest_default_decides_and_says_so() -> None:
    sets = [
        parse_rule_set(
            {"schema_version": 1, "name": name, "version": "1", "defaults": defaults, "rules": []}
        )
        for name, defaults in (("a", {"do": "deny"}), ("b", {"do": "require_approval"}))
    ]

    check = Policy(sets).check_tool(CONTEXT, tool())

    assert (check.effect, check.reason_code, check.rule) == (Effect.DENY, "default", None)
    assert Policy(sets).check_item(CONTEXT, item()).effect is Effect.ALLOW
    assert Policy().check_tool(CONTEXT, tool()).effect is Effect.ALLOW


def test_a_default_of_approval_is_an_obligation_too() -> None:
    rules = parse_rule_set(
        {
            "schema_version": 1,
            "name": "a",
            "version": "1",
            "defaults": {"do": "require_approval"},
            "rules": [],
        }
    )

    assert Policy([rules]).check_tool(CONTEXT, tool()).needs_approval


@pytest.mark.covers("PO-14")
def test_a_demand_permits_nothing_where_the_default_does_not() -> None:
    closed = parse_rule_set(
        {"schema_version": 1, "name": "a", "version": "1", "defaults": {"do": "deny"}, "rules": []}
    )
    demands = [rule("mask", "redact"), rule("receipt", "require_receipt")]

    refused = Policy([closed], rules=demands).check_tool(CONTEXT, tool())
    allowed = Policy([closed], rules=[*demands, rule("a", "allow")]).check_tool(CONTEXT, tool())

    assert (refused.effect, refused.reason_code) == (Effect.DENY, "default")
    assert [one.outcome for one in refused.outcomes] == ["lost", "lost"]
    assert (allowed.effect, allowed.needs_receipt) == (Effect.REDACT, True)


def test_what_weaker_rules_demand_still_holds_beside_an_approval() -> None:
    rules = [rule(name, name) for name in ("require_approval", "redact", "require_receipt")]

    check = policy(*rules).check_tool(CONTEXT, tool())

    assert check.effect is Effect.REQUIRE_APPROVAL
    assert check.needs_approval
    assert check.must_redact
    assert check.needs_receipt
    assert not policy(*rules, rule("no")).check_tool(CONTEXT, tool()).obligations


def test_one_rule_decides_what_is_seen_and_another_what_is_done() -> None:
    rules = [
        rule("see", applies_to={"action": "see"}, conditions={"item.kind": "file"}),
        rule("do", applies_to={"action": "do"}, conditions={"tool.name": "run"}),
    ]

    seen = policy(*rules).check_item(CONTEXT, item())
    done = policy(*rules).check_tool(CONTEXT, tool())

    assert (seen.rule_id, done.rule_id) == ("see", "do")
    assert seen.is_denied
    assert done.is_denied


DIMENSIONS: list[Any] = [
    pytest.param("agent", "coder", "support", marks=pytest.mark.covers("PO-07")),
    pytest.param("task_type", "bugfix", "review", marks=pytest.mark.covers("PO-08")),
    pytest.param("provider", "openai", "anthropic", marks=pytest.mark.covers("PO-09")),
    pytest.param("sensitivity", "internal", "secret", marks=pytest.mark.covers("PO-10")),
    pytest.param("environment", "production", "test", marks=pytest.mark.covers("PO-12")),
    pytest.param("scope", "user:alice", "user:bob", marks=pytest.mark.covers("PO-13")),
    pytest.param("scope", "project:apollo", "project:x", marks=pytest.mark.covers("PO-13")),
    pytest.param("scope", "team:blue", "team:red", marks=pytest.mark.covers("PO-13")),
]


@pytest.mark.parametrize(("dimension", "fitting", "other"), DIMENSIONS)
def test_a_dimension_matches_its_own_value_only(dimension: str, fitting: str, other: str) -> None:
    asked = item(scope={"team": "blue"})

    assert policy(rule(applies_to={dimension: fitting})).check_item(CONTEXT, asked).is_denied
    assert (
        policy(rule(applies_to={dimension: [other, fitting]})).check_item(CONTEXT, asked).is_denied
    )
    assert not policy(rule(applies_to={dimension: other})).check_item(CONTEXT, asked).is_denied


def test_a_name_is_matched_whole_and_in_its_case() -> None:
    for pattern in ("code", "Coder", "coders", "?oder"):
        assert not policy(rule(applies_to={"agent": pattern})).check_item(CONTEXT, item()).is_denied


@pytest.mark.covers("PO-11")
def test_the_class_of_a_tool_matches_calls_of_such_tools_only() -> None:
    checked = policy(rule(applies_to={"tool_class": "shell"}))

    assert checked.check_tool(CONTEXT, tool()).is_denied
    assert not checked.check_tool(CONTEXT, tool(tool_class="web")).is_denied
    assert not checked.check_item(CONTEXT, item()).is_denied


@pytest.mark.parametrize("dimension", ["agent", "task_type", "provider", "environment"])
def test_a_dimension_that_was_not_said_matches_no_rule_that_names_it(dimension: str) -> None:
    unsaid: dict[str, Any] = {dimension: None}
    silent = replace(CONTEXT, **unsaid)

    assert not policy(rule(applies_to={dimension: "*"})).check_item(silent, item()).is_denied


def test_a_star_stands_for_any_text_and_brackets_for_themselves() -> None:
    starred = policy(rule(applies_to={"agent": "team[1]-*"}))

    assert starred.check_item(replace(CONTEXT, agent="team[1]-a"), item()).is_denied
    assert not starred.check_item(replace(CONTEXT, agent="team1-a"), item()).is_denied


@given(rule_lists, st.sampled_from(["coder", "support"]))
def test_a_policy_made_for_a_step_decides_as_the_whole_policy(rules: list[Any], agent: str) -> None:
    context = replace(CONTEXT, agent=agent)
    whole = policy(*rules, rule("named", "redact", applies_to={"agent": "coder"}))

    of_step = whole.for_context(context)

    assert of_step.check_item(item()).json() == whole.check_item(context, item()).json()


@pytest.mark.covers("PO-24")
@pytest.mark.parametrize("action", ["see", "do"])
@pytest.mark.parametrize("effect", [effect.value for effect in Effect])
def test_a_condition_that_cannot_be_judged_denies_whatever_the_rule_wanted(
    action: str, effect: str
) -> None:
    broken = rule("broken", effect, conditions={"metadata.level": {"at_least": 3}})
    asked = replace(CONTEXT, metadata={"level": "high"})
    checked = policy(broken, rule("open", "allow", priority=99))

    check = (
        checked.check_item(asked, item()) if action == "see" else checked.check_tool(asked, tool())
    )

    assert (check.effect, check.reason_code, check.rule_id) == (
        Effect.DENY,
        "condition_error",
        "broken",
    )
    assert "metadata.level" in check.reason
    assert check.json()["rules"][0]["error"] == (
        "metadata.level: at_least: expected a number, found 'high'"
    )


class _Hostile:
    """A value no JSON knows, whose comparison raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparing")

    __hash__ = None  # type: ignore[assignment]  # nobody should hash it


@pytest.mark.covers("PO-24")
def test_any_exception_inside_a_condition_denies() -> None:
    check = policy(rule("r", "allow", conditions={"arguments.x": 1})).check_tool(
        CONTEXT, tool(arguments={"x": _Hostile()})
    )

    assert check.reason_code == "condition_error"
    assert check.json()["inputs"].get("arguments_hash") is None


@pytest.mark.covers("PO-24")
@pytest.mark.parametrize(
    ("conditions", "denied"),
    [
        ({"any": [{"agent": "nobody"}, {"metadata.n": {"at_least": 1}}]}, True),
        ({"agent": "coder", "metadata.n": {"at_least": 1}}, True),
        ({"not": {"metadata.n": {"at_least": 1}}}, True),
        ({"any": [{"metadata.n": {"at_least": 1}}, {"agent": "coder"}]}, False),
        ({"metadata.n": {"at_least": 1}, "agent": "nobody"}, False),
    ],
)
def test_an_error_denies_unless_the_other_parts_decide_alone(
    conditions: dict[str, Any], denied: bool
) -> None:
    asked = replace(CONTEXT, metadata={"n": "1"})

    check = policy(rule("r", "allow", conditions=conditions)).check_item(asked, item())

    assert check.is_denied is denied


def test_an_allow_leaves_a_record_with_rule_version_and_inputs() -> None:
    check = policy(rule("open", "allow")).check_tool(CONTEXT, tool(arguments={"key": "s3cret"}))

    record = json.loads(json.dumps(check.json()))
    assert record["effect"] == "allow"
    assert record["rules"] == [
        {
            "rule_id": "open",
            "rule_set": "",
            "version": "7",
            "effect": "allow",
            "priority": 0,
            "outcome": "won",
        }
    ]
    assert record["inputs"]["agent"] == "coder"
    assert record["inputs"]["tool"] == {"name": "run", "class": "shell", "effect": "write"}
    assert record["inputs"]["arguments_hash"].startswith("sha256:")
    assert "s3cret" not in json.dumps(record)


@pytest.mark.covers("PO-03")
def test_a_denial_names_its_rule_in_a_sentence() -> None:
    check = policy(rule("no", description="nobody may")).check_item(CONTEXT, item())

    assert check.reason == "rule 'no' (version 7) says deny: nobody may"


def test_the_hash_of_a_policy_changes_with_its_rules_and_not_with_their_order() -> None:
    one, two = rule("a"), rule("b")

    assert policy(one, two).hash == policy(rule("a"), rule("b")).hash
    assert policy(one).hash != policy(rule("a", "allow")).hash
    assert policy(one).hash != policy(rule("a", conditions={"agent": "x"})).hash


def test_explaining_tells_of_every_rule_whether_and_why_it_fits() -> None:
    told = policy(
        rule("fits"),
        rule("other-agent", applies_to={"agent": "support"}),
        rule("other-action", applies_to={"action": "see"}),
        rule("condition", conditions={"arguments.n": {"at_most": 2}, "agent": "coder"}),
        rule("broken", conditions={"arguments.n": {"starts_with": "x"}}),
    ).explain_tool(CONTEXT, tool(arguments={"n": 3}))

    outcomes = {one["rule_id"]: one["outcome"] for one in told["rules"]}
    assert outcomes == {
        "fits": "fits",
        "other-agent": "does not apply: agent is coder, wanted support",
        "other-action": "is about 'see' and not about 'do'",
        "condition": "its conditions do not hold",
        "broken": "cannot be judged: arguments.n: starts_with: expected a text, found int",
    }
    assert told["decision"]["reason_code"] == "condition_error"
    condition = next(one for one in told["rules"] if one["rule_id"] == "condition")["conditions"]
    assert [part["holds"] for part in condition["all"]] == [False, True]
    assert condition["all"][0] | {} == {
        "field": "arguments.n",
        "operator": "at_most",
        "wanted": 2,
        "found": 3,
        "holds": False,
    }


@given(rule_lists)
def test_an_explanation_always_ends_in_the_decision_that_is_made(rules: list[Any]) -> None:
    checked = policy(*rules)

    assert checked.explain_item(CONTEXT, item())["decision"] == (
        checked.check_item(CONTEXT, item()).json()
    )


def test_rules_of_a_compile_request_are_read_without_a_file_around_them() -> None:
    rules = parse_rules([{"id": "a", "name": "", "effect": "deny"}, {"id": "b", "effect": "allow"}])

    assert policy(*rules).check_item(PolicyContext(), item()).rule_id == "a"
