"""OpenAI's Responses API: requests rendered, responses read. Pure functions, no network.

The stable system texts become `instructions`, which the API does not carry over from one response
to the next and which are therefore sent every time. `store` is false unless a conversation goes on
by `previous_response_id`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hansard_compiler.calls import (
    Call,
    Json,
    MediaPart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.providers.formats.fields import (
    Body,
    append,
    block_of,
    call_from,
    find,
    integer,
    known,
    left_out,
    mapping,
    mappings,
    media_url,
    neutral_tool,
    parsed_arguments,
    provider_block,
    result_text,
    text,
    tokens_from,
)
from hansard_compiler.providers.formats.sse import Streamed, call_delta, text_delta
from hansard_compiler.providers.transport.failures import NotRenderable

if TYPE_CHECKING:
    from hansard_compiler.providers.base import RenderInput

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
USAGE = {
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

    def render(self, request: RenderInput) -> Json:
        if request.sampling.stop or request.sampling.seed is not None:
            raise NotRenderable("the Responses API takes neither stop sequences nor a seed")
        marks_system = self._marks_system(request)
        prefix = (request.stable_prefix_hash or "").removeprefix("sha256:")
        body: Json = {"model": request.model}
        if request.system and not marks_system:
            body["instructions"] = "\n\n".join(request.system)
        body["input"] = self._input(request, marks_system)
        body |= known(
            {
                "tools": [_tool(tool) for tool in request.tools] or None,
                "tool_choice": _tool_choice(request.tool_choice),
                "max_output_tokens": request.sampling.max_output_tokens,
                "temperature": request.sampling.temperature,
                "top_p": request.sampling.top_p,
                "reasoning": _reasoning(request),
                "text": _text_format(request.output_schema),
                "prompt_cache_key": prefix[:64] or None,
                "previous_response_id": request.previous_response_id,
            }
        )
        body["store"] = request.previous_response_id is not None
        if "reasoning" in body and not body["store"]:
            body["include"] = ["reasoning.encrypted_content"]
        if request.stream:
            body |= {"stream": True, "stream_options": {"include_obfuscation": False}}
        return {**body, **request.extra}

    def _marks_system(self, request: RenderInput) -> bool:
        boundary = request.boundary
        is_marked = self.explicit_cache and boundary is not None and not boundary.messages
        return is_marked and bool(request.system)

    def _input(self, request: RenderInput, marks_system: bool) -> list[Json]:
        items: list[Json] = []
        if marks_system:
            content = [{"type": "input_text", "text": text} for text in request.system]
            items.append({"type": "message", "role": "developer", "content": content})
            _mark(items)
        end_of_prefix = request.boundary.messages if request.boundary else 0
        for index, message in enumerate(request.messages):
            if index >= request.held_messages:
                items.extend(_items(message))
            if self.explicit_cache and index + 1 == end_of_prefix:
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
        return call_from(
            response,
            request,
            provider=self.provider,
            parts=[part for item in items for part in _read_item(item)],
            reason=finish_reason_of(response),
            reasons=_FINISH,
            usage=tokens_from(response, USAGE),
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        return assemble(events).whole

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        return "/responses/input_tokens", {
            key: rendered[key] for key in _COUNTED if key in rendered
        }

    def continuation(self, response: Mapping[str, Any]) -> Message:
        """Return the response with every item as it was, so that reasoning, phases and calls stay
        one group."""
        items = [item for item in response.get("output") or () if isinstance(item, Mapping)]
        return Message("assistant", tuple(part for item in items for part in _replayed_item(item)))

    def notes(self, request: RenderInput) -> list[str]:
        return left_out(request, self.provider)


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
        arguments = result_text(part.arguments)
        call = {"call_id": part.id or "", "name": part.name, "arguments": arguments}
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


def _tool(definition: Json) -> Json:
    tool = neutral_tool(definition)
    if tool is None:
        return definition
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", **function, "strict": bool(tool.strict)}


def _tool_choice(choice: str | None) -> str | Json | None:
    is_word = choice in (None, "auto", "none", "required")
    return choice if is_word else {"type": "function", "name": choice}


def _reasoning(request: RenderInput) -> Json | None:
    effort = {"effort": request.sampling.effort} if request.sampling.effort else {}
    return {**effort, **(request.reasoning or {})} or None


def _text_format(schema: Json | None) -> Json | None:
    if schema is None:
        return None
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}}


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


def _replayed_item(item: Mapping[str, Any]) -> list[Part]:
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


# --- streams ----------------------------------------------------------------------------------

_OWN_CALLS = ("function_call", "custom_tool_call")  # of tools that the caller defines
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def assemble(events: Iterable[Body]) -> Streamed:
    """Return the response that the last event holds, or what had come of it until then."""
    body: Json = {}
    items: dict[int, Any] = {}
    texts: dict[int, Json] = {}
    error: Body | None = None
    for event in events:
        kind = event.get("type")
        if isinstance(kind, str) and kind in _LAST:
            found = dict(mapping(event.get("response")))
            return Streamed(found, bool(found), error)
        index = integer(event.get("output_index")) or 0
        if kind == "error":
            failure = mapping(event.get("error"))
            error = failure or {**event, "type": event.get("code")}
        elif kind == "response.output_item.done":
            items[index] = event.get("item")
        elif kind == "response.output_text.delta":
            append(texts.setdefault(index, {}), "text", event.get("delta"))
        else:
            body |= mapping(event.get("response"))
    return Streamed({**body, "output": _so_far(items, texts)}, False, error)


def _so_far(items: dict[int, Any], texts: dict[int, Json]) -> list[Any]:
    """Whole items, and the text of those that were cut off."""
    cut = {
        index: {"type": "message", "role": "assistant", "content": pieces.get("text", "")}
        for index, pieces in texts.items()
        if index not in items
    }
    every = {**items, **cut}
    return [every[index] for index in sorted(every)]


def deltas(event: Body) -> Iterator[Json]:
    """Yield what an event adds to the response."""
    index, delta, item = event.get("output_index"), event.get("delta"), mapping(event.get("item"))
    match event.get("type"):
        case "response.output_text.delta":
            yield from text_delta("text", delta)
        case "response.refusal.delta":
            yield from text_delta("refusal", delta)
        case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
            yield from text_delta("reasoning", delta)
        case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
            yield from call_delta(index, id=None, name=None, arguments=delta)
        case "response.output_item.added" if item.get("type") in _OWN_CALLS:
            call_id, name = item.get("call_id"), item.get("name")
            yield from call_delta(index, id=call_id, name=name, arguments=None)


# Why a response of OpenAI's Responses API ended; the API has a status, and no such field.

# Calls that the caller is to answer; those of the provider's own tools are part of the answer.
_CALLS = frozenset(
    {
        "apply_patch_call", "computer_call", "custom_tool_call", "function_call",
        "local_shell_call", "shell_call",
    }
)  # fmt: skip


def finish_reason_of(response: Mapping[str, Any]) -> str | None:
    """Return the reason as OpenTelemetry's instrumentor of `openai` names it; None while it runs.

    A complete response requests tools or stopped. Of one that is cut short the API names
    the reason, which is returned as it is.
    """
    reason = text(find(response, "incomplete_details.reason"))
    if reason is not None:
        return reason
    match response.get("status"):
        case "completed":
            asks = any(
                text(item.get("type")) in _CALLS for item in mappings(response.get("output"))
            )
            return "tool_calls" if asks else "stop"
        case "failed":
            return "error"
    return None


# --- tool calls and their results ----------------------------------------------------------------


def responses_problems(items: Sequence[Any], *, is_continued: bool) -> list[str]:
    """One later result for each call; each result after its call; reasoning before something."""
    called: dict[str, bool] = {}
    problems = []
    for item in items:
        kind, call_id = item.get("type"), item.get("call_id")
        if kind in ("function_call", "custom_tool_call"):
            if call_id in called or not call_id:
                problems.append(f"tool call {call_id!r} needs an id of its own")
            called[call_id] = False
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if called.get(call_id):
                problems.append(f"tool call {call_id!r} is answered twice")
            elif call_id not in called and not is_continued:
                problems.append(f"a result for {call_id!r}, which nobody called before it")
            called[call_id] = True
    problems.extend(
        f"tool call {call_id!r} has no result" for call_id, is_done in called.items() if not is_done
    )
    if items and items[-1].get("type") == "reasoning":
        problems.append("a reasoning item without the item it led to")
    return problems


# --- compaction -------------------------------------------------------------------------------

# OpenAI's own compaction of long conversations (`POST /responses/compact`).
#
# Apart from everything else on purpose: what comes back is opaque, so that it can be neither read,
# diffed nor budgeted anew. The compiler never uses it; who wants it calls it and sends its output
# on as provider blocks, unchanged.

PATH = "/responses/compact"
_COMPACTED = ("model", "input", "instructions", "previous_response_id", "prompt_cache_key")


def render_compaction(request: RenderInput) -> Json:
    """Return the request body for the compaction of a conversation."""
    rendered = OpenAIResponses().render(request)
    return {key: rendered[key] for key in _COMPACTED if key in rendered}


def read_compaction(response: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return what replaces the conversation from now on; every item stays as it came."""
    items = response.get("output") or ()
    return tuple(Message("user", (provider_block(PROVIDER, dict(item)),)) for item in items)
