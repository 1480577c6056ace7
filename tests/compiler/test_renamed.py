"""Names of before are read under those of now, and stand in one module of the product."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hansard_compiler import renamed
from hansard_compiler.redaction.metadata_keys import kind_of

ROOT = Path(__file__).parents[2]
FLOORS = ("compiler", "store", "instrumentation", "collector", "web")
OLD = {**renamed.ATTRIBUTES, **renamed.EVENTS}


def test_attributes_of_before_are_read_under_the_names_of_now() -> None:
    sent = {"a": 1, "hansard.left_open": True, "hansard.tool.told": "call"}

    assert renamed.current_attributes(sent) == {
        "a": 1,
        "hansard.unended": True,
        "hansard.tool.recorded_part": "call",
    }


def test_the_reference_to_a_request_is_read_under_both_of_its_names() -> None:
    assert renamed.current_attributes({"hansard.request_ref": "sha256:0"}) == {
        "hansard.request.ref": "sha256:0"
    }


def test_attributes_without_a_name_of_before_are_not_copied() -> None:
    sent = {"a": 1, "hansard.unended": True}

    assert renamed.current_attributes(sent) is sent


@pytest.mark.parametrize("order", [1, -1])
def test_of_both_names_the_new_one_holds(order: int) -> None:
    both = {"hansard.tool.told": "call", "hansard.tool.recorded_part": "result"}
    sent = dict(list(both.items())[::order])

    assert renamed.current_attributes(sent) == {"hansard.tool.recorded_part": "result"}


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("hansard.error.code", "bad_answer", {"hansard.error.code": "invalid_response"}),
        ("hansard.error.code", "rate_limited", {"hansard.error.code": "rate_limited"}),
        ("hansard.error.code", 7, {"hansard.error.code": 7}),
        (
            "hansard.call.shortfall",
            "answer_truncated",
            {"hansard.call.incomplete_reason": "response_truncated"},
        ),
        ("hansard.link.type", "asked", {"hansard.link.type": "approval_request"}),
        ("mine", "bad_answer", {"mine": "bad_answer"}),
    ],
)
def test_codes_of_before_are_read_where_a_code_stands(
    key: str, value: object, found: dict[str, object]
) -> None:
    assert renamed.current_attributes({key: value}) == found


def test_metadata_only_keeps_an_attribute_under_either_name() -> None:
    assert all(kind_of(old) is kind_of(new) for old, new in renamed.ATTRIBUTES.items())


def test_no_other_module_has_a_name_of_before() -> None:
    old = re.compile("|".join(re.escape(name) + r"(?![\w.])" for name in OLD))
    found = [
        f"{path.relative_to(ROOT)}: {hit}"
        for floor in FLOORS
        for path in sorted((ROOT / floor).rglob("*.py"))
        if path.name != "renamed.py"
        for hit in old.findall(path.read_text(encoding="utf-8"))
    ]

    assert found == []


def test_the_list_of_renames_has_every_name_that_is_still_read() -> None:
    lines = (ROOT / "docs" / "renames.tsv").read_text(encoding="utf-8").splitlines()
    listed = {tuple(line.split("\t")[1:3]) for line in lines}
    read = {**OLD, **renamed.CODES}

    assert {
        (old, new) for old, new in read.items() if not old.endswith(("_ref", "_size"))
    } <= listed


def test_calls_of_a_stored_fork_are_read_under_their_names_of_now() -> None:
    stored = {"turn": 1, "calls": [{"state": "held", "held_because": "pending"}, {"state": "gate"}]}

    assert renamed.with_current_calls(stored) == {
        "turn": 1,
        "calls": [{"state": "blocked", "block_reason": "pending"}, {"state": "gate"}],
    }
    assert renamed.with_current_calls({"kind": "approval"}) == {"kind": "approval"}


def test_a_code_in_stored_json_is_read_under_its_name_of_now() -> None:
    assert renamed.with_current_code({"code": "place_taken", "n": 1}, "code") == {
        "code": "subject_conflict",
        "n": 1,
    }
    assert renamed.with_current_code({"code": "busy"}, "code") == {"code": "busy"}
    assert renamed.with_current_code({}, "code") == {}
