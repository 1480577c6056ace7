"""What a request makes its provider do besides answering: tools that it runs, state that it keeps.

Sending a recorded request again does these again. Read from the request's bytes, duplicate keys
included. A tool of a type that is not known counts as one that the provider runs: fail closed.
Which tools the caller runs: types of `openai` 3.54 and `anthropic` 2.12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.calls import Json
from hansard_compiler.canonical import stable_hash
from hansard_compiler.replay.json_edit import (
    Array,
    JsonText,
    Node,
    NotEditable,
    Object,
    find,
    text_at,
    value_of,
)
from hansard_compiler.replay.request_edits import CHAT, MESSAGES, RESPONSES, api_of, tool_name

Kind = Literal["tool", "state"]
TOOL: Final = (
    "hansard.replay.send"  # the action under which a request with side effects is approved
)

# Tools that the caller runs: the provider only requests them.
_OWN_TOOLS: Final = {
    CHAT: re.compile(r"function|custom"),
    RESPONSES: re.compile(r"function|custom|local_shell|apply_patch"),
    MESSAGES: re.compile(r"custom|(?:bash|text_editor|memory|computer)_[0-9]{8}"),
}
# Tools that providers are known to run, by how their types begin; they are named so. A type that is
# in neither list counts as one of these.
_PROVIDER_TOOLS: Final = re.compile(
    r"mcp|web_search|web_fetch|file_search|code_interpreter|code_execution|image_generation|shell$"
    r"|programmatic_tool_calling|tool_search|advisor"
)
_RUN_THERE: Final = "a tool that the provider runs"
_NOT_KNOWN: Final = "a tool that is not known to be run by the caller, so the provider may run it"
# Members that give the provider tools, connections or code of its own to run.
_GIVES_TOOLS: Final = {
    "mcp_servers": "MCP servers that the provider calls",
    "web_search_options": "a web search that the provider runs",
    "search_parameters": "a search that the provider runs",
    "data_sources": "data sources that the provider reads",
    "plugins": "plugins that the provider runs",
    "prompt": "a prompt that the provider holds, which may have tools of its own",
    "agent_id": "an agent that the provider holds",
}
# Members that name state which the provider adds to.
_KEEPS_STATE: Final = {
    "conversation": "a conversation that the provider appends to",
    "thread": "a thread that the provider continues",
    "container": "a container that the provider keeps files and processes in",
}
_LONGEST: Final = 200
_MOST_SHOWN: Final = 2_000
_CREDENTIAL: Final = re.compile(r"authorization|token|secret|password|headers|api.?key", re.I)


@dataclass(frozen=True, slots=True)
class SideEffect:
    """One thing that sending does at the provider. `path` is where the request sets it."""

    kind: Kind
    name: str  # of a tool its type and name: `mcp wiki`; of state the member: `conversation`
    path: str
    text: str
    asks: str  # the request's own words, without credentials, at most 2,000 characters
    digest: str  # of that part of the request, credentials included

    @property
    def identity(self) -> tuple[str, str, str]:
        """What two requests have in common that ask for the same."""
        return self.kind, self.name, self.digest

    def json(self) -> Json:
        return {"kind": self.kind, "name": self.name, "path": self.path, "text": self.text,
                "asks": self.asks}  # fmt: skip


def provider_side_effects(data: bytes, path: str) -> list[SideEffect]:
    """Return what sending a request does at its provider, in the order of the request.

    What cannot be read counts as a tool that the provider runs.
    """
    try:
        root = JsonText(data).root
    except NotEditable as error:
        return [_effect("tool", "unreadable", "$", f"the request cannot be read: {error}", None)]
    if not isinstance(root, Object):
        return [_effect("tool", "unreadable", "$", "the request is no JSON object", root)]
    return list(dict.fromkeys(_found(root, path)))


def _effect(kind: Kind, name: str, path: str, text: str, node: Node | None) -> SideEffect:
    value = None if node is None else value_of(node)
    asks = json.dumps(_without_credentials(value), ensure_ascii=False)
    return SideEffect(kind, name, path, text, asks[:_MOST_SHOWN], stable_hash(value).hex())


def _without_credentials(value: Any) -> Any:
    """Return a value as a person may be shown it: tokens and headers are replaced."""
    if isinstance(value, dict):
        return {
            key: "‹not shown›" if _CREDENTIAL.search(key) else _without_credentials(one)
            for key, one in value.items()
        }
    return [_without_credentials(one) for one in value] if isinstance(value, list) else value


def _found(root: Object, path: str) -> Iterator[SideEffect]:
    api = api_of(path)
    own = _OWN_TOOLS[CHAT] if api is None else _OWN_TOOLS[api.name]
    for member in root.members:
        value, key, at = member.value, member.key, f"$.{_cut(member.key)}"
        if key == "tools":
            yield from _tools(value, own, at)
        elif key in _GIVES_TOOLS and _is_set(value):
            yield _effect("tool", key, at, _GIVES_TOOLS[key], value)
        elif key in _KEEPS_STATE and _is_set(value):
            yield _effect("state", key, at, f"{_KEEPS_STATE[key]}{_named(value)}", value)
        elif key == "background" and _is_true(value):
            text = "a response that the provider makes in the background"
            yield _effect("state", key, at, text, value)
        elif key == "store" and _is_true(value):
            yield _effect("state", key, at, "an answer that the provider stores", value)
        elif key == "previous_response_id" and _is_set(value) and _stores(root):
            text = "a response that continues a stored one, and is stored behind it"
            yield _effect("state", key, at, text, value)
        elif key in ("input", "messages"):
            yield from _conversation(value, own, at)


def _conversation(node: Node, own: re.Pattern[str], at: str) -> Iterator[SideEffect]:
    """Yield tools that are handed over, and calls that are granted, within the conversation."""
    if not isinstance(node, Array):
        return
    for number, element in enumerate(node.elements):
        path = f"{at}[{number}]"
        yield from _item(element.value, own, path)
        content = find(element.value, "content")
        if content is not None and isinstance(content.value, Array):
            for inner, block in enumerate(content.value.elements):
                yield from _item(block.value, own, f"{path}.content[{inner}]")


def _item(node: Node, own: re.Pattern[str], at: str) -> Iterator[SideEffect]:
    kind = text_at(node, "type")
    if kind == "mcp_approval_response":
        granted = find(node, "approve")
        if granted is None or value_of(granted.value) is not False:
            text = "a call of an MCP server that this answer lets the provider make"
            yield _effect("tool", kind, at, text, node)
    elif kind in ("additional_tools", "tool_search_output"):
        tools = find(node, "tools")
        yield from _tools(Array() if tools is None else tools.value, own, f"{at}.tools")
    elif kind == "tool_addition":
        yield from _addition(node, own, f"{at}.tool")
    elif kind == "compaction":
        changes = find(node, "tool_changes")
        if changes is not None:
            yield from _conversation(changes.value, own, f"{at}.tool_changes")
    elif kind == "container_upload":
        yield _effect("state", kind, at, "a file that the provider puts into its container", node)


def _addition(node: Node, own: re.Pattern[str], at: str) -> Iterator[SideEffect]:
    """Yield a tool that is made available later on; a reference names one that is judged there."""
    tool = find(node, "tool")
    inner: Node = Object() if tool is None else tool.value
    kind = text_at(inner, "type")
    definition = find(inner, "definition")
    if kind == "tool_reference":
        return
    if kind == "tool_definition" and definition is not None:
        yield from _tool(definition.value, own, f"{at}.definition")
    else:
        yield from _tool(inner, own, at)


def _tools(node: Node, own: re.Pattern[str], at: str) -> Iterator[SideEffect]:
    if not isinstance(node, Array):
        if _is_set(node):
            yield _effect("tool", "unknown", at, "tools in a form that is not known", node)
        return
    for number, element in enumerate(node.elements):
        yield from _tool(element.value, own, f"{at}[{number}]")


def _tool(node: Node, own: re.Pattern[str], at: str) -> Iterator[SideEffect]:
    if not isinstance(node, Object):
        yield _effect("tool", "unknown", at, "a tool in a form that is not known", node)
        return
    kinds = _kinds(node, own)
    if kinds == ["namespace"]:
        inner = find(node, "tools")
        yield from _tools(Array() if inner is None else inner.value, own, f"{at}.tools")
        return
    for kind in kinds:
        if own.fullmatch(kind) or (kind == "shell" and _is_local(node)):
            continue
        named = "" if kind == "unknown" else tool_name(value_of(node)) or ""
        name = kind if named in ("", kind) else f"{kind} {_cut(named)}"
        is_known = _PROVIDER_TOOLS.match(kind) is not None
        text = f"{name}: {_RUN_THERE if is_known else _NOT_KNOWN}"
        yield _effect("tool", name, at, text, node)


def _kinds(node: Object, own: re.Pattern[str]) -> Sequence[str]:
    """Return every type that a tool names; Anthropic's own tools may leave it out."""
    values = [value_of(one.value) for one in node.members if one.key == "type"]
    if not values or values == [None]:
        has_form = any(find(node, key) is not None for key in ("input_schema", "function"))
        return ["custom" if has_form and own.fullmatch("custom") else "unknown"]
    return [_cut(one) if isinstance(one, str) else "unknown" for one in values]


def _is_local(node: Object) -> bool:
    """Whether a shell tool is the caller's own, by its environment."""
    where = [one.value for one in node.members if one.key == "environment"]
    return bool(where) and all(text_at(one, "type") == "local" for one in where)


def _stores(root: Object) -> bool:
    """Whether the response is stored: the Responses API does, unless the request forbids it."""
    names = [value_of(one.value) for one in root.members if one.key == "store"]
    return not names or any(one is not False for one in names)


def _is_set(node: Node) -> bool:
    return value_of(node) not in (None, [], "")


def _is_true(node: Node) -> bool:
    return value_of(node) not in (None, False)


def _named(node: Node) -> str:
    value: Any = value_of(node)
    found = value.get("id") if isinstance(value, dict) else value
    return f": {_cut(found)}" if isinstance(found, str) else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
