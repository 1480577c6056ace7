"""The bodies of requests and responses as attributes of the GenAI conventions.

Bodies come from the network, and nothing here raises, whatever stands in them: the readers of
`hansard_compiler.providers.formats.fields` leave out what has not the expected type. The module of
an API is imported when its first response is read, so that recording clients stays cheap to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Any, Final

from hansard_compiler.providers.formats.fields import (
    Body,
    counts_from,
    find,
    integer,
    known,
    mapping,
    mappings,
    number,
    parsed,
    sequence,
    text,
    texts,
)
from hansard_compiler.providers.formats.sse import ServerSentEvent, Streamed, read_events

Attribute = str | bool | int | float | list[str]
Attributes = dict[str, Attribute]
Message = dict[str, Any]  # {"role": …, "parts": […]} of the GenAI conventions
Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Request:
    """The fields of a request's body, but for its model."""

    attributes: Attributes
    input: list[Message] = field(default_factory=list)
    system: list[Part] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ResponseFailure:
    """An error that a body, or an event of a stream, reports."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Response:
    """The fields of a response's body."""

    attributes: Attributes
    output: list[Message] = field(default_factory=list)
    failure: ResponseFailure | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """How one path of an API is read."""

    operation: str  # gen_ai.operation.name, and the first word of the span's name
    read_request: Callable[[Body], _Request]
    read_response: Callable[[Body], Response]
    assemble: Callable[[Iterable[ServerSentEvent]], Streamed] | None = None  # None: never streamed
    unnamed_error: str = "error"  # type of an error in a stream that names none

    def read_stream(self, body: bytes) -> tuple[Response, bool]:
        """Return the response that a stream adds up to, and whether the provider ended it."""
        found = Streamed({}, False) if self.assemble is None else self.assemble(read_events(body))
        response = self.read_response(found.body)
        failure = failure_of(found.error, kind=self.unnamed_error) or response.failure
        is_whole = found.is_finished or found.error is not None or failure is not None
        return replace(response, failure=failure), is_whole


def body_of(data: bytes) -> Body:
    return mapping(parsed(data))


def failure_of(error: object, *, kind: str = "error") -> ResponseFailure | None:
    """Read the error object that both providers put into bodies and events."""
    found = mapping(error)
    if not found:
        return None
    named = text(found.get("type")) or text(found.get("code")) or kind
    return ResponseFailure(named, text(found.get("message")) or "")


def _assembled(format: str, events: Iterable[ServerSentEvent]) -> Streamed:
    """Return what events add up to, by a module of the formats."""
    module = import_module(f"hansard_compiler.providers.formats.{format}")
    found: Streamed = module.assemble(_objects(events))
    return found


def _objects(events: Iterable[ServerSentEvent]) -> Iterator[Body]:
    """Yield the JSON object of each event; its type is the event's name where it has none."""
    for event in events:
        found = mapping(parsed(event.data))
        yield found if found.get("type") or not event.name else {**found, "type": event.name}


USAGE: Final = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_write.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
    "audio_input": "gen_ai.usage.audio.input_tokens",
    "audio_output": "gen_ai.usage.audio.output_tokens",
    "cache_write_5m": "anthropic.usage.cache_creation.ephemeral_5m_input_tokens",
    "cache_write_1h": "anthropic.usage.cache_creation.ephemeral_1h_input_tokens",
}


def usage_attributes(counts: Mapping[str, int]) -> Attributes:
    return {key: counts[name] for name, key in USAGE.items() if name in counts}


# --- parts --------------------------------------------------------------------------------------


def text_part(content: object, kind: str = "text") -> list[Part]:
    found = text(content)
    return [] if found is None else [{"type": kind, "content": found}]


def call_part(*, call_id: object, name: object, arguments: object) -> Part:
    """A tool call; arguments that are JSON in a text are parsed."""
    if isinstance(arguments, str):
        opened = parsed(arguments) if arguments else {}
        arguments = arguments if opened is None else opened
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def result_part(*, call_id: object, response: object) -> Part:
    return {"type": "tool_call_response", "id": call_id, "response": response}


