"""Holds request bodies against the types of the official packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from anthropic.types.message_count_tokens_params import MessageCountTokensParams
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.responses.input_token_count_params import InputTokenCountParams
from openai.types.responses.response_compact_params import ResponseCompactParams
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

_TYPES: dict[tuple[str, bool], Any] = {
    ("/v1/responses", False): ResponseCreateParamsNonStreaming,
    ("/v1/responses", True): ResponseCreateParamsStreaming,
    ("/v1/responses/input_tokens", False): InputTokenCountParams,
    ("/v1/responses/compact", False): ResponseCompactParams,
    ("/v1/messages", False): MessageCreateParamsNonStreaming,
    ("/v1/messages", True): MessageCreateParamsStreaming,
    ("/v1/messages/count_tokens", False): MessageCountTokensParams,
    ("/v1/chat/completions", False): CompletionCreateParamsNonStreaming,
    ("/v1/chat/completions", True): CompletionCreateParamsStreaming,
}
# On the wire and accepted, though the package's own types no longer list them.
_NOT_LISTED = {"/v1/messages": {"temperature", "top_p"}}


@cache
def _adapter(path: str, is_stream: bool) -> TypeAdapter[Any]:
    return TypeAdapter(_TYPES[path, is_stream])


def assert_fits(path: str, body: Mapping[str, Any]) -> None:
    """Fail where a body is not what the official package's types describe.

    The types list lazy iterables and know no forbidden keys, so the checked value is walked to its
    ends and the top-level keys are compared.
    """
    is_stream = body.get("stream") is True
    known = _TYPES[path, is_stream].__annotations__.keys() | _all_keys(_TYPES[path, is_stream])
    unknown = set(body) - known - _NOT_LISTED.get(path, set())
    assert not unknown, f"{path} has no {unknown}"
    for _ in _walk(_adapter(path, is_stream).validate_python(dict(body))):
        pass


def _all_keys(kind: Any) -> set[str]:
    return set(kind.__required_keys__) | set(kind.__optional_keys__)


def _walk(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _walk(child)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for child in value:
            yield from _walk(child)
    yield value
