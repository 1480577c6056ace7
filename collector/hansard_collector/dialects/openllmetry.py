"""OpenLLMetry (Traceloop): its own workflow spans, and the flat model calls of the old generation.

The new generation writes `gen_ai.input.messages`; see `gen_ai`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.engine.normal_form import Document
from hansard_collector.dialects.engine.sources import same
from hansard_collector.dialects.engine.span_reader import Pair, Reading, nested, rows
from hansard_collector.dialects.engine.values import opened, real, text
from hansard_compiler.calls import Json, Message

ROLES: Mapping[str, str] = same("workflow", "task", "agent", "tool")
REQUEST_TYPES: Mapping[str, str] = {
    "chat": "llm",
    "completion": "llm",
    "acompletion": "llm",  # LiteLLM 1
    "aresponses": "llm",
    "responses": "llm",
    "text_completion": "llm",
    "aembedding": "embedding",
    "embedding": "embedding",
    "embeddings": "embedding",
    "rerank": "rerank",
}


def input_messages(reading: Reading, prefix: str) -> tuple[Message, ...] | None:
    """`gen_ai.prompt.{i}.role`, `.content`, `.tool_calls.{k}.name` …"""
    return _messages(reading, prefix, role="user")


def output_messages(reading: Reading, prefix: str) -> tuple[Message, ...] | None:
    return _messages(reading, prefix, role="assistant")


def _messages(reading: Reading, prefix: str, *, role: str) -> tuple[Message, ...] | None:
    built = reading.built(prefix, f"flat {role}", partial(_message, role=role))
    return tuple(chain.from_iterable(built)) or None


# How old versions for LangChain call a speaker without a word: an answer's model, a tool.
_UNKNOWN = "unknown"
_SPEAKER_OF_UNKNOWN = {"user": "tool", "assistant": "assistant"}


def _message(pairs: list[Pair], role: str) -> tuple[Message, ...]:
    fields = nested(pairs)
    calls = rows(fields, "tool_calls")
    speaker = text(fields.get("role")) or role
    content = _unquoted(fields.get("content"))
    if calls and content == "[]":  # Cohere's answer that only calls tools
        content = None
    return chat.messages_of(
        {
            "role": _SPEAKER_OF_UNKNOWN[role] if speaker == _UNKNOWN else speaker,
            "content": content,
            "name": fields.get("name"),
            "tool_call_id": fields.get("tool_call_id"),
            "tool_calls": calls or None,
            "reasoning": fields.get("reasoning"),
            "function_call": fields.get("function_call"),
        },
        role,
    )


def _unquoted(content: Any) -> Any:
    """A text that an old version wrote as JSON, quotes and all; an empty one is `""`."""
    if not isinstance(content, str) or content[:1] != '"' or content[-1:] != '"':
        return content
    plain = opened(content)
    return plain if isinstance(plain, str) else content


def finish_reason(reading: Reading, prefix: str) -> str | None:
    """`gen_ai.completion.{i}.finish_reason` of the first choice that has one."""
    for _, pairs in reading.flat(prefix):
        for rest, value in pairs:
            if rest == "finish_reason" and (reason := text(value)):
                return reason
    return None


def functions(reading: Reading, prefix: str) -> tuple[Json, ...] | None:
    """`llm.request.functions.{i}.*`, and LiteLLM's `gen_ai.tool.{i}.*`."""
    trees = (nested(pairs) for _, pairs in reading.flat(prefix))
    return tuple(tool for tree in trees for tool in tool_lists.tools_of([tree])) or None


def vector_results(reading: Reading, evidence: str) -> tuple[Document, ...] | None:
    """`db.query.result` and `db.search.result` events, one a document."""
    name = evidence.removeprefix("event ")
    return tuple(_document(name, record.attributes) for record in reading.records(name)) or None


def _document(prefix: str, sent: Mapping[str, Any]) -> Document:
    metadata = opened(sent.get(f"{prefix}.metadata"))
    distance = real(sent.get(f"{prefix}.distance"))
    return Document(
        id=text(sent.get(f"{prefix}.id")),
        content=text(sent.get(f"{prefix}.document")),
        score=real(sent.get(f"{prefix}.score")),
        metadata={
            **(metadata if isinstance(metadata, dict) else {}),
            **({} if distance is None else {"distance": distance}),
        },
    )


PARAMETERS: Mapping[str, str] = {
    "llm.frequency_penalty": "frequency_penalty",
    "llm.presence_penalty": "presence_penalty",
    "llm.top_k": "top_k",
    "llm.chat.stop_sequences": "stop_sequences",
    "llm.request.reasoning_effort": "reasoning_effort",
    "llm.request.max_tokens": "max_tokens",
    "llm.request.temperature": "temperature",
    "llm.request.top_p": "top_p",
}


def prompt_fields(reading: Reading, prefix: str) -> Mapping[str, Any] | None:
    """`traceloop.prompt.*`, under the names that other dialects have for the same."""
    sent = reading.rest(prefix)
    return {_PROMPT_NAMES.get(name, name): opened(value) for name, value in sent.items()} or None


_PROMPT_NAMES = {"key": "name", "template_variables": "variables"}
