"""Conditions of policy rules: structured tests on named fields, joined by all, any and not.

```json
{"arguments.amount": {"at_most": 100}, "not": {"tool.effect": "read"}}
```

Several keys of one mapping must all hold. A field is a path into what is checked (`FIELDS` and
below `arguments`, `item.metadata` and `metadata` anything). A field that is absent fulfils no
test but `{"exists": false}`, `not_equals` and `not_in`; a field of the wrong type cannot be
judged, and the check denies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import re2

from hansard_compiler.calls import Json
from hansard_compiler.policy.errors import ConditionError, PolicyRuleError
from hansard_compiler.policy.file_paths import is_under, parse_directory
from hansard_compiler.policy.permitted_commands import parse_permitted, runs_only

# Patterns that people write into rules: google-re2, so that time is linear in the text.


def compiled_pattern(text: str) -> Any:
    """Return a pattern; raises ValueError with what is wrong with it."""
    options = re2.Options()
    options.log_errors = False  # the caller gets the error: the library would print it too
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        [why] = error.args or ("",)
        problem = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise ValueError(f"not a pattern: {problem}") from None


FIELDS = frozenset(
    (
        "action", "agent", "task_type", "provider", "model", "environment", "user", "project",
        "scope", "item.id", "item.kind", "item.sensitivity", "item.source_type", "item.source_uri",
        "item.tags", "item.trust_score", "item.importance_score", "item.tokens", "item.scope",
        "tool.name", "tool.class", "tool.effect",
    )
)  # fmt: skip
OPEN_FIELDS = ("arguments.", "item.metadata.", "metadata.")
_MAX_DEPTH = 16
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Test:
    """One field, one operator, and what it is compared with (prepared by the operator)."""

    field: str
    operator: str
    value: Any
    prepared: Any


@dataclass(frozen=True, slots=True)
class ConditionGroup:
    """`all` or `any` of its parts; `not` has one part."""

    kind: str
    parts: tuple[Condition, ...]


Condition: TypeAlias = Test | ConditionGroup


ALWAYS = ConditionGroup("all", ())


def parse_condition(value: Any, where: str, *, depth: int = 0) -> ConditionGroup:
    """Read a condition; an empty mapping always holds. Raises PolicyRuleError."""
    if not isinstance(value, Mapping):
        raise PolicyRuleError(where, f"expected a mapping of fields, found {value!r}")
    if depth > _MAX_DEPTH:
        raise PolicyRuleError(where, f"nested deeper than {_MAX_DEPTH}")
    parts: list[Condition] = []
    for key, operand in value.items():
        if key in ("all", "any"):
            parts.append(_parse_list(key, operand, f"{where}.{key}", depth))
        elif key == "not":
            parts.append(
                ConditionGroup("not", (parse_condition(operand, f"{where}.not", depth=depth + 1),))
            )
        else:
            parts.extend(_parse_tests(key, operand, where))
    return ConditionGroup("all", tuple(parts))


def _parse_list(kind: str, conditions: Any, where: str, depth: int) -> ConditionGroup:
    if not isinstance(conditions, list) or not conditions:
        raise PolicyRuleError(where, "expected a list of conditions")
    parts = (
        parse_condition(part, f"{where}[{index}]", depth=depth + 1)
        for index, part in enumerate(conditions)
    )
    return ConditionGroup(kind, tuple(parts))


def _parse_tests(field: str, operand: Any, where: str) -> list[Test]:
    if field not in FIELDS and not field.startswith(OPEN_FIELDS):
        known = ", ".join(sorted(FIELDS))
        raise PolicyRuleError(f"{where}.{field}", f"no such field; there are {known}, arguments.…")
    tests = operand if isinstance(operand, Mapping) else {"equals": operand}
    if not tests:
        raise PolicyRuleError(f"{where}.{field}", "expected an operator")
    return [_parse_test(field, key, value, f"{where}.{field}") for key, value in tests.items()]


def _parse_test(field: str, key: str, value: Any, where: str) -> Test:
    operator = OPERATORS.get(key)
    if operator is None:
        raise PolicyRuleError(where, f"no operator {key!r}; there are {', '.join(OPERATORS)}")
    try:
        return Test(field, key, value, operator.prepare(value))
    except ValueError as error:
        raise PolicyRuleError(f"{where}.{key}", str(error)) from None


def holds(condition: Condition, facts: Mapping[str, Any]) -> bool:
    """Return whether a condition holds. Raises ConditionError where that cannot be judged.

    A part that cannot be judged does no harm where the others decide alone: `all` with a part that
    fails does not hold, `any` with a part that holds does. Order plays no role.
    """
    judged = _judge(condition, facts)
    if isinstance(judged, ConditionError):
        raise judged
    return judged


def _judge(condition: Condition, facts: Mapping[str, Any]) -> bool | ConditionError:
    if isinstance(condition, Test):
        return _test(condition, facts)
    results = [_judge(part, facts) for part in condition.parts]
    if condition.kind == "not":
        return results[0] if isinstance(results[0], ConditionError) else not results[0]
    decides = condition.kind == "any"  # the result that one part alone brings about
    if any(result is decides for result in results):
        return decides
    errors = [result for result in results if isinstance(result, ConditionError)]
    return errors[0] if errors else not decides


def _test(test: Test, facts: Mapping[str, Any]) -> bool | ConditionError:
    try:
        found = find_field(facts, test.field)
    except ValueError as error:
        return ConditionError(test.field, str(error))
    if test.operator == "exists":
        return (found is not None) is test.prepared
    if found is None:
        return test.operator in ("not_equals", "not_in")
    try:
        return OPERATORS[test.operator].test(found, test.prepared)
    except Exception as error:  # values are anyone's: whatever they raise, it cannot be judged
        return ConditionError(test.field, f"{test.operator}: {error}")


def find_field(facts: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path, None where there is none. A key may itself hold dots.

    Raises ValueError where a path is there in both ways with different values: `{"a.b": 1}` beside
    `{"a": {"b": 2}}`.
    """
    head, _, rest = path.partition(".")
    child = facts.get(head)
    nested = find_field(child, rest) if rest and isinstance(child, Mapping) else None
    value: Any = facts.get(path, _ABSENT)
    if value is _ABSENT or not rest:
        return nested if rest else facts.get(path)
    if nested is not None and not _equal(nested, value):
        raise ValueError(f"two values: under the key {path!r}, and below {head!r}")
    return value


