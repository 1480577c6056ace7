"""What spans of runs, steps and tool calls say of themselves, whoever tells them.

`start_run` and its steps tell them in the program; a server's sidecar tells them for programs that
have no SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hansard import semconv
from hansard._tracing.metadata import metadata_attributes, tags_of, text_or_none

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

    from hansard._runtime.recorder import Recorder

    Attributes = dict[str, AttributeValue | None]


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
    """Return what a run's own span says but for its goal, which is content."""
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
    """Return what a step says of itself."""
    return {
        semconv.KIND: kind,
        semconv.STEP_INDEX: index,
        **metadata_attributes(recorder, semconv.STEP_METADATA, metadata),
    }


def tool_name(name: str) -> str:
    """Return the name of a tool call's span."""
    return f"{semconv.OP_EXECUTE_TOOL} {name}".rstrip()


def tool_attributes(*, name: str, call_id: str | None, type: str | None) -> Attributes:
    """Return what a tool call says of itself but for arguments and description."""
    return {
        semconv.OPERATION_NAME: semconv.OP_EXECUTE_TOOL,
        semconv.TOOL_NAME: name or None,
        semconv.TOOL_CALL_ID: call_id,
        semconv.TOOL_TYPE: text_or_none(type),
    }