def media_part(modality: str, where: object, *, mime_type: object = None) -> Part:
    """An image, sound or file by address; one that is inside a `data:` address, by its bytes."""
    address = text(where) or ""
    if address.startswith("data:"):
        head, _, content = address.partition(",")
        sent_type = head.removeprefix("data:").partition(";")[0]
        return blob_part(modality, mime_type=sent_type or mime_type, content=content)
    return known({"type": "uri", "modality": modality, "mime_type": mime_type, "uri": address})


def _file_part(modality: str, file_id: object, where: object) -> list[Part]:
    """A file that the provider has, by its id; any other one by address."""
    if text(file_id):
        return [known({"type": "file", "modality": modality, "file_id": file_id})]
    return [media_part(modality, where)]


def blob_part(modality: str, *, mime_type: object, content: object) -> Part:
    return known({"type": "blob", "modality": modality, "mime_type": mime_type, "content": content})


def _parts(content: object, read: Callable[[Any], list[Part]]) -> list[Part]:
    """Return the parts of a content: a text, or a list of which `read` reads each item."""
    return text_part(content) or [part for item in sequence(content) for part in read(item)]


def _result(content: object, read: Callable[[Any], list[Part]], *, empty: object) -> object:
    """Return a tool's result as its text where it holds nothing else; `empty` without parts."""
    parts = _parts(content, read)
    if not parts:
        return empty
    is_text = all(part.get("type") == "text" for part in parts)
    return "".join(part["content"] for part in parts) if is_text else content


# --- OpenAI: what its APIs have in common ---------------------------------------------------------

_OUTPUT_TYPES: Final = {"json_object": "json", "json_schema": "json", "text": "text"}


def _openai_settings(body: Body) -> Attributes:
    return known(
        {
            "gen_ai.request.temperature": number(body.get("temperature")),
            "gen_ai.request.top_p": number(body.get("top_p")),
            "gen_ai.request.stream": True if body.get("stream") is True else None,
            "openai.request.service_tier": text(body.get("service_tier")),
        }
    )


def _output_type(format: object) -> str | None:
    return _OUTPUT_TYPES.get(str(mapping(format).get("type")))


# --- OpenAI: chat completions, completions and embeddings -----------------------------------------

_AUDIO: Final = {
    "audio_input": "usage.prompt_tokens_details.audio_tokens",
    "audio_output": "usage.completion_tokens_details.audio_tokens",
}


def _chat_request(body: Body) -> _Request:
    limit = integer(body.get("max_completion_tokens"))
    choices = integer(body.get("n"))
    own = {
        "openai.api.type": "chat_completions",
        "gen_ai.request.max_tokens": integer(body.get("max_tokens")) if limit is None else limit,
        "gen_ai.request.frequency_penalty": number(body.get("frequency_penalty")),
        "gen_ai.request.presence_penalty": number(body.get("presence_penalty")),
        "gen_ai.request.stop_sequences": texts(body.get("stop")),
        "gen_ai.request.seed": integer(body.get("seed")),
        "gen_ai.request.choice.count": None if choices == 1 else choices,
        "gen_ai.request.reasoning.level": text(body.get("reasoning_effort")),
        "gen_ai.output.type": _output_type(body.get("response_format")),
    }
    return _Request(
        attributes=_openai_settings(body) | known(own),
        input=[_chat_message(sent) for sent in mappings(body.get("messages"))],
        tools=[_chat_tool(sent) for sent in sequence(body.get("tools"))],
    )


def _chat_message(sent: Body) -> Message:
    role = text(sent.get("role")) or "user"
    if role == "tool":
        content = sent.get("content")
        response = _result(content, _chat_part, empty=content)
        part = result_part(call_id=sent.get("tool_call_id"), response=response)
        return {"role": "tool", "parts": [part]}
    return known({"role": role, "parts": _chat_parts(sent), "name": text(sent.get("name"))})


def _chat_parts(sent: Body) -> list[Part]:
    """Return the parts of a message of either direction."""
    parts = text_part(sent.get("reasoning_content") or sent.get("reasoning"), "reasoning")
    parts += _parts(sent.get("content"), _chat_part)
    parts += text_part(sent.get("refusal"))
    parts += [_chat_call(call) for call in mappings(sent.get("tool_calls"))]
    if old := mapping(sent.get("function_call")):
        parts.append(call_part(call_id=None, name=old.get("name"), arguments=old.get("arguments")))
    return parts


