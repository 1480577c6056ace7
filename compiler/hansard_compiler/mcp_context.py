"""What an MCP server offers, as what a compile takes: pure functions over the protocol's JSON.

Resources become candidates, tools tool definitions, prompts assets, roots the boundary of a
workspace. Nothing here speaks the protocol: any client's results will do, as JSON.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from hansard_compiler.canonical import canonical_json, stable_hash
from hansard_compiler.compile.config import Sensitivity
from hansard_compiler.compile.errors import CompileProblem, InvalidInput
from hansard_compiler.compile.models import ContextItem, Json, item_hash, parse

# Reading the protocol's JSON: what is missing or of another type is named.

MOST_ID = 512


def text_at(value: Mapping[str, Any], name: str, what: str) -> str:
    """Return a text that must be there; raises InvalidInput."""
    found = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(found, str) or not found:
        raise InvalidInput(what, [CompileProblem(name, "a text is expected")])
    return found


def optional_text(value: Mapping[str, Any], name: str) -> str | None:
    """Return a text, None where there is none."""
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def mapping_at(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object, an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def item_id(server: str, path: str) -> str:
    """Return the id of what a server has at a place; a long one ends in its hash."""
    found = f"mcp:{server}:{path}"
    if len(found) <= MOST_ID:
        return found
    return f"{found[: MOST_ID - 17]}~{item_hash('other', path)[7:23]}"


# Prompts of an MCP server as assets: named, versioned by their content, used again as context.

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
    values: tuple[tuple[str, str], ...]
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
    values: Mapping[str, str] | None = None,
) -> PromptAsset:
    """Return the asset of an entry of `prompts/list` and its `prompts/get`.

    Raises InvalidInput for what is no prompt, and for a required argument that is missing.
    """
    name = text_at(listed, "name", "Prompt")
    arguments = _arguments(listed)
    filled = dict(values or {})
    missing = [one.name for one in arguments if one.is_required and one.name not in filled]
    if missing:
        raise InvalidInput(
            "Prompt", [CompileProblem(f"arguments.{one}", "is needed") for one in missing]
        )
    messages = tuple(_message(one) for one in _list(got, "messages"))
    digest = "sha256:" + stable_hash([list(one) for one in messages]).hex()
    path = f"prompt/{name}" + (f"?{stable_hash(filled).hex()[:8]}" if filled else "")
    return PromptAsset(
        id=item_id(server, path),
        server=server,
        name=name,
        title=optional_text(listed, "title"),
        description=optional_text(listed, "description"),
        arguments=arguments,
        values=tuple(sorted(filled.items())),
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


def _list(value: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = value.get(name)
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise InvalidInput("Prompt", [CompileProblem(name, "a list is expected")])
    return found


def _message(message: Mapping[str, Any]) -> tuple[str, str]:
    role = message.get("role")
    if role not in _KINDS:
        raise InvalidInput(
            "Prompt", [CompileProblem("messages.role", "user or assistant is expected")]
        )
    content = message.get("content")
    parts: Sequence[Any] = content if isinstance(content, list) else [content]
    return str(role), "\n".join(_text(part) for part in parts)


def _text(part: Any) -> str:
    """Return the text of a part; of media that it is there, and what it is."""
    if not isinstance(part, Mapping):
        raise InvalidInput("Prompt", [CompileProblem("messages.content", "an object is expected")])
    if part.get("type") == "text":
        return text_at(part, "text", "Prompt")
    resource: Json = dict(mapping_at(part, "resource"))
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    facts = {"type": part.get("type"), "mimeType": part.get("mimeType"), "uri": resource.get("uri")}
    return canonical_json({name: one for name, one in facts.items() if one is not None})


# The roots of a client as the boundary of a workspace: a file outside of them is refused.
#
# Symlinks are followed before paths are compared, and what could be read in two ways (`..`, encoded
# slashes, another machine's name) is refused as it is, not repaired.

Resolve: TypeAlias = Callable[[str], str]  # an absolute path, with symlinks followed

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FILE: Final = re.compile(r"file:(?://([^/?#]*))?(/[^?#]*)", re.IGNORECASE)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_OWN_HOSTS: Final = frozenset({"", "localhost"})


class McpBoundary(StrEnum):
    """Why a place is not of the workspace."""

    OUTSIDE = "outside_roots"
    NO_FILE = "not_a_file"
    OTHER_HOST = "other_host"
    UNCLEAR = "unclear_path"


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A place that was refused, and why."""

    uri: str
    reason: McpBoundary
    detail: str


