"""What the wire formats share: reading JSON of a network, and the normal form's side of it.

Anything may stand anywhere in a body that came over a network. The readers return what has the
expected type and leave out the rest; none of them raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hansard_compiler.calls import (
    Call,
    Json,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    Tokens,
)
from hansard_compiler.canonical import canonical_json
from hansard_compiler.providers.transport.failures import NotRenderable

if TYPE_CHECKING:
    from hansard_compiler.providers.base import RenderInput

Body = Mapping[str, Any]

_INT64: Final = 1 << 63
_ABSENT: Final[Body] = {}
_MAPPINGS: Final = (dict, Mapping)  # dict comes first: a fifth of the price


def parsed(data: bytes | str) -> Any:
    """Return the JSON value of some bytes; None where they are none, however deep or hostile."""
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Body:
    return value if isinstance(value, _MAPPINGS) else _ABSENT


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Body]:
    return [item for item in sequence(value) if isinstance(item, _MAPPINGS)]


def text(value: object) -> str | None:
    """Return a text that can be encoded; None for anything else and for an empty one."""
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode()  # a lone surrogate would break the export


def integer(value: object) -> int | None:
    """Return an integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INT64 <= value < _INT64 else None


def number(value: object) -> int | float | None:
    return value if isinstance(value, float) else integer(value)


def texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        value = [value]
    found = [item for item in map(text, sequence(value)) if item is not None]
    return found or None


def find(value: object, path: str) -> Any:
    """Return the value at a dotted path, None where anything on the way is missing."""
    for key in path.split("."):
        if not isinstance(value, _MAPPINGS):
            return None
        value = value.get(key)
    return value


def known(values: Mapping[str, Any]) -> Json:
    """Return what is not None, in order."""
    return {key: value for key, value in values.items() if value is not None}


def append(into: dict[str, Any], key: str, delta: object) -> None:
    """Put a piece of a text behind those that came before it."""
    before = into.get(key)
    if isinstance(delta, str):
        into[key] = (before if isinstance(before, str) else "") + delta


# --- the normal form ---------------------------------------------------------------------------


def result_text(content: Any) -> str:
    """Return a tool's result, or its arguments, as text: JSON in its canonical form."""
    return content if isinstance(content, str) else canonical_json(content)


def parsed_arguments(arguments: Any) -> Any:
    """Return a call's arguments: parsed where they are JSON, else the text as sent."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def media_url(part: MediaPart) -> str:
    """Return where a medium is, or itself as a data address.

    Raises NotRenderable for one that is only a reference: its bytes must be put in place first.
    """
    if part.uri is not None:
        return part.uri
    if part.data is not None:
        return f"data:{part.media_type or 'application/octet-stream'};base64,{part.data}"
    raise NotRenderable(f"the bytes of {part.payload!r} must be put in place before rendering")


def left_out(request: RenderInput, provider: str) -> list[str]:
    """Say which parts a provider gets no form of: unsigned reasoning, another provider's blocks."""
    return [
        f"message {index}: {reason}"
        for index, message in enumerate(request.messages)
        for part in message.parts
        if (reason := _left_out(part, provider))
    ]


def _left_out(part: Part, provider: str) -> str | None:
    if isinstance(part, ReasoningPart):
        return "reasoning without its provider's signature is not sent"
    if isinstance(part, OtherPart) and block_of(part, provider) is None:
        return f"a part that {provider} has no form for is not sent"
    return None


def counts_from(body: Body, paths: Mapping[str, str]) -> dict[str, int]:
    """Return the token counts at some paths."""
    counts = {}
    for name, path in paths.items():
        count = integer(find(body, path))
        if count is not None:
            counts[name] = count
    return counts


def tokens_from(body: Body, paths: Mapping[str, str]) -> tuple[Tokens, dict[str, str]]:
    """Return token counts, and for each the path it was read from."""
    counts = counts_from(body, paths)
    return Tokens(**counts), {f"tokens.{name}": paths[name] for name in counts}


def call_from(
    response: Body,
    request: Body,
    *,
    provider: str,
    parts: Sequence[Part],
    reason: Any,
    reasons: Mapping[str, str],
    usage: tuple[Tokens, dict[str, str]],
) -> Call:
    """Return the call of a response; `reasons` are the provider's finish reasons in our terms."""
    tokens, sources = usage
    return Call(
        operation="chat",
        provider=provider,
        request_model=request.get("model"),
        response_model=response.get("model"),
        stream=bool(request.get("stream")),
        output=(Message("assistant", tuple(parts)),) if parts else (),
        finish_reason=reasons.get(reason, "other") if reason else None,
        finish_reason_raw=reason,
        tokens=tokens,
        response_id=response.get("id"),
        sources=sources,
    )


# --- blocks that only one provider understands --------------------------------------------------

_BLOCK: Final = "provider_block"


def provider_block(provider: str, block: Json) -> OtherPart:
    """Wrap a block (signed thinking, encrypted reasoning) to be sent back unchanged, and only to
    the provider it came from."""
    return OtherPart({"type": _BLOCK, "provider": provider, "block": block})


def block_of(part: Part, provider: str) -> Json | None:
    """Return the provider's own block in a part, None where there is none of this provider."""
    value = part.value if isinstance(part, OtherPart) else None
    if isinstance(value, Mapping) and value.get("type") == _BLOCK:
        block = value.get("block")
        if value.get("provider") == provider and isinstance(block, Mapping):
            return dict(block)
    return None


# --- tools ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tool:
    """A tool of the developer's own."""

    name: str
    description: str
    parameters: Json
    strict: bool | None = None


def neutral_tool(tool: Mapping[str, Any]) -> _Tool | None:
    """Return a tool in its neutral form; None for a provider's built-in one, to pass as it is."""
    if tool.get("type") not in (None, "function"):
        return None
    function = tool.get("function")
    fields = function if isinstance(function, Mapping) else tool
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise NotRenderable(f"a tool without a name: {sorted(fields)}")
    parameters = fields.get("parameters") or fields.get("input_schema")
    return _Tool(
        name,
        fields.get("description") or "",
        dict(parameters) if parameters else {"type": "object", "properties": {}},
        fields.get("strict"),
    )
