"""Anthropic's Messages API, as it stands on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hansard._clients.formats.call_attributes import (
    Answer,
    Asked,
    Assembled,
    Attribute,
    Attributes,
    Message,
    Part,
    Route,
    assembled_from,
    blob_part,
    call_part,
    failure_of,
    file_part,
    known,
    media_part,
    objects_of,
    reasoning_part,
    result_part,
    text_part,
)
from hansard._clients.formats.openai_responses import COUNTED
from hansard_compiler.providers.formats.anthropic_stream import assemble
from hansard_compiler.providers.formats.json_access import (
    Body,
    integer,
    mapping,
    mappings,
    number,
    sequence,
    text,
    texts,
    within,
)
from hansard_compiler.providers.formats.sse import Event

_MEDIA = {"image": "image", "document": "document"}


def asked(body: Body) -> Asked:
    """Read the body of `POST /v1/messages`."""
    own: dict[str, Attribute | None] = {
        "gen_ai.request.max_tokens": integer(body.get("max_tokens")),
        "gen_ai.request.temperature": number(body.get("temperature")),
        "gen_ai.request.top_p": number(body.get("top_p")),
        "gen_ai.request.top_k": integer(body.get("top_k")),
        "gen_ai.request.stop_sequences": texts(body.get("stop_sequences")),
        "gen_ai.request.stream": True if body.get("stream") is True else None,
        "gen_ai.request.reasoning.level": text(within(body, "output_config", "effort")),
        "gen_ai.output.type": "json" if within(body, "output_config", "format") else None,
        "anthropic.request.service_tier": text(body.get("service_tier")),
        "anthropic.thinking.type": text(within(body, "thinking", "type")),
        "anthropic.thinking.budget_tokens": integer(within(body, "thinking", "budget_tokens")),
    }
    return Asked(
        model=text(body.get("model")),
        attributes=known(own),
        input=[_message(sent) for sent in mappings(body.get("messages"))],
        system=_parts(body.get("system")),
        tools=[_tool(sent) for sent in sequence(body.get("tools"))],
    )


def _message(sent: Body) -> Message:
    return {"role": text(sent.get("role")) or "user", "parts": _parts(sent.get("content"))}


def _tool(sent: Any) -> Any:
    """A tool of one's own in the conventions' form; a built-in one stays as it is."""
    told = mapping(sent)
    if "input_schema" not in told:
        return sent
    rest = {key: value for key, value in told.items() if key not in ("input_schema", "type")}
    return {"type": "function", **rest, "parameters": told["input_schema"]}


def _parts(content: object) -> list[Part]:
    said = text_part(content)
    return said or [part for block in sequence(content) for part in _block(block)]


def _block(value: Any) -> list[Part]:
    """One block; one of a kind that is not known is carried whole."""
    block = mapping(value)
    match block.get("type"):
        case "text":
            return text_part(block.get("text"))
        case "thinking":
            return reasoning_part(block.get("thinking")) or [{"type": "reasoning", "content": ""}]
        case "redacted_thinking":
            return [{"type": "reasoning", "content": ""}]
        case "tool_use":
            return [_call(block)]
        case "tool_result":
            return [_result(block)]
        case "image" | "document" as kind:
            return [_media(_MEDIA[kind], mapping(block.get("source")), block)]
    return [dict(block)] if block else []


def _call(block: Body) -> Part:
    return call_part(call_id=block.get("id"), name=block.get("name"), arguments=block.get("input"))


def _result(block: Body) -> Part:
    parts = _parts(block.get("content"))
    is_text = all(part.get("type") == "text" for part in parts)
    said = "".join(part["content"] for part in parts) if is_text else block.get("content")
    part = result_part(call_id=block.get("tool_use_id"), response=said)
    return {**part, "is_error": True} if block.get("is_error") is True else part


def _media(modality: str, source: Body, block: Body) -> Part:
    match source.get("type"):
        case "base64":
            mime_type, data = source.get("media_type"), source.get("data")
            return blob_part(modality, mime_type=mime_type, content=data)
        case "url":
            return media_part(modality, source.get("url"))
        case "file":
            return file_part(modality, source.get("file_id"))
        case "text":
            return {"type": "text", "content": text(source.get("data")) or ""}
    return dict(block)


def answered(body: Body) -> Answer:
    """Read a whole message."""
    reason = text(body.get("stop_reason"))
    attributes = known(
        {
            "gen_ai.response.id": text(body.get("id")),
            "gen_ai.response.model": text(body.get("model")),
            "gen_ai.response.finish_reasons": None if reason is None else [reason],
        }
    ) | _usage(body.get("usage"))
    parts = _parts(body.get("content"))
    output: list[Message] = []
    if parts:
        spoken: Message = {"role": "assistant", "parts": parts}
        output = [spoken if reason is None else {**spoken, "finish_reason": reason}]
    return Answer(attributes, output, failure_of(body.get("error")))


def _usage(value: object) -> Attributes:
    """Tokens: Anthropic counts cached ones beside the input; the conventions count them in it."""
    usage = mapping(value)
    fresh = integer(usage.get("input_tokens"))
    read = integer(usage.get("cache_read_input_tokens"))
    written = integer(usage.get("cache_creation_input_tokens"))
    by_age = mapping(usage.get("cache_creation"))
    whole = None if fresh is None else integer(fresh + (read or 0) + (written or 0))
    ephemeral = "anthropic.usage.cache_creation.ephemeral"
    return known(
        {
            "gen_ai.usage.input_tokens": whole,
            "gen_ai.usage.output_tokens": integer(usage.get("output_tokens")),
            "gen_ai.usage.cache_read.input_tokens": read,
            "gen_ai.usage.cache_write.input_tokens": written,
            "gen_ai.usage.reasoning.output_tokens": integer(
                within(usage, "output_tokens_details", "thinking_tokens")
            ),
            f"{ephemeral}_5m_input_tokens": integer(by_age.get("ephemeral_5m_input_tokens")),
            f"{ephemeral}_1h_input_tokens": integer(by_age.get("ephemeral_1h_input_tokens")),
            "anthropic.response.service_tier": text(usage.get("service_tier")),
        }
    )


def assembled(events: Iterable[Event]) -> Assembled:
    """Add up the events of a streamed message; numbers of a later event replace earlier ones."""
    return assembled_from(assemble(objects_of(events)), kind="api_error")


def answered_count(body: Body) -> Answer:
    """Read an answer of `POST /v1/messages/count_tokens`: a count, not a usage."""
    counted = integer(body.get("input_tokens"))
    return Answer(known({COUNTED: counted}), failure=failure_of(body.get("error")))


MESSAGES = Route("chat", asked, answered, assembled)
COUNT = Route("count_tokens", asked, answered_count)
