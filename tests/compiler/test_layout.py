"""Layout: stable prefix, task context, volatile suffix; bytes that stay the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.compiler.compiling import compiled, item, ports, request

_TOOL = {"name": "grep", "description": "find text", "parameters": {"type": "object"}}


def _call(call_id: str) -> Any:
    part = {"type": "tool_call", "id": call_id, "name": "grep", "arguments": {"q": call_id}}
    return {"role": "assistant", "parts": [part]}


def _result(call_id: str) -> Any:
    return {
        "role": "tool",
        "parts": [{"type": "tool_result", "id": call_id, "content": f"found {call_id}"}],
    }


def _at(minute: int) -> str:
    return f"2026-03-04T{10 + minute // 60:02d}:{minute % 60:02d}:00Z"


def _stable() -> list[Any]:
    return [
        item("system", "system", "You are careful."),
        item("rule", "policy", "Ask before writing."),
        item("profile", "memory", "Prefers short answers.", tags=["profile"]),
        item("space", "summary", "62 files, Python.", tags=["workspace"]),
    ]


def _of_sections(result: CompileResult) -> dict[str, list[str]]:
    return {section.name: list(section.item_ids) for section in result.state.sections}


@pytest.mark.covers("CP-14", "CP-48", "CP-49", "CP-50")
def test_each_item_stands_in_its_section() -> None:
    result = compiled(
        [
            item("diff", "code_diff", "- a\n+ b", tags=["changed"]),
            item("run", "other", "step 3 of 4", tags=["ephemeral"]),
            item("doc", content="rounding modes"),
            item("old", "user_msg", "hello", created_at=_at(0)),
            item("reply", "assistant_msg", "hi", created_at=_at(1)),
            item("limit", "constraint", "no tests edited"),
            item("asked", "user_msg", "go on", created_at=_at(2)),
            item("call", "assistant_msg", _call("c1"), created_at=_at(3)),
            item("answer", "tool_result", _result("c1"), created_at=_at(4)),
            *_stable(),
        ],
        tool_specs=[_TOOL],
    )

    assert _of_sections(result) == {
        "stable_prefix": ["system", "tool:grep", "rule", "profile", "space"],
        "task_context": ["limit", "doc", "old", "reply"],
        "volatile_suffix": ["diff", "run", "asked", "call", "answer"],
    }
    preview = result.payload["sections"]
    assert [one["name"] for one in preview] == list(_of_sections(result))
    assert [(one["system"], one["tools"], one["messages"]) for one in preview] == [
        (4, 1, 0), (4, 1, 3), (4, 1, 7),
    ]  # fmt: skip
    for section, shown in zip(result.state.sections, preview, strict=True):
        assert shown["hash"] == section.hash
        assert section.hash.startswith("sha256:")
    assert result.context().stable_prefix_hash == preview[0]["hash"]
    assert result.context().volatile_suffix_hash == preview[2]["hash"]


@pytest.mark.covers("PA-15")
@pytest.mark.parametrize("with_tools", [True, False])
def test_the_cache_breakpoint_of_a_compile_ends_its_stable_prefix(with_tools: bool) -> None:
    connection = Connection(api_key="k", base_url="http://127.0.0.1:9/v1")
    adapter = adapter_for("anthropic", AdapterSettings(connection, preflight="off"))
    stable = _stable() if with_tools else []
    items = [
        *stable,
        item("doc", content="rounding modes"),
        item("old", "user_msg", "hello", created_at=_at(0)),
        item("reply", "assistant_msg", "hi", created_at=_at(1)),
        item("asked", "user_msg", "go on", created_at=_at(2)),
    ]
    tools = [_TOOL] if with_tools else []

    body = compile_context(
        request(items, tool_specs=tools), ports(renderer=adapter.renderer(model="m"))
    ).payload
    adapter.close()

    blocks = [*body.get("tools", []), *body.get("system", [])]
    blocks += [block for message in body["messages"] for block in message["content"]]
    marked = [block for block in blocks if "cache_control" in block]
    assert len(blocks) >= 4
    assert marked == ([body["system"][-1]] if with_tools else [])


def _prefix(result: CompileResult) -> str:
    end = result.payload["sections"][0]
    return canonical_json(
        [result.payload["system"][: end["system"]], result.payload["tools"][: end["tools"]]]
    )


@pytest.mark.covers("CP-51")
@given(
    turns=st.lists(
        st.tuples(st.integers(0, 4), st.integers(300, 3_000), st.text(max_size=10)),
        min_size=2,
        max_size=5,
    )
)
def test_the_prefix_is_the_same_bytes_from_turn_to_turn(turns: list[tuple[int, int, str]]) -> None:
    seen = set()
    previous: list[str] = []
    for number, (documents, budget, asked) in enumerate(turns):
        items = [
            *[
                item(f"d{number}.{at}", content=f"text {at} {asked} " * 20)
                for at in range(documents)
            ],
            *_stable(),
            item(f"asked{number}", "user_msg", f"turn {number} {asked}", created_at=_at(number)),
        ]
        result = compiled(
            items,
            budget=budget,
            now=_at(100 + number),
            tool_specs=[_TOOL],
            compile_config={"previous_selected": previous},
        )
        previous = result.context().selected_items
        seen.add((_prefix(result), result.context().stable_prefix_hash))

    assert len(seen) == 1


@pytest.mark.covers("CP-51")
def test_a_changed_instruction_changes_the_hash_of_the_prefix_only() -> None:
    asked = item("asked", "user_msg", "go on")
    before = compiled([item("system", "system", "Be brief."), asked])
    after = compiled([item("system", "system", "Be brief!"), asked])

    old, new = ([section.hash for section in one.state.sections] for one in (before, after))
    assert old[0] != new[0]
    assert old[1:] == new[1:]


def test_a_group_stands_in_one_section_with_results_behind_their_call() -> None:
    items = [
        item("call", "assistant_msg", _call("c1"), created_at=_at(0)),
        item("between", "user_msg", "wait", created_at=_at(1)),
        item("asked", "user_msg", "and now?", created_at=_at(2)),
        item("answer", "tool_result", _result("c1"), created_at=_at(3)),
    ]

    assert _of_sections(compiled(items)) == {
        "stable_prefix": [],
        "task_context": ["between"],
        "volatile_suffix": ["call", "answer", "asked"],
    }


def test_a_result_of_no_call_is_told_as_material() -> None:
    result = compiled([item("output", "tool_result", "1 failed, 46 passed")])

    assert result.payload["messages"] == [
        {
            "role": "user",
            "parts": [
                {"type": "text", "text": "[tool_result: docs/output.md]\n1 failed, 46 passed"}
            ],
        }
    ]


def test_a_result_known_by_its_call_id_alone_is_a_result() -> None:
    items = [
        item("call", "assistant_msg", _call("c1"), created_at=_at(0)),
        item("answer", "tool_result", "plain text", created_at=_at(1), metadata={"call_id": "c1"}),
    ]

    result = compiled(items)

    assert result.payload["messages"][1] == {
        "role": "tool",
        "parts": [{"type": "tool_result", "id": "c1", "content": "plain text"}],
    }
