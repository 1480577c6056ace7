"""A recorded model call as something to run again by hand: curl, Python, or its messages as JSON.

Made from the normal form, so every dialect gives one of two requests: Anthropic's Messages for
Anthropic models, OpenAI's chat completions (which most other servers speak) for all others. Keys
are named, never written. Recorded content is hostile: it only ever stands inside JSON or Python
string literals, and characters that change how a line reads are escaped.
"""

from __future__ import annotations

import json
import math
import pprint
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hansard_compiler.calls import (
    Call,
    Json,
    MediaPart,
    Message,
    OtherPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    message_json,
)
from hansard_compiler.canonical import canonical_json
from hansard_web.media.recorded import media_in
from hansard_web.ui.format import plural

Form = Literal["curl", "python", "json"]
FORMS: Final[tuple[Form, ...]] = ("curl", "python", "json")

_CHAT_PARAMETERS: Final = frozenset({
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "frequency_penalty",
    "presence_penalty", "stop", "seed", "n", "response_format", "tool_choice",
    "parallel_tool_calls", "logprobs", "top_logprobs", "logit_bias", "reasoning_effort",
    "service_tier", "verbosity",
})  # fmt: skip
_ANTHROPIC_PARAMETERS: Final = frozenset(
    {"temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "tool_choice", "thinking"}
)
_ANTHROPIC_NAMES: Final = {"stop": "stop_sequences"}
_CHAT_NAMES: Final = {"stop_sequences": "stop"}
_DEFAULT_MAX_TOKENS = 1024  # Anthropic demands one; used where none was recorded
_HEREDOC = "HANSARD_REQUEST"
# Surrogates, controls and marks that reorder or break lines: "trojan source" among them.
_UNSAFE = re.compile(
    "[\ud800-\udfff\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


@dataclass(frozen=True, slots=True)
class _Request:
    """A request of one provider's API."""

    api: Literal["anthropic", "openai"]
    body: Json
    provider: str | None
    notes: tuple[str, ...] = ()


def copy_as(call: Call, form: Form, *, notes: Sequence[str] = ()) -> str:
    """Return a call in one of the forms; `notes` become comments where the form has them."""
    if form == "json":
        return _json(media_in(_messages(call))[0])
    request = request_of(call, notes=notes)
    body, media = media_in(request.body)
    if media:
        note = f"{plural(len(media), 'image or file')} left out: placeholders stand for the bytes"
        request = replace(request, body=body, notes=(*request.notes, note))
    return _curl(request) if form == "curl" else _python(request)


def request_of(call: Call, *, notes: Sequence[str] = ()) -> _Request:
    """Return the request that asks for this call again."""
    is_anthropic = (call.provider or "").startswith("anthropic")
    body = _anthropic(call) if is_anthropic else _chat(call)
    if call.input_is_delta:
        notes = (*notes, "only new messages were recorded: earlier messages are missing")
    return _Request("anthropic" if is_anthropic else "openai", body, call.provider, tuple(notes))


def _messages(call: Call) -> Json:
    return {
        "input": [message_json(message) for message in call.input],
        "output": [message_json(message) for message in call.output],
        "tools": list(call.tools),
    }


# ------------------------------------------------------------------------------ chat completions


def _chat(call: Call) -> Json:
    body: Json = {"model": _model(call), "messages": list(_chat_messages(call.input))}
    tools = [_chat_tool(tool) for tool in call.tools if tool.get("type") == "function"]
    if tools:
        body["tools"] = tools
    body.update(_parameters(call.parameters, _CHAT_PARAMETERS, _CHAT_NAMES))
    if not tools:
        body.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    return body


def _model(call: Call) -> str:
    return call.request_model or call.response_model or "unknown"


def _chat_messages(messages: Iterable[Message]) -> Iterable[Json]:
    for message in messages:
        results = [part for part in message.parts if isinstance(part, ToolResultPart)]
        for result in results:
            yield {
                "role": "tool",
                "tool_call_id": result.id or "",
                "content": _text(result.content),
            }
        content = [item for part in message.parts for item in _chat_content(part)]
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if results and not content:
            continue
        chat_message: Json = {"role": message.role, "content": _plain_or_parts(content)}
        if message.name:
            chat_message["name"] = message.name
        if calls:
            chat_message["tool_calls"] = [_chat_call(call) for call in calls]
            if not content:
                chat_message["content"] = None
        yield chat_message


def _chat_content(part: object) -> list[Json]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}]
    if isinstance(part, MediaPart):
        url = _media_url(part)
        if url is not None and (part.media_type or "image/").startswith("image"):
            return [{"type": "image_url", "image_url": {"url": url}}]
        return [{"type": "text", "text": _media_words(part)}]
    if isinstance(part, OtherPart):
        return [{"type": "text", "text": canonical_json(part.value)}]
    return []


def _plain_or_parts(content: Sequence[Json]) -> Any:
    if all(item["type"] == "text" for item in content):
        return "\n".join(item["text"] for item in content)
    return list(content)


def _chat_call(part: ToolCallPart) -> Json:
    return {
        "id": part.id or "",
        "type": "function",
        "function": {"name": part.name, "arguments": _text(part.arguments)},
    }


def _chat_tool(tool: Mapping[str, Any]) -> Json:
    function = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
    return {"type": "function", "function": function}


# ------------------------------------------------------------------------------ anthropic messages


