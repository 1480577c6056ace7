"""Claude Code's own spans, with the log records that carry their ids.

Input tokens exclude the cached ones. `new_context` is what is new since the previous call; system
prompt and tool schemas are logged once a hash and only named after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_collector.dialects.content import chat, tool_lists
from hansard_collector.dialects.content.parts import result_of
from hansard_collector.dialects.engine.sources import first_record
from hansard_collector.dialects.engine.span_reader import Reading, ReadRecord
from hansard_collector.dialects.engine.values import (
    count,
    first,
    flag,
    is_content,
    opened,
    real,
    text,
)
from hansard_compiler.calls import Json, Message

NAME = "claude_code"

ROLES: Mapping[str, str] = {
    "interaction": "agent",
    "subagent.spawn": "agent",
    "llm_request": "llm",
    "tool": "tool",
    "mcp.rpc": "mcp",
    "tool.blocked_on_user": "task",
    "tool.execution": "task",
    "compaction": "task",
    "hook": "task",
    "bash.subprocess": "task",
}


def role_by_name(reading: Reading, _: str) -> str | None:
    return ROLES.get(reading.view.name.removeprefix("claude_code."))


def input_tokens(reading: Reading, key: str) -> int | None:
    attributes = reading.view.attributes
    fresh = count(attributes[key])
    if fresh is None:
        return None
    cached = (
        count(attributes.get("cache_read_tokens")),
        count(attributes.get("cache_creation_tokens")),
    )
    return fresh + sum(part or 0 for part in cached)


def output_log(reading: Reading, _: str) -> tuple[Message, ...] | None:
    sent = (record.attributes.get("response") for record in _logs(reading, "assistant_response"))
    return tuple(found for response in sent for found in chat.response_messages(response)) or None


def system_log(reading: Reading, _: str) -> tuple[Message, ...] | None:
    """The log `system_prompt` whose hash the span names."""
    prompt_hash = reading.view.attributes.get("system_prompt_hash")
    for record in _logs(reading, "system_prompt"):
        sent = record.attributes
        known = first(sent, ("system_prompt_hash", "hash"))
        if known is None or prompt_hash is None or known == prompt_hash:
            prompt = first(sent, ("system_prompt", "content", "prompt"))
            if found := chat.system_messages(prompt):
                return found
    return None


def tools(reading: Reading, key: str) -> tuple[Json, ...] | None:
    """`tools`: `[{name, hash}]`, filled from the log records `tool` with those hashes."""
    listed = reading.opened(key)
    if not isinstance(listed, list):
        return None
    logged = {text(record.attributes.get("hash")): record for record in _logs(reading, "tool")}
    return tool_lists.tools_of([_full(item, logged) for item in listed]) or None


def _full(item: Any, logged: Mapping[Any, ReadRecord]) -> Any:
    if not isinstance(item, dict):
        return item
    digest = item.get("hash")
    record = logged.get(digest) if isinstance(digest, str) else None
    if record is None:
        return item
    schema = opened(first(record.attributes, ("schema", "tool", "definition", "body")))
    return {**schema, "name": item.get("name")} if isinstance(schema, dict) else item


def tool_arguments(reading: Reading, key: str) -> Any:
    return reading.opened(key) if is_content(reading.view.attributes[key]) else None


def tool_detail(reading: Reading, key: str) -> Any:
    """`full_command` or `file_path`, where the input itself is not sent."""
    value = text(reading.view.attributes[key])
    return None if value is None else {key: value}


def logged_cost(reading: Reading, _: str) -> float | None:
    """`cost_usd` of the log `api_request` of this request."""
    for record in _requests(reading):
        usd = real(record.attributes.get("cost_usd"))
        if usd is not None:
            return usd
        micros = real(record.attributes.get("cost_usd_micros"))
        if micros is not None:
            return micros / 1_000_000
    return None


def logged_model(reading: Reading, _: str) -> str | None:
    """The model that the records of a response name: the one that gave it."""
    records = [*_logs(reading, "assistant_response"), *_requests(reading)]
    return next((name for one in records if (name := text(one.attributes.get("model")))), None)


def logged_count(name: str) -> Any:
    """A reader of a number in the log `api_request`, for what the span does not hold."""

    def read(reading: Reading, _: str) -> int | None:
        found = (count(record.attributes.get(name)) for record in _requests(reading))
        return next((number for number in found if number is not None), None)

    return read


def _requests(reading: Reading) -> list[ReadRecord]:
    """The logs of this very request: a log of another request of the turn does not count."""
    request_id = reading.view.attributes.get("request_id")
    return [
        record
        for record in _logs(reading, "api_request")
        if request_id is None or record.attributes.get("request_id") in (None, request_id)
    ]


def _logs(reading: Reading, name: str) -> list[ReadRecord]:
    return reading.records(name, f"claude_code.{name}")


def failed(reading: Reading, key: str) -> bool | None:
    return True if flag(reading.view.attributes[key]) is False else None


prompt_log = first_record(
    ("user_prompt", "claude_code.user_prompt"),
    "prompt",
    read=lambda prompt: chat.messages_of(prompt, "user") or None,
)
# The arguments of a tool that only the log of its result has, or only a hook reports.
logged_arguments = first_record(
    ("tool_result", "claude_code.tool_result"), "tool_input", "tool_parameters"
)
hooked_arguments = first_record(("hansard.hook.post_tool_use",), "tool_input")
hooked_result = first_record(("hansard.hook.post_tool_use",), "tool_response")
tool_output = first_record(
    ("tool.output",), "output", "content", "diff", read=lambda sent: result_of(opened(sent))
)

# A turn is Claude Code's own, as it is in runs that are made of its log records.
AGENTS = {"interaction": "claude-code"}
# A turn is ended without a status, also where its last request failed and nothing followed.
WITHOUT_STATUS = {"interaction": True}
# Read beside what is found by them; the rest is in the table.
EVENTS = frozenset({"tool", "claude_code.tool"})
PARAMETERS = {"effort": "effort", "speed": "speed"}
PROMPT_LOGS = ("event user_prompt", "event claude_code.user_prompt")
ANSWER_LOGS = ("event assistant_response", "event claude_code.assistant_response")
SERVED_LOGS = (*ANSWER_LOGS, "event api_request", "event claude_code.api_request")
TOOL_LOGS = ("event tool_result", "event claude_code.tool_result")
HOOK_LOGS = ("event hansard.hook.post_tool_use",)  # also of agents without a module
SYSTEM_LOGS = ("event system_prompt", "event claude_code.system_prompt")


def is_delta(reading: Reading) -> bool:
    """Whether the span gives only what is new since its previous call."""
    return NAME in reading.marks and is_content(reading.view.attributes.get("new_context"))
