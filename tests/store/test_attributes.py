"""Tokens of attributes: what counts as the same value, and what is indexed at all."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_store.search.attributes import (
    MAX_VALUE_CHARS,
    attribute_token,
    key_token,
    resource_tokens_of,
    tokens_of,
)

scalars = st.one_of(st.text(max_size=40), st.booleans(), st.integers(), st.floats())


@given(st.dictionaries(st.text(min_size=1, max_size=20), scalars, max_size=12))
def test_every_scalar_attribute_is_found_by_its_key_and_by_its_value(
    attributes: dict[str, str | bool | int | float],
) -> None:
    tokens = tokens_of(attributes).split()

    for key, value in attributes.items():
        assert key_token(key) in tokens
        assert attribute_token(key, value) in tokens


def test_a_number_and_its_text_share_a_token_but_true_and_one_do_not() -> None:
    assert attribute_token("n", 5) == attribute_token("n", "5")
    assert attribute_token("n", True) == attribute_token("n", "true")
    assert attribute_token("n", True) != attribute_token("n", 1)
    assert attribute_token("n", 1.0) != attribute_token("n", 1)


@given(st.text(max_size=10), st.text(max_size=10))
def test_the_border_between_key_and_value_counts(key: str, value: str) -> None:
    assert attribute_token(key + "a", value) != attribute_token(key, "a" + value)


def test_elements_of_an_array_are_found_singly() -> None:
    tokens = tokens_of({"tags": ["red", 7, "red", {"map": 1}, None]}).split()

    assert tokens == [key_token("tags"), attribute_token("tags", "red"), attribute_token("tags", 7)]


@pytest.mark.parametrize("value", [None, b"bytes", {"a": 1}, "x" * (MAX_VALUE_CHARS + 1)])
def test_what_has_no_short_text_is_known_by_its_key_alone(value: object) -> None:
    assert tokens_of({"key": value}) == key_token("key")


def test_a_lone_surrogate_is_hashed_like_any_text() -> None:
    assert len(attribute_token("key", "\ud800")) == 16


def test_a_resource_adds_what_people_filter_by_and_not_how_the_sdk_describes_itself() -> None:
    tokens = resource_tokens_of(
        {"service.name": "bot", "telemetry.sdk.language": "python", "process.pid": 7}
    )

    assert tokens.split() == [key_token("service.name"), attribute_token("service.name", "bot")]


def test_tokens_are_single_words_to_the_index() -> None:
    db = apsw.Connection(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE attribute_fts USING fts5 (tokens, content = '',"
        " contentless_delete = 1, detail = none, tokenize = 'ascii')"
    )
    add = "INSERT INTO attribute_fts (rowid, tokens) VALUES (?, ?)"
    db.execute(add, (1, tokens_of({"a": "x y", "n": 1})))
    db.execute(add, (2, tokens_of({"a": "x", "n": 1})))
    find = "SELECT rowid FROM attribute_fts WHERE attribute_fts MATCH ? ORDER BY rowid"

    assert db.execute(find, (attribute_token("a", "x y"),)).get == 1
    assert db.execute(find, (attribute_token("a", "x"),)).get == 2
    assert [row[0] for row in db.execute(find, (key_token("n"),))] == [1, 2]


def test_messages_past_the_eighth_are_left_to_the_full_text() -> None:
    flat = {f"llm.input_messages.{at}.message.role": "user" for at in range(12)}

    tokens = tokens_of(flat | {"llm.model_name": "m"}).split()

    assert key_token("llm.input_messages.7.message.role") in tokens
    assert key_token("llm.input_messages.8.message.role") not in tokens
    assert key_token("llm.input_messages.11.message.role") not in tokens
    assert key_token("llm.model_name") in tokens


def test_the_first_numbers_and_all_texts_of_a_list_are_found() -> None:
    vector = [number + 0.5 for number in range(300_000)]

    tokens = tokens_of({"vector": [*vector, "the last"]}).split()

    assert len(tokens) == 1 + 1_024 + 1
    assert {attribute_token("vector", 1_023.5), attribute_token("vector", "the last")} <= set(
        tokens
    )