def _chat_part(item: Any) -> list[Part]:
    sent = mapping(item)
    match sent.get("type"):
        case "text" | "refusal" as key:
            return text_part(sent.get(key))
        case "image_url":
            return [media_part("image", find(sent, "image_url.url"))]
        case "input_audio":
            sound = mapping(sent.get("input_audio"))
            kind = text(sound.get("format"))
            mime_type = f"audio/{kind}" if kind else None
            return [blob_part("audio", mime_type=mime_type, content=sound.get("data"))]
        case "file":
            return _file_part("document", find(sent, "file.file_id"), find(sent, "file.file_data"))
    return [dict(sent)] if sent else []


def _chat_call(call: Body) -> Part:
    inner = mapping(call.get("function") or call.get("custom"))
    arguments = inner.get("arguments", inner.get("input"))
    return call_part(call_id=call.get("id"), name=inner.get("name"), arguments=arguments)


def _chat_tool(sent: Any) -> Any:
    """A tool in the conventions' flat form; one of another shape stays as it is."""
    inner = find(sent, "function")
    return {"type": "function", **inner} if isinstance(inner, Mapping) else sent


def _chat_response(body: Body) -> Response:
    choices = mappings(body.get("choices"))
    common = _embeddings_response(body)
    own = {
        "gen_ai.response.finish_reasons": texts([one.get("finish_reason") for one in choices]),
        "openai.response.system_fingerprint": text(body.get("system_fingerprint")),
    }
    output = [_choice(choice) for choice in choices]
    return Response(common.attributes | known(own), output, common.failure)


def _choice(choice: Body) -> Message:
    sent = mapping(choice.get("message"))
    return known(
        {
            "role": text(sent.get("role")) or "assistant",
            "parts": _chat_parts(sent) or text_part(choice.get("text")),
            "finish_reason": text(choice.get("finish_reason")),
        }
    )


def _assemble_chat(events: Iterable[ServerSentEvent]) -> Streamed:
    """Add up the chunks; servers that leave `[DONE]` out still state why each choice ended."""
    sent = list(events)
    chunks = list(takewhile(lambda event: not event.data.startswith("[DONE]"), sent))
    found = _assembled("openai_chat", chunks)
    return found if len(chunks) == len(sent) else replace(found, is_finished=True)


def _completion_request(body: Body) -> _Request:
    """Read the body of the old `POST /completions`: prompts instead of messages."""
    prompts = texts(body.get("prompt")) or []
    return _Request(
        attributes={**_chat_request(body).attributes, "openai.api.type": "completions"},
        input=[{"role": "user", "parts": text_part(prompt)} for prompt in prompts],
    )


def _embeddings_request(body: Body) -> _Request:
    """Read the body of `POST /embeddings`; inputs that are token numbers are not shown."""
    own = {
        "gen_ai.request.encoding_formats": texts(body.get("encoding_format")),
        "gen_ai.embeddings.dimension.count": integer(body.get("dimensions")),
    }
    parts = [part for one in texts(body.get("input")) or [] for part in text_part(one)]
    return _Request(known(own), input=[{"role": "user", "parts": parts}] if parts else [])


def _embeddings_response(body: Body) -> Response:
    """Read a response of `POST /embeddings`: its vectors are numbers, not content."""
    from hansard_compiler.providers.formats.openai_chat import USAGE as CHAT_USAGE

    own = {
        "gen_ai.response.id": text(body.get("id")),
        "gen_ai.response.model": text(body.get("model")),
        "openai.response.service_tier": text(body.get("service_tier")),
    }
    usage = usage_attributes(counts_from(body, CHAT_USAGE | _AUDIO))
    return Response(known(own) | usage, failure=failure_of(body.get("error")))


# --- OpenAI: responses ----------------------------------------------------------------------------

_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})


def _responses_request(body: Body) -> _Request:
    own = {
        "openai.api.type": "responses",
        "gen_ai.request.max_tokens": integer(body.get("max_output_tokens")),
        "gen_ai.request.reasoning.level": text(find(body, "reasoning.effort")),
        "gen_ai.request.previous_response.id": text(body.get("previous_response_id")),
        "gen_ai.output.type": _output_type(find(body, "text.format")),
        "gen_ai.conversation.id": _conversation(body),
    }
    sent = body.get("input")
    turn = text_part(sent)
    return _Request(
        attributes=_openai_settings(body) | known(own),
        input=[{"role": "user", "parts": turn}] if turn else [_item(one) for one in mappings(sent)],
        system=_parts(body.get("instructions"), _responses_part),
        tools=sequence(body.get("tools")),
    )


