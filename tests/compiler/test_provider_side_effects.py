"""What a request makes its provider do is found in its bytes; what is not known counts."""

from __future__ import annotations

import importlib
import json
from typing import Any, NotRequired, Required, get_args, get_origin, get_type_hints

import pytest

from hansard_compiler.replay.provider_side_effects import provider_side_effects

CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/v1/messages"
FUNCTION = {"type": "function", "name": "get", "parameters": {}}


def found(path: str, body: Any) -> list[tuple[str, str, str]]:
    effects = provider_side_effects(json.dumps(body).encode(), path)
    return [(one.kind, one.name, one.path) for one in effects]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [], "tools": [{"type": "function", "function": {"name": "get"}}]}),
        (CHAT, {"messages": [], "tools": [{"type": "custom", "custom": {"name": "free"}}]}),
        (CHAT, {"messages": [], "store": False, "web_search_options": None}),
        (MESSAGES, {"messages": [{"role": "system", "content": [{"type": "tool_addition", "tool": {
            "type": "tool_reference", "name": "get"}}]}]}),
        (RESPONSES, {"input": "x", "tools": [FUNCTION, {"type": "custom", "name": "f"}]}),
        (RESPONSES, {"input": "x", "tools": [{"type": "local_shell"}, {"type": "apply_patch"}]}),
        (RESPONSES, {"input": "x", "tools": [{"type": "shell", "environment": {"type": "local"}}]}),
        (RESPONSES, {"input": "x", "tools": [{"type": "namespace", "tools": [FUNCTION]}]}),
        (RESPONSES, {"input": "x", "store": False, "previous_response_id": "resp_1"}),
        (RESPONSES, {"input": [{"type": "mcp_approval_response", "approve": False}]}),
        (RESPONSES, {"input": "x", "background": False, "conversation": None}),
        (MESSAGES, {"messages": [], "tools": [{"name": "get", "input_schema": {}}]}),
        (MESSAGES, {"messages": [], "tools": [{"type": "bash_20250124", "name": "bash"},
                                              {"type": "memory_20250818", "name": "memory"},
                                              {"type": "computer_20251124", "name": "computer"}]}),
        ("/embeddings", {"input": ["x"], "model": "e"}),
    ],
)  # fmt: skip
def test_a_request_that_only_asks_does_nothing_else(path: str, body: Any) -> None:
    assert found(path, body) == []


MCP = {
    "type": "mcp",
    "server_label": "wiki",
    "server_url": "https://x",
    "require_approval": "never",
}


@pytest.mark.parametrize(
    ("path", "body", "effect"),
    [
        (RESPONSES, {"tools": [FUNCTION, MCP]}, ("tool", "mcp wiki", "$.tools[1]")),
        *((RESPONSES, {"tools": [{"type": kind}]}, ("tool", kind, "$.tools[0]")) for kind in (
            "web_search", "web_search_preview", "file_search", "code_interpreter", "computer",
            "computer_use_preview", "image_generation", "shell", "programmatic_tool_calling",
            "tool_search", "made_up_tomorrow")),
        (RESPONSES, {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]},
         ("tool", "shell", "$.tools[0]")),
        (RESPONSES, {"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION, MCP]}]},
         ("tool", "mcp wiki", "$.tools[0].tools[1]")),
        (RESPONSES, {"tools": ["web_search"]}, ("tool", "unknown", "$.tools[0]")),
        (RESPONSES, {"tools": {"type": "mcp"}}, ("tool", "unknown", "$.tools")),
        (RESPONSES, {"tools": [{"type": None}]}, ("tool", "unknown", "$.tools[0]")),
        (RESPONSES, {"tools": [{"type": ["function"]}]}, ("tool", "unknown", "$.tools[0]")),
        (RESPONSES, {"input": [{"type": "additional_tools", "tools": [MCP]}]},
         ("tool", "mcp wiki", "$.input[0].tools[0]")),
        (RESPONSES, {"input": [{"type": "mcp_approval_response", "approve": True}]},
         ("tool", "mcp_approval_response", "$.input[0]")),
        (RESPONSES, {"prompt": {"id": "pmpt_1"}}, ("tool", "prompt", "$.prompt")),
        (RESPONSES, {"conversation": "conv_1"}, ("state", "conversation", "$.conversation")),
        (RESPONSES, {"conversation": {"id": "c"}}, ("state", "conversation", "$.conversation")),
        (RESPONSES, {"previous_response_id": "r"},
         ("state", "previous_response_id", "$.previous_response_id")),
        (RESPONSES, {"previous_response_id": "r", "store": None},
         ("state", "previous_response_id", "$.previous_response_id")),
        (RESPONSES, {"background": True}, ("state", "background", "$.background")),
        (RESPONSES, {"store": True}, ("state", "store", "$.store")),
        (CHAT, {"store": True}, ("state", "store", "$.store")),
        (CHAT, {"web_search_options": {}}, ("tool", "web_search_options", "$.web_search_options")),
        (CHAT, {"tools": [{"type": "web_search"}]}, ("tool", "web_search", "$.tools[0]")),
        (CHAT, {"tools": [MCP]}, ("tool", "mcp wiki", "$.tools[0]")),
        (MESSAGES, {"mcp_servers": [{"type": "url", "url": "https://x", "name": "wiki"}]},
         ("tool", "mcp_servers", "$.mcp_servers")),
        *((MESSAGES, {"tools": [{"type": kind, "name": "n"}]}, ("tool", f"{kind} n", "$.tools[0]"))
          for kind in ("web_search_20260318", "web_fetch_20260318", "code_execution_20260521",
                       "tool_search_tool_bm25", "advisor_20260301", "browser_toolset_20260801",
                       "computer_toolset_20260801", "bash_20250124x")),
        (MESSAGES, {"tools": [{"type": "mcp_toolset", "mcp_server_name": "wiki"}]},
         ("tool", "mcp_toolset wiki", "$.tools[0]")),
        (MESSAGES, {"tools": [{"name": "no schema"}]}, ("tool", "unknown", "$.tools[0]")),
        (MESSAGES, {"container": "container_1"}, ("state", "container", "$.container")),
        (MESSAGES, {"thread": {"type": "create"}}, ("state", "thread", "$.thread")),
        (MESSAGES, {"messages": [{"role": "system", "content": [
            {"type": "tool_addition", "tool": {"type": "web_search_20260318", "name": "w"}}]}]},
         ("tool", "web_search_20260318 w", "$.messages[0].content[0].tool")),
        (MESSAGES, {"messages": [{"role": "system", "content": [{"type": "tool_addition", "tool": {
            "type": "tool_definition", "definition": {"type": "mcp_toolset"}}}]}]},
         ("tool", "mcp_toolset", "$.messages[0].content[0].tool.definition")),
        (MESSAGES, {"messages": [{"role": "assistant", "content": [
            {"type": "compaction", "tool_changes": [{"type": "tool_addition", "tool": {
                "type": "mcp_toolset_reference"}}]}]}]},
         ("tool", "mcp_toolset_reference", "$.messages[0].content[0].tool_changes[0].tool")),
        (MESSAGES, {"messages": [{"role": "user", "content": [
            {"type": "container_upload", "file_id": "f"}]}]},
         ("state", "container_upload", "$.messages[0].content[0]")),
        ("/elsewhere", {"tools": [{"type": "mcp"}]}, ("tool", "mcp", "$.tools[0]")),
    ],
)  # fmt: skip
def test_what_the_provider_does_itself_is_found(
    path: str, body: Any, effect: tuple[str, str, str]
) -> None:
    assert found(path, body) == [effect]


