"""One part of a message, in any shape a provider or framework writes it.

OpenTelemetry parts, OpenAI chat and Responses items, Anthropic blocks, Gemini parts, Bedrock
blocks, AI SDK parts and LangChain blocks name themselves by a `type` or by the only key they have,
so one table reads them all, also where a sender mixes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hansard_collector.dialects.engine.values import (
    first,
    inside,
    is_content,
    mapping,
    opened,
    text,
)
from hansard_compiler.calls import (
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_Block = Mapping[str, Any]
_Read = Callable[[_Block], Part | None]
_OWN_TOOLS = ("_call", "_call_output")


def parts_of(content: Any) -> list[Part]:
    """Return the parts of a message's content: a text, one block or a list of blocks."""
    if isinstance(content, str):
        return [TextPart(content)] if is_content(content) and content.strip() else []
    if isinstance(content, dict):
        part = part_of(content)
        return [] if part is None else [part]
    if isinstance(content, list):
        return [part for item in content for part in parts_of(item)]
    return [] if content is None else [OtherPart(content)]


def part_of(block: _Block) -> Part | None:
    """Return one block as a part; None for an empty one. An unknown block is stored whole."""
    kind = block.get("type")
    read = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    if read is None:
        if isinstance(kind, str) and kind.endswith("_tool_result"):
            read = _tool_result
        elif isinstance(kind, str) and "call_id" in block and kind.endswith(_OWN_TOOLS):
            read = _own_tool
        else:
            keys = (key for key in block if key in _BY_KEY and block[key] is not None)
            read = next((_BY_KEY[key] for key in keys), None)
    if read is None:
        return OtherPart(block) if any(map(is_content, block.values())) else None
    return read(block)


def tool_call(block: _Block) -> Part | None:
    """Return a call in the shape of OpenAI's `tool_calls`, or a flat one."""
    inner = block.get("function")
    if isinstance(inner, dict):
        return _call(block.get("id"), inner.get("name"), inner.get("arguments"))
    return _flat_call(block)


def arguments_of(value: Any) -> Any:
    """Return arguments as JSON where their text is JSON; no arguments are an empty object."""
    if value is None or value == "":
        return {}
    return opened(value)


def result_of(value: Any) -> Any:
    """Return a tool's result as its text where blocks or wrappers hold nothing else."""
    if isinstance(value, list) and value:
        texts = [_block_text(item) for item in value]
        if all(item is not None for item in texts):
            return "".join(item for item in texts if item is not None)
        if len(value) == 1 and isinstance(value[0], dict) and set(value[0]) == {"json"}:
            return value[0]["json"]
        return value
    if isinstance(value, dict):
        return _unwrapped_result(value)
    return "" if value is None else value


def _unwrapped_result(value: _Block) -> Any:
    if value.get("type") in ("text", "json", "error-text", "error-json") and "value" in value:
        return value["value"]  # AI SDK 5 and later
    if value.get("type") == "content" and isinstance(value.get("value"), list):
        return result_of(value["value"])
    if len(value) == 1:
        only = first(value, ("result", "output", "content"))
        if isinstance(only, str | list):
            return result_of(only)
    return value


def _block_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if isinstance(block, dict) and block.get("type") in (None, "text", "input_text", "output_text"):
        content = first(block, ("text", "content"))
        return content if isinstance(content, str) else None
    return None


def _text(block: _Block) -> Part | None:
    content = first(block, ("content", "text", "value", "refusal"))
    if isinstance(content, dict):  # OpenAI assistants: {"text": {"value": …}}
        content = content.get("value")
    if block.get("thought") is True or block.get("kind") == "thinking":  # Gemini, Pydantic AI 1
        return _reasoned(content)
    if isinstance(content, str):
        return TextPart(content) if is_content(content) and content.strip() else None
    return None if content is None else OtherPart(block)


def _reasoning(block: _Block) -> Part | None:
    return _reasoned(first(block, ("content", "text", "thinking", "reasoning", "summary")))


def _reasoned(value: Any) -> Part | None:
    if isinstance(value, list):
        texts = (_block_text({**item, "type": None}) for item in value if isinstance(item, dict))
        value = "\n".join(item for item in texts if item)
    return ReasoningPart(value) if isinstance(value, str) and is_content(value) else None


def _bedrock_reasoning(block: _Block) -> Part | None:
    inner = block["reasoningContent"]
    reasoning = inner.get("reasoningText") if isinstance(inner, dict) else inner
    return _reasoned(reasoning.get("text") if isinstance(reasoning, dict) else reasoning)


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCallPart:
    return ToolCallPart(text(call_id), text(name) or "", arguments_of(arguments))


def _flat_call(block: _Block) -> Part | None:
    return _call(
        first(block, ("call_id", "id", "toolCallId", "tool_call_id")),
        first(block, ("name", "toolName", "tool_name")),
        first(block, ("arguments", "args", "input")),
    )


def _server_call(block: _Block) -> Part | None:
    return _call(block.get("id"), block.get("name"), block.get("server_tool_call"))


def _result_of(ids: tuple[str, ...], contents: tuple[str, ...]) -> _Read:
    def read(block: _Block) -> Part | None:
        return ToolResultPart(
            text(first(block, ids)),
            result_of(first(block, contents)),
            text(first(block, ("name", "toolName", "tool_name"))),
        )

    return read


_tool_result = _result_of(
    ("id", "tool_use_id", "call_id", "toolCallId", "tool_call_id"),
    ("response", "result", "content", "output"),
)
# Items with an id of their own (Responses, Anthropic) beside the call's id.
_item_result = _result_of(
    ("tool_use_id", "call_id", "tool_call_id", "toolCallId", "id"),
    ("content", "output", "result", "response"),
)


