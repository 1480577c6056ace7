"""Whatever a caller has at hand, made into context items: texts, messages, paths, definitions.

A mapping that names an `id` or a `kind` is taken for a context item and must be one; everything
else is recognised by its shape. What is made here says so in `metadata.coerced_from`, and takes
its id from its content, so that it is the same from turn to turn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.errors import (
    CompileProblem,
    InvalidInput,
    InvalidItem,
    MissingProvenance,
)
from hansard_compiler.compile.models import CompilationRequest, ContextItem, Json, item_hash, parse

_KIND_OF_ROLE = {
    "user": "user_msg",
    "assistant": "assistant_msg",
    "model": "assistant_msg",
    "system": "system",
    "developer": "system",
    "tool": "tool_result",
    "function": "tool_result",
}
MESSAGE_ROLES = tuple(_KIND_OF_ROLE)
_SOURCE_OF_KIND = {
    "user_msg": "user",
    "tool_result": "tool",
    "file": "file",
    "memory": "memory",
}
_ITEM_TYPES = frozenset({"function_call", "function_call_output", "reasoning"})


def request_from(data: Mapping[str, Any]) -> CompilationRequest:
    """Return a checked request of data whose context items may have any shape.

    Raises InvalidInput: nothing is guessed of a context item that lacks a field.
    """
    listed = data.get("context_items", [])
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        problem = CompileProblem("context_items", f"found {type(listed).__name__}, expected a list")
        raise InvalidInput("CompilationRequest", [problem])
    seen: Counter[str] = Counter()
    items = [
        context_item_data(one, now=data.get("now"), seen=seen, where=f"context_items[{at}]")
        for at, one in enumerate(listed)
    ]
    return parse(CompilationRequest, {**data, "context_items": items})


def check_context_items(items: Sequence[object], *, now: object, where: str) -> None:
    """Raise InvalidItem for the first input that no compile could use, named by its place.

    Raises MissingProvenance for those without a source. For inputs that are stored for a compile
    that comes later: it would name them when their sender is gone. `where` is the field that they
    come in.
    """
    seen: Counter[str] = Counter()
    unsourced: list[str] = []
    for at, one in enumerate(items):
        path_of_item = f"{where}[{at}]"
        data = context_item_data(one, now=now, seen=seen, where=path_of_item)
        if isinstance(data, Mapping) and "created_at" not in data:
            data = {**data, "created_at": now}
        try:
            item = parse(ContextItem, data)
        except InvalidItem:
            raise
        except InvalidInput as wrong:
            first = wrong.problems[0]
            raise InvalidItem(path_of_item, field=first.where, what=first.what) from None
        if item.source_ref is None:
            unsourced.append(item.id)
    if unsourced:
        raise MissingProvenance(unsourced, of=len(items))


def context_item_data(
    value: object, *, now: object, seen: Counter[str], where: str = "?"
) -> object:
    """Return the fields of a context item for one input; `seen` counts the ids made so far.

    `where` names an input without an id in errors.
    """
    if isinstance(value, str):
        return _made("other", value, "text", now=now, seen=seen)
    if hasattr(value, "__fspath__"):
        path = str(value.__fspath__())
        return _made("file", {"path": path}, "path", now=now, seen=seen, uri=path)
    if not isinstance(value, Mapping):
        return value  # a ContextItem already, or refused by the model with its place
    fields = dict(value)
    if "kind" in fields or ("id" in fields and "role" not in fields and "type" not in fields):
        if not fields.get("kind"):
            raise InvalidItem(str(fields.get("id", where))[:512], field="kind", what="is missing")
        return fields
    return _by_shape(fields, now=now, seen=seen, where=where)


def _by_shape(fields: Json, *, now: object, seen: Counter[str], where: str) -> Json:
    if "role" in fields or fields.get("type") in _ITEM_TYPES:
        problem = _unreadable(fields)
        if problem is not None:
            field, what = problem
            raise InvalidItem(str(fields.get("id", where))[:512], field=field, what=what)
        message = normal_message(fields)
        kind = _KIND_OF_ROLE.get(message["role"])
        if kind is None:
            known = ", ".join(_KIND_OF_ROLE)
            what = f"is {message['role']!r:.60}; expected one of {known}"
            raise InvalidItem(str(fields.get("id", where))[:512], field="role", what=what)
        return _made(kind, message, "message", now=now, seen=seen)
    if "path" in fields:
        path = str(fields["path"])
        content = fields.get("content", {"path": path})
        return _made("file", content, "path", now=now, seen=seen, uri=path)
    if fields.get("type") == "function" or "input_schema" in fields or "parameters" in fields:
        return _made("tool_schema", fields, "tool definition", now=now, seen=seen)
    return _made("other", fields, "mapping", now=now, seen=seen)


def _unreadable(fields: Json) -> tuple[str, str] | None:
    """Return the field that no form of a message has so, and what is wrong with it."""
    if "role" not in fields and fields.get("type") == "reasoning":
        for name in ("summary", "content"):
            if not isinstance(fields.get(name), str | list | tuple | None):
                return name, "is neither a text nor a list"
        return None
    calls = fields.get("tool_calls")
    if calls is None:
        return None
    if not isinstance(calls, list | tuple):
        return "tool_calls", "is no list"
    for at, call in enumerate(calls):
        if not isinstance(call, Mapping):
            return f"tool_calls[{at}]", "is no object"
        if not isinstance(call.get("function", call), Mapping):
            return f"tool_calls[{at}].function", "is no object"
    return None


def _made(
    kind: str,
    content: Any,
    shape: str,
    *,
    now: object,
    seen: Counter[str],
    uri: str | None = None,
) -> Json:
    digest = item_hash(kind, content).removeprefix("sha256:")[:16]
    made_id = f"{kind}:{digest}"
    seen[made_id] += 1
    if seen[made_id] > 1:
        made_id = f"{made_id}#{seen[made_id]}"
    source = {"source_type": _SOURCE_OF_KIND.get(kind, "app_state"), "uri": uri}
    return {
        "id": made_id,
        "kind": kind,
        "content": content,
        "source_ref": source,
        "created_at": now,
        "metadata": {"coerced_from": shape},
    }


# --- messages ---------------------------------------------------------------------------------


def normal_message(sent: Mapping[str, Any]) -> Json:
    """Return a message of any usual form as `{role, parts}`, the form of `calls.py`."""
    kind = sent.get("type")
    if kind == "function_call":
        return {"role": "assistant", "parts": [_call(sent, id_key="call_id")]}
    if kind == "function_call_output":
        result = {"type": "tool_result", "id": sent.get("call_id"), "content": sent.get("output")}
        return {"role": "tool", "parts": [result]}
    if kind == "reasoning" and "role" not in sent:
        return {"role": "assistant", "parts": [{"type": "reasoning", "text": _reasoning(sent)}]}
    role = str(sent.get("role"))
    if isinstance(sent.get("parts"), list):
        return {"role": role, "parts": list(sent["parts"])}
    parts = _content_parts(sent.get("content"))
    if sent.get("tool_call_id"):
        content = sent.get("content")
        parts = [{"type": "tool_result", "id": sent["tool_call_id"], "content": content}]
    for call in sent.get("tool_calls") or ():
        inner = call.get("function", call)
        parts.append(_call({**inner, "id": call.get("id")}, id_key="id"))
    if parts and all(part.get("type") == "tool_result" for part in parts):
        role = "tool"
    return {"role": role, "parts": parts}


def _content_parts(content: Any) -> list[Json]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        return [{"type": "other", "value": content}]
    return [_block(block) for block in content]


def _block(block: Any) -> Json:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if kind in ("text", "input_text", "output_text"):
        return {"type": "text", "text": str(block.get("text", ""))}
    if kind == "tool_use":
        return _call({**block, "arguments": block.get("input")}, id_key="id")
    if kind == "tool_result":
        content = block.get("content")
        return {"type": "tool_result", "id": block.get("tool_use_id"), "content": content}
    if kind == "thinking":
        return {"type": "reasoning", "text": str(block.get("thinking", ""))}
    return {"type": "other", "value": block}


def _call(fields: Mapping[str, Any], *, id_key: str) -> Json:
    arguments = fields.get("arguments")
    if isinstance(arguments, str):
        # Unchanged otherwise: a model may write arguments that are no JSON.
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    name = str(fields.get("name", ""))
    return {"type": "tool_call", "id": fields.get(id_key), "name": name, "arguments": arguments}


def _reasoning(item: Mapping[str, Any]) -> str:
    summary = item.get("summary") or item.get("content") or ()
    if isinstance(summary, str):
        return summary
    texts = [str(one.get("text", "")) for one in summary if isinstance(one, Mapping)]
    return "\n".join(texts) or canonical_json({"encrypted": bool(item.get("encrypted_content"))})
