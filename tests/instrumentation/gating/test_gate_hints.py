"""What an approver reads beside the arguments: the tool's words, and what nobody mentioned."""

from __future__ import annotations

from typing import Any

import pytest

import hansard
from hansard._gate.flow import drive
from hansard._gate.provenance import SeenValues
from hansard._gate.tools import gated
from hansard.results import visible


def described(describe: Any, arguments: dict[str, Any]) -> str | None:
    @hansard.tool(name="add", effect="write", describe=describe)
    def add(**arguments: Any) -> None: ...

    tool = gated(add)
    assert tool is not None
    return drive(tool.description_of(arguments))


def test_a_template_is_filled_with_the_arguments() -> None:
    text = "Create contact {name}, {age}"
    told = described(text, {"name": "Maria", "age": 7})

    assert told == "Create contact Maria, 7"


def test_a_function_describes_from_a_copy_of_the_arguments() -> None:
    def describe(rows: list[int]) -> str:
        rows.clear()
        return "Create rows"

    arguments = {"rows": [1]}

    assert described(describe, arguments) == "Create rows"
    assert arguments == {"rows": [1]}


@pytest.mark.parametrize(
    "describe",
    [
        "Create {missing}",
        "Create {name.__class__}",
        "Create {name[0]}",
        "Create {name!r}",
        "Create {name:>9}",
        "Create {",
        "   ",
        lambda name: None,
        lambda name: 1 / 0,
        lambda: "no arguments taken",
    ],
)
def test_a_description_that_fails_says_so_and_never_raises(describe: Any) -> None:
    told = described(describe, {"name": "Maria"})

    assert told is not None
    assert told.startswith("add: its description failed (")


def test_nothing_invisible_is_left_in_what_is_shown() -> None:
    assert visible("a\u202eb\u200bc\n") == "a‹U+202E›b‹U+200B›c‹U+000A›"
    assert visible({"a": [1]}) == '{"a":[1]}'


def test_an_invented_address_is_missing_and_a_given_one_is_not() -> None:
    seen = SeenValues()
    seen.add("Create a contact for Maria Garcia, please. Her mail is Maria@Acme.com.")

    assert seen.missing({"name": "Maria  Garcia", "email": "maria@acme.com"}) == []
    assert seen.missing({"name": "Maria Garcia", "email": "maria@company.com"}) == ["email"]
    assert seen.missing({"email": "ia@acme.com"}) == ["email"]


def test_where_nothing_was_noted_nothing_is_missing() -> None:
    assert SeenValues().missing({"email": "maria@company.com"}) == []


def test_numbers_are_found_however_they_are_written() -> None:
    seen = SeenValues()
    seen.add("It costs 1,200 EUR; call +49 151 2345", [{"id": 4711}])

    assert seen.missing({"amount": 1200, "phone": "+491512345", "id": 4711}) == []
    assert seen.missing({"amount": 120, "id": 471}) == ["amount", "id"]


def test_of_the_models_own_words_only_addresses_and_ids_are_looked_up() -> None:
    seen = SeenValues()
    seen.add("Log a call with Maria")

    note = "Talked at length about the coming offer and its terms"
    assert seen.missing({"note": note}) == []
    assert seen.missing({"note": f"{note}, see order A7-991"}) == ["note"]
