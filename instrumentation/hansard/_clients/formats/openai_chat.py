"""OpenAI's Chat Completions, Completions and Embeddings, as they stand on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
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
from hansard_compiler.providers.formats.openai_chat_stream import assemble
from hansard_compiler.providers.formats.sse import Event

_OUTPUT_TYPES = {"json_object": "json", "json_schema": "json", "text": "text"}


def common_request(body: Body) -> Attributes:
    """What the requests of all of OpenAI's APIs say in the same words."""
    return known(
        {
            "gen_ai.request.temperature": number(body.get("temperature")),
            "gen_ai.request.top_p": number(body.get("top_p")),
            "gen_ai.request.stream": True if body.get("stream") is True else None,
            "openai.request.service_tier": text(body.get("service_tier")),
        }
    )


def output_type(value: object) -> str | None:
    return _OUTPUT_TYPES.get(str(mapping(value).get("type")))


def asked_chat(body: Body) -> Asked:
    """Read the body of `POST /chat/completions`."""
    limit = integer(body.get("max_completion_tokens"))
    choices = integer(body.get("n"))
    own: dict[str, Attribute | None] = {
        "openai.api.type": "chat_completions",
        "gen_ai.request.max_tokens": integer(body.get("max_tokens")) if limit is None else limit,
        "gen_ai.request.frequency_penalty": number(body.get("frequency_penalty")),
        "gen_ai.request.presence_penalty": number(body.get("presence_penalty")),
        "gen_ai.request.stop_sequences": texts(body.get("stop")),
        "gen_ai.request.seed": integer(body.get("seed")),
        "gen_ai.request.choice.count": None if choices == 1 else choices,
        "gen_ai.request.reasoning.level": text(body.get("reasoning_effort")),
        "gen_ai.output.type": output_type(body.get("response_format")),
    }
    return Asked(
        model=text(body.get("model")),
        attributes=common_request(body) | known(own),
        input=[_message(sent) for sent in mappings(body.get("messages"))],
        tools=[_tool(sent) for sent in sequence(body.get("tools"))],
    )


def _message(sent: Body) -> Message:
    role = text(sent.get("role")) or "user"
    if role == "tool":
        content = sent.get("content")
        said = _plain(content)
        result = content if said is None else said
        return {
            "role": "tool",
            "parts": [result_part(call_id=sent.get("tool_call_id"), response=result)],
        }
    spoken: Message = {"role": role, "parts": _parts(sent)}
    if name := text(sent.get("name")):
        spoken["name"] = name
    return spoken


def _plain(content: object) -> str | None:
    """Return the text of a content that holds nothing else."""
    if isinstance(content, str):
        return text(content) or ""
    parts = [part for item in sequence(content) for part in _content_part(item)]
    if not parts or any(part.get("type") != "text" for part in parts):
        return None
    return "".join(part["content"] for part in parts)


def _parts(sent: Body) -> list[Part]:
    """Return the parts of a message of either direction."""
    content = sent.get("content")
    parts = reasoning_part(sent.get("reasoning_content") or sent.get("reasoning"))
    parts += text_part(content)
    parts += [part for item in sequence(content) for part in _content_part(item)]
    parts += text_part(sent.get("refusal"))
    parts += [_call(call) for call in mappings(sent.get("tool_calls"))]
    if old := mapping(sent.get("function_call")):
        parts.append(call_part(call_id=None, name=old.get("name"), arguments=old.get("arguments")))
    return parts


def _content_part(item: Any) -> list[Part]:
    sent = mapping(item)
    match sent.get("type"):
        case "text":
            return text_part(sent.get("text"))
        case "refusal":
            return text_part(sent.get("refusal"))
        case "image_url":
            return [media_part("image", within(sent, "image_url", "url"))]
        case "input_audio":
            sound = mapping(sent.get("input_audio"))
            kind = text(sound.get("format"))
            mime_type = f"audio/{kind}" if kind else None
            return [blob_part("audio", mime_type=mime_type, content=sound.get("data"))]
        case "file" if text(within(sent, "file", "file_id")):
            return [file_part("document", within(sent, "file", "file_id"))]
        case "file":
            return [media_part("document", within(sent, "file", "file_data"))]
    return [dict(sent)] if sent else []


def _call(call: Body) -> Part:
    inner = mapping(call.get("function") or call.get("custom"))
    arguments = inner.get("arguments", inner.get("input"))
    return call_part(call_id=call.get("id"), name=inner.get("name"), arguments=arguments)


