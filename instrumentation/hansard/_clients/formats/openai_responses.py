"""OpenAI's Responses API, as it stands on the wire."""

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
from hansard._clients.formats.openai_chat import common_request, output_type
from hansard_compiler.providers.formats.json_access import (
    Body,
    integer,
    mapping,
    mappings,
    sequence,
    text,
    within,
)
from hansard_compiler.providers.formats.openai_responses_stream import assemble, finish_reason_of
from hansard_compiler.providers.formats.sse import Event

_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


def asked(body: Body) -> Asked:
    """Read the body of `POST /responses`."""
    own: dict[str, Attribute | None] = {
        "openai.api.type": "responses",
        "gen_ai.request.max_tokens": integer(body.get("max_output_tokens")),
        "gen_ai.request.reasoning.level": text(within(body, "reasoning", "effort")),
        "gen_ai.request.previous_response.id": text(body.get("previous_response_id")),
        "gen_ai.output.type": output_type(within(body, "text", "format")),
        "gen_ai.conversation.id": _conversation(body.get("conversation")),
    }
    return Asked(
        model=text(body.get("model")),
        attributes=common_request(body) | known(own),
        input=_input(body.get("input")),
        system=_content(body.get("instructions")),
        tools=sequence(body.get("tools")),
    )


def _conversation(value: object) -> str | None:
    return text(value) or text(within(value, "id"))


def _input(value: object) -> list[Message]:
    said = text_part(value)
    if said:
        return [{"role": "user", "parts": said}]
    return [_item(item, role="user") for item in mappings(value)]


def _item(item: Body, *, role: str) -> Message:
    """One item of a list; one of a kind that is not known is carried whole."""
    kind = item.get("type")
    named = text(kind)  # what is no text cannot be looked up
    if named in _CALLS:
        arguments = item.get("arguments", item.get("input"))
        part = call_part(call_id=item.get("call_id"), name=item.get("name"), arguments=arguments)
        return {"role": "assistant", "parts": [part]}
    if named in _RESULTS:
        result = result_part(call_id=item.get("call_id"), response=_result(item.get("output")))
        return {"role": "tool", "parts": [result]}
    if kind == "reasoning":
        return {"role": "assistant", "parts": _reasoning(item)}
    if kind in (None, "message"):
        return {"role": text(item.get("role")) or role, "parts": _content(item.get("content"))}
    return {"role": role, "parts": [dict(item)]}


def _result(output: object) -> object:
    parts = [part for item in sequence(output) for part in _content_part(item)]
    if parts and all(part.get("type") == "text" for part in parts):
        return "".join(part["content"] for part in parts)
    return output


def _reasoning(item: Body) -> list[Part]:
    """What can be read of reasoning; an encrypted one says nothing."""
    told = [*mappings(item.get("summary")), *mappings(item.get("content"))]
    said = [part for piece in told for part in reasoning_part(piece.get("text"))]
    return said or [{"type": "reasoning", "content": ""}]


def _content(content: object) -> list[Part]:
    said = text_part(content)
    return said or [part for item in sequence(content) for part in _content_part(item)]


def _content_part(item: Any) -> list[Part]:
    sent = mapping(item)
    match sent.get("type"):
        case "input_text" | "output_text" | "text":
            return text_part(sent.get("text"))
        case "refusal":
            return text_part(sent.get("refusal"))
        case "input_image" if text(sent.get("file_id")):
            return [file_part("image", sent.get("file_id"))]
        case "input_image":
            return [media_part("image", sent.get("image_url"))]
        case "input_file" if text(sent.get("file_id")):
            return [file_part("document", sent.get("file_id"))]
        case "input_file":
            return [media_part("document", sent.get("file_data") or sent.get("file_url"))]
        case "message":  # instructions may be a list of input items
            return _content(sent.get("content"))
    if "content" in sent and "type" not in sent:
        return _content(sent.get("content"))
    return [dict(sent)] if sent else []


def answered(body: Body) -> Answer:
    """Read a whole response."""
    reason = finish_reason_of(body)
    attributes = known(
        {
            "gen_ai.response.id": text(body.get("id")),
            "gen_ai.response.model": text(body.get("model")),
            "gen_ai.response.finish_reasons": None if reason is None else [reason],
            "openai.response.service_tier": text(body.get("service_tier")),
            "gen_ai.conversation.id": _conversation(body.get("conversation")),
        }
    ) | _usage(body.get("usage"))
    said = [part for item in mappings(body.get("output")) for part in _output_parts(item)]
    output: list[Message] = [{"role": "assistant", "parts": said}] if said else []
    return Answer(attributes, output, failure_of(body.get("error")))


def _output_parts(item: Body) -> list[Part]:
    parts: list[Part] = _item(item, role="assistant")["parts"]
    return parts


def _usage(value: object) -> Attributes:
    """Tokens: the input includes the cached ones, the output the reasoning."""
    usage = mapping(value)
    asked_for = mapping(usage.get("input_tokens_details"))
    given = mapping(usage.get("output_tokens_details"))
    return known(
        {
            "gen_ai.usage.input_tokens": integer(usage.get("input_tokens")),
            "gen_ai.usage.output_tokens": integer(usage.get("output_tokens")),
            "gen_ai.usage.cache_read.input_tokens": integer(asked_for.get("cached_tokens")),
            "gen_ai.usage.cache_write.input_tokens": integer(asked_for.get("cache_write_tokens")),
            "gen_ai.usage.reasoning.output_tokens": integer(given.get("reasoning_tokens")),
        }
    )


def assembled(events: Iterable[Event]) -> Assembled:
    """Return the response that the last event holds, or what had come of it until then."""
    return assembled_from(assemble(objects_of(events)))


def answered_count(body: Body) -> Answer:
    """Read an answer of `POST /responses/input_tokens`: a count, not a usage."""
    counted = integer(body.get("input_tokens"))
    return Answer(known({COUNTED: counted}), failure=failure_of(body.get("error")))


# Tokens that a provider counted without answering: they were not used and cost nothing.
COUNTED = "hansard.token_count.input_tokens"

RESPONSES = Route("chat", asked, answered, assembled)
COUNT = Route("count_tokens", asked, answered_count)
