"""OpenAI's Responses API: requests rendered, answers read. Pure functions, no network.

The stable system texts become `instructions`, which the API does not carry over from one response
to the next and which are therefore sent every time. `store` is false unless a conversation goes on
by `previous_response_id`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hansard_compiler.calls import (
    Call,
    Json,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    Tokens,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.canonical import canonical_json
from hansard_compiler.providers.base import (
    Boundary,
    RenderInput,
    block_of,
    neutral_tool,
    provider_block,
)
from hansard_compiler.providers.formats.fields import (
    known,
    left_out,
    media_url,
    parsed_arguments,
    result_text,
    tokens_from,
)
from hansard_compiler.providers.formats.openai_responses_stream import assemble, finish_reason_of
from hansard_compiler.providers.formats.tool_pairs import responses_problems
from hansard_compiler.providers.transport.failures import NotRenderable

PROVIDER = "openai"
_COUNTED = (
    "model", "input", "instructions", "tools", "tool_choice", "reasoning", "text", "truncation",
    "previous_response_id", "parallel_tool_calls",
)  # fmt: skip
_FINISH = {
    "stop": "stop",
    "tool_calls": "tool_call",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "error": "error",
}
_USAGE = {
    "input": "usage.input_tokens",
    "output": "usage.output_tokens",
    "cache_read": "usage.input_tokens_details.cached_tokens",
    "cache_write": "usage.input_tokens_details.cache_write_tokens",
    "reasoning": "usage.output_tokens_details.reasoning_tokens",
}


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The format of `POST /responses`.

    `explicit_cache` marks the end of the stable prefix with a breakpoint, which models before
    GPT-5.6 refuse; without it the provider caches by itself, helped by `prompt_cache_key`.
    """

    explicit_cache: bool = False
    provider: str = PROVIDER
    path: str = "/responses"

    def render(self, given: RenderInput) -> Json:
        if given.sampling.stop or given.sampling.seed is not None:
            raise NotRenderable("the Responses API takes neither stop sequences nor a seed")
        marks_system = self._marks_system(given)
        body: Json = {"model": given.model}
        if given.system and not marks_system:
            body["instructions"] = "\n\n".join(given.system)
        body["input"] = self._input(given, marks_system)
        body |= known(
            {
                "tools": [_tool(tool) for tool in given.tools] or None,
                "tool_choice": _tool_choice(given.tool_choice),
                "max_output_tokens": given.sampling.max_output_tokens,
                "temperature": given.sampling.temperature,
                "top_p": given.sampling.top_p,
                "reasoning": _reasoning(given),
                "text": _text_format(given.output_schema),
                "prompt_cache_key": _cache_key(given.stable_prefix_hash),
                "previous_response_id": given.previous_response_id,
            }
        )
        body["store"] = given.previous_response_id is not None
        if "reasoning" in body and not body["store"]:
            body["include"] = ["reasoning.encrypted_content"]
        if given.stream:
            body |= {"stream": True, "stream_options": {"include_obfuscation": False}}
        return {**body, **given.extra}

    def _marks_system(self, given: RenderInput) -> bool:
        boundary = given.boundary
        is_marked = self.explicit_cache and boundary is not None and not boundary.messages
        return is_marked and bool(given.system)

    def _input(self, given: RenderInput, marks_system: bool) -> list[Json]:
        items: list[Json] = []
        if marks_system:
            content = [{"type": "input_text", "text": text} for text in given.system]
            items.append({"type": "message", "role": "developer", "content": content})
            _mark(items)
        boundary = given.boundary or Boundary()
        for index, message in enumerate(given.messages):
            if index >= given.held_messages:
                items.extend(_items(message))
            if self.explicit_cache and index + 1 == boundary.messages:
                _mark(items)
        return items

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        items = rendered.get("input")
        if not isinstance(items, list):
            return []
        is_continued = "previous_response_id" in rendered or "conversation" in rendered
        return responses_problems(items, is_continued=is_continued)

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        items = [item for item in response.get("output") or () if isinstance(item, Mapping)]
        parts = tuple(part for item in items for part in _read_item(item))
        reason = finish_reason_of(response)
        tokens, sources = _tokens(response)
        return Call(
            operation="chat",
            provider=self.provider,
            request_model=request.get("model"),
            response_model=response.get("model"),
            stream=bool(request.get("stream")),
            output=(Message("assistant", parts),) if parts else (),
            finish_reason=_FINISH.get(reason, "other") if reason else None,
            finish_reason_raw=reason,
            tokens=tokens,
            response_id=response.get("id"),
            sources=sources,
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        return assemble(events).whole

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        return "/responses/input_tokens", {
            key: rendered[key] for key in _COUNTED if key in rendered
        }

    def continuation(self, response: Mapping[str, Any]) -> Message:
        """Return the answer with every item as it was, so that reasoning, phases and calls stay
        one group."""
        items = [item for item in response.get("output") or () if isinstance(item, Mapping)]
        return Message("assistant", tuple(part for item in items for part in _kept_item(item)))

    def notes(self, given: RenderInput) -> list[str]:
        return left_out(given, self.provider)


# --- rendering --------------------------------------------------------------------------------


def _items(message: Message) -> list[Json]:
    """Return a message's items in the order of its parts; texts side by side share one."""
    role = {"system": "developer", "developer": "developer", "assistant": "assistant"}.get(
        message.role, "user"
    )
    items: list[Json] = []
    content: list[Json] = []

    def flush() -> None:
        if content:
            items.append(_message_item(role, list(content)))
            content.clear()

    for part in message.parts:
        item = _item(part)
        if item is not None:
            flush()
            items.append(item)
        elif (piece := _content(part)) is not None:
            content.append(piece)
    flush()
    return items


def _message_item(role: str, content: list[Json]) -> Json:
    if role == "assistant":
        # The API takes an assistant's own words as one text; parts of output need ids it gave.
        text = "\n".join(piece.get("text", "") for piece in content)
        return {"type": "message", "role": role, "content": text}
    return {"type": "message", "role": role, "content": content}


def _item(part: Part) -> Json | None:
    if isinstance(part, ToolCallPart):
        arguments = part.arguments
        text = arguments if isinstance(arguments, str) else canonical_json(arguments)
        call = {"call_id": part.id or "", "name": part.name, "arguments": text}
        return {"type": "function_call", **call}
    if isinstance(part, ToolResultPart):
        output = result_text(part.content)
        return {"type": "function_call_output", "call_id": part.id or "", "output": output}
    return block_of(part, PROVIDER)


def _content(part: Part) -> Json | None:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, MediaPart):
        url = media_url(part)
        if (part.media_type or "image/").startswith("image/"):
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        key = "file_data" if url.startswith("data:") else "file_url"
        return {"type": "input_file", key: url}
    return None


