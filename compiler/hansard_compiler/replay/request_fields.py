"""The fields of each API's requests, and which of them a rendered request does not have.

From the types of `openai` 3.54 and `anthropic` 2.12 (GA and beta); a test holds the lists against
the installed packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.diff.json_paths import json_diff
from hansard_compiler.replay.request_edits import CHAT, MESSAGES, RESPONSES

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    CHAT: frozenset(
        {
            "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
            "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model",
            "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
            "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
            "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier",
            "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools",
            "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
        }
    ),
    RESPONSES: frozenset(
        {
            "access_programs", "background", "background_options", "context_management",
            "conversation", "image", "include", "input", "instructions", "max_output_tokens",
            "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls",
            "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
            "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
            "stream", "stream_options", "temperature", "text", "tool_choice", "tools",
            "top_logprobs", "top_p", "truncation", "user",
        }
    ),
    MESSAGES: frozenset(
        {
            "billing_policy", "cache_control", "compaction", "container", "context_management",
            "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens",
            "mcp_servers", "messages", "metadata", "model", "output_config", "service_tier",
            "speed", "stop_sequences", "stream", "system", "temperature", "thinking", "thread",
            "tool_choice", "tools", "top_k", "top_p", "user_profile_id", "workspace_id",
        }
    ),
}  # fmt: skip
# What telemetry never has of fields that it does have: names, marks and flags within them.
_INSIDE: Final[Mapping[str, str]] = {
    CHAT: "whether a system text was sent as system or developer, `strict` of tools, "
    "the name of the limit on the answer (max_tokens is used)",
    RESPONSES: "the types and ids of items, `phase` of messages, encrypted reasoning",
    MESSAGES: "every cache_control, signatures of thinking, `is_error` of results",
}
_SHOWN: Final = 40


def unknown_fields(api: str, rendered: Mapping[str, Any]) -> list[str]:
    """Return the fields of an API that a request rebuilt from telemetry does not have."""
    return sorted(FIELDS.get(api, frozenset()) - rendered.keys())


def unknown_note(api: str, rendered: Mapping[str, Any]) -> str:
    """Return which fields a request rebuilt from telemetry lacks, in words."""
    names = ", ".join(unknown_fields(api, rendered))
    return (
        "rebuilt from telemetry, which does not have these fields of the sender's request, so "
        f"they are not sent: {names}; nor {_INSIDE[api]}"
    )


def lost_paths(recorded: Json, rendered: Json) -> list[str]:
    """Return the paths at which a rendered request is not the recorded one, at most 40."""
    found = [one.path for one in json_diff(rendered, recorded).changes]
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"{len(found) - _SHOWN} more"]


def added_fields(made: Mapping[str, Any], api: str) -> Json:
    """Return the parameters of telemetry that are fields of an API as they are.

    Those that a render has of its own (messages, tools, sampling) are left out.
    """
    known = FIELDS.get(api, frozenset()) - _RENDERED
    found = {name: value for name, value in made.items() if name in known and value is not None}
    count = made.get("choice_count")
    return {**found, "n": count} if api == CHAT and count is not None else found


_RENDERED: Final = frozenset(
    {
        "input", "instructions", "max_completion_tokens", "max_output_tokens", "max_tokens",
        "messages", "model", "output_config", "reasoning", "reasoning_effort", "seed", "stop",
        "stop_sequences", "stream", "stream_options", "system", "temperature", "tools", "top_p",
    }
)  # fmt: skip
