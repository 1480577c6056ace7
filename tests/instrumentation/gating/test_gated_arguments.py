"""Arguments of gated calls: what comes in is shown, bound and run as one and the same."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard._gate.arguments import Shape, plain_copy
from hansard.errors import InvalidArguments

TEXT = st.text(st.characters(codec="utf-8"))
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def everything(
    first: Any, /, second: Any, third: Any = "c", *more: Any, fourth: Any = 4, **rest: Any
) -> Any:
    return first, second, third, more, fourth, rest


def shape(function: Any) -> Shape:
    return Shape.of("tool", function, skipped=0)


@settings(max_examples=40)
@given(PLAIN)
def test_a_copy_of_plain_data_is_equal_and_shares_nothing(value: Any) -> None:
    copied = plain_copy(value)

    assert copied == value
    assert copied is not value or not isinstance(value, list | dict)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="no number"),
        pytest.param(float("inf"), id="infinite"),
        pytest.param("\ud800", id="half a character"),
        pytest.param({"a": "\udfff"}, id="the other half"),
        pytest.param(1 << 5000, id="too many digits"),
        pytest.param(b"x", id="bytes"),
        pytest.param({1: "x"}, id="a number for a name"),
        pytest.param(object(), id="an object"),
    ],
)
def test_what_json_cannot_say_is_refused_with_the_name_of_the_argument(value: Any) -> None:
    def tool(given: Any) -> None: ...

    with pytest.raises(InvalidArguments, match=r"'given.*cannot be shown"):
        shape(tool).bound((value,), {})


def test_what_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(ValueError, match="too deep"):
        plain_copy(loop)


@settings(max_examples=40)
@given(
    st.tuples(PLAIN, PLAIN),
    st.lists(PLAIN, max_size=3),
    st.dictionaries(st.sampled_from(["fourth", "other", "further"]), PLAIN),
)
def test_arguments_by_name_are_run_as_they_were_given(
    two: tuple[Any, Any], more: list[Any], named: dict[str, Any]
) -> None:
    bound = shape(everything).bound((*two, *more), named)
    args, kwargs = shape(everything).split(bound)

    assert everything(*args, **kwargs) == everything(*two, *more, **named)


def test_defaults_are_shown_and_run_and_what_is_no_data_is_left_to_the_function() -> None:
    client = object()

    def tool(name: str, currency: str = "EUR", by: object = client) -> Any:
        return name, currency, by

    bound = shape(tool).bound(("x",), {})
    args, kwargs = shape(tool).split(bound)

    assert bound == {"name": "x", "currency": "EUR"}
    assert tool(*args, **kwargs) == ("x", "EUR", client)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"a": 1, "c": 2}, {"a": 1, "b": 2, "z": 3}, [1, 2], None, "a", {1: 2}],
    ids=repr,
)
def test_what_a_model_gives_must_fit_the_signature(arguments: Any) -> None:
    def tool(a: int, b: int) -> None: ...

    with pytest.raises(InvalidArguments):
        shape(tool).from_model(arguments)


def test_what_the_program_changes_later_changes_nothing() -> None:
    def tool(rows: list[int]) -> None: ...

    rows = [1]
    bound = shape(tool).bound((rows,), {})
    rows.append(2)

    assert bound == {"rows": [1]}


def test_the_receiver_of_a_method_is_no_argument() -> None:
    class Crm:
        def add(self, name: str) -> None: ...

    found = Shape.of("add", Crm.add, skipped=1)

    assert found.bound(("Maria",), {}) == {"name": "Maria"}
    assert all(one.name != "self" for one in found.parameters)
    assert inspect.signature(Crm.add).parameters.keys() == {"self", "name"}
