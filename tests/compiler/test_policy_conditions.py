"""Conditions: each operator, absent fields, and what cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.policy.conditions import OPERATORS, holds, parse_condition
from hansard_compiler.policy.errors import ConditionError, PolicyRuleError


def judge(operator: str, wanted: Any, found: Any) -> bool:
    condition = parse_condition({"arguments.x": {operator: wanted}}, "rule")
    return holds(condition, {"arguments": {"x": found}})


JUDGED = [
    ("equals", "a", "a", "b"),
    ("equals", 1, 1, True),  # a truth value is no number
    ("not_equals", "a", "b", "a"),
    ("in", ["a", "b"], "b", "c"),
    ("not_in", ["a", "b"], "c", "a"),
    ("contains", "b", ["a", "b"], ["a"]),
    ("contains", "b", "abc", "xyz"),
    ("starts_with", "ab", "abc", "cab"),
    ("ends_with", "bc", "abc", "bca"),
    ("matches", "^a+$", "aaa", "aab"),
    ("under", "/srv/desk", "/srv/desk/a/../b", "/srv/desk/../etc"),
    ("under", "/srv/desk", "/srv/desk", "/srv/desktop"),
    ("under", "src", "src/a.py", "src/../etc"),
    ("at_least", 2, 2, 1.5),
    ("at_most", 2, 2, 2.5),
    ("greater_than", 2, 3, 2),
    ("less_than", 2, 1, 2),
    ("exists", True, "", None),
    ("exists", False, None, 0),
    ("runs_only", ["ls"], "ls -l", "rm x"),
    ("runs_only", ["ls"], ["ls", "-l", "a;b"], ["rm"]),
]


@pytest.mark.covers("TS-08")
@pytest.mark.parametrize(("operator", "wanted", "fitting", "other"), JUDGED)
def test_an_operator_holds_for_what_it_names(
    operator: str, wanted: Any, fitting: Any, other: Any
) -> None:
    assert judge(operator, wanted, fitting)
    assert not judge(operator, wanted, other)


def test_every_operator_is_tried_above() -> None:
    assert {operator for operator, *_ in JUDGED} == set(OPERATORS)


@pytest.mark.parametrize("operator", sorted(set(OPERATORS) - {"exists", "not_equals", "not_in"}))
def test_an_absent_field_fulfils_no_test(operator: str) -> None:
    wanted = next(one[1] for one in JUDGED if one[0] == operator)

    assert not holds(parse_condition({"arguments.y": {operator: wanted}}, "r"), {"arguments": {}})


@pytest.mark.parametrize(
    ("operator", "wanted", "found"),
    [
        ("at_least", 1, "2"),
        ("at_most", 1, True),
        ("starts_with", "a", 1),
        ("matches", "a", ["a"]),
        ("contains", "a", 5),
        ("contains", 5, "a"),
        ("under", "/work", "a/b"),
        ("under", "work", "/work"),
        ("under", "src", "src/../../etc"),  # it may come back, as ../checkout/src
        ("runs_only", ["ls"], 7),
        ("runs_only", ["ls"], ["ls", 7]),
    ],
)
def test_a_field_of_the_wrong_type_cannot_be_judged(operator: str, wanted: Any, found: Any) -> None:
    with pytest.raises(ConditionError, match=r"arguments\.x"):
        judge(operator, wanted, found)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ([], "expected a mapping"),
        ({"agnet": "x"}, "no such field"),
        ({"agent": {"is": "x"}}, "no operator 'is'"),
        ({"agent": {}}, "expected an operator"),
        ({"agent": ["x"]}, "expected one value"),
        ({"agent": {"in": "x"}}, "expected a list"),
        ({"agent": {"in": []}}, "expected a list"),
        ({"item.tokens": {"at_least": "3"}}, "expected a number"),
        ({"item.tokens": {"at_least": True}}, "expected a number"),
        ({"agent": {"matches": "("}}, "not a pattern: missing ): ("),
        ({"agent": {"exists": 1}}, "expected true or false"),
        ({"all": []}, "expected a list of conditions"),
        ({"any": {"agent": "x"}}, "expected a list of conditions"),
        ({"not": "x"}, "expected a mapping"),
        ({"arguments.c": {"runs_only": "ls"}}, "expected a list of programs"),
        ({"arguments.c": {"runs_only": [{"run": "ls", "option": []}]}}, 'expected "program"'),
    ],
)
def test_a_condition_that_says_nothing_clear_is_refused(condition: Any, told: str) -> None:
    with pytest.raises(PolicyRuleError, match="rule") as refused:
        parse_condition(condition, "rule")

    assert told in str(refused.value)


def test_a_broken_pattern_is_told_to_whoever_wrote_it_alone(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(PolicyRuleError, match="not a pattern: missing ]: \\[ä"):
        parse_condition({"agent": {"matches": "[ä"}}, "rule")

    assert capfd.readouterr() == ("", "")


def test_nesting_has_a_depth() -> None:
    condition: Any = {"agent": "x"}
    for _ in range(40):
        condition = {"not": condition}

    with pytest.raises(PolicyRuleError, match="nested deeper than 16"):
        parse_condition(condition, "rule")


def test_an_empty_condition_holds() -> None:
    assert holds(parse_condition({}, "rule"), {})


def test_a_key_may_hold_dots() -> None:
    condition = parse_condition({"item.metadata.file.name": "a"}, "rule")

    assert holds(condition, {"item": {"metadata": {"file.name": "a"}}})
    assert holds(condition, {"item": {"metadata": {"file": {"name": "a"}}}})


values = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3))


@given(st.sampled_from(["equals", "in"]), st.lists(values, min_size=1, max_size=3), values)
def test_not_turns_every_judgement_round(operator: str, wanted: list[Any], found: Any) -> None:
    value = wanted if operator == "in" else wanted[0]
    test = {"arguments.x": {operator: value}}
    facts = {"arguments": {"x": found}}

    plain, turned = (parse_condition(one, "rule") for one in (test, {"not": test}))

    assert holds(turned, facts) is not holds(plain, facts)
