"""What items of a compile are called where their ids are hashes."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.compile.inputs import request_from
from hansard_compiler.compile.models import CompilationRequest
from hansard_web.compile_view.labels import ItemNames
from tests.compiler.compiling import request

CALL = {"id": "call_7", "type": "function", "function": {"name": "get", "arguments": '{"k": 7}'}}
SAID: list[Any] = [
    "Order 7 was posted.",
    {"role": "user", "content": "Where is order 7?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_7", "content": '{"state": "in the post"}'},
    {"role": "tool", "tool_call_id": "call_8", "content": "nobody asked for this"},
    {"path": "docs/a.md"},
]


def compile_request(items: list[Any], **more: Any) -> CompilationRequest:
    """Return a request whose items were made of whatever a caller has at hand."""
    base = request([]).model_dump(mode="json")
    return request_from({**base, "context_items": items, **more})


def test_items_that_nobody_named_are_called_by_their_tool_or_their_words() -> None:
    made = compile_request(SAID)

    names = ItemNames(made, None)

    assert [names.name(one.id, one.kind) for one in made.context_items] == [
        "other “Order 7 was posted.”",
        "user message “Where is order 7?”",
        'assistant message “get {"k":7}”',
        'result of get call_7 “{"state": "in the post"}”',
        "result of a tool call_8 “nobody asked for this”",
        "file “docs/a.md”",
    ]


def test_what_is_long_or_on_several_lines_is_cut_to_its_first_words() -> None:
    made = compile_request(["the tides\nof the almanac " * 40])

    [name] = [ItemNames(made).name(one.id, one.kind) for one in made.context_items]

    assert name.startswith("other “the tides of the almanac the tides")
    assert name.endswith("…”")
    assert len(name) < 75


@pytest.mark.parametrize(
    ("item_id", "kind", "name"),
    [
        ("docs/a.md", "file", "docs/a.md"),
        ("tool:get", "tool_schema", "tool:get"),
        ("tool_result:6f1e09ab6f1e09ab", "tool_result", "tool result 6f1e09ab"),
        ("6f1e09ab" * 4, "memory", "memory 6f1e09ab"),
    ],
)
def test_an_id_has_to_do_where_it_says_something_or_the_request_is_not_here(
    item_id: str, kind: str, name: str
) -> None:
    assert ItemNames(None).name(item_id, kind) == name
