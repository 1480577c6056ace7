"""Anthropic's Messages API: requests are rendered, responses and streams read. No network.

Order on the wire is tools, system, messages, and the cache follows it: one breakpoint stands on the
last block of the stable prefix. Neutral `tool` messages become `tool_result` blocks at the front of
the user message right after their calls, which is the only place the API accepts them.
"""

from __future__ import annotations

import json
import re
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
    Tokens,
    ToolCallPart,
    ToolResultPart,
)
from hansard_compiler.providers.formats.fields import (
    Body,
    append,
    block_of,
    call_from,
    counts_from,
    integer,
    known,
    left_out,
    mapping,
    media_url,
    neutral_tool,
    parsed,
    provider_block,
    result_text,
)
from hansard_compiler.providers.formats.sse import Streamed, call_delta, text_delta
from hansard_compiler.providers.transport.failures import FeatureOff, NotRenderable

if TYPE_CHECKING:
    from hansard_compiler.providers.base import Boundary, RenderInput

PROVIDER = "anthropic"
_COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
)  # fmt: skip
_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_call",
    "refusal": "content_filter", "model_context_window_exceeded": "length",
    "compaction": "compaction",
}  # fmt: skip
_USAGE = {
    "fresh": "usage.input_tokens",
    "output": "usage.output_tokens",
    "cache_read": "usage.cache_read_input_tokens",
    "cache_write": "usage.cache_creation_input_tokens",
    "cache_write_5m": "usage.cache_creation.ephemeral_5m_input_tokens",
    "cache_write_1h": "usage.cache_creation.ephemeral_1h_input_tokens",
    "reasoning": "usage.output_tokens_details.thinking_tokens",
}
_INPUT = ("fresh", "cache_write", "cache_read")  # what the input is the sum of
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """The format of `POST /v1/messages`.

    `extended_thinking` must be on for a request to ask for it. `cache_ttl` is `5m` or `1h`; None
    sets no breakpoint.
    """

    extended_thinking: bool = False
    cache_ttl: str | None = "5m"
    default_max_tokens: int = 8_192
    provider: str = PROVIDER
    path: str = "/v1/messages"

    def render(self, request: RenderInput) -> Json:
        self._refuse(request)
        tools = [_tool(tool) for tool in request.tools]
        system: list[Json] = [{"type": "text", "text": text} for text in request.system]
        messages, marked = _messages(request)
        if self.cache_ttl and request.boundary:
            self._mark(request.boundary, tools, system, marked)
        sampling = request.sampling
        most = sampling.max_output_tokens
        body = {
            "model": request.model,
            "max_tokens": self.default_max_tokens if most is None else most,
            **known(
                {
                    "tools": tools or None,
                    "tool_choice": _tool_choice(request.tool_choice),
                    "system": system or None,
                    "thinking": request.reasoning,
                    "output_config": _output_config(request),
                    "stop_sequences": list(sampling.stop) or None,
                    "temperature": sampling.temperature,
                    "top_p": sampling.top_p,
                }
            ),
            "messages": messages,
        }
        return {**body, **({"stream": True} if request.stream else {}), **request.extra}

    def _refuse(self, request: RenderInput) -> None:
        if request.reasoning is not None and not self.extended_thinking:
            raise FeatureOff(
                "extended thinking is off: make the adapter with extended_thinking=True"
            )
        if request.sampling.seed is not None:
            raise NotRenderable("the Messages API takes no seed")
        if request.previous_response_id is not None:
            raise NotRenderable("the Messages API holds no conversation: send all messages")

    def _mark(
        self, boundary: Boundary, tools: list[Json], system: list[Json], marked: list[Json]
    ) -> None:
        """Mark the last block of the stable prefix that can carry a breakpoint, and no other."""
        prefix = [*tools[: boundary.tools], *system[: boundary.system], *marked]
        for block in reversed(prefix):
            if block.get("type") not in _UNMARKABLE:
                ttl = {} if self.cache_ttl == "5m" else {"ttl": self.cache_ttl}
                block["cache_control"] = {"type": "ephemeral", **ttl}
                return

    def problems(self, rendered: Mapping[str, Any]) -> list[str]:
        return messages_problems(rendered.get("messages") or [])

    def parse(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Call:
        parts = tuple(_read_block(block) for block in response.get("content") or ())
        return call_from(
            response,
            request,
            provider=self.provider,
            parts=parts,
            reason=response.get("stop_reason"),
            reasons=_FINISH,
            usage=_usage_of(response),
        )

    def join_stream(self, events: Sequence[Json]) -> Json | None:
        return assemble(events).whole

    def count_request(self, rendered: Mapping[str, Any]) -> tuple[str, Json] | None:
        counted = {key: rendered[key] for key in _COUNTED if key in rendered}
        return "/v1/messages/count_tokens", counted

    def continuation(self, response: Mapping[str, Any]) -> Message:
        """Return the response with its thinking blocks as they were signed, in order."""
        blocks = [block for block in response.get("content") or () if isinstance(block, Mapping)]
        return Message("assistant", tuple(_replayed_block(block) for block in blocks))

    def notes(self, request: RenderInput) -> list[str]:
        return left_out(request, self.provider)


# --- rendering --------------------------------------------------------------------------------


def _messages(request: RenderInput) -> tuple[list[Json], list[Json]]:
    """Return the messages, and the blocks of those in the stable prefix."""
    boundary = request.boundary.messages if request.boundary else 0
    messages: list[Json] = []
    marked: list[Json] = []
    for index, message in enumerate(request.messages):
        role = "user" if message.role == "tool" else message.role
        role = "system" if role == "developer" else role
        blocks = [block for part in message.parts if (block := _block(part)) is not None]
        if index < boundary:
            marked.extend(blocks)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    for message_ in messages:
        if message_["role"] == "user":
            # Results must stand before anything else in their message; sorting is stable.
            message_["content"].sort(key=lambda block: block["type"] != "tool_result")
    return messages, marked


def _block(part: Part) -> Json | None:
    if isinstance(part, TextPart):
        # The API refuses a text of white space alone.
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, ToolCallPart):
        raw = part.arguments
        arguments = dict(raw) if isinstance(raw, Mapping) else {"arguments": raw}
        return {"type": "tool_use", "id": _id(part.id), "name": part.name, "input": arguments}
    if isinstance(part, ToolResultPart):
        content = result_text(part.content)
        return {"type": "tool_result", "tool_use_id": _id(part.id), "content": content}
    if isinstance(part, MediaPart):
        return _media(part)
    return block_of(part, PROVIDER)