def _conversation(body: Body) -> str | None:
    value = body.get("conversation")
    return text(value) or text(find(value, "id"))


def _item(item: Body, *, role: str = "user") -> Message:
    """One item of a list; one of a kind that is not known is carried whole."""
    kind = item.get("type")
    named = text(kind)  # what is no text cannot be looked up
    if named in _CALLS:
        arguments = item.get("arguments", item.get("input"))
        part = call_part(call_id=item.get("call_id"), name=item.get("name"), arguments=arguments)
        return {"role": "assistant", "parts": [part]}
    if named in _RESULTS:
        output = item.get("output")
        response = _result(sequence(output), _responses_part, empty=output)
        result = result_part(call_id=item.get("call_id"), response=response)
        return {"role": "tool", "parts": [result]}
    if kind == "reasoning":
        return {"role": "assistant", "parts": _reasoning(item)}
    if kind in (None, "message"):
        parts = _parts(item.get("content"), _responses_part)
        return {"role": text(item.get("role")) or role, "parts": parts}
    return {"role": role, "parts": [dict(item)]}


def _reasoning(item: Body) -> list[Part]:
    """What can be read of reasoning; encrypted reasoning gives nothing."""
    pieces = [*mappings(item.get("summary")), *mappings(item.get("content"))]
    parts = [part for piece in pieces for part in text_part(piece.get("text"), "reasoning")]
    return parts or [{"type": "reasoning", "content": ""}]


def _responses_part(item: Any) -> list[Part]:
    sent = mapping(item)
    match sent.get("type", "message" if "content" in sent else None):
        case "input_text" | "output_text" | "text":
            return text_part(sent.get("text"))
        case "refusal":
            return text_part(sent.get("refusal"))
        case "input_image":
            return _file_part("image", sent.get("file_id"), sent.get("image_url"))
        case "input_file":
            where = sent.get("file_data") or sent.get("file_url")
            return _file_part("document", sent.get("file_id"), where)
        case "message":  # instructions may be a list of input items
            return _parts(sent.get("content"), _responses_part)
    return [dict(sent)] if sent else []


def _responses_response(body: Body) -> Response:
    from hansard_compiler.providers.formats import openai_responses

    own = {
        "gen_ai.response.id": text(body.get("id")),
        "gen_ai.response.model": text(body.get("model")),
        "gen_ai.response.finish_reasons": texts(openai_responses.finish_reason_of(body)),
        "openai.response.service_tier": text(body.get("service_tier")),
        "gen_ai.conversation.id": _conversation(body),
    }
    usage = usage_attributes(counts_from(body, openai_responses.USAGE))
    items = [_item(item, role="assistant") for item in mappings(body.get("output"))]
    parts = [part for item in items for part in item["parts"]]
    output: list[Message] = [{"role": "assistant", "parts": parts}] if parts else []
    return Response(known(own) | usage, output, failure_of(body.get("error")))


# --- Anthropic: messages --------------------------------------------------------------------------


def _messages_request(body: Body) -> _Request:
    own = {
        "gen_ai.request.max_tokens": integer(body.get("max_tokens")),
        "gen_ai.request.temperature": number(body.get("temperature")),
        "gen_ai.request.top_p": number(body.get("top_p")),
        "gen_ai.request.top_k": integer(body.get("top_k")),
        "gen_ai.request.stop_sequences": texts(body.get("stop_sequences")),
        "gen_ai.request.stream": True if body.get("stream") is True else None,
        "gen_ai.request.reasoning.level": text(find(body, "output_config.effort")),
        "gen_ai.output.type": "json" if find(body, "output_config.format") else None,
        "anthropic.request.service_tier": text(body.get("service_tier")),
        "anthropic.thinking.type": text(find(body, "thinking.type")),
        "anthropic.thinking.budget_tokens": integer(find(body, "thinking.budget_tokens")),
    }
    return _Request(
        attributes=known(own),
        input=[
            {"role": text(sent.get("role")) or "user", "parts": _parts(sent.get("content"), _block)}
            for sent in mappings(body.get("messages"))
        ],
        system=_parts(body.get("system"), _block),
        tools=[_messages_tool(sent) for sent in sequence(body.get("tools"))],
    )


