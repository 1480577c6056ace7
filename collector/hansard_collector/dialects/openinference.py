"""OpenInference (Arize, Phoenix): flat attributes, one key a leaf."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists, wire
from hansard_collector.dialects.content.parts import part_of, parts_of, result_of, tool_call
from hansard_collector.dialects.engine.normal_form import Document
from hansard_collector.dialects.engine.sources import Read, same
from hansard_collector.dialects.engine.span_reader import Pair, Reading, nested, rows
from hansard_collector.dialects.engine.values import (
    first,
    is_content,
    mapping,
    opened,
    real,
    reals,
    text,
)
from hansard_collector.dialects.engine.vocabulary import message_role
from hansard_compiler.calls import (
    Json,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

ROLES: Mapping[str, str] = same(
    "llm", "embedding", "agent", "chain", "tool", "retriever", "guardrail", "evaluator", "prompt"
) | {
    "decision": "llm",  # classifier-type model calls
    "reranker": "rerank",
}

# What instrumentors put among the invocation parameters that is no parameter.
_NO_PARAMETERS = frozenset(
    {
        "_type", "context_window", "created_at", "error", "extra_headers", "id", "input",
        "instructions", "is_chat_model", "is_function_calling_model", "messages", "metadata",
        "model", "model_name", "object", "output", "status", "stream", "system", "system_role",
        "tools", "usage",
    }
)  # fmt: skip


# What retrievers call their one argument that matters.
_QUERIES = ("query", "question", "text", "input")
# What a whole response has, and no state or result of a step.
_RESPONSES = frozenset({"choices", "candidates"})
_OUTPUT_COUNTS = ("llm.token_count.completion", "gen_ai.usage.output_tokens")  # traceAI's word last


def input_messages(reading: Reading, prefix: str) -> tuple[Message, ...] | None:
    default = "assistant" if "output" in prefix else "user"
    found = list(reading.built(prefix, default, partial(_message, default=default)))
    if default == "user" and () in found:
        found = _filled(reading, found)
    return tuple(chain.from_iterable(found)) or None


output_messages = input_messages


def _filled(reading: Reading, found: list[tuple[Message, ...]]) -> list[tuple[Message, ...]]:
    """Messages of which only the role was flattened (LangChain for JavaScript: lists of blocks)
    are taken from the request, where it is recorded beside them."""
    value = reading.view.attributes.get("input.value")
    if not isinstance(value, str) or len(value) > wire.LARGEST_CONVERSATION:
        return found
    recorded = chat.request_messages(reading.opened("input.value"))
    if len(recorded) != len(found):
        return found
    return [one or (whole,) for one, whole in zip(found, recorded, strict=True)]


_PLAIN = ("message.role", "message.content")


def _message(pairs: Sequence[Pair], default: str) -> tuple[Message, ...]:
    if len(pairs) == 2 and (pairs[0][0], pairs[1][0]) == _PLAIN:
        role, content = pairs[0][1], pairs[1][1]
        if isinstance(role, str) and isinstance(content, str) and message_role(role) != "tool":
            return chat.one(chat.message(role or default, parts_of(content)))
    tree = nested(pairs)
    fields = tree.get("message")
    if not isinstance(fields, dict):
        return ()
    role = text(fields.get("role")) or default
    name = text(fields.get("name"))
    call_id = text(fields.get("tool_call_id"))
    if call_id is not None and message_role(role) == "user":
        role = "tool"  # of Anthropic's messages before 0.1.18
    parts = _content_parts(fields)
    if message_role(role) == "tool" and not _has_result(parts):
        parts = [_result(part, call_id, name) for part in parts]
    call_ids = {part.id for part in parts if isinstance(part, ToolCallPart)}
    calls = [_call(row) for row in rows(fields, "tool_calls")]
    parts += [call for call in calls if call is not None and call.id not in call_ids]
    parts += _legacy_call(fields) + _function_results(tree)
    return chat.one(chat.message(role, parts, name))


def _function_results(tree: Mapping[str, Any]) -> list[Part]:
    """AutoGen's results, beside the message: `function.{i}` {name, content, call_id}."""
    listed = tree.get("function")
    results = listed.values() if isinstance(listed, dict) else ()
    parts = (part_of({**mapping(result), "type": "function_call_output"}) for result in results)
    return [part for part in parts if part is not None]


def _has_result(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, ToolResultPart) for part in parts)


def _result(part: Part, call_id: str | None, name: str | None) -> Part:
    if isinstance(part, OtherPart):  # structured, not JSON text
        return ToolResultPart(call_id, part.value, name)
    if not isinstance(part, TextPart):
        return part
    return ToolResultPart(call_id, result_of(chat.open_blocks(part.text)), name)


