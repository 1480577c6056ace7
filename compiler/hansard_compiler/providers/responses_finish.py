"""Why a response of OpenAI's Responses API ended; the API has a status, and no such field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_compiler.providers.loose import mappings, text, within

# Calls that the caller is to answer; those of the provider's own tools are part of the answer.
_CALLS = frozenset(
    {
        "apply_patch_call", "computer_call", "custom_tool_call", "function_call",
        "local_shell_call", "shell_call",
    }
)  # fmt: skip


def finish_reason_of(response: Mapping[str, Any]) -> str | None:
    """Return the reason as OpenTelemetry's instrumentor of `openai` names it; None while it runs.

    A response that is complete asks for tools or stopped. Of one that is cut short the API names
    the reason, which is returned as it is.
    """
    reason = text(within(response, "incomplete_details", "reason"))
    if reason is not None:
        return reason
    match response.get("status"):
        case "completed":
            asks = any(
                text(item.get("type")) in _CALLS for item in mappings(response.get("output"))
            )
            return "tool_calls" if asks else "stop"
        case "failed":
            return "error"
    return None
