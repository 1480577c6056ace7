"""The chat-completions API as many servers speak it: vLLM, Ollama, llama.cpp, LM Studio, gateways.

Only what all of them understand is sent: one system message in front, `max_tokens`, function tools.
"""

from __future__ import annotations

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
    result_text,
    tokens_from,
)
from hansard_compiler.providers.formats.sse import Streamed, call_delta, text_delta
from hansard_compiler.providers.transport.failures import NotRenderable

if TYPE_CHECKING:
    from hansard_compiler.providers.base import RenderInput

_FINISH = {
    "stop": "stop", "length": "length", "tool_calls": "tool_call", "function_call": "tool_call",
    "content_filter": "content_filter",
}  # fmt: skip
USAGE = {
    "input": "usage.prompt_tokens",
    "output": "usage.completion_tokens",
    "cache_read": "usage.prompt_tokens_details.cached_tokens",
    "cache_write": "usage.prompt_tokens_details.cache_write_tokens",
    "reasoning": "usage.completion_tokens_details.reasoning_tokens",
}


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The format of `POST /chat/completions`; `provider` is what calls are recorded under."""

    provider: str = "openai_compatible"
    max_tokens_field: str = "max_tokens"  # OpenAI's own newer models: max_completion_tokens
    path: str = "/chat/completions"

    def render(self, request: RenderInput) -> Json:
        if request.previous_response_id is not None:
            raise NotRenderable("chat completions hold no conversation: send all messages")
        sampling = request.sampling
        body: Json = {"model": request.model, "messages": _messages(request)}
        body |= known(
            {
                "tools": [_tool(tool) for tool in request.tools] or None,
                "tool_choice": _tool_choice(request.tool_choice),
                self.max_tokens_field: sampling.max_output_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "stop": list(sampling.stop) or None,
                "seed": sampling.seed,
                "reasoning_effort": sampling.effort,
                "response_format": _response_format(request.output_schema),
            }
        )
        if request.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {**body, **(request.reasoning or {}), **request.extra}

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        return chat_problems(rendered.get("messages") or [])

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        choices = response.get("choices") or [{}]
        message = choices[0].get("message") or {}
        return call_from(
            response,
            request,
            provider=self.provider,
            parts=_read(message),
            reason=choices[0].get("finish_reason"),
            reasons=_FINISH,
            usage=tokens_from(response, USAGE),
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        return assemble(events).whole

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        return None

    def continuation(self, response: Mapping[str, Any]) -> Message:
        parts = find({"c": (response.get("choices") or [{}])[0]}, "c.message") or {}
        content = (part for part in _read(parts) if not isinstance(part, ReasoningPart))
        return Message("assistant", tuple(content))

    def notes(self, request: RenderInput) -> list[str]:
        return left_out(request, self.provider)


# --- rendering --------------------------------------------------------------------------------


def _messages(request: RenderInput) -> list[Json]:
    messages: list[Json] = []
    if request.system:
        messages.append({"role": "system", "content": "\n\n".join(request.system)})
    for message in request.messages:
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        messages.extend(
            {"role": "tool", "tool_call_id": part.id or "", "content": result_text(part.content)}
            for part in results
        )
        if len(results) < len(message.parts) or not message.parts:
            messages.extend(_message(message))
    return messages


def _message(message: Message) -> list[Json]:
    pieces = [piece for part in message.parts if (piece := _piece(part)) is not None]
    calls = [_call(part) for part in message.parts if isinstance(part, ToolCallPart)]
    if not pieces and not calls:
        return []
    role = {"tool": "user", "developer": "system"}.get(message.role, message.role)
    is_text = all(piece["type"] == "text" for piece in pieces)
    text = "\n".join(piece["text"] for piece in pieces) if is_text else None
    content: Any = text if is_text else pieces
    named = {"name": message.name} if message.name else {}
    called = {"tool_calls": calls} if calls else {}
    return [{"role": role, "content": content if pieces else None, **named, **called}]


def _piece(part: Part) -> Json | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if not isinstance(part, MediaPart):
        return None
    url = media_url(part)
    if (part.media_type or "image/").startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if url.startswith("data:"):
        return {"type": "file", "file": {"filename": "file", "file_data": url}}
    raise NotRenderable(f"chat completions take no {part.media_type} by address")


def _call(part: ToolCallPart) -> Json:
    function = {"name": part.name, "arguments": result_text(part.arguments)}
    return {"id": part.id or "", "type": "function", "function": function}


def _tool(definition: Json) -> Json:
    tool = neutral_tool(definition)
    if tool is None:
        return definition
    strict = {"strict": tool.strict} if tool.strict is not None else {}
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": {**function, **strict}}


def _tool_choice(choice: str | None) -> str | Json | None:
    is_word = choice in (None, "auto", "none", "required")
    return choice if is_word else {"type": "function", "function": {"name": choice}}


def _response_format(schema: Json | None) -> Json | None:
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


# --- reading ----------------------------------------------------------------------------------


def _read(message: Mapping[str, Any]) -> list[Part]:
    parts: list[Part] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        parts.append(ReasoningPart(reasoning))
    content = message.get("content") or message.get("refusal")
    if isinstance(content, str):
        parts.append(TextPart(content))
    elif isinstance(content, list):
        parts.extend(_read_piece(piece) for piece in content)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = parsed_arguments(function.get("arguments"))
        parts.append(ToolCallPart(call.get("id"), function.get("name") or "", arguments))
    return parts


def _read_piece(piece: Any) -> Part:
    is_text = isinstance(piece, Mapping) and isinstance(piece.get("text"), str)
    return TextPart(piece["text"]) if is_text else OtherPart(piece)


# --- streams ----------------------------------------------------------------------------------

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def assemble(chunks: Iterable[Body]) -> Streamed:
    """Add up the chunks; it is finished when every choice said why it ended.

    Usage comes in a chunk of its own after the last choice, where it was requested.
    """
    body: Json = {}
    choices: dict[int, Json] = {}
    error: Body | None = None
    for chunk in chunks:
        error = mapping(chunk.get("error")) or error
        body |= {key: value for key, value in chunk.items() if value is not None}
        for delta in mappings(chunk.get("choices")):
            _add(choices.setdefault(integer(delta.get("index")) or 0, {"message": {}}), delta)
    whole = [_closed(choices[index]) for index in sorted(choices)]
    is_finished = bool(whole) and all(choice.get("finish_reason") for choice in whole)
    return Streamed({**body, "object": "chat.completion", "choices": whole}, is_finished, error)


def _closed(choice: Json) -> Json:
    """Put the calls of a choice into their order."""
    calls: Mapping[int, Json] = choice["message"].get("tool_calls")
    if calls:
        choice["message"]["tool_calls"] = [calls[index] for index in sorted(calls)]
    return choice


def _add(choice: Json, chunk: Body) -> None:
    """Add one chunk of a choice to what came before it."""
    reason = chunk.get("finish_reason")
    if isinstance(reason, str) and reason:
        choice["finish_reason"] = reason
    append(choice, "text", chunk.get("text"))
    message, delta = choice["message"], mapping(chunk.get("delta"))
    role = delta.get("role")
    if isinstance(role, str) and role:
        message["role"] = role
    for key in _TEXTS:
        append(message, key, delta.get(key))
    for call in mappings(delta.get("tool_calls")):
        known = message.setdefault("tool_calls", {})
        index = integer(call.get("index"))
        _add_call(known.setdefault(len(known) if index is None else index, {}), call)


def _add_call(call: Json, delta: Body) -> None:
    for key in ("id", "type"):
        if isinstance(delta.get(key), str) and delta[key]:
            call[key] = delta[key]
    for kind in ("function", "custom"):
        piece = mapping(delta.get(kind))
        if piece:
            inner = call.setdefault(kind, {})
            if piece.get("name") != inner.get("name"):  # some servers repeat it in every chunk
                append(inner, "name", piece.get("name"))
            for key in ("arguments", "input"):
                append(inner, key, piece.get(key))


def deltas(event: Body) -> Iterator[Json]:
    """Yield what a chunk adds to the response."""
    for choice in mappings(event.get("choices")):
        delta = mapping(choice.get("delta"))
        yield from text_delta("reasoning", delta.get("reasoning_content") or delta.get("reasoning"))
        yield from text_delta("text", delta.get("content"))
        yield from text_delta("refusal", delta.get("refusal"))
        for call in mappings(delta.get("tool_calls")):
            inner = mapping(call.get("function")) or mapping(call.get("custom"))
            arguments = inner.get("arguments") or inner.get("input")
            yield from call_delta(
                call.get("index"), id=call.get("id"), name=inner.get("name"), arguments=arguments
            )


# --- tool calls and their results ----------------------------------------------------------------


def chat_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Results are directly after the message that called, one for each call."""
    problems: list[str] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id in waiting:
                waiting.remove(call_id)
            else:
                problems.append(
                    f"messages[{index}]: a result for {call_id!r}, which waits for none"
                )
            continue
        problems.extend(
            f"messages[{index}]: tool call {one!r} has no result before it" for one in waiting
        )
        waiting = [call.get("id") for call in message.get("tool_calls") or ()]
    problems.extend(f"tool call {one!r} has no result" for one in waiting)
    return problems