def _content_parts(fields: Mapping[str, Any]) -> list[Part]:
    """The listed contents; the plain content counts where they hold no text."""
    contents = rows(fields, "contents")
    parts = [part for row in contents if (part := _content_part(row)) is not None]
    content = fields.get("content")
    if isinstance(content, str) and not any(isinstance(part, TextPart) for part in parts):
        if is_content(content) and content.strip():
            parts.insert(0, TextPart(content))
    elif not isinstance(content, str | None) and not parts:
        parts += parts_of(content)
    return parts


def _content_part(row: Mapping[str, Any]) -> Part | None:
    call = row.get("tool_call")
    if isinstance(call, dict):
        return tool_call(call)
    block = row.get("message_content")
    return part_of(block) if isinstance(block, dict) else None


def _call(row: Mapping[str, Any]) -> ToolCallPart | None:
    call = row.get("tool_call")
    part = tool_call(call) if isinstance(call, dict) else None
    return part if isinstance(part, ToolCallPart) else None


def _legacy_call(fields: Mapping[str, Any]) -> list[Part]:
    name = text(fields.get("function_call_name"))
    if name is None:
        return []
    part = tool_call({"name": name, "arguments": fields.get("function_call_arguments_json")})
    return [part] if part is not None else []


def _texts(branch: str, role: str) -> Read:
    """Return a reader of texts of the Completions API, or of embeddings: `….{i}.<branch>.text`."""

    def read(reading: Reading, prefix: str) -> tuple[Message, ...] | None:
        branches = (nested(pairs).get(branch) for _, pairs in reading.flat(prefix))
        texts = (fields.get("text") for fields in branches if isinstance(fields, dict))
        return tuple(m for item in texts for m in chat.messages_of(item, role)) or None

    return read


prompts = _texts("prompt", "user")
choices = _texts("completion", "assistant")
embedded_texts = _texts("embedding", "user")


