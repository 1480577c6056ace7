"""Tools of an MCP server as definitions that every provider takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.errors import InvalidInput, Problem
from hansard_compiler.compile.models import Json
from hansard_compiler.mcp_context.fields import mapping_at, optional_text, text_at

MOST_NAME: Final = 64  # characters; what both OpenAI and Anthropic take
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as a model is told of it (`spec`), and as its server knows it (`original`)."""

    name: str
    original: str
    server: str
    spec: Json
    effect: Literal["read", "write"]


def tool_specs(
    server: str, listed: Sequence[Mapping[str, Any]], *, is_trusted: bool = False
) -> list[McpTool]:
    """Return the tools of `tools/list`, each under a name of its own: `server__name`.

    That a tool only reads is its server's claim: taken where the server is trusted, else every tool
    counts as one that writes. Raises InvalidInput for what is no tool.
    """
    made: dict[str, McpTool] = {}
    for tool in listed:
        original = text_at(tool, "name", "Tool")
        name = _name(server, original)
        if name in made:
            raise InvalidInput("Tool", [Problem("name", f"{original!r} stands twice")])
        claims_read = mapping_at(tool, "annotations").get("readOnlyHint") is True
        made[name] = McpTool(
            name=name,
            original=original,
            server=server,
            spec={
                "name": name,
                "description": optional_text(tool, "description")
                or optional_text(tool, "title")
                or "",
                "parameters": _schema(tool),
            },
            effect="read" if is_trusted and claims_read else "write",
        )
    return list(made.values())


def _schema(tool: Mapping[str, Any]) -> Json:
    schema = tool.get("inputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidInput("Tool", [Problem("inputSchema", "a schema of an object is expected")])
    return {"properties": {}, **schema}


def _name(server: str, original: str) -> str:
    """Return a name that providers take; one that had to be changed ends in a hash."""
    whole = f"{server}__{original}"
    clean = _NOT_IN_NAMES.sub("_", whole)
    if clean == whole and len(clean) <= MOST_NAME:
        return clean
    return f"{clean[: MOST_NAME - 9]}_{stable_hash([server, original]).hex()[:8]}"
