"""Langfuse SDK: everything in `langfuse.*`, contents in any shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.sources import same
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import (
    count,
    inside,
    is_content,
    opened,
    reals,
    unix_ns,
)
from hansard_compiler.calls import Json, Message

ROLES: Mapping[str, str] = same(
    "embedding", "agent", "tool", "chain", "retriever", "evaluator", "guardrail"
) | {
    "generation": "llm",
}

_CACHE_READ = (
    "input_cached_tokens", "input_cache_read", "cache_read_input_tokens", "input_cache_read_tokens",
)  # fmt: skip
_CACHE_WRITE = (
    "input_cache_creation", "cache_creation_input_tokens", "input_cache_creation_tokens",
)  # fmt: skip
_CACHE_WRITE_5M = ("input_cache_creation_5m", "input_cache_creation_5m_tokens")
_CACHE_WRITE_1H = ("input_cache_creation_1h", "input_cache_creation_1h_tokens")
_REASONING = ("output_reasoning_tokens", "output_reasoning")


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    if not is_content(reading.view.attributes[key]):
        return None
    sent = reading.opened(key)
    if isinstance(sent, list):
        sent = [item for item in sent if not _is_definition(item)]
    return chat.request_messages(sent) or None


def _is_definition(item: Any) -> bool:
    """The handler for LangChain puts the tools among the messages, as said by a tool."""
    if not isinstance(item, dict) or item.get("role") != "tool":
        return False
    content = opened(item.get("content"))
    return isinstance(content, dict) and isinstance(content.get("function"), dict)


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    sent = reading.opened(key)
    if isinstance(sent, list):
        listed: Any = [item["content"] for item in sent if _is_definition(item)]
    else:
        listed = reading.mapping(key).get("tools")
    return tool_lists.tools_of(listed) or None


def input_tokens(reading: Reading, key: str) -> int | None:
    """All input: OpenAI's own vocabulary includes the cached, Langfuse's buckets are disjoint."""
    usage = reading.mapping(key)
    whole = _first(usage, ("prompt_tokens", "input_tokens"))
    buckets = (*_CACHE_READ, *_CACHE_WRITE_ALL)
    return _with_buckets(usage, "input", buckets) if whole is None else whole


def output_tokens(reading: Reading, key: str) -> int | None:
    usage = reading.mapping(key)
    whole = _first(usage, ("completion_tokens", "output_tokens"))
    return _with_buckets(usage, "output", _REASONING) if whole is None else whole


def _with_buckets(usage: Mapping[str, Any], name: str, buckets: tuple[str, ...]) -> int | None:
    base = count(usage.get(name))
    if base is None or _buckets_are_inside(usage):
        return base
    return base + sum(count(usage.get(bucket)) or 0 for bucket in buckets)


def _buckets_are_inside(usage: Mapping[str, Any]) -> bool:
    """A total that input and output alone make up leaves no room for further buckets."""
    total = count(usage.get("total"))
    return total is not None and total == (count(usage.get("input")) or 0) + (
        count(usage.get("output")) or 0
    )


_CACHE_WRITE_ALL = (*_CACHE_WRITE, *_CACHE_WRITE_5M, *_CACHE_WRITE_1H)


def cache_read(reading: Reading, key: str) -> int | None:
    details = ("prompt_tokens_details", "input_tokens_details")
    return _detailed(reading.mapping(key), details, "cached_tokens", _CACHE_READ)


def cache_write(reading: Reading, key: str) -> int | None:
    usage = reading.mapping(key)
    whole = _first(usage, _CACHE_WRITE)
    if whole is not None:
        return whole
    parts = [_first(usage, _CACHE_WRITE_5M), _first(usage, _CACHE_WRITE_1H)]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def cache_write_5m(reading: Reading, key: str) -> int | None:
    return _first(reading.mapping(key), _CACHE_WRITE_5M)


def cache_write_1h(reading: Reading, key: str) -> int | None:
    return _first(reading.mapping(key), _CACHE_WRITE_1H)


def reasoning(reading: Reading, key: str) -> int | None:
    details = ("completion_tokens_details", "output_tokens_details")
    return _detailed(reading.mapping(key), details, "reasoning_tokens", _REASONING)


def _detailed(
    usage: Mapping[str, Any], details: tuple[str, ...], name: str, buckets: tuple[str, ...]
) -> int | None:
    """A count among OpenAI's details, or in Langfuse's buckets where it is not."""
    found = (inside(usage, one, name) for one in details)
    nested = next((value for value in found if value is not None), None)
    return count(nested) if nested is not None else _first(usage, buckets)


def _first(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((n for name in names if (n := count(usage.get(name))) is not None), None)


def first_token_ms(reading: Reading, key: str) -> float | None:
    """The completion's start, an ISO time quoted as JSON, less the span's start."""
    moment_ns = unix_ns(reading.view.attributes[key])
    start_ns = reading.view.start_ns
    if moment_ns is None or not start_ns or moment_ns < start_ns:
        return None
    return (moment_ns - start_ns) / 1_000_000


def metadata(reading: Reading, prefix: str) -> Mapping[str, Any] | None:
    """`langfuse.observation.metadata.<key>`, each quoted as JSON."""
    return {name: opened(value) for name, value in reading.rest(prefix).items()} or None


PROMPT_MEMBERS = {
    "langfuse.observation.prompt.name": "name",
    "langfuse.prompt.name": "name",
    "langfuse.observation.prompt.version": "version",
    "langfuse.prompt.version": "version",
}


def cost_lines(reading: Reading, key: str) -> Mapping[str, float] | None:
    sent = reading.mapping(key)
    return reals({name: value for name, value in sent.items() if name != "total"}) or None