def _mark(items: list[Json]) -> None:
    """Put a breakpoint on the last part that can carry one, at or before the boundary."""
    for item in reversed(items):
        content = item.get("content")
        if isinstance(content, list) and content:
            content[-1] = {**content[-1], "prompt_cache_breakpoint": {"mode": "explicit"}}
            return


def _tool(given: Json) -> Json:
    tool = neutral_tool(given)
    if tool is None:
        return given
    told = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", **told, "strict": bool(tool.strict)}


def _tool_choice(choice: str | None) -> str | Json | None:
    is_word = choice in (None, "auto", "none", "required")
    return choice if is_word else {"type": "function", "name": choice}


def _reasoning(given: RenderInput) -> Json | None:
    effort = {"effort": given.sampling.effort} if given.sampling.effort else {}
    return {**effort, **(given.reasoning or {})} or None


def _text_format(schema: Json | None) -> Json | None:
    if schema is None:
        return None
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}


def _cache_key(prefix_hash: str | None) -> str | None:
    return prefix_hash.removeprefix("sha256:")[:64] if prefix_hash else None


# --- reading ----------------------------------------------------------------------------------


def _read_item(item: Mapping[str, Any]) -> list[Part]:
    kind = item.get("type")
    if kind == "message":
        return [_read_content(piece) for piece in item.get("content") or ()]
    if kind == "function_call":
        arguments = parsed_arguments(item.get("arguments"))
        return [ToolCallPart(item.get("call_id"), item.get("name") or "", arguments)]
    if kind == "reasoning":
        pieces = [*(item.get("summary") or ()), *(item.get("content") or ())]
        text = "\n".join(str(piece.get("text", "")) for piece in pieces)
        return [ReasoningPart(text)]
    return [OtherPart(dict(item))]


def _read_content(piece: Any) -> Part:
    if isinstance(piece, Mapping) and isinstance(piece.get("text"), str):
        return TextPart(piece["text"])
    if isinstance(piece, Mapping) and isinstance(piece.get("refusal"), str):
        return TextPart(piece["refusal"])
    return OtherPart(piece)


def _kept_item(item: Mapping[str, Any]) -> list[Part]:
    """Keep plain calls and plain texts in the normal form, everything else as a whole item."""
    kind = item.get("type")
    if kind == "function_call" and not set(item) - _CALL_KEYS:
        return _read_item(item)
    if kind == "message" and not item.get("phase"):
        parts = _read_item(item)
        if all(isinstance(part, TextPart) for part in parts):
            return parts
    return [provider_block(PROVIDER, json.loads(json.dumps(item)))]


_CALL_KEYS = frozenset({"type", "id", "call_id", "name", "arguments", "status"})


def _tokens(response: Mapping[str, Any]) -> tuple[Tokens, dict[str, str]]:
    return tokens_from(response, _USAGE)


# OpenAI's own compaction of long conversations (`POST /responses/compact`).
#
# Apart from everything else on purpose: what comes back is opaque, so that it can be neither read,
# diffed nor budgeted anew. The compiler never uses it; who wants it calls it and sends its output
# on as provider blocks, unchanged.

PATH = "/responses/compact"
_KEPT = ("model", "input", "instructions", "previous_response_id", "prompt_cache_key")


def render_compaction(given: RenderInput) -> Json:
    """Return the body that asks for a conversation to be compacted."""
    rendered = OpenAIResponses().render(given)
    return {key: rendered[key] for key in _KEPT if key in rendered}


def read_compaction(response: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return what stands for the conversation from now on; every item is kept as it came."""
    items = response.get("output") or ()
    return tuple(Message("user", (provider_block(PROVIDER, dict(item)),)) for item in items)
