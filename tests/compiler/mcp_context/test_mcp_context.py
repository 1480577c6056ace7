"""Resources, tools and prompts of an MCP server as what a compile takes."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from hansard_compiler.compile.engine import compile_context
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import ContextItem
from hansard_compiler.mcp_context import (
    MOST_NAME,
    WORKSPACE_RULE,
    McpWorkspace,
    prompt_asset,
    resource_items,
    tool_specs,
)
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.compiler.compiling import compiled, item, ports, request

Json = dict[str, Any]
NOW = "2026-11-22T12:00:00Z"
ORDERS: Json = {
    "uri": "file:///desk/orders.md",
    "name": "orders.md",
    "title": "Orders",
    "mimeType": "text/markdown",
    "annotations": {"priority": 0.9, "lastModified": "2026-11-01T08:00:00Z", "audience": ["user"]},
}
FIND: Json = {
    "name": "orders/find",
    "description": "Look an order up.",
    "inputSchema": {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
BRIEF: Json = {
    "name": "brief",
    "title": "Briefly",
    "description": "Short answers.",
    "arguments": [{"name": "lines", "required": True}, {"name": "tone"}],
}
GOT: Json = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "Answer in 2 lines."}},
        {"role": "assistant", "content": {"type": "text", "text": "I will."}},
    ]
}


def read(uri: str, text: str) -> Json:
    return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]}


def decided(items: list[ContextItem], **more: Any) -> dict[str, Any]:
    made = compiled([one.model_dump() for one in items], now=NOW, **more)
    return {one.item_id: one for one in made.context().decisions}


@pytest.mark.covers("MC-06")
def test_a_resource_becomes_a_candidate_that_the_decision_list_shows() -> None:
    (found,) = resource_items("desk", ORDERS, read(ORDERS["uri"], "Order 7: sent."), now=NOW)

    decision = decided([found])[found.id]

    assert found.source_ref is not None
    assert found.source_ref.source_type == "mcp_resource"
    assert (found.kind, found.content, found.importance_score) == ("file", "Order 7: sent.", 0.9)
    assert found.metadata["audience"] == ["user"]
    assert found.created_at.isoformat() == "2026-11-01T08:00:00+00:00"
    assert decision.decision == "include"
    assert decision.source.startswith("mcp_resource file:///desk/orders.md")


def test_other_texts_are_documents_and_bytes_are_described() -> None:
    blob = base64.b64encode(b"\x89PNG").decode()
    contents = [
        {"uri": "memo://a", "text": "a note"},
        {"uri": "memo://b", "mimeType": "image/png", "blob": blob},
    ]

    note, image = resource_items(
        "desk", {"uri": "memo://", "name": "memos"}, {"contents": contents}, now=NOW, trust=0.2
    )

    assert (note.kind, note.trust_score) == ("retrieval_doc", 0.2)
    assert image.kind == "artifact"
    assert image.content == {
        "media_type": "image/png",
        "size_bytes": 4,
        "sha256": hashlib.sha256(b"\x89PNG").hexdigest(),
    }


@pytest.mark.covers("MC-09")
def test_a_file_outside_of_the_roots_is_refused_unread_with_a_receipt() -> None:
    desk = McpWorkspace.of([{"uri": "file:///desk"}], resolve=str)
    passwd = {"uri": "file:///etc/passwd", "name": "passwd"}
    (inside,) = resource_items(
        "desk", ORDERS, read(ORDERS["uri"], "Order 7"), now=NOW, workspace=desk
    )
    (outside,) = resource_items("desk", passwd, None, now=NOW, workspace=desk)
    sneaky = read("file:///etc/passwd", "root:x:0:0")
    (smuggled,) = resource_items("desk", ORDERS, sneaky, now=NOW, workspace=desk)

    decisions = decided([inside, outside], policy_rules=[WORKSPACE_RULE])

    assert decisions[inside.id].decision == "include"
    assert decisions[outside.id].decision == "exclude"
    assert decisions[outside.id].rule_ids == ["mcp.workspace"]
    assert outside.metadata["refused"] == smuggled.metadata["refused"] == "outside_roots"
    assert "root:x" not in str(smuggled.content)


@pytest.mark.parametrize(
    ("listed", "got"),
    [
        ({"name": "x"}, read("a:", "b")),
        ({"uri": "a:"}, {}),
        ({"uri": "a:"}, {"contents": []}),
        ({"uri": "a:"}, {"contents": "text"}),
        ({"uri": "a:"}, {"contents": ["text"]}),
        ({"uri": "a:"}, {"contents": [{"uri": "a:"}]}),
        ({"uri": "a:"}, {"contents": [{"uri": "a:", "blob": "%%"}]}),
        ({"uri": "a:"}, None),
        ({"uri": "a:", "annotations": {"lastModified": "lately"}}, read("a:", "b")),
    ],
)
def test_what_is_no_resource_is_an_error_that_names_it(listed: Json, got: Json | None) -> None:
    with pytest.raises(InvalidInput) as wrong:
        resource_items("desk", listed, got, now=NOW)

    assert wrong.value.problems


@pytest.mark.parametrize("priority", [True, "high", float("nan"), None])
def test_a_priority_that_is_no_number_counts_for_nothing(priority: Any) -> None:
    listed = {**ORDERS, "annotations": {"priority": priority}}

    (found,) = resource_items("desk", listed, read(ORDERS["uri"], "x"), now=NOW)

    assert found.importance_score == 0.5


def test_a_long_address_has_an_id_of_its_own() -> None:
    long = [f"memo://{'a' * 600}{end}" for end in "bc"]
    ids = [resource_items("desk", {"uri": uri}, read(uri, "x"), now=NOW)[0].id for uri in long]

    assert len(set(ids)) == 2
    assert all(len(one) <= 512 for one in ids)


# ---- tools


@pytest.mark.covers("MC-07")
@pytest.mark.parametrize(
    ("provider", "name_at", "schema_at"),
    [
        ("openai", ("name",), ("parameters",)),
        ("anthropic", ("name",), ("input_schema",)),
        ("openai_compatible", ("function", "name"), ("function", "parameters")),
    ],
)
def test_a_tool_is_rendered_for_every_provider(
    provider: str, name_at: tuple[str, ...], schema_at: tuple[str, ...]
) -> None:
    (tool,) = tool_specs("desk", [FIND])
    connection = Connection(api_key="k", base_url="http://127.0.0.1:9/v1")
    adapter = adapter_for(provider, AdapterSettings(connection, preflight="off"))
    asked = request([item("u", "user_msg")], tool_specs=[tool.spec])

    body = compile_context(asked, ports(renderer=adapter.renderer(model="m"))).payload
    adapter.close()

    (rendered,) = body["tools"]
    assert at(rendered, name_at) == tool.name
    assert at(rendered, (*name_at[:-1], "description")) == FIND["description"]
    assert at(rendered, schema_at) == FIND["inputSchema"]


def at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_names_are_what_providers_take_and_stay_apart() -> None:
    listed = [{**FIND, "name": name} for name in ("find", "a/b", "a.b", "a b", "x" * 200)]

    tools = tool_specs("desk", listed)

    assert tools[0].name == "desk__find"
    assert len({one.name for one in tools}) == 5
    assert all(len(one.name) <= MOST_NAME and one.name.replace("-", "").replace("_", "").isalnum()
               for one in tools)  # fmt: skip
    assert [one.original for one in tools] == [one["name"] for one in listed]


def test_that_a_tool_only_reads_is_believed_of_a_trusted_server_alone() -> None:
    (claims,) = tool_specs("desk", [FIND])
    (trusted,) = tool_specs("desk", [FIND], is_trusted=True)
    (silent,) = tool_specs("desk", [{**FIND, "annotations": {}}], is_trusted=True)

    assert (claims.effect, trusted.effect, silent.effect) == ("write", "read", "write")


@pytest.mark.parametrize(
    "listed",
    [[{}], [{"name": "a"}], [{"name": "a", "inputSchema": {"type": "string"}}], [FIND, FIND]],
)
def test_what_is_no_tool_is_an_error(listed: list[Json]) -> None:
    with pytest.raises(InvalidInput):
        tool_specs("desk", listed)


# ---- prompts


@pytest.mark.covers("MC-08")
def test_a_prompt_is_an_asset_that_can_be_used_again() -> None:
    asset = prompt_asset("desk", BRIEF, GOT, values={"lines": "2"})
    same = prompt_asset("desk", BRIEF, GOT, values={"lines": "2"})
    other = prompt_asset("desk", BRIEF, {"messages": GOT["messages"][:1]}, values={"lines": "3"})

    items = asset.items(now=NOW)
    decisions = decided(items)

    assert (asset.name, asset.title, asset.values) == ("brief", "Briefly", (("lines", "2"),))
    assert [(one.name, one.is_required) for one in asset.arguments] == [
        ("lines", True), ("tone", False),
    ]  # fmt: skip
    assert asset == same
    assert (asset.id, asset.digest) != (other.id, other.digest)
    assert [(one.kind, one.content) for one in items] == [
        ("user_msg", "Answer in 2 lines."), ("assistant_msg", "I will."),
    ]  # fmt: skip
    assert {one.decision for one in decisions.values()} == {"include"}
    assert all("mcp_resource" in one.source for one in decisions.values())


def test_media_and_embedded_resources_in_a_prompt_are_said() -> None:
    content = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource", "resource": {"uri": "memo://a", "text": "the memo"}},
        {"type": "resource", "resource": {"uri": "memo://b", "blob": "AAAA"}},
    ]
    got = {"messages": [{"role": "user", "content": content}]}

    ((_, text),) = prompt_asset("desk", {"name": "look"}, got).messages

    assert "image/png" in text
    assert "the memo" in text
    assert "memo://b" in text
    assert "AAAA" not in text


@pytest.mark.parametrize(
    ("listed", "got"),
    [
        (BRIEF, GOT),  # without the argument it needs
        ({}, GOT),
        ({"name": "a"}, {}),
        ({"name": "a"}, {"messages": [{"role": "system", "content": {}}]}),
        ({"name": "a"}, {"messages": [{"role": "user", "content": "text"}]}),
    ],
)
def test_what_is_no_prompt_is_an_error(listed: Json, got: Json) -> None:
    with pytest.raises(InvalidInput):
        prompt_asset("desk", listed, got)
