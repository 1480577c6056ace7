"""OpenTelemetry GenAI, newest form: everything in attributes (semantic conventions, 2026)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hansard_collector.dialects import openllmetry
from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.content.parts import parts_of
from hansard_collector.dialects.engine.normal_form import Document
from hansard_collector.dialects.engine.span_reader import Reading
from hansard_collector.dialects.engine.values import (
    first,
    is_content,
    opened,
    parsed,
    real,
    sequence,
    text,
)
from hansard_compiler.calls import Json, Message, ToolCallPart
from hansard_store.content.json_chunks import is_crowded

_TRACELOOP_JS = "@traceloop/"

# `gen_ai.operation.name`, with the words that emitters of the convention add to it.
ROLES: Mapping[str, str] = {
    "chat": "llm",
    "chat.completions": "llm",  # Semantic Kernel for .NET
    "chat.streaming_completions": "llm",  # Semantic Kernel before 1.30
    "text.completions": "llm",
    "text.streaming_completions": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "completion": "llm",  # LiteLLM, old OpenLLMetry
    "acompletion": "llm",  # LiteLLM 1
    "aresponses": "llm",  # LiteLLM 1
    "aembedding": "embedding",  # LiteLLM 1
    "image": "llm",  # Spring AI
    "llm_call": "llm",  # Gemini CLI
    "llm_request": "llm",  # OpenLLMetry
    "responses": "llm",  # LiteLLM
    "embed": "embedding",  # Langtrace
    "embeddings": "embedding",
    "embedding": "embedding",  # Spring AI
    "retrieval": "retriever",
    "vector_db_retrieve": "retriever",  # OpenLLMetry
    "rerank": "rerank",
    "create_agent": "agent",
    "invoke_agent": "agent",
    "agent_call": "agent",  # Gemini CLI
    "invoke_workflow": "workflow",
    "execute_tool": "tool",
    "tool_call": "tool",  # Gemini CLI
    "plan": "task",
    "orchestrate_tools": "task",  # Microsoft.Extensions.AI
    "agent_step": "task",  # AI SDK 7
    "execute_event_loop_cycle": "task",  # Strands
    "execute_task": "task",  # OpenLLMetry
    "invoke_node": "task",  # Google ADK 2
    "schedule_tool_calls": "task",  # Gemini CLI
    "system_prompt": "prompt",  # Gemini CLI
    "user_prompt": "prompt",  # Gemini CLI
    "create_memory_store": "memory",
    "delete_memory_store": "memory",
    "create_memory": "memory",
    "update_memory": "memory",
    "upsert_memory": "memory",
    "delete_memory": "memory",
    "search_memory": "memory",
    "fetch_response": "other",  # fetches a response made before: its tokens were counted then
}

# Request parameters under the names that the normal form keeps.
PARAMETERS: Mapping[str, str] = {
    f"gen_ai.request.{name}": name
    for name in (
        "temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty",
        "stop_sequences", "seed", "encoding_formats", "reasoning_effort", "reasoning_summary",
        "structured_output_schema", "repetition_penalty", "n", "max_completion_tokens",
    )
} | {
    "gen_ai.request.choice.count": "choice_count",
    "gen_ai.request.reasoning.level": "reasoning_level",
    "gen_ai.request.previous_response.id": "previous_response_id",
    "gen_ai.request.embedding.dimensions": "dimensions",
    "gen_ai.embeddings.dimension.count": "dimensions",
    "gen_ai.output.type": "output_type",
    "gen_ai.openai.request.response_format": "response_format",
    "gen_ai.openai.request.seed": "seed",
    "gen_ai.openai.request.service_tier": "service_tier",
    "openai.request.service_tier": "service_tier",
    "gen_ai.request.image.size": "image_size",
    "gen_ai.request.image.style": "image_style",
    "gen_ai.request.image.response_format": "image_response_format",
}  # fmt: skip


def input_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    found = message_list(reading, key, role="user")
    if len(found) == 1 and reading.view.scope_name.startswith(_TRACELOOP_JS):
        found = _unfolded(found[0])
    return found or None


def _unfolded(only: Message) -> tuple[Message, ...]:
    """OpenLLMetry for JavaScript writes a list of Responses items as one text of the user."""
    items = opened(only.text) if len(only.parts) == 1 else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return (only,)
    return chat.messages_of(items, "user") or (only,)


def output_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    found = message_list(reading, key, role="assistant")
    if len(found) > 1 and "gemini_cli" in reading.marks:
        found = chat.joined(found)  # it sends one item a streamed chunk
    elif found and "litellm" in reading.marks:
        found = _with_flat_calls(reading, found)
    return found or None


def _with_flat_calls(reading: Reading, found: tuple[Message, ...]) -> tuple[Message, ...]:
    """LiteLLM 1 writes the calls of a response in the old flat form only."""
    if any(isinstance(part, ToolCallPart) for message in found for part in message.parts):
        return found
    flat = openllmetry.output_messages(reading, "gen_ai.completion.") or ()
    calls = [part for one in flat for part in one.parts if isinstance(part, ToolCallPart)]
    return chat.joined((*found, Message("assistant", tuple(calls)))) if calls else found


def message_list(reading: Reading, key: str, *, role: str) -> tuple[Message, ...]:
    """Return the messages of an attribute: an array, structured or as JSON, or a text.

    An array that the content store has cut into elements is not parsed again: an element seen
    before is a look-up. `role` speaks where an element does not say who does.
    """
    value = reading.view.attributes[key]
    if not is_content(value):
        return ()
    if isinstance(value, str):
        elements = reading.view.elements.get(key)
        if elements is not None:
            return _of_elements(reading, elements, role=role)
        if is_crowded(value):
            return chat.one(chat.message(role, parts_of(value)))
        if value.lstrip()[:1] == "[" and isinstance(reading.opened(key), str):
            reading.notes.append(f"{key} was cut off by the sender: its last message is not whole")
            return chat.cut_messages(value.lstrip(), role)
    sent = reading.opened(key)
    if not isinstance(sent, dict):
        return chat.messages_of(sent, role)
    return chat.request_messages(sent) if role == "user" else chat.response_messages(sent)


def _of_elements(reading: Reading, elements: Any, *, role: str) -> tuple[Message, ...]:
    def build(source: str) -> tuple[Message, ...]:
        return chat.messages_of(parsed(source), role)

    built = reading.cache.built
    return tuple(found for source in elements for found in built(role, source, build))


def system_messages(reading: Reading, key: str) -> tuple[Message, ...] | None:
    value = reading.view.attributes[key]
    if not is_content(value):
        return None
    if isinstance(value, str):
        return reading.cache.built("system", value, chat.system_messages) or None
    return chat.system_messages(value) or None


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    value = reading.view.attributes[key]
    if not is_content(value):
        return None
    if isinstance(value, str):
        return reading.cache.built("tools", value, tool_lists.tools_of) or None
    return tool_lists.tools_of(value) or None


def finish_reason(reading: Reading, key: str) -> str | None:
    """The first choice's reason, from a list or a single text."""
    value = reading.opened(key)
    if isinstance(value, list):
        return next((reason for item in value if (reason := text(item))), None)
    return text(value)