@pytest.mark.parametrize(
    "data",
    [
        b'{"tools":[],"tools":[{"type":"mcp"}]}',
        b'{"tools":[{"type":"mcp"}],"tools":[]}',
        b'{"tools":[{"type":"mcp","type":"function"}]}',
        b'{"tools":[{"type":"function","type":"mcp"}]}',
        b'{"\\u0074ools":[{"type":"\\u006dcp"}]}',
        b'{"previous_response_id":"r","store":false,"store":true}',
        b"[" * 400 + b"]" * 400,
        b"not json",
        b"[]",
    ],
)
def test_what_can_be_read_in_two_ways_counts(data: bytes) -> None:
    assert provider_side_effects(data, RESPONSES)


def test_another_server_under_the_same_label_is_another_side_effect() -> None:
    one, other = (
        provider_side_effects(
            json.dumps({"tools": [{**MCP, "server_url": url, "authorization": "s3"}]}).encode(),
            RESPONSES,
        )[0]
        for url in ("https://x", "https://y")
    )

    assert one.identity != other.identity
    assert "s3" not in one.asks
    assert "https://x" in one.asks


def _types(union: Any) -> set[str]:
    """Return the `type` of each member of a package's union of tools."""
    known: set[str] = set()
    for one in get_args(union):
        hint = get_type_hints(one, include_extras=True).get("type")
        while get_origin(hint) in (Required, NotRequired):
            (hint,) = get_args(hint)
        known |= {str(value) for value in get_args(hint) if isinstance(value, str)}
    return known


@pytest.mark.parametrize(
    ("path", "module", "name"),
    [
        (RESPONSES, "openai.types.responses.tool_param", "ToolParam"),
        (MESSAGES, "anthropic.types.tool_union_param", "ToolUnionParam"),
        (MESSAGES, "anthropic.types.beta.beta_tool_union_param", "BetaToolUnionParam"),
    ],
)
def test_every_tool_type_of_the_official_packages_is_judged(
    path: str, module: str, name: str
) -> None:
    own = {"function", "custom", "local_shell", "apply_patch", "namespace"}
    kinds = _types(getattr(importlib.import_module(module), name))

    free = {kind for kind in kinds if not found(path, {"tools": [{"type": kind, "name": "n"}]})}

    assert len(kinds) > 10
    assert {one for one in free if not one[-8:].isdigit()} <= own
    assert {one[:-9] for one in free if one[-8:].isdigit()} <= {
        "bash", "text_editor", "memory", "computer",
    }  # fmt: skip