@dataclass(frozen=True, slots=True)
class McpWorkspace:
    """Folders that candidates may come from; `schemes` are permitted beside files."""

    roots: tuple[str, ...]
    resolve: Resolve
    schemes: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        roots: Iterable[Mapping[str, Any]],
        *,
        resolve: Resolve,
        schemes: Iterable[str] = (),
    ) -> McpWorkspace:
        """Return the workspace of `roots/list`; raises InvalidInput for a root that is no folder.

        `resolve` follows symlinks: `os.path.realpath`. Without any root nothing is inside.
        """
        folders = []
        for root in roots:
            uri = text_at(root, "uri", "Root")
            path = file_path(uri)
            if isinstance(path, _Refusal):
                raise InvalidInput("Root", [CompileProblem("uri", path.detail)])
            folders.append(resolve(path))
        return cls(tuple(folders), resolve, frozenset(one.lower() for one in schemes))

    def refusal(self, uri: str) -> _Refusal | None:
        """Return why a place is refused; None where it is of the workspace."""
        scheme = _SCHEME.match(uri)
        if scheme is not None and scheme[1].lower() in self.schemes - {"file"}:
            return None
        path = file_path(uri)
        if isinstance(path, _Refusal):
            return path
        real = self.resolve(path)
        if any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots):
            return None
        led = "" if real == path else f", which leads to {real}"
        return _Refusal(uri, McpBoundary.OUTSIDE, f"{path}{led} is outside of the workspace")


def file_path(uri: str) -> str | _Refusal:
    """Return the absolute path of a file: URI, decoded once."""
    scheme = _SCHEME.match(uri)
    if scheme is None or scheme[1].lower() != "file":
        return _Refusal(uri, McpBoundary.NO_FILE, "only file: URIs are places of a workspace")
    match = _FILE.fullmatch(uri)
    if match is None:
        return _Refusal(uri, McpBoundary.UNCLEAR, "the URI has no absolute path, or more than one")
    if (match[1] or "").lower() not in _OWN_HOSTS:
        return _Refusal(uri, McpBoundary.OTHER_HOST, "the file is another machine's")
    path = _decoded(match[2])
    if path is None:
        return _Refusal(
            uri, McpBoundary.UNCLEAR, "the path is encoded in a way that hides what it is"
        )
    if ".." in path.split("/"):
        return _Refusal(uri, McpBoundary.UNCLEAR, "the path goes up with ..")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)


def _decoded(raw: str) -> str | None:
    """Return a path without escapes; None for separators or control characters made by them."""
    data = raw.encode("utf-8", "surrogatepass")
    if data.count(b"%") != len(_ESCAPE.findall(data)):
        return None
    if any(byte[0] in b"/\\" for byte in map(_byte, _ESCAPE.findall(data))):
        return None
    try:
        path = _ESCAPE.sub(lambda found: _byte(found[1]), data).decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\\" in path or any(ord(one) < 0x20 or ord(one) == 0x7F for one in path):
        return None
    return path


def _byte(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode("ascii"))


# Resources as candidates: `source_type` mcp_resource, with what the server says of them.
#
# What lies outside of the workspace is a candidate too, without its content: a rule denies it, so
# the compile's receipts say that it was refused, and why.

OUTSIDE_TAG: Final = "outside_workspace"
WORKSPACE_RULE: Final[Json] = {
    "id": "mcp.workspace",
    "name": "Nothing from outside of the workspace",
    "description": "the roots of the client are the boundary of the workspace",
    "effect": "deny",
    "applies_to": {"action": "see"},
    "conditions": {"item.tags": {"contains": OUTSIDE_TAG}},
    "metadata": {"version": "1"},
}


def resource_items(
    server: str,
    listed: Mapping[str, Any],
    read: Mapping[str, Any] | None,
    *,
    now: str,
    workspace: McpWorkspace | None = None,
    trust: float = 0.5,
    sensitivity: Sensitivity = "internal",
) -> list[ContextItem]:
    """Return the candidates of one resource: its entry of `resources/list` and `resources/read`.

    `read` may be None where the workspace refuses the resource: then there is nothing to read.
    A server's own word on importance (`annotations.priority`) is taken, on trust it has none.
    `now` is RFC 3339. Raises InvalidInput for what is no resource.
    """
    uri = text_at(listed, "uri", "Resource")
    refused = None if workspace is None else workspace.refusal(uri)
    if refused is not None:
        return [_refused_item(server, listed, refused, now=now)]
    if read is None:
        raise InvalidInput("Resource", [CompileProblem("contents", "the resource was not read")])
    contents = read.get("contents")
    if not isinstance(contents, Sequence) or isinstance(contents, str) or not contents:
        raise InvalidInput(
            "Resource", [CompileProblem("contents", "a list of contents is expected")]
        )
    more = {"trust_score": trust, "sensitivity": sensitivity}
    items = []
    for part in contents:
        address = text_at(part, "uri", "Resource")
        # A folder's parts name places of their own, and a server may name any.
        inner = None if workspace is None else workspace.refusal(address)
        if inner is not None:
            items.append(_refused_item(server, part, inner, now=now))
        else:
            items.append(_item(server, listed, part, now=now, **more))
    return items


