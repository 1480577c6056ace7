"""Prompts of an MCP server as assets: named, versioned by their content, used again as context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.canonical import canonical_json, stable_hash
from hansard_compiler.compile.errors import InvalidInput, Problem
from hansard_compiler.compile.models import ContextItem, Json, parse
from hansard_compiler.mcp_context.fields import item_id, mapping_at, optional_text, text_at

_KINDS: Final = {"user": "user_msg", "assistant": "assistant_msg"}


@dataclass(frozen=True, slots=True)
class PromptArgument:
    name: str
    description: str | None
    is_required: bool


@dataclass(frozen=True, slots=True)
class PromptAsset:
    """A prompt as `prompts/get` filled it in; `digest` is of its messages."""

    id: str
    server: str
    name: str
    title: str | None
    description: str | None
    arguments: tuple[PromptArgument, ...]
    given: tuple[tuple[str, str], ...]
    messages: tuple[tuple[str, str], ...]  # role and text
    digest: str

    def items(self, *, now: str) -> list[ContextItem]:
        """Return its messages as candidates, in order; `now` is RFC 3339."""
        return [
            parse(
                ContextItem,
                {
                    "id": f"{self.id}#{number}",
                    "kind": _KINDS[role],
                    "content": text,
                    "source_ref": {
                        "source_type": "mcp_resource",
                        "uri": self.id,
                        "title": self.title or self.name,
                        "version": self.digest,
                        "metadata": {"server": self.server, "prompt": self.name},
                    },
                    "created_at": now,
                    "tags": ["mcp", "mcp_prompt", f"mcp_server:{self.server}"],
                    "metadata": {"server": self.server, "prompt": self.name},
                },
            )
            for number, (role, text) in enumerate(self.messages)
        ]


def prompt_asset(
    server: str,
    listed: Mapping[str, Any],
    got: Mapping[str, Any],
    *,
    given: Mapping[str, str] | None = None,
) -> PromptAsset:
    """Return the asset of an entry of `prompts/list` and its `prompts/get`.

    Raises InvalidInput for what is no prompt, and for a required argument that was not given.
    """
    name = text_at(listed, "name", "Prompt")
    arguments = _arguments(listed)
    values = dict(given or {})
    missing = [one.name for one in arguments if one.is_required and one.name not in values]
    if missing:
        raise InvalidInput("Prompt", [Problem(f"arguments.{one}", "is needed") for one in missing])
    messages = tuple(_message(one) for one in _list(got, "messages"))
    digest = "sha256:" + stable_hash([list(one) for one in messages]).hex()
    place = f"prompt/{name}" + (f"?{stable_hash(values).hex()[:8]}" if values else "")
    return PromptAsset(
        id=item_id(server, place),
        server=server,
        name=name,
        title=optional_text(listed, "title"),
        description=optional_text(listed, "description"),
        arguments=arguments,
        given=tuple(sorted(values.items())),
        messages=messages,
        digest=digest,
    )


def _arguments(listed: Mapping[str, Any]) -> tuple[PromptArgument, ...]:
    return tuple(
        PromptArgument(
            name=text_at(one, "name", "Prompt"),
            description=optional_text(one, "description"),
            is_required=one.get("required") is True,
        )
        for one in listed.get("arguments") or ()
    )


def _list(given: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = given.get(name)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise InvalidInput("Prompt", [Problem(name, "a list is expected")])
    return found


def _message(given: Mapping[str, Any]) -> tuple[str, str]:
    role = given.get("role")
    if role not in _KINDS:
        raise InvalidInput("Prompt", [Problem("messages.role", "user or assistant is expected")])
    content = given.get("content")
    parts: Sequence[Any] = content if isinstance(content, list) else [content]
    return str(role), "\n".join(_text(part) for part in parts)


def _text(part: Any) -> str:
    """Return what a part says; of media that it is there, and what it is."""
    if not isinstance(part, Mapping):
        raise InvalidInput("Prompt", [Problem("messages.content", "an object is expected")])
    if part.get("type") == "text":
        return text_at(part, "text", "Prompt")
    resource: Json = dict(mapping_at(part, "resource"))
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    told = {"type": part.get("type"), "mimeType": part.get("mimeType"), "uri": resource.get("uri")}
    return canonical_json({name: one for name, one in told.items() if one is not None})
