"""Attributes of runs, steps and tool calls.

`start_run` and its steps set them in the program; a server's sidecar sets them for programs that
have no SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hansard import semconv
from hansard._runtime.warnings import warn_once
from hansard._tracing.serialization import attribute_number, safe_repr, safe_str, to_json
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from hansard._runtime.recorder import Recorder

    Attributes = dict[str, AttributeValue | None]

MAX_KEYS: Final = 64
MAX_TEXT_CHARS: Final = 4_096


def text_of(value: object) -> str:
    """Return a value as text that UTF-8 can hold, cut at 4,096 characters. Never raises."""
    text = safe_str(value)
    return text[:MAX_TEXT_CHARS].encode("utf-8", "backslashreplace").decode()


def text_or_none(value: object) -> str | None:
    """Return a value as text; None where it is None or empty."""
    return None if value is None else text_of(value) or None


def tags_of(tags: Any) -> list[str]:
    """Return tags as texts; one text is one tag."""
    if type(tags) is str:
        return [text_of(tags)]
    try:
        return [text_of(tag) for tag in islice(tags, MAX_KEYS)]
    except Exception as error:
        _warn("tags", error)
        return []


def metadata_attributes(
    recorder: Recorder, prefix: str, metadata: Mapping[str, Any] | None
) -> dict[str, AttributeValue]:
    """Return each value under `prefix` and its key: scalars as they are, others as JSON.

    It is content: in `metadata_only` only numbers and booleans are included. At most 64 keys.
    """
    attributes: dict[str, AttributeValue] = {}
    for key, value in _pairs(metadata):
        kind = type(value)  # never `isinstance`, which calls the object
        if kind in (bool, float):
            attributes[prefix + key] = value
        elif kind is int:
            attributes[prefix + key] = attribute_number(value)
        elif recorder.settings.retention is not RetentionMode.METADATA_ONLY:
            text = value if kind is str else to_json(value, max_bytes=MAX_TEXT_CHARS)
            attributes[prefix + key] = text_of(text)
    return attributes


def _pairs(metadata: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    if metadata is None:
        return []
    try:
        return [(text_of(key), value) for key, value in islice(metadata.items(), MAX_KEYS)]
    except Exception as error:
        _warn("metadata", error)
        return []


def _warn(what: str, error: Exception) -> None:
    warn_once(what, "the %s of a run or step cannot be read: %s", what, safe_repr(error))


def run_name(agent_name: str | None) -> str:
    """Return the name of a run's own span."""
    return f"{semconv.OP_INVOKE_AGENT} {agent_name or ''}".rstrip()


def run_attributes(
    recorder: Recorder,
    *,
    agent_name: str | None,
    domain: str | None,
    conversation_id: str | None,
    user_id: str | None,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Attributes:
    """Return the attributes of a run's own span; its goal is content and not among them."""
    return {
        semconv.OPERATION_NAME: semconv.OP_INVOKE_AGENT,
        semconv.AGENT_NAME: agent_name,
        semconv.CONVERSATION_ID: conversation_id,
        semconv.USER_ID: text_or_none(user_id),
        semconv.RUN_DOMAIN: text_or_none(domain),
        semconv.RUN_TAGS: tags_of(tags) or None,
        **metadata_attributes(recorder, semconv.RUN_METADATA, metadata),
    }


def step_attributes(
    recorder: Recorder, *, kind: str, index: int, metadata: Mapping[str, Any] | None
) -> Attributes:
    """Return the attributes of a step."""
    return {
        semconv.KIND: kind,
        semconv.STEP_INDEX: index,
        **metadata_attributes(recorder, semconv.STEP_METADATA, metadata),
    }


def tool_name(name: str) -> str:
    """Return the name of a tool call's span."""
    return f"{semconv.OP_EXECUTE_TOOL} {name}".rstrip()


def tool_attributes(*, name: str, call_id: str | None, type: str | None) -> Attributes:
    """Return the attributes of a tool call; arguments and description are content."""
    return {
        semconv.OPERATION_NAME: semconv.OP_EXECUTE_TOOL,
        semconv.TOOL_NAME: name or None,
        semconv.TOOL_CALL_ID: call_id,
        semconv.TOOL_TYPE: text_or_none(type),
    }