def _item(
    server: str, listed: Mapping[str, Any], part: Mapping[str, Any], *, now: str, **more: Any
) -> ContextItem:
    notes = mapping_at(listed, "annotations")
    uri = text_at(part, "uri", "Resource")
    modified = optional_text(notes, "lastModified")
    kind, content = _content(part)
    return parse(
        ContextItem,
        {
            "id": item_id(server, uri),
            "kind": kind,
            "content": content,
            "source_ref": {
                "source_type": "mcp_resource",
                "uri": uri,
                "title": optional_text(listed, "title") or optional_text(listed, "name"),
                "version": modified,
                "checksum": "sha256:" + stable_hash(content).hex(),
                "metadata": {"server": server},
            },
            "created_at": modified or now,
            "importance_score": _priority(notes),
            "tags": ["mcp", f"mcp_server:{server}"],
            "metadata": {
                "server": server,
                "mime_type": optional_text(part, "mimeType") or optional_text(listed, "mimeType"),
                "description": optional_text(listed, "description"),
                "audience": list(notes.get("audience") or ()),
            },
            **more,
        },
    )


def _content(part: Mapping[str, Any]) -> tuple[str, Json | str]:
    """Return kind and content: the text, or of bytes what they are and their digest."""
    text, blob = part.get("text"), part.get("blob")
    if isinstance(text, str):
        is_file = str(part["uri"]).lower().startswith("file:")
        return ("file" if is_file else "retrieval_doc"), text
    if isinstance(blob, str):
        return "artifact", _described(part, blob)
    raise InvalidInput("Resource", [CompileProblem("contents", "each has a text or a blob")])


def _described(part: Mapping[str, Any], blob: str) -> Json:
    try:
        data = base64.b64decode(blob, validate=True)
    except ValueError:
        raise InvalidInput("Resource", [CompileProblem("contents.blob", "is no base64")]) from None
    return {
        "media_type": optional_text(part, "mimeType") or "application/octet-stream",
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _priority(notes: Mapping[str, Any]) -> float:
    found = notes.get("priority")
    if isinstance(found, bool) or not isinstance(found, int | float) or found != found:
        return 0.5
    return min(1.0, max(0.0, float(found)))


def _refused_item(
    server: str, listed: Mapping[str, Any], refused: _Refusal, *, now: str
) -> ContextItem:
    return parse(
        ContextItem,
        {
            "id": item_id(server, refused.uri),
            "kind": "file",
            "content": f"not read: {refused.detail}",
            "source_ref": {
                "source_type": "mcp_resource",
                "uri": refused.uri,
                "title": optional_text(listed, "name"),
                "metadata": {"server": server},
            },
            "created_at": now,
            "trust_score": 0.0,
            "tags": ["mcp", f"mcp_server:{server}", OUTSIDE_TAG],
            "metadata": {"server": server, "refused": refused.reason.value},
        },
    )


# Tools of an MCP server as definitions that every provider takes.

MOST_NAME: Final = 64  # characters; what both OpenAI and Anthropic take
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as it is shown to a model (`spec`), and as its server knows it (`original`)."""

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
            raise InvalidInput("Tool", [CompileProblem("name", f"{original!r} stands twice")])
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
        raise InvalidInput(
            "Tool", [CompileProblem("inputSchema", "a schema of an object is expected")]
        )
    return {"properties": {}, **schema}


def _name(server: str, original: str) -> str:
    """Return a name that providers take; one that had to be changed ends in a hash."""
    whole = f"{server}__{original}"
    clean = _NOT_IN_NAMES.sub("_", whole)
    if clean == whole and len(clean) <= MOST_NAME:
        return clean
    return f"{clean[: MOST_NAME - 9]}_{stable_hash([server, original]).hex()[:8]}"
