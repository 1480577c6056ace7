"""Claude Code's spans, with the logs that carry their ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hansard_collector.dialects.engine.normal_form import Normalised
from tests.collector.dialects.maker import call_of, event, log, read

_SCOPE = "com.anthropic.claude_code.tracing"


def _span(kind: str, attributes: dict[str, Any], **more: Any) -> Normalised:
    return read({"span.type": kind, **attributes}, name=f"claude_code.{kind}", scope=_SCOPE, **more)


@pytest.mark.parametrize("by_name", [False, True], ids=["span.type", "name alone"])
@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("interaction", "agent"),
        ("llm_request", "llm"),
        ("tool", "tool"),
        ("tool.blocked_on_user", "task"),
        ("tool.execution", "task"),
        ("mcp.rpc", "mcp"),
        ("subagent.spawn", "agent"),
        ("compaction", "task"),
        ("hook", "task"),
        ("bash.subprocess", "task"),
    ],
)
def test_each_span_type_has_its_role(kind: str, role: str, by_name: bool) -> None:
    shown = read({} if by_name else {"span.type": kind}, name=f"claude_code.{kind}", scope=_SCOPE)

    assert shown.role == role


_REQUEST = {
    "span.type": "llm_request",
    "model": "claude-sonnet-4-5",
    "gen_ai.system": "anthropic",
    "gen_ai.request.model": "claude-sonnet-4-5",
    "input_tokens": 40,
    "output_tokens": 29,
    "cache_read_tokens": 64,
    "cache_creation_tokens": 20,
    "ttft_ms": 120,
    "request_id": "req_1",
    "stop_reason": "tool_use",
    "effort": "high",
    "speed": "fast",
    "session.id": "session",
    "gen_ai.conversation.id": "of the sub-agent",
    "new_context": json.dumps([{"role": "user", "content": "And tomorrow?"}]),
    "response.model_output": "Sunny.",
}


def test_a_request_is_a_call_whose_input_includes_the_cached_tokens() -> None:
    shown = read(_REQUEST, name="claude_code.llm_request", scope=_SCOPE)
    call = shown.call

    assert call is not None
    assert (call.tokens.input, call.tokens.output) == (124, 29)
    assert (call.tokens.cache_read, call.tokens.cache_write) == (64, 20)
    assert call.sources["tokens.input"].startswith("input_tokens + cache_read_tokens")
    assert (call.response_id, call.time_to_first_token_ms) == ("req_1", 120)
    assert call.parameters == {"effort": "high", "speed": "fast"}
    assert [message.text for message in (*call.input, *call.output)] == ["And tomorrow?", "Sunny."]


def test_its_input_is_what_is_new_since_the_previous_call() -> None:
    assert call_of(_REQUEST, name="claude_code.llm_request").input_is_delta is True
    assert call_of({"gen_ai.operation.name": "chat", "new_context": "x"}).input_is_delta is False


def test_the_session_groups_and_not_a_sub_agents_own_conversation() -> None:
    assert read(_REQUEST, name="claude_code.llm_request").conversation_id == "session"


def test_the_log_of_the_same_request_brings_its_cost() -> None:
    logs = [
        log("api_request", {"request_id": "req_2", "cost_usd": "9.9"}),
        log("api_request", {"request_id": "req_1", "cost_usd": "0.01"}),
    ]

    cost = call_of(_REQUEST, name="claude_code.llm_request", logs=logs).cost

    assert cost is not None
    assert cost.reported_usd == 0.01
    assert cost.source.startswith("genai-prices")


def test_the_system_prompt_is_found_in_the_log_with_its_hash() -> None:
    logs = [
        log("system_prompt", {"system_prompt_hash": "other", "system_prompt": "no"}),
        log("system_prompt", {"system_prompt_hash": "h", "system_prompt": "You are Claude."}),
    ]

    call = call_of(
        {**_REQUEST, "system_prompt_hash": "h"}, name="claude_code.llm_request", logs=logs
    )

    assert (call.input[0].role, call.input[0].text) == ("system", "You are Claude.")


def test_tools_named_by_hash_are_filled_from_their_logs() -> None:
    schema = {"description": "Runs.", "input_schema": {"type": "object"}}
    tools = json.dumps([{"name": "Bash", "hash": "b"}, {"name": "Read", "hash": "r"}])

    call = call_of(
        {**_REQUEST, "tools": tools},
        name="claude_code.llm_request",
        logs=[log("tool", {"hash": "b", "schema": json.dumps(schema)})],
    )

    assert call.tools == (
        {
            "type": "function",
            "name": "Bash",
            "description": "Runs.",
            "parameters": {"type": "object"},
        },
        {"type": "function", "name": "Read"},
    )


def test_a_failed_request_keeps_its_error_and_has_no_answer() -> None:
    shown = _span(
        "llm_request",
        {"success": "false", "error": "overloaded", "status_code": "529", "input_tokens": "0"},
    )

    assert shown.error is not None
    assert (shown.error.message, shown.error.http_status) == ("overloaded", 529)
    assert shown.call is not None
    assert (shown.call.output, shown.call.error) == ((), shown.error)


def test_a_tool_shows_its_input_and_the_output_of_its_event() -> None:
    shown = _span(
        "tool",
        {
            "tool_name": "Bash",
            "gen_ai.tool.name": "Bash",
            "tool_input": '{"command": "ls"}',
            "new_context": "later",
        },
        events=[event("tool.output", {"output": "a.txt"})],
    )

    assert shown.tool is not None
    assert (shown.tool.name, shown.tool.arguments) == ("Bash", {"command": "ls"})
    assert shown.tool.result == "a.txt"


@pytest.mark.parametrize("marker", ["<REDACTED>", ""])
def test_redacted_prompts_are_not_content(marker: str) -> None:
    shown = _span("interaction", {"user_prompt": marker, "gen_ai.operation.name": "invoke_agent"})

    assert shown.input is None


def test_an_interaction_shows_what_the_user_asked() -> None:
    assert _span("interaction", {"user_prompt": "Fix the test"}).input == "Fix the test"


def test_its_plain_keys_mean_nothing_on_other_spans() -> None:
    shown = read({"model": "T-800", "input_tokens": 5, "tool_name": "x", "error": "no"})

    assert (shown.role, shown.call, shown.tokens_sum, shown.error) == ("other", None, None, None)