def _anthropic(call: Call) -> Json:
    system = [message.text for message in call.input if message.role in ("system", "developer")]
    spoken = [one for one in call.input if one.role not in ("system", "developer")]
    parameters = _parameters(call.parameters, _ANTHROPIC_PARAMETERS, _ANTHROPIC_NAMES)
    body: Json = {
        "model": _model(call),
        "max_tokens": parameters.pop("max_tokens", _DEFAULT_MAX_TOKENS),
    }
    if system:
        body["system"] = "\n\n".join(system)
    body["messages"] = _turns(spoken)
    tools = [_anthropic_tool(tool) for tool in call.tools]
    if tools:
        body["tools"] = tools
    else:
        parameters.pop("tool_choice", None)
    return body | parameters


def _turns(messages: Sequence[Message]) -> list[Json]:
    """Results are sent by the user; neighbours of one role are one turn."""
    turns: list[Json] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts for block in _anthropic_block(part)]
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _anthropic_block(part: object) -> list[Json]:
    if isinstance(part, TextPart):
        return [{"type": "text", "text": part.text}] if part.text else []
    if isinstance(part, ToolCallPart):
        arguments = (
            part.arguments if isinstance(part.arguments, Mapping) else {"input": part.arguments}
        )
        return [{"type": "tool_use", "id": part.id or "", "name": part.name, "input": arguments}]
    if isinstance(part, ToolResultPart):
        content = _text(part.content)
        return [{"type": "tool_result", "tool_use_id": part.id or "", "content": content}]
    if isinstance(part, MediaPart):
        return [_anthropic_media(part)]
    if isinstance(part, OtherPart):
        return [{"type": "text", "text": canonical_json(part.value)}]
    return []


def _anthropic_media(part: MediaPart) -> Json:
    kind = part.media_type or "image/png"
    if part.data is not None and kind.startswith("image/"):
        source = {"type": "base64", "media_type": kind, "data": part.data}
        return {"type": "image", "source": source}
    if part.uri is not None and kind.startswith("image"):
        return {"type": "image", "source": {"type": "url", "url": part.uri}}
    return {"type": "text", "text": _media_words(part)}


def _anthropic_tool(tool: Mapping[str, Any]) -> Json:
    if tool.get("type") != "function":
        return dict(tool)
    described = {"description": tool["description"]} if "description" in tool else {}
    schema = tool.get("parameters") or {"type": "object", "properties": {}}
    return {"name": tool["name"], **described, "input_schema": schema}


# ------------------------------------------------------------------------------ values


def _parameters(
    parameters: Mapping[str, Any], known: frozenset[str], names: Mapping[str, str]
) -> Json:
    """Keep what the API knows: senders put much else among the parameters, keys included."""
    named = {names.get(key, key): value for key, value in parameters.items()}
    return {key: value for key, value in named.items() if key in known and value is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _media_url(part: MediaPart) -> str | None:
    if part.data is not None:
        return f"data:{part.media_type or 'image/png'};base64,{part.data}"
    return part.uri


def _media_words(part: MediaPart) -> str:
    return f"[{part.media_type or 'media'}: {part.payload or part.uri or 'not recorded'}]"


def _json(value: Any) -> str:
    text = json.dumps(_finite(value), ensure_ascii=False, indent=2, default=str)
    # Outside of strings JSON has none of these, so the escapes mean the same.
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: Any) -> Any:
    """Neither JSON nor a Python literal has infinities; what cannot be sent is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    return value


# ------------------------------------------------------------------------------ forms


def _comments(request: _Request) -> list[str]:
    lines = ["# Rebuilt from telemetry by Hansard, not the recorded bytes."]
    if request.api == "openai" and request.provider not in (None, "openai"):
        provider = _on_one_line(str(request.provider))[:60]
        lines.append(
            f"# Recorded from {provider}: point OPENAI_BASE_URL at its OpenAI-compatible address."
        )
    lines += [f"# Note: {_on_one_line(note)}" for note in request.notes]
    return lines


def _on_one_line(text: str) -> str:
    """Return recorded text that cannot end a comment: no control, no mark that reorders a line."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _curl(request: _Request) -> str:
    # A quoted here-document: the shell reads nothing in it, and it has no length limit.
    body = _json(request.body)
    if request.api == "anthropic":
        head = [
            'curl "${ANTHROPIC_BASE_URL:-https://api.anthropic.com}/v1/messages" \\',
            '  --header "x-api-key: $ANTHROPIC_API_KEY" \\',
            "  --header 'anthropic-version: 2023-06-01' \\",
        ]
    else:
        head = [
            'curl "${OPENAI_BASE_URL:-https://api.openai.com/v1}/chat/completions" \\',
            '  --header "Authorization: Bearer $OPENAI_API_KEY" \\',
        ]
    head += ["  --header 'Content-Type: application/json' \\", f"  --data-binary @- <<'{_HEREDOC}'"]
    return "\n".join([*_comments(request), *head, body, _HEREDOC, ""])


def _python(request: _Request) -> str:
    literal = pprint.pformat(_finite(request.body), sort_dicts=False, width=96)
    literal = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", literal)
    if request.api == "anthropic":
        client, key, call = "Anthropic", "anthropic", "messages.create"
    else:
        client, key, call = "OpenAI", "openai", "chat.completions.create"
    return "\n".join(
        [
            *_comments(request),
            f"from {key} import {client}",
            "",
            f"client = {client}()  # reads {key.upper()}_API_KEY",
            "",
            f"request = {literal}",
            "",
            f"response = client.{call}(**request)",
            "print(response.model_dump_json(indent=2))",
            "",
        ]
    )
