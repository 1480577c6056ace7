"""JSON text is edited in place: every byte that no edit names stays."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.replay.json_edit import (
    DEEPEST,
    Array,
    JsonText,
    NotEditable,
    Object,
    remove,
    remove_at,
    same,
    value_of,
)

NUMBERS = st.sampled_from(["0", "-0", "1.0", "1e3", "1E+3", "0.10", "-7", "12345678901234567890"])
BLANKS = st.sampled_from(["", " ", "\n", "\n  ", "\t", "\r\n"])
WORDS = st.text(max_size=6)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """Return a string's JSON text, escaped in one of several ways."""
    text = draw(WORDS)
    spelling = json.dumps(text, ensure_ascii=draw(st.booleans()))
    if "\ud800" <= max(text, default="") <= "\udfff":
        spelling = json.dumps(text)
    return spelling.replace("/", "\\/") if draw(st.booleans()) else spelling


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(BLANKS, strings(), BLANKS, BLANKS, inner, BLANKS).map(
        lambda one: f"{one[0]}{one[1]}{one[2]}:{one[3]}{one[4]}{one[5]}"
    )
    return st.one_of(
        st.lists(member, min_size=1, max_size=4).map(lambda some: "{" + ",".join(some) + "}"),
        BLANKS.map(lambda blank: "{" + blank + "}"),
    )


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    element = st.tuples(BLANKS, inner, BLANKS).map("".join)
    return st.one_of(
        st.lists(element, min_size=1, max_size=4).map(lambda some: "[" + ",".join(some) + "]"),
        BLANKS.map(lambda blank: "[" + blank + "]"),
    )


TEXTS = st.recursive(
    st.one_of(NUMBERS, strings(), st.sampled_from(["true", "false", "null"])),
    lambda inner: st.one_of(objects(inner), arrays(inner)),
    max_leaves=12,
)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(TEXTS)
def test_a_text_that_is_not_edited_is_the_same_text(text: str) -> None:
    data = text.encode(errors="surrogatepass").decode(errors="ignore").encode()
    try:
        expected = json.loads(data)
    except ValueError:
        return

    found = JsonText(data)

    assert found.bytes() == data
    assert value_of(found.root) == expected


@given(TEXTS, VALUES)
def test_setting_a_key_changes_that_value_and_no_other_byte(inner: str, value: Any) -> None:
    before = '{"first" : ' + inner + ', "key":'
    after = ' ,\n"last":1.0}'
    data = f'{before}"old"{after}'.encode(errors="ignore")
    text = JsonText(data)
    assert isinstance(text.root, Object)

    text.set(text.root, "key", value)

    made = text.bytes()
    assert made.startswith(before.encode(errors="ignore"))
    assert made.endswith(after.encode())
    assert json.loads(made)["key"] == value


@given(TEXTS, VALUES)
def test_a_key_that_is_added_and_removed_again_leaves_every_byte(inner: str, value: Any) -> None:
    data = ('{"a":' + inner + ', "b": 2\n}').encode(errors="ignore")
    text = JsonText(data)
    assert isinstance(text.root, Object)

    text.set(text.root, "new key", value)
    remove(text.root, "new key")

    assert text.bytes() == data


@given(VALUES, VALUES)
def test_a_rewritten_text_says_the_new_value(old: Any, new: Any) -> None:
    text = JsonText(json.dumps(old).encode())

    text.rewrite(None, new)

    assert same(json.loads(text.bytes()), json.loads(json.dumps(new)))


def shuffled(value: Any, chance: random.Random) -> Any:
    """Return an equal value with the keys of its objects in another order."""
    if isinstance(value, dict):
        names = list(value)
        chance.shuffle(names)
        return {name: shuffled(value[name], chance) for name in names}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


@given(VALUES, st.randoms())
def test_a_value_rendered_in_another_order_is_the_recorded_text(
    recorded: Any, chance: random.Random
) -> None:
    data = json.dumps(recorded, indent=1).encode()
    text = JsonText(data)

    text.rewrite(None, shuffled(recorded, chance))

    assert text.bytes() == data


def test_what_moved_keeps_its_text_and_a_changed_one_that_of_its_place() -> None:
    text = JsonText(b'{"tools": [{"z": 1.0}, {"z": 2.0, "a": 2}, {"z": 3.0, "a": 3}]}')

    text.rewrite(None, {"new": 0, "tools": [{"a": 2, "z": 2}, {"a": 3, "b": 8, "z": 3}]})

    assert text.bytes() == (
        b'{"tools": [{"z": 2.0, "a": 2}, {"z": 3.0, "a": 3, "b": 8}], "new": 0}'
    )


@pytest.mark.parametrize(
    ("data", "made"),
    [
        (b'{"a":1,"b":2}', b'{"a":1}'),
        (b'{"a": 1, "b": 2}', b'{"a": 1}'),
        (b'{\n  "a": 1,\n  "b": 2\n}', b'{\n  "a": 1\n}'),
        (b'{"b":1, "b" :2 }', b"{}"),
        (b'{"b": 0, "a": 1.0}', b'{"a": 1.0}'),
    ],
)
def test_a_key_is_removed_with_its_separator_and_its_duplicates(data: bytes, made: bytes) -> None:
    text = JsonText(data)
    assert isinstance(text.root, Object)

    remove(text.root, "b")

    assert text.bytes() == made


@pytest.mark.parametrize(("at", "made"), [(0, b"[2,3]"), (1, b"[1,3]"), (2, b"[1,2]")])
def test_an_element_is_removed_with_its_separator(at: int, made: bytes) -> None:
    text = JsonText(b"[1,2,3]")
    assert isinstance(text.root, Array)

    remove_at(text.root, at)

    assert text.bytes() == made


def test_equal_numbers_keep_their_spelling_and_booleans_are_no_numbers() -> None:
    text = JsonText(b'{"a":1.0,"b":1e3,"c":true}')
    assert isinstance(text.root, Object)

    assert not text.set(text.root, "a", 1)
    assert not text.set(text.root, "b", 1000)
    assert text.set(text.root, "c", 1)
    assert text.bytes() == b'{"a":1.0,"b":1e3,"c":1}'


@pytest.mark.parametrize(
    ("data", "made"),
    [
        (b'{"a":"\\u00fc"}', b'{"a":"\\u00fc","b":"\\u00e9"}'),
        ('{"a":"ü"}'.encode(), '{"a":"ü","b":"é"}'.encode()),
        (b'{"a": "u"}', '{"a": "u", "b": "é"}'.encode()),
    ],
)
def test_new_text_is_escaped_as_the_rest_is(data: bytes, made: bytes) -> None:
    text = JsonText(data)
    assert isinstance(text.root, Object)

    text.set(text.root, "b", "é")

    assert text.bytes() == made


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"a"}', b'{"a":1,}', b"[1 2]", b'"open', b"01", b"{}x", b"\xff{}", b"nul",
     b"[" * 100_000, b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2), b'"\x01"',
     b'{"seed":' + b"9" * 5_000 + b"}"],
)  # fmt: skip
def test_what_is_no_json_too_deep_or_too_long_a_number_is_refused(data: bytes) -> None:
    with pytest.raises(NotEditable):
        JsonText(data)
