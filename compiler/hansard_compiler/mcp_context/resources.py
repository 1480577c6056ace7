"""Resources as candidates: `source_type` mcp_resource, with what the server says of them.

What lies outside of the workspace is a candidate too, without its content: a rule denies it, so the
compile's receipts say that it was refused, and why.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hansard_compiler.canonical import stable_hash
from hansard_compiler.compile.config import Sensitivity
from hansard_compiler.compile.errors import InvalidInput, Problem
from hansard_compiler.compile.models import ContextItem, Json, parse
from hansard_compiler.mcp_context.fields import item_id, mapping_at, optional_text, text_at
from hansard_compiler.mcp_context.roots import Refusal, Workspace

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
    workspace: Workspace | None = None,
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
        raise InvalidInput("Resource", [Problem("contents", "the resource was not read")])
    contents = read.get("contents")
    if not isinstance(contents, Sequence) or isinstance(contents, str) or not contents:
        raise InvalidInput("Resource", [Problem("contents", "a list of contents is expected")])
    more = {"trust_score": trust, "sensitivity": sensitivity}
    items = []
    for part in contents:
        place = text_at(part, "uri", "Resource")
        # A folder's parts name places of their own, and a server may name any.
        inner = None if workspace is None else workspace.refusal(place)
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
    raise InvalidInput("Resource", [Problem("contents", "each has a text or a blob")])


def _described(part: Mapping[str, Any], blob: str) -> Json:
    try:
        data = base64.b64decode(blob, validate=True)
    except ValueError:
        raise InvalidInput("Resource", [Problem("contents.blob", "is no base64")]) from None
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
    server: str, listed: Mapping[str, Any], refused: Refusal, *, now: str
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