def uses_operator(condition: Condition, operator: str) -> bool:
    """Whether a test with this operator is anywhere in a condition."""
    if isinstance(condition, Test):
        return condition.operator == operator
    return any(uses_operator(part, operator) for part in condition.parts)


def condition_json(condition: Condition) -> Json:
    """Return a condition as plain values, equal for equal conditions."""
    if isinstance(condition, ConditionGroup):
        return {condition.kind: [condition_json(part) for part in condition.parts]}
    return {"field": condition.field, condition.operator: condition.value}


def explain_condition(condition: Condition, facts: Mapping[str, Any]) -> Json:
    """Return what each part came to, for people: `holds`, or `error` where it cannot be judged."""
    if isinstance(condition, ConditionGroup):
        parts = [explain_condition(part, facts) for part in condition.parts]
        return {condition.kind: parts, **_outcome(condition, facts)}
    test = {"field": condition.field, "operator": condition.operator, "wanted": condition.value}
    try:
        found = find_field(facts, condition.field)
    except ValueError:
        found = None  # two values: the outcome says so
    return {**test, "found": found, **_outcome(condition, facts)}


def _outcome(condition: Condition, facts: Mapping[str, Any]) -> Json:
    try:
        return {"holds": holds(condition, facts)}
    except ConditionError as error:
        return {"holds": None, "error": str(error)}


# --- operators --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operator:
    """How a rule's value is prepared (ValueError: not usable) and how a field is judged."""

    prepare: Callable[[Any], Any]
    test: Callable[[Any, Any], bool]


def _scalar(value: Any) -> Any:
    if isinstance(value, Mapping | list):
        raise ValueError(f"expected one value, found {value!r}")
    return value


def _values(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of values, found {value!r}")
    return tuple(_scalar(one) for one in value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, found {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {type(value).__name__}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {value!r}")
    return value


def _permitted(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        raise ValueError("expected a list of programs")
    return tuple(map(parse_permitted, value))


def _equal(found: Any, target: Any) -> bool:
    # In Python True == 1; in a rule they are two things.
    return isinstance(found, bool) is isinstance(target, bool) and bool(found == target)


def _is_in(found: Any, target: Sequence[Any]) -> bool:
    return any(_equal(found, one) for one in target)


def _contains(found: Any, target: Any) -> bool:
    if isinstance(found, str):
        return _text(target) in found
    if isinstance(found, list | tuple | set | frozenset):
        return any(_equal(one, target) for one in found)
    raise TypeError(f"expected a text or list, found {type(found).__name__}")


def _command(found: Any, permitted: Any) -> bool:
    if isinstance(found, list) and found and all(isinstance(word, str) for word in found):
        return runs_only(found, permitted)
    return runs_only(_text(found), permitted)


OPERATORS: dict[str, Operator] = {
    "equals": Operator(_scalar, _equal),
    "not_equals": Operator(_scalar, lambda found, target: not _equal(found, target)),
    "in": Operator(_values, _is_in),
    "not_in": Operator(_values, lambda found, target: not _is_in(found, target)),
    "contains": Operator(_scalar, _contains),
    "starts_with": Operator(_text, lambda found, target: _text(found).startswith(target)),
    "ends_with": Operator(_text, lambda found, target: _text(found).endswith(target)),
    "matches": Operator(
        lambda value: compiled_pattern(_text(value)),
        lambda found, target: target.search(_text(found)) is not None,
    ),
    "under": Operator(parse_directory, lambda found, target: is_under(_text(found), target)),
    "at_least": Operator(_number, lambda found, target: _number(found) >= target),
    "at_most": Operator(_number, lambda found, target: _number(found) <= target),
    "greater_than": Operator(_number, lambda found, target: _number(found) > target),
    "less_than": Operator(_number, lambda found, target: _number(found) < target),
    "exists": Operator(_flag, lambda found, target: target),
    "runs_only": Operator(_permitted, _command),
}