def listed_prompts(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """`llm.prompts` as a list of texts (LlamaIndex) or JSON (Langtrace)."""
    return chat.messages_of(reading.opened(key), "user") or None


def whole_output(reading: Reading, key: str) -> tuple[Message, ...] | None:
    """The response as `output.value`: a whole one, the chunks of one, or plain text.

    Text without a token count may be a prompt that the span only prepares: that is no answer.
    """
    attributes = reading.view.attributes
    value = attributes[key]
    if not isinstance(value, str):
        return None
    if attributes.get("output.mime_type", "text/plain") == "text/plain":
        is_answer = not attributes.keys().isdisjoint(_OUTPUT_COUNTS)
        return (chat.messages_of(value, "assistant") or None) if is_answer else None
    if chat.is_stream(sent := reading.opened(key)):
        return chat.streamed_messages(sent) or None
    if reading.mapping(key).keys().isdisjoint(_RESPONSES):
        return None
    return chat.response_messages(sent) or None


def tools(reading: Reading, prefix: str) -> tuple[Json, ...] | None:
    found: list[Json] = []
    for _, pairs in reading.flat(prefix):
        fields = nested(pairs).get("tool")
        if not isinstance(fields, dict):
            continue
        schema = fields.get("json_schema")
        if isinstance(schema, str):
            found += reading.cache.built("tools", schema, tool_lists.tools_of)
        else:
            found += tool_lists.tools_of(schema if schema is not None else [fields])
    return tuple(found) or None


def parameters(reading: Reading, key: str) -> Mapping[str, Any] | None:
    sent = reading.mapping(key)
    selected = {
        name: value
        for name, value in sent.items()
        if name not in _NO_PARAMETERS and value is not None
    }
    return selected or None


def served_model(reading: Reading, key: str) -> str | None:
    """`llm.model_name` is what served where parameters or request say what was requested.

    On a failed call, and in some instrumentors always, it repeats the request: that proves nothing.
    """
    if reading.view.status_code == 2:
        return None
    model = text(reading.mapping("llm.invocation_parameters").get("model"))
    model = model or text(reading.mapping("gen_ai.request.parameters").get("model"))  # traceAI
    model = model or wire.requested_model(reading, "input.value")
    named = text(reading.view.attributes[key])
    return named if model not in (None, named) else None


def requested_model(reading: Reading, key: str) -> str | None:
    """Return the requested model: `llm.model_name`, unless the response names it as its version.

    Gemini's instrumentor overwrites the requested name with that version; the requested name, which
    may have had none, is then unknown.
    """
    named = text(reading.view.attributes[key])
    output = reading.view.attributes.get("output.value")
    if named is None or not _VERSION.search(named) or not isinstance(output, str):
        return named
    sent = opened(reading.opened("output.value")) if "model_version" in output else None
    is_served = isinstance(sent, dict) and sent.get("model_version") == named
    return None if is_served else named


def always_ends_well(reading: Reading, key: str) -> bool | None:
    """Return True for the root span of a trace of OpenAI's Agents SDK: its status is always OK."""
    view = reading.view
    if view.parent_span_id or not view.scope_name.endswith(".openai_agents"):
        return None
    return True if str(view.attributes[key]).lower() == "agent" else None


_VERSION = re.compile(r"-\d{3}$|-\d{2}-\d{2,4}$", re.ASCII)  # -001, -05-20, -09-2025
_LONGEST_END = 300  # characters at the end of a printed event that are searched
_CLASSES: Mapping[str, str] = dict.fromkeys(("CodeAgent", "ToolCallingAgent", "MultiStepAgent"), "")
_CURRENT_AGENT = re.compile(r"\bcurrent_agent_name='([^']+)'\)(?:\"\})?$")
_NO_FUNCTION_NAME = re.compile(r"[^a-zA-Z0-9_]")


def smolagents_name(reading: Reading, key: str) -> str | None:
    """smolagents calls a run's span by the agent's name, or by its class where it has none."""
    name = reading.view.name.removesuffix(".run")
    return _CLASSES.get(name, name) or None


def llamaindex_agent(reading: Reading, evidence: str) -> str | None:
    """LlamaIndex: the agent of the event that a step took or gave, as Python prints it."""
    for key in ("output.value", "input.value"):
        found = _CURRENT_AGENT.search(
            (text(reading.view.attributes.get(key)) or "")[-_LONGEST_END:]
        )
        if found is not None:
            return found[1]
    return None


def prepared(reading: Reading, key: str) -> str | None:
    """LlamaIndex: what puts a request together is named a model call, and calls no model."""
    return "chain" if reading.view.name.endswith("._prepare_chat_with_tools") else None


def handoff_tool(reading: Reading, evidence: str) -> str | None:
    """OpenAI Agents: `handoff to Order clerk` runs the tool `transfer_to_order_clerk`.

    That is how the package names the tool of an agent, unless the program overrides it.
    """
    agent = reading.view.name.removeprefix(evidence.removeprefix("span "))
    return f"transfer_to_{_NO_FUNCTION_NAME.sub('_', agent).lower()}" if agent else None


def query(reading: Reading, key: str) -> str | None:
    """What was searched for: the input as text, or by a retriever's arguments."""
    sent = opened(reading.opened(key))
    if isinstance(sent, dict):
        listed = sent.get("args")  # of a decorated function: `{args, kwargs}`
        named = first(sent, _QUERIES) or first(mapping(sent.get("kwargs")), _QUERIES)
        found = named or (listed[0] if isinstance(listed, list) and listed else None)
        return text(found) or text(reading.view.attributes[key])
    return text(sent)


def documents(reading: Reading, prefix: str) -> tuple[Document, ...] | None:
    trees = (nested(pairs).get("document") for _, pairs in reading.flat(prefix))
    return tuple(_document(fields) for fields in trees if isinstance(fields, dict)) or None


def _document(fields: Mapping[str, Any]) -> Document:
    extra = {name: fields[name] for name in ("url", "mime_type", "name") if text(fields.get(name))}
    return Document(
        id=text(fields.get("id")),
        content=text(fields.get("content")),
        score=real(fields.get("score")),
        metadata={**mapping(fields.get("metadata")), **extra},
    )


def evaluations(reading: Reading, prefix: str) -> tuple[Mapping[str, Any], ...] | None:
    """`evaluations.{i}.evaluation.*` and `annotations.{i}.annotation.*`, also of trace, session."""
    scope = prefix.partition(".")[0]
    found = []
    for _, pairs in reading.flat(prefix):
        tree = nested(pairs)
        fields = tree.get("evaluation") or tree.get("annotation")
        if isinstance(fields, dict):
            result = {name: value for name, value in fields.items() if is_content(value)}
            if isinstance(result.get("metadata"), str):
                result["metadata"] = opened(result["metadata"])
            if scope in ("trace", "session"):
                result["level"] = scope
            found.append(result)
    return tuple(found) or None


def cost_lines(reading: Reading, prefix: str) -> Mapping[str, float] | None:
    """`llm.cost.prompt`, `.completion` and their details."""
    return reals(reading.rest(prefix)) or None


def evaluator_output(reading: Reading, key: str) -> tuple[Mapping[str, Any], ...] | None:
    """An EVALUATOR span's output is its result."""
    if reading.role != "evaluator" or not is_content(reading.view.attributes[key]):
        return None
    value = reading.opened(key)
    return (value,) if isinstance(value, dict) else ({"label": value},)


PROMPT_MEMBERS = {
    "llm.prompt_template.template": "template",
    "llm.prompt_template.variables": "variables",
    "llm.prompt_template.version": "version",
    "prompt.id": "id",
    "prompt.url": "url",
    "prompt.vendor": "vendor",
}


def opened_content(value: Any) -> Any:
    """An attribute with its JSON opened; None where that is empty."""
    found = opened(value)
    return found if is_content(found) else None