def _media(part: MediaPart) -> Json:
    kind = "image" if (part.media_type or "image/").startswith("image/") else "document"
    url = media_url(part)
    if not url.startswith("data:"):
        return {"type": kind, "source": {"type": "url", "url": url}}
    head, _, data = url.removeprefix("data:").partition(",")
    media_type = part.media_type or head.partition(";")[0]
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def _id(call_id: str | None) -> str:
    """Return an id as the API accepts it: ids of other providers hold other characters."""
    return _UNSAFE.sub("_", call_id or "")


def _tool(definition: Json) -> Json:
    tool = neutral_tool(definition)
    if tool is None:
        return dict(definition)
    strict = {"strict": tool.strict} if tool.strict is not None else {}
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": tool.parameters, **strict}


def _tool_choice(choice: str | None) -> Json | None:
    if choice is None:
        return None
    word = {"auto": "auto", "none": "none", "required": "any"}.get(choice)
    return {"type": word} if word else {"type": "tool", "name": choice}


def _output_config(request: RenderInput) -> Json | None:
    effort = {"effort": request.sampling.effort} if request.sampling.effort else {}
    schema = request.output_schema
    output_format = {"format": {"type": "json_schema", "schema": schema}} if schema else {}
    return {**effort, **output_format} or None


# --- reading ----------------------------------------------------------------------------------


def _read_block(block: Any) -> Part:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text":
        return TextPart(block.get("text") or "")
    if kind == "thinking":
        return ReasoningPart(block.get("thinking") or "")
    if kind == "tool_use":
        return ToolCallPart(block.get("id"), block.get("name") or "", block.get("input"))
    return OtherPart(block)


def _replayed_block(block: Mapping[str, Any]) -> Part:
    kind = block.get("type")
    if kind == "tool_use" or (kind == "text" and not block.get("citations")):
        return _read_block(block)
    return provider_block(PROVIDER, json.loads(json.dumps(block)))


def counts_of(response: Body) -> dict[str, int]:
    """Return token counts; the input includes those read from the cache and written to it."""
    counts = counts_from(response, _USAGE)
    fresh = counts.pop("fresh", None)
    if fresh is None:
        return counts
    whole = integer(fresh + counts.get("cache_write", 0) + counts.get("cache_read", 0))
    return counts if whole is None else {"input": whole, **counts}


