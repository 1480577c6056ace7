"""Facts inside a provider's request or response that was recorded whole.

Many instrumentors put both into an attribute and only some of their facts into attributes of their
own. What the table finds nowhere else is looked for here: the requested and the serving model, the
stream flag, why the model stopped, the usage. Only spans of model calls are looked into: a chain's
output may hold the usage of calls that have spans of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.sources import FieldSource, each
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import (
    count,
    first,
    flag,
    is_content,
    mapping,
    opened,
    printed,
    text,
)
from hansard_compiler.calls import Json, Message

_LARGEST_REQUEST = 16 * 1024  # characters; of a larger one only the head is looked at
LARGEST_CONVERSATION = 64 * 1024  # characters; a longer one is not opened for what others lack
_LARGEST_VECTORS = 16 * 1024  # characters; larger vectors are not worth opening for their usage
_HEAD = 512
_CONVERSATION = re.compile(r'"(?:messages|input|contents|prompt|system|tools)"')
_MODEL_IN_HEAD = re.compile(r'"model"\s*:\s*"([^"\\]+)"')
_STREAM_IN_HEAD = re.compile(r'"stream"\s*:\s*(true|false)')

_FINISH = ("finish_reason", "stop_reason", "finishReason", "stopReason")
_MODEL = ("model", "model_name", "modelVersion", "model_version")
_RESPONSE_IDS = ("chatcmpl-", "resp_")  # of OpenAI: LangChain's runs have ids too
_USAGE = ("usage", "usage_metadata", "usageMetadata", "token_usage", "tokenUsage")
# Where responses keep what they are made of; of a list the first element counts.
_INNER = (
    "choices", "candidates", "generations", "replies", "message", "meta", "_meta", "kwargs",
    "generation_info", "response_metadata", "llm_output", "response", "output", "data", "custom",
    "raw",
)  # fmt: skip
_DEEPEST = 6
_CHUNKS = ("ChatGenerationChunk", "AIMessageChunk")  # LangChain's, in Python and in JavaScript
_CALLS = frozenset({"llm", "embedding"})


def request(reading: Reading, key: str) -> Mapping[str, Any]:
    """Return a recorded request; of one too large to open, what comes before its conversation."""
    value = reading.view.attributes.get(key)
    if isinstance(value, str) and len(value) > _LARGEST_REQUEST:
        return _head(value)
    sent = opened(reading.opened(key))
    return sent if isinstance(sent, dict) else {}


def _head(value: str) -> dict[str, Any]:
    conversation = _CONVERSATION.search(value, 0, _HEAD)
    head = value[: conversation.start() if conversation else _HEAD]
    model, stream = _MODEL_IN_HEAD.search(head), _STREAM_IN_HEAD.search(head)
    return {"model": model and model[1], "stream": stream and stream[1]}


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """A request as JSON, or what a user said as text."""
    sent = reading.view.attributes[key]
    return (chat.request_messages(reading.opened(key)) or None) if is_content(sent) else None


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """A response as JSON, or its text."""
    sent = reading.view.attributes[key]
    return (chat.response_messages(reading.opened(key)) or None) if is_content(sent) else None


def requested_model(reading: Reading, key: str) -> str | None:
    return text(request(reading, key).get("model")) if _is_call(reading) else None


def streamed(reading: Reading, key: str) -> bool | None:
    return flag(request(reading, key).get("stream")) if _is_call(reading) else None


def came_in_chunks(reading: Reading, key: str) -> bool | None:
    """LangChain's response to a stream is of a class of its own, whatever the parameters."""
    value = reading.view.attributes[key]
    if not _is_call(reading) or not isinstance(value, str):
        return None
    head = value[:_LARGEST_REQUEST]
    return True if any(f'"{name}"' in head for name in _CHUNKS) else None


def serving_model(reading: Reading, key: str) -> str | None:
    return _response_field(reading, key, _MODEL) if reading.view.status_code != 2 else None


def finish_reason(reading: Reading, key: str) -> str | None:
    return _response_field(reading, key, _FINISH) or _cut_short(reading, key)


def _cut_short(reading: Reading, key: str) -> str | None:
    """Why a response of OpenAI's Responses API is incomplete; a complete one names nothing."""
    whole = (part for part in _parts(reading, key) if part.get("object") == "response")
    return text(mapping(next(whole, {}).get("incomplete_details")).get("reason"))


def response_id(reading: Reading, key: str) -> str | None:
    """The id of a whole response, or the one that LangChain keeps deep in its own."""
    sent = opened(reading.opened(key)) if _is_call(reading) else None
    whole = sent if isinstance(sent, dict) and ("choices" in sent or "content" in sent) else {}
    if own := text(whole.get("id")):
        return own
    ids = (text(part.get("id")) for part in _parts(reading, key))
    return next((found for found in ids if found and found.startswith(_RESPONSE_IDS)), None)


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    listed = request(reading, key).get("tools") if _is_call(reading) else None
    if not isinstance(listed, list):
        return None
    # Some libraries write a tool as its Python object reads; that is no definition.
    return tool_lists.tools_of([item for item in listed if isinstance(opened(item), dict)]) or None


def _response_field(reading: Reading, key: str, names: tuple[str, ...]) -> str | None:
    for part in _parts(reading, key):
        if (found := text(first(part, names))) is not None:
            return found
    return None