def _tool(sent: Any) -> Any:
    """A tool in the conventions' flat form; one of another shape stays as it is."""
    inner = within(sent, "function")
    return {"type": "function", **inner} if isinstance(inner, Mapping) else sent


def answered_chat(body: Body) -> Answer:
    """Read a whole answer of `POST /chat/completions`."""
    choices = mappings(body.get("choices"))
    reasons = [text(choice.get("finish_reason")) for choice in choices]
    attributes = _common_answer(body) | known(
        {
            "gen_ai.response.finish_reasons": [reason for reason in reasons if reason] or None,
            "openai.response.system_fingerprint": text(body.get("system_fingerprint")),
        }
    )
    output = [_said(choice) for choice in choices]
    return Answer(attributes, output, failure_of(body.get("error")))


def _common_answer(body: Body) -> Attributes:
    return known(
        {
            "gen_ai.response.id": text(body.get("id")),
            "gen_ai.response.model": text(body.get("model")),
            "openai.response.service_tier": text(body.get("service_tier")),
        }
    ) | _usage(body.get("usage"))


def _usage(value: object) -> Attributes:
    """Tokens: OpenAI's prompt includes the cached ones, its completion the reasoning."""
    usage = mapping(value)
    asked = mapping(usage.get("prompt_tokens_details"))
    given = mapping(usage.get("completion_tokens_details"))
    return known(
        {
            "gen_ai.usage.input_tokens": integer(usage.get("prompt_tokens")),
            "gen_ai.usage.output_tokens": integer(usage.get("completion_tokens")),
            "gen_ai.usage.cache_read.input_tokens": integer(asked.get("cached_tokens")),
            "gen_ai.usage.cache_write.input_tokens": integer(asked.get("cache_write_tokens")),
            "gen_ai.usage.reasoning.output_tokens": integer(given.get("reasoning_tokens")),
            "gen_ai.usage.audio.input_tokens": integer(asked.get("audio_tokens")),
            "gen_ai.usage.audio.output_tokens": integer(given.get("audio_tokens")),
        }
    )


def _said(choice: Body) -> Message:
    sent = mapping(choice.get("message"))
    parts = _parts(sent) or text_part(choice.get("text"))
    spoken: Message = {"role": text(sent.get("role")) or "assistant", "parts": parts}
    if reason := text(choice.get("finish_reason")):
        spoken["finish_reason"] = reason
    return spoken


def assembled_chat(events: Iterable[Event]) -> Assembled:
    """Add up the chunks of a streamed answer; usage is in the last one, when it was asked for."""
    chunks: list[Event] = []
    for event in events:
        if event.data.startswith("[DONE]"):
            found = assembled_from(assemble(objects_of(chunks)))
            return replace(found, is_finished=True)
        chunks.append(event)
    # Servers that leave [DONE] out still say why each choice ended.
    return assembled_from(assemble(objects_of(chunks)))


def asked_completion(body: Body) -> Asked:
    """Read the body of the old `POST /completions`: prompts instead of messages."""
    prompts = texts(body.get("prompt")) or []
    asked = asked_chat(body)
    messages = [{"role": "user", "parts": text_part(prompt)} for prompt in prompts]
    return Asked(
        model=asked.model,
        attributes={**asked.attributes, "openai.api.type": "completions"},
        input=messages,
    )


def asked_embeddings(body: Body) -> Asked:
    """Read the body of `POST /embeddings`; inputs that are token numbers are not shown."""
    own: dict[str, Attribute | None] = {
        "gen_ai.request.encoding_formats": texts(body.get("encoding_format")),
        "gen_ai.embeddings.dimension.count": integer(body.get("dimensions")),
    }
    inputs = texts(body.get("input")) or []
    parts = [part for said in inputs for part in text_part(said)]
    messages: list[Message] = [{"role": "user", "parts": parts}] if parts else []
    return Asked(model=text(body.get("model")), attributes=known(own), input=messages)


def answered_embeddings(body: Body) -> Answer:
    """Read an answer of `POST /embeddings`: its vectors are numbers, not content."""
    return Answer(_common_answer(body), failure=failure_of(body.get("error")))


CHAT = Route("chat", asked_chat, answered_chat, assembled_chat)
COMPLETION = Route("text_completion", asked_completion, answered_chat, assembled_chat)
EMBEDDINGS = Route("embeddings", asked_embeddings, answered_embeddings)
