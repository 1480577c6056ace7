"""LlamaIndex's own OpenTelemetry spans: named after methods, with all they tell in span events.

An event's fields stand flat in its attributes (`response.message.role`), lists and objects below
as JSON. OpenInference and OpenLLMetry write LlamaIndex's spans in their own words instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists, wire
from hansard_collector.dialects.engine.normal_form import Document
from hansard_collector.dialects.engine.sources import FieldSource, each
from hansard_collector.dialects.engine.span_reader import Reading, nested
from hansard_collector.dialects.engine.values import inside, mapping, sequence, text
from hansard_collector.dialects.gen_ai import document
from hansard_compiler.calls import Json, Message

CHATTED = "event LLMChatStartEvent"
ANSWERED = "event LLMChatEndEvent"
PROMPTED = "event LLMCompletionStartEvent"
COMPLETED = "event LLMCompletionEndEvent"
EMBEDDING = "event EmbeddingStartEvent"
EMBEDDED = "event EmbeddingEndEvent"
RETRIEVING = "event RetrievalStartEvent"
RETRIEVED = "event RetrievalEndEvent"
STEP = "llamaindex.step.input_summary"  # the workflow's event as Python prints it, cut when long

SPAN_ROLES: Mapping[str, str] = {
    CHATTED: "llm",
    PROMPTED: "llm",
    EMBEDDING: "embedding",
    RETRIEVING: "retriever",
    "event ReRankStartEvent": "rerank",
    "event QueryStartEvent": "chain",
    "event SynthesizeStartEvent": "chain",
    "span FunctionTool.": "tool",
    "span FunctionAgent.run": "agent",
    "span ReActAgent.run": "agent",
    "span CodeActAgent.run": "agent",
    "span AgentWorkflow.run": "workflow",
}
_LONGEST_STEP = 4096  # characters that are searched
_TOOL_NAME = re.compile(r"\btool_name='([^']+)'")
_TOOL_ID = re.compile(r"\btool_id='([^']+)'")
_TOOL_ARGUMENTS = re.compile(r"\btool_kwargs=(\{.*?\}), tool_id=")


def _sent(reading: Reading, evidence: str) -> dict[str, Any]:
    """The fields of the last such event as a tree; None is sent as `null`."""
    records = reading.records(evidence.removeprefix("event "))
    attributes = records[-1].attributes.items() if records else ()
    return nested((key, value) for key, value in attributes if value != "null")


def input_messages(reading: Reading, evidence: str) -> tuple[Message, ...] | None:
    sent = _sent(reading, evidence)
    items = sequence(sent.get("messages"))
    found = tuple(message for item in items for message in _message(item, "user"))
    return found or chat.messages_of(text(sent.get("prompt")), "user") or None


def output_messages(reading: Reading, evidence: str) -> tuple[Message, ...] | None:
    response = mapping(_sent(reading, evidence).get("response"))
    found = _message(mapping(response.get("message")), "assistant")
    return found or chat.messages_of(text(response.get("text")), "assistant") or None


def _message(item: Any, role: str) -> tuple[Message, ...]:
    """`{role, blocks, additional_kwargs}`; what stands in the last two repeats itself."""
    if not isinstance(item, dict):
        return chat.messages_of(item, role)
    extra = mapping(item.get("additional_kwargs"))
    blocks = [_block(block) for block in sequence(item.get("blocks"))]
    return chat.messages_of(
        {
            "role": text(item.get("role")) or role,
            "content": blocks or item.get("content"),
            "tool_calls": extra.get("tool_calls"),
            "tool_call_id": extra.get("tool_call_id"),
        },
        role,
    )


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    plain = {**block, "type": block.get("block_type")}
    if plain["type"] == "tool_call":
        plain |= {"name": block.get("tool_name"), "arguments": block.get("tool_kwargs")}
    return plain


def model(reading: Reading, evidence: str) -> str | None:
    return text(inside(_sent(reading, evidence), "model_dict", "model_name"))


def serving_model(reading: Reading, evidence: str) -> str | None:
    return text(_raw(reading, evidence).get("model"))


def response_id(reading: Reading, evidence: str) -> str | None:
    return text(_raw(reading, evidence).get("id"))


def finish_reason(reading: Reading, evidence: str) -> str | None:
    raw = _raw(reading, evidence)
    choices = sequence(raw.get("choices"))
    reason = mapping(choices[0]).get("finish_reason") if choices else None
    return text(reason) or text(raw.get("stop_reason"))


def counted(name: str) -> tuple[FieldSource, ...]:
    """One count of the provider's usage, which stands in the raw response."""

    def read(reading: Reading, evidence: str) -> int | None:
        return wire.count_in(mapping(_raw(reading, evidence).get("usage")), name)

    return each((ANSWERED, COMPLETED), read, fact=f"usage: {name}")


def _raw(reading: Reading, evidence: str) -> Mapping[str, Any]:
    return mapping(inside(_sent(reading, evidence), "response", "raw"))


def tools(reading: Reading, evidence: str) -> tuple[Json, ...] | None:
    return (
        tool_lists.tools_of(inside(_sent(reading, evidence), "additional_kwargs", "tools")) or None
    )


def embedded_texts(reading: Reading, evidence: str) -> tuple[Message, ...] | None:
    return chat.messages_of(sequence(_sent(reading, evidence).get("chunks")), "user") or None


def query(reading: Reading, evidence: str) -> str | None:
    bundle = _sent(reading, evidence).get("str_or_query_bundle")
    return text(mapping(bundle).get("query_str")) or text(bundle)


def documents(reading: Reading, evidence: str) -> tuple[Document, ...] | None:
    """`[{node: {id_, text, metadata}, score}]`."""
    found = []
    for scored in map(mapping, sequence(_sent(reading, evidence).get("nodes"))):
        node = mapping(scored.get("node"))
        content = node.get("text") or inside(node, "text_resource", "text")
        plain = {"id": node.get("id_"), "content": content, "metadata": node.get("metadata")}
        found.append(document({**plain, "score": scored.get("score")}))
    return tuple(found) or None


def tool_name(reading: Reading, key: str) -> str | None:
    return _in_step(reading, key, _TOOL_NAME)


def tool_call_id(reading: Reading, key: str) -> str | None:
    return _in_step(reading, key, _TOOL_ID)


def tool_arguments(reading: Reading, key: str) -> str | None:
    """As Python prints them: they are not JSON."""
    return _in_step(reading, key, _TOOL_ARGUMENTS)


def _in_step(reading: Reading, key: str, pattern: re.Pattern[str]) -> str | None:
    found = pattern.search((text(reading.view.attributes[key]) or "")[:_LONGEST_STEP])
    return found[1] if found else None