def _messages_tool(sent: Any) -> Any:
    """A tool of one's own in the conventions' form; a built-in one stays as it is."""
    tool = mapping(sent)
    if "input_schema" not in tool:
        return sent
    rest = {key: value for key, value in tool.items() if key not in ("input_schema", "type")}
    return {"type": "function", **rest, "parameters": tool["input_schema"]}


def _block(value: Any) -> list[Part]:
    """One block; one of a kind that is not known is carried whole."""
    block = mapping(value)
    match block.get("type"):
        case "text":
            return text_part(block.get("text"))
        case "thinking":
            said = text_part(block.get("thinking"), "reasoning")
            return said or [{"type": "reasoning", "content": ""}]
        case "redacted_thinking":
            return [{"type": "reasoning", "content": ""}]
        case "tool_use":
            call_id, arguments = block.get("id"), block.get("input")
            return [call_part(call_id=call_id, name=block.get("name"), arguments=arguments)]
        case "tool_result":
            response = _result(block.get("content"), _block, empty="")
            part = result_part(call_id=block.get("tool_use_id"), response=response)
            return [{**part, "is_error": True} if block.get("is_error") is True else part]
        case "image" | "document" as modality:
            return [_messages_media(modality, mapping(block.get("source"))) or dict(block)]
    return [dict(block)] if block else []


def _messages_media(modality: str, source: Body) -> Part | None:
    match source.get("type"):
        case "base64":
            mime_type, data = source.get("media_type"), source.get("data")
            return blob_part(modality, mime_type=mime_type, content=data)
        case "url":
            return media_part(modality, source.get("url"))
        case "file":
            file_id = source.get("file_id")
            return known({"type": "file", "modality": modality, "file_id": file_id})
        case "text":
            return {"type": "text", "content": text(source.get("data")) or ""}
    return None


def _messages_response(body: Body) -> Response:
    from hansard_compiler.providers.formats.anthropic_messages import counts_of

    reason = text(body.get("stop_reason"))
    own = {
        "gen_ai.response.id": text(body.get("id")),
        "gen_ai.response.model": text(body.get("model")),
        "gen_ai.response.finish_reasons": texts(reason),
    }
    tier = known({"anthropic.response.service_tier": text(find(body, "usage.service_tier"))})
    usage = usage_attributes(counts_of(body)) | tier
    parts = _parts(body.get("content"), _block)
    output = [known({"role": "assistant", "parts": parts, "finish_reason": reason})]
    return Response(known(own) | usage, output if parts else [], failure_of(body.get("error")))


# --- which paths of which APIs are read -----------------------------------------------------------

# Tokens that a provider counted without answering: they were not used and cost nothing.
COUNTED: Final = "hansard.token_count.input_tokens"


def _count_response(body: Body) -> Response:
    """Read a count of tokens, which is no usage."""
    counted = integer(body.get("input_tokens"))
    return Response(known({COUNTED: counted}), failure=failure_of(body.get("error")))


_RESPONSES: Final = Route(
    "chat", _responses_request, _responses_response, partial(_assembled, "openai_responses")
)
# By the path that the client requests, before an address or a deployment is put before it.
ROUTES: Final[Mapping[str, Mapping[str, Route]]] = {
    "openai": {
        "/responses": _RESPONSES,
        "/responses/compact": _RESPONSES,
        "/responses/input_tokens": Route("count_tokens", _responses_request, _count_response),
        "/chat/completions": Route("chat", _chat_request, _chat_response, _assemble_chat),
        "/completions": Route(
            "text_completion", _completion_request, _chat_response, _assemble_chat
        ),
        "/embeddings": Route("embeddings", _embeddings_request, _embeddings_response),
    },
    "anthropic": {
        "/v1/messages": Route(
            "chat",
            _messages_request,
            _messages_response,
            partial(_assembled, "anthropic_messages"),
            "api_error",
        ),
        "/v1/messages/count_tokens": Route("count_tokens", _messages_request, _count_response),
    },
}
