"""Small readings and renderings that the providers' formats share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hansard_compiler.calls import (
    Json,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Tokens,
)
from hansard_compiler.canonical import canonical_json
from hansard_compiler.providers.base import RenderInput, block_of
from hansard_compiler.providers.transport.failures import NotRenderable


def known(values: Mapping[str, Any]) -> Json:
    """Return what is not None, in order."""
    return {key: value for key, value in values.items() if value is not None}


def result_text(content: Any) -> str:
    """Return a tool's result as text: JSON in its canonical form."""
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


def left_out(given: RenderInput, provider: str) -> list[str]:
    """Say which parts a provider gets no form of: unsigned reasoning, another provider's blocks."""
    return [
        f"message {index}: {reason}"
        for index, message in enumerate(given.messages)
        for part in message.parts
        if (reason := _left_out(part, provider))
    ]


def _left_out(part: Part, provider: str) -> str | None:
    if isinstance(part, ReasoningPart):
        return "reasoning without its provider's signature is not sent"
    if isinstance(part, OtherPart) and block_of(part, provider) is None:
        return f"a part that {provider} has no form for is not sent"
    return None


def find(value: Any, path: str) -> Any:
    """Return what stands at a dotted path, None where anything on the way is missing."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def tokens_from(
    response: Mapping[str, Any], paths: Mapping[str, str]
) -> tuple[Tokens, dict[str, str]]:
    """Return token counts, and for each the path it was read from."""
    found = {name: (path, find(response, path)) for name, path in paths.items()}
    counts = {
        name: value
        for name, (_, value) in found.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    return Tokens(**counts), {f"tokens.{name}": found[name][0] for name in counts}