def _parts(reading: Reading, key: str) -> Iterator[Mapping[str, Any]]:
    """A response and the objects it is made of, outermost first."""
    value = reading.view.attributes.get(key)
    is_long = isinstance(value, str) and len(value) > _LARGEST_VECTORS
    if not _is_call(reading) or (is_long and reading.role == "embedding"):
        return
    level = [opened(reading.opened(key))]
    for _ in range(_DEEPEST):
        inner: list[Any] = []
        for part in level:
            while isinstance(part, list) and part:
                part = opened(part[0])
            if isinstance(part, dict):
                yield part
                inner += [_inner(part[name]) for name in _INNER if name in part]
        level = inner


def _inner(value: Any) -> Any:
    """A part of a response; smolagents keeps the provider's own object as Python prints it."""
    return printed(value) if isinstance(value, str) and _PRINTED.match(value) else value


_PRINTED = re.compile(r"[A-Z]\w*\(\w+=")


def _is_call(reading: Reading) -> bool:
    return reading.role in _CALLS


# ---- usage: each provider's words for the counts of the normal form


def _usages(reading: Reading, key: str) -> Iterator[Mapping[str, Any]]:
    """The usage that an attribute holds; what an outer one leaves out an inner one may have."""
    if key in USAGES:
        sent = printed(reading.opened(key))
        if isinstance(sent, dict):
            yield sent
        return
    for part in _parts(reading, key):
        usage = first(part, _USAGE)
        if isinstance(usage, dict):
            yield usage


def _number(usage: Mapping[str, Any], *paths: str) -> int | None:
    for path in paths:
        value: Any = usage
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if (found := count(value)) is not None:
            return found
    return None


def _input(usage: Mapping[str, Any]) -> int | None:
    whole = _number(usage, "prompt_tokens", "prompt_token_count", "promptTokenCount")
    if whole is not None:
        return whole
    fresh = _number(usage, "input_tokens", "inputTokens")
    if fresh is None or "cache_read_input_tokens" not in usage:
        return fresh
    cached = (count_in(usage, name) or 0 for name in ("cache read", "cache write"))
    return fresh + sum(cached)  # Anthropic's own count


def _output(usage: Mapping[str, Any]) -> int | None:
    whole = _number(usage, "completion_tokens", "output_tokens", "outputTokens")
    if whole is not None:
        return whole
    candidates = _number(usage, "candidates_token_count", "candidatesTokenCount")
    thoughts = count_in(usage, "reasoning") or 0  # Gemini counts them apart
    return None if candidates is None else candidates + thoughts


_PATHS: Mapping[str, tuple[str, ...]] = {
    "cache read": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "input_token_details.cache_read",
        "cache_read_input_tokens",
        "cached_content_token_count",
        "cachedContentTokenCount",
        "cachedContentTokens",
        "cacheReadInputTokens",
    ),
    "cache write": (
        "cache_creation_input_tokens",
        "input_token_details.cache_creation",
        "cacheWriteInputTokens",
    ),
    "reasoning": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "output_tokens_details.thinking_tokens",  # Anthropic
        "output_token_details.reasoning",
        "thoughts_token_count",
        "thoughtsTokenCount",
        "thoughtsTokens",
    ),
    "total": ("total_tokens", "total_token_count", "totalTokenCount", "totalTokens"),
}
_SUMS = {"input": _input, "output": _output}  # that some providers tell in parts


def count_in(usage: Mapping[str, Any], name: str) -> int | None:
    """Return one count of a provider's usage: "input", "output", or a key of `_PATHS`."""
    add_up = _SUMS.get(name)
    return _number(usage, *_PATHS[name]) if add_up is None else add_up(usage)


def usage(name: str) -> tuple[FieldSource, ...]:
    """One count of the usage in a response, or of a usage that is recorded by itself."""

    def read(reading: Reading, key: str) -> int | None:
        counts = (count_in(found, name) for found in _usages(reading, key))
        return next((number for number in counts if number is not None), None)

    keys = {**USAGES, **dict.fromkeys(RESPONSES, "")}
    return tuple(
        FieldSource(key, read, label=f"{key}{{usage: {name}}}", needs=needs)
        for key, needs in keys.items()
    )


# Attributes that may hold a whole request, or a whole response.
REQUESTS = ("input.value", "mlflow.spanInputs", "gen_ai.prompt", "lmnr.span.input")
RESPONSES = (
    "gcp.vertex.agent.llm_response",
    "response_data",
    "haystack.component.output",
    "haystack.agent.step.llm.output",
    "output.value",
    "mlflow.spanOutputs",
    "gen_ai.completion",
    "langfuse.observation.output",
    "lmnr.span.output",
    "genkit:output",
)

# A provider's usage by itself, as JSON or as Python prints it, and the dialect whose spans say it
# under so plain a name. The second is LiteLLM's.
USAGES = {"gen_ai.usage.raw": "", "metadata.usage_object": "", "usage": "logfire"}

REQUESTED_MODEL = each(REQUESTS, requested_model, fact="model")
STREAMED = each(REQUESTS, streamed, fact="stream")
SERVING_MODEL = each(RESPONSES, serving_model, fact="model")
FINISH_REASON = each(RESPONSES, finish_reason, fact="finish reason")
RESPONSE_ID = each(RESPONSES, response_id, fact="id")
