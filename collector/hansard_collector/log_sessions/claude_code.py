"""Claude Code's log events (genai-dialects.md §13; vendor reference *Monitoring*).

Names are `claude_code.<event>` as body and `<event>` as attribute `event.name`. Its numbers keep
the keys and the arithmetic of its spans: input tokens exclude the cached ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions.marks import (
    AGENT,
    LLM,
    TASK,
    TOOL,
    EntryType,
    LogAgent,
    LogEntry,
    LogMark,
    LogStep,
    content_of,
    copied,
    duration_of,
    failure_of,
    of_session,
    present,
    prompt_text,
    text_of,
)

DIALECT = "claude_code"
NAME = "claude-code"
_PREFIX = "claude_code."
_SCOPE = "com.anthropic.claude_code"
# Content stays in the records, which the step has too.
_NOT_COPIED = frozenset({"response", "body", "body_ref", "body_length", "body_truncated"})


def speaks(log: LogView) -> bool:
    """Return whether a record is of this agent."""
    return (
        log.event_name.startswith(_PREFIX)
        or log.scope_name.startswith(_SCOPE)
        or log.resource.get("service.name") == NAME
        or (isinstance(log.body, str) and log.body.startswith(_PREFIX))
    )


def _name(log: LogView) -> str:
    return log.event_name.removeprefix(_PREFIX)


def read(log: LogView) -> LogMark | None:
    make = _MARKS.get(_name(log))
    return _mark(log, EntryType.NOTE) if make is None else make(log)


def _mark(
    log: LogView,
    entry_type: EntryType,
    kind: str = "",
    *,
    key: tuple[str, ...] = (),
    sequence: tuple[str, ...] = (),
    is_timed: bool = False,
) -> LogMark:
    return LogMark(
        entry_type,
        kind,
        key=text_of(log, *key),
        sequence=text_of(log, *sequence),
        duration_ns=duration_of(log) if is_timed else 0,
        prompt=text_of(log, "prompt.id"),
    )


def _answer(log: LogView) -> LogMark:
    """A record of a call that may be named only by when it comes (Bedrock, Vertex)."""
    if text_of(log, "request_id"):
        return _mark(log, EntryType.STEP, LLM, key=("request_id",), sequence=_QUERY)
    return _mark(log, EntryType.END, sequence=_QUERY)


def _tool(log: LogView) -> LogMark:
    if not text_of(log, "tool_use_id") and _name(log) == "tool_decision":
        return _mark(log, EntryType.NOTE)  # what was decided on is unknown
    return _mark(log, EntryType.STEP, TOOL, key=("tool_use_id",), is_timed=True)


_QUERY = ("query_source",)
_call = partial(_mark, entry_type=EntryType.STEP, kind=LLM, sequence=_QUERY, is_timed=True)
_MARKS: Mapping[str, Callable[[LogView], LogMark]] = {
    "user_prompt": partial(_mark, entry_type=EntryType.PROMPT),
    "api_request": partial(_call, key=("request_id", "client_request_id")),
    # The client's own id may stand for all attempts of a request: each of them failed by itself.
    "api_error": partial(_call, key=("request_id",)),
    "api_refusal": _answer,
    "assistant_response": _answer,
    "api_request_body": partial(_mark, entry_type=EntryType.START, sequence=_QUERY),
    "api_response_body": _answer,
    "tool_decision": _tool,
    "tool_result": _tool,
    "compaction": partial(_mark, entry_type=EntryType.STEP, kind=TASK, is_timed=True),
    "subagent_completed": partial(_mark, entry_type=EntryType.STEP, kind=AGENT, is_timed=True),
}


def build(kind: str, entries: Sequence[LogEntry]) -> LogStep | None:
    if kind == LLM:
        return _build_call(entries)
    if kind == TOOL:
        return _build_tool(entries)
    name = "claude_code.subagent.spawn" if kind == AGENT else "claude_code.compaction"
    last = entries[-1]
    attributes = copied([last.log])
    if kind == AGENT:
        found = text_of(last.log, "agent_type", "subagent_type", "agent.name")
        attributes |= present({"subagent_type": found or None})
    return LogStep(
        name,
        last.time_ns - duration_of(last.log),
        last.time_ns,
        attributes=attributes,
        error=failure_of(last.log, "error", "error_type"),
    )


def _build_call(entries: Sequence[LogEntry]) -> LogStep:
    by_name = {_name(entry.log): entry for entry in entries}  # of several attempts, the last
    done = by_name.get("api_request")
    failed = by_name.get("api_error") if done is None else None
    main = done or failed
    others = [entry.log for entry in entries if entry is not main]
    attributes = {
        "span.type": "llm_request",
        "gen_ai.system": "anthropic",
        **copied([*others, *([main.log] if main else [])], but=_NOT_COPIED),
        **_bodies(by_name),
    }
    model = values.text(attributes.get("model"))
    if model:
        attributes["gen_ai.request.model"] = model
    end_ns = main.time_ns if main else entries[-1].time_ns
    start_ns = main.time_ns - duration_of(main.log) if main else entries[0].time_ns
    error = None
    if failed is not None:
        error = text_of(failed.log, "error", "error_type") or "the request failed"
    return LogStep("claude_code.llm_request", start_ns, end_ns, attributes=attributes, error=error)


def _bodies(by_name: Mapping[str, LogEntry]) -> dict[str, Value]:
    """Raw bodies, where they came whole: a body that was cut off is no JSON any more."""
    found: dict[str, Value] = {}
    for name, key in (
        ("api_request_body", "gen_ai.input.messages"),
        ("api_response_body", "gen_ai.output.messages"),
    ):
        entry = by_name.get(name)
        body = content_of(entry.log, "body") if entry else None
        opened = values.mapping(body)
        if opened:
            found[key] = body
            tools, reason = opened.get("tools"), values.text(opened.get("stop_reason"))
            if isinstance(tools, list):
                found["gen_ai.tool.definitions"] = json.dumps(tools)
            found |= present({"stop_reason": reason})
    return found


def _build_tool(entries: Sequence[LogEntry]) -> LogStep:
    by_name = {_name(entry.log): entry for entry in entries}
    result = by_name.get("tool_result")
    decision = by_name.get("tool_decision")
    logs = [entry.log for entry in (decision, result) if entry is not None]
    last = result or entries[-1]
    return LogStep(
        "claude_code.tool",
        last.time_ns - duration_of(last.log),
        last.time_ns,
        attributes={"span.type": "tool", **copied(logs)},
        error=failure_of(last.log, "error", "error_type"),
    )


def root(entries: Sequence[LogEntry]) -> LogStep:
    prompts = [entry.log for entry in entries if _name(entry.log) == "user_prompt"]
    first = entries[0]
    attributes = {
        "span.type": "interaction",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": NAME,
        **of_session(first.log),
        **copied(prompts[:1], but={"prompt"}),
        **present({"user_prompt": prompt_text(prompts)}),
    }
    return LogStep("claude_code.interaction", first.time_ns, first.time_ns, attributes=attributes)


CLAUDE_CODE = LogAgent(
    DIALECT,
    read,
    build,
    root,
    sent_as={
        LLM: ("request_id", "client_request_id"),
        TOOL: ("tool_use_id", "gen_ai.tool.call.id"),
    },
)