def finish_reason_of_messages(reading: Reading, key: str) -> str | None:
    """The reason as the deprecated field of an output message."""
    for item in sequence(reading.opened(key)):
        sent = first(item, ("finish_reason", "stop_reason")) if isinstance(item, dict) else None
        if reason := text(sent):
            return reason
    return None


def milliseconds(reading: Reading, key: str) -> float | None:
    seconds = real(reading.view.attributes[key])
    return None if seconds is None or seconds < 0 else seconds * 1000


def documents(reading: Reading, key: str) -> tuple[Document, ...] | None:
    """Retrieved documents or memory records: `[{id, content?, score?, …}]`."""
    found = [document(item) for item in sequence(reading.opened(key)) if isinstance(item, dict)]
    return tuple(found) or None


def listed_documents(reading: Reading, key: str) -> tuple[Document, ...] | None:
    """What a retriever returned: a list of documents or texts, by itself or as its only output."""
    sent = opened(reading.opened(key))
    if isinstance(sent, dict):
        sent = first(sent, ("documents", "output"))
    listed = [{"content": item} if isinstance(item, str) else item for item in sequence(sent)]
    return tuple(document(item) for item in listed if isinstance(item, dict)) or None


def document(item: Mapping[str, Any]) -> Document:
    known = ("id", "content", "text", "page_content", "score", "metadata", "meta")
    metadata = first(item, ("metadata", "meta"))
    rest = {key: value for key, value in item.items() if key not in known}
    return Document(
        id=text(item.get("id")),
        content=text(first(item, ("content", "text", "page_content"))),
        score=real(item.get("score")),
        metadata={**(metadata if isinstance(metadata, dict) else {}), **rest},
    )


def streams(reading: Reading, key: str) -> bool | None:
    """Semantic Kernel's `chat.streaming_completions`."""
    return True if ".streaming_" in (text(reading.view.attributes[key]) or "") else None


RESULT: Final = "event gen_ai.evaluation.result"  # evidence


def evaluations(reading: Reading, evidence: str) -> tuple[Mapping[str, Any], ...] | None:
    """Results of `gen_ai.evaluation.result` events."""
    found = []
    for record in reading.records(evidence.removeprefix("event ")):
        sent = record.attributes
        result = {
            "name": text(sent.get("gen_ai.evaluation.name")),
            "score": real(
                first(sent, ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score"))
            ),
            "label": text(sent.get("gen_ai.evaluation.score.label")),
            "explanation": text(sent.get("gen_ai.evaluation.explanation")),
            "response_id": text(sent.get("gen_ai.response.id")),
        }
        found.append({key: value for key, value in result.items() if value is not None})
    return tuple(found) or None


PROMPT_MEMBERS = {"gen_ai.prompt.name": "name", "gen_ai.prompt.version": "version"}


def prompt_variables(reading: Reading, prefix: str) -> Mapping[str, Any] | None:
    return {"variables": reading.rest(prefix)}
