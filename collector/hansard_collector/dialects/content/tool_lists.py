"""Tool definitions: {type, name, description?, parameters?, strict?} and provider settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.engine.values import first, opened, text
from hansard_compiler.calls import Json

_SCHEMAS = (
    "parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema",
    "json_schema",
)  # fmt: skip
_READ = frozenset({"type", "name", "description", "function", "hash", *_SCHEMAS})


def tools_of(value: Any) -> tuple[Json, ...]:
    """Return the tools of a list, of JSON text of one, or of names."""
    value = opened(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return ()
    return tuple(tool for item in value for tool in _tools_of_one(opened(item)))


def _tools_of_one(item: Any) -> tuple[Json, ...]:
    if isinstance(item, str):
        return ({"type": "function", "name": item},) if item else ()
    if isinstance(item, list):
        return tools_of(item)
    if not isinstance(item, dict):
        return ()
    declared = first(item, ("functionDeclarations", "function_declarations"))
    if isinstance(declared, list):  # Gemini groups the functions of one tool
        return tools_of(declared)
    inner = first(item, ("function", "toolSpec"))  # OpenAI chat, Bedrock
    return _tool({**item, **inner} if isinstance(inner, dict) else item)


def _tool(item: Mapping[str, Any]) -> tuple[Json, ...]:
    name = text(item.get("name"))
    kind = text(item.get("type"))
    if name is None and kind is None:
        return ()
    tool: Json = {"type": _kind(kind), "name": name or kind}
    description = text(item.get("description"))
    if description is not None:
        tool["description"] = description
    schema = opened(first(item, _SCHEMAS))
    if isinstance(schema, dict):
        tool["parameters"] = schema["json"] if set(schema) == {"json"} else schema
    if isinstance(item.get("strict"), bool):
        tool["strict"] = item["strict"]
    if tool["type"] != "function":  # a provider's own tool: its settings are its definition
        tool |= {key: value for key, value in item.items() if key not in _READ}
    return (tool,)


def _kind(kind: str | None) -> str:
    return "function" if kind in (None, "custom", "object") else str(kind)