def _usage_of(response: Body) -> tuple[Tokens, dict[str, str]]:
    """Return token counts, and for each the path or paths it was read from."""
    counts = counts_of(response)
    sources = {f"tokens.{name}": _USAGE[name] for name in counts if name != "input"}
    if "input" in counts:
        of_input = [_USAGE[name] for name in _INPUT if name == "fresh" or name in counts]
        sources = {"tokens.input": " + ".join(of_input), **sources}
    return Tokens(**counts), sources


# --- streams ----------------------------------------------------------------------------------

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_PIECES = "partial_json"


def assemble(events: Iterable[Body]) -> Streamed:
    """Add up the events of a streamed message.

    Usage in `message_delta` is cumulative and replaces what `message_start` said.
    """
    body: Json = {}
    blocks: dict[int, Json] = {}
    error: Body | None = None
    is_finished = False
    for event in events:
        match event.get("type"):
            case "message_start":
                body |= mapping(event.get("message"))
            case "content_block_start":
                blocks[_index(event)] = dict(mapping(event.get("content_block")))
            case "content_block_delta":
                _add(blocks.setdefault(_index(event), {}), mapping(event.get("delta")))
            case "message_delta":
                body |= known(mapping(event.get("delta")))
                body["usage"] = {**mapping(body.get("usage")), **known(mapping(event.get("usage")))}
            case "message_stop":
                is_finished = bool(body)
            case "error":
                error = mapping(event.get("error"))
    content = [_closed(blocks[index]) for index in sorted(blocks)]
    return Streamed({**body, "content": content}, is_finished, error)


def _index(event: Body) -> int:
    return integer(event.get("index")) or 0


def _add(block: Json, delta: Body) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        append(block, _PIECES, delta.get(_PIECES))
    elif kind == "citations_delta":
        before: Any = block.get("citations")
        citations = before if isinstance(before, list) else []
        block["citations"] = [*citations, delta.get("citation")]
    elif isinstance(kind, str) and kind in _APPENDED:
        append(block, _APPENDED[kind], delta.get(_APPENDED[kind]))


def _closed(block: Json) -> Json:
    """Put the pieces of a tool's input together; of a cut-off one the text stays."""
    pieces = block.pop(_PIECES, None)
    if pieces:
        opened = parsed(pieces)
        block["input"] = pieces if opened is None else opened
    return block


def deltas(event: Body) -> Iterator[Json]:
    """Yield what an event adds to the response."""
    index = event.get("index")
    block, delta = mapping(event.get("content_block")), mapping(event.get("delta"))
    match event.get("type"), block.get("type"), delta.get("type"):
        case "content_block_start", "tool_use", _:
            call_id, name = block.get("id"), block.get("name")
            yield from call_delta(index, id=call_id, name=name, arguments=None)
        case "content_block_start", "text", _:
            yield from text_delta("text", block.get("text"))
        case "content_block_delta", _, "text_delta":
            yield from text_delta("text", delta.get("text"))
        case "content_block_delta", _, "thinking_delta":
            yield from text_delta("reasoning", delta.get("thinking"))
        case "content_block_delta", _, "input_json_delta":
            yield from call_delta(index, id=None, name=None, arguments=delta.get(_PIECES))


# --- tool calls and their results ----------------------------------------------------------------


def messages_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every call of a turn is answered in the very next message, and nothing else is answered."""
    problems: list[str] = []
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        blocks = message.get("content")
        blocks = blocks if isinstance(blocks, list) else []
        results = [one.get("tool_use_id") for one in blocks if one.get("type") == "tool_result"]
        problems.extend(
            f"messages[{index}]: a result for {one!r}, which the message before did not call"
            for one in results
            if one not in open_calls
        )
        problems.extend(
            f"messages[{index}]: tool call {one!r} is answered twice"
            for one in sorted({one for one in results if results.count(one) > 1})
        )
        problems.extend(
            f"messages[{index}]: tool call {one!r} has no result in the message after it"
            for one in open_calls
            if one not in results
        )
        open_calls = [one.get("id") for one in blocks if one.get("type") == "tool_use"]
    problems.extend(f"tool call {one!r} has no result" for one in open_calls)
    return problems