def _server_result(block: _Block) -> Part | None:
    return ToolResultPart(text(block.get("id")), block.get("server_tool_call_response"))


def _own_tool(block: _Block) -> Part | None:
    """A tool that OpenAI defines and the program runs: `local_shell_call` and its output."""
    kind = str(block["type"])
    if kind.endswith("_output"):
        return _item_result(block)
    arguments = first(block, ("action", "operation", "arguments", "input"))
    return _call(block.get("call_id"), kind.removesuffix("_call"), arguments)


def _inner(block: _Block, keys: tuple[str, ...]) -> _Block | None:
    found = first(block, keys)
    return found if isinstance(found, dict) else None


def _call_in(*keys: str, call_id: str, arguments: tuple[str, ...]) -> _Read:
    """A call inside of its block: Bedrock, Gemini, Genkit."""

    def read(block: _Block) -> Part | None:
        inner = _inner(block, keys)
        if inner is None:
            return OtherPart(block)
        return _call(inner.get(call_id), inner.get("name"), first(inner, arguments))

    return read


def _result_in(*keys: str, call_id: str, content: str, name: str = "name") -> _Read:
    """A result inside of its block: Bedrock (which names no tool), Gemini, Genkit."""

    def read(block: _Block) -> Part | None:
        inner = _inner(block, keys)
        if inner is None:
            return OtherPart(block)
        result = result_of(inner.get(content))
        return ToolResultPart(text(inner.get(call_id)), result, text(inner.get(name)))

    return read


def _guarded(block: _Block) -> Part | None:
    """Bedrock: `{"guardContent": {"text": {"text": …}}}`; an image is stored whole."""
    content = inside(block, "guardContent", "text", "text")
    return TextPart(content) if isinstance(content, str) else OtherPart(block)


def _cited(block: _Block) -> Part | None:
    """Bedrock: a text with its sources, `{"citationsContent": {"content": [{"text": …}]}}`."""
    content = result_of(inside(block, "citationsContent", "content"))
    return TextPart(content) if isinstance(content, str) and content else OtherPart(block)


def _media(block: _Block) -> Part | None:
    """An image, sound, film or file, wherever its type and its bytes or address are."""
    inner = first(
        block,
        (
            "source", "image_url", "input_audio", "inlineData", "inline_data", "fileData",
            "file_data", "file", "media", "image", "audio", "video", "document",
        ),
    )  # fmt: skip
    if isinstance(inner, dict):
        nested = inner.get("source") or inner.get("image") or inner.get("audio") or inner
        fields = {**block, **inner, **(nested if isinstance(nested, dict) else {})}
        fields |= mapping(fields.get("s3Location"))  # Bedrock
    elif isinstance(inner, str):
        fields = {**block, ("url" if ":" in inner[:32] else "data"): inner}
    else:
        fields = dict(block)
    media_type = text(
        first(
            fields,
            (
                "mime_type", "media_type", "mimeType", "mediaType", "contentType", "format",
                "modality",
            ),
        )
    )  # fmt: skip
    uri = text(first(fields, ("uri", "url", "fileUri", "file_uri", "file_id", "image_url")))
    data = text(first(fields, ("data", "content", "bytes", "file_data")))
    if uri is None and data is not None and data.startswith("data:"):
        uri = data
    if uri is None and data is None:
        return OtherPart(block)
    return MediaPart(media_type, uri=uri, data=None if uri is not None else data)


_BY_TYPE: Mapping[str, _Read] = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), _text),
    **dict.fromkeys(("reasoning", "thinking"), _reasoning),
    "function": tool_call,
    **dict.fromkeys(
        (
            "tool_call",  # OpenTelemetry; LangChain, with `args`
            "function_call", "custom_tool_call",  # OpenAI
            "tool_use", "server_tool_use", "mcp_tool_use",  # Anthropic
            "tool-call",  # AI SDK
        ),
        _flat_call,
    ),
    "server_tool_call": _server_call,
    "server_tool_call_response": _server_result,
    "tool_call_response": _tool_result,
    **dict.fromkeys(
        ("function_call_output", "custom_tool_call_output", "tool_result", "tool-result"),
        _item_result,
    ),
    **dict.fromkeys(
        (
            "blob", "file", "uri",  # OpenTelemetry
            "image_url", "input_audio", "input_file", "input_image",  # OpenAI
            "image", "document",  # Anthropic
            "audio", "video",  # OpenInference and others
        ),
        _media,
    ),
}  # fmt: skip

_gemini_call = _call_in(
    "functionCall", "function_call", call_id="id", arguments=("args", "arguments")
)
_gemini_result = _result_in(
    "functionResponse", "function_response", call_id="id", content="response"
)
_BY_KEY: Mapping[str, _Read] = {
    "text": _text,
    "guardContent": _guarded,
    "citationsContent": _cited,
    "toolUse": _call_in("toolUse", call_id="toolUseId", arguments=("input",)),
    "toolResult": _result_in("toolResult", call_id="toolUseId", content="content", name=""),
    "reasoningContent": _bedrock_reasoning,
    "functionCall": _gemini_call,
    "function_call": _gemini_call,
    "functionResponse": _gemini_result,
    "function_response": _gemini_result,
    "function": tool_call,
    "toolRequest": _call_in("toolRequest", call_id="ref", arguments=("input",)),
    "toolResponse": _result_in("toolResponse", call_id="ref", content="output"),
    "thinking": _reasoning,
    **dict.fromkeys(
        (
            "inlineData", "inline_data", "fileData", "file_data", "media", "image", "document",
            "video",
        ),
        _media,
    ),
}  # fmt: skip
