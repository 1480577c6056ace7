"""OpenAI Codex's log events (genai-dialects.md §14; openai/codex, codex-rs/otel).

The end of a model call is the server-sent event `response.completed` with token counts; the request
that began it is a record of its own, and neither names the other. All numbers are texts. A turn is
named on the final answer alone, if at all, so records belong to the last prompt before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions import gen_ai_steps
from hansard_collector.log_sessions.marks import (
    LLM,
    TOOL,
    EntryType,
    LogAgent,
    LogEntry,
    LogMark,
    LogStep,
    content_of,
    copied,
    duration_of,
    named,
    present,
    text_of,
)

DIALECT = "codex"
NAME = "codex"
_PREFIX = "codex."
_REQUESTS = ("codex.api_request", "codex.websocket_request")
_COUNTS = ("input_token_count", "output_token_count")
_USAGE = {
    "gen_ai.usage.input_tokens": "input_token_count",  # with the cached ones
    "gen_ai.usage.output_tokens": "output_token_count",  # with the reasoning
    "gen_ai.usage.cache_read.input_tokens": "cached_token_count",
    "gen_ai.usage.cache_write.input_tokens": "cache_write_token_count",
    "codex.usage.reasoning_output_tokens": "reasoning_token_count",
}
_OK = range(200, 400)


def speaks(log: LogView) -> bool:
    return log.event_name.startswith(_PREFIX)


def read(log: LogView) -> LogMark | None:
    name = log.event_name
    if name == "codex.user_prompt":
        return LogMark(EntryType.PROMPT, prompt=text_of(log, "turn.id"))
    if name in _REQUESTS:
        if _request_failed(log):
            return LogMark(EntryType.STEP, LLM, duration_ns=duration_of(log))
        return LogMark(EntryType.START, duration_ns=duration_of(log))
    if name == "codex.sse_event":
        return LogMark(EntryType.STEP, LLM) if _ends_call(log) else LogMark(EntryType.NOTE)
    if name == "codex.agent_response":
        return LogMark(EntryType.END)
    call = text_of(log, "call_id")
    if name == "codex.tool_result" or (name in _ABOUT_TOOLS and call):
        return LogMark(EntryType.STEP, TOOL, key=call, duration_ns=duration_of(log))
    return LogMark(EntryType.NOTE)


_ABOUT_TOOLS = ("codex.tool_decision", "codex.sandbox_outcome")


def _request_failed(log: LogView) -> bool:
    status = values.count(log.attributes.get("http.response.status_code"))
    refused = status is not None and status not in _OK
    return refused or bool(text_of(log, "error.message"))


def _ends_call(log: LogView) -> bool:
    """Every event of the stream is logged, the last one twice: once with what it cost."""
    if text_of(log, "error.message"):
        return True
    counted = any(values.count(log.attributes.get(key)) is not None for key in _COUNTS)
    return counted and text_of(log, "event.kind") == "response.completed"


def _is_end(log: LogView) -> bool:
    mark = read(log)
    return mark is not None and mark.entry_type is EntryType.STEP


def build(kind: str, entries: Sequence[LogEntry]) -> LogStep | None:
    return _build_tool(entries) if kind == TOOL else _build_call(entries)


def _build_call(entries: Sequence[LogEntry]) -> LogStep | None:
    ends = [entry for entry in entries if _is_end(entry.log)]
    if not ends:
        return None
    end = ends[-1]
    began = [entry for entry in entries if entry.log.event_name in _REQUESTS]
    start_ns = min(entry.time_ns - duration_of(entry.log) for entry in (began or [end]))
    failed = bool(text_of(end.log, "error.message")) or _request_failed(end.log)
    error, facts = gen_ai_steps.failure(end.log) if failed else (None, {})
    answers = named(entries, "codex.agent_response")
    response = content_of(answers[-1].log, "response") if answers else None
    attributes: dict[str, Value] = {
        **copied([end.log], but={*_USAGE.values(), "error.message", "duration_ms"}),
        **present({key: end.log.attributes.get(sent) for key, sent in _USAGE.items()}),
        **present({"gen_ai.output.messages": response}),
        **facts,
    }
    return gen_ai_steps.call(
        model=text_of(end.log, "model", "slug"),
        start_ns=min(start_ns, end.time_ns),
        end_ns=end.time_ns,
        attributes=attributes,
        error=error,
    )


def _build_tool(entries: Sequence[LogEntry]) -> LogStep:
    results = named(entries, "codex.tool_result")
    last = results[-1] if results else entries[-1]
    others = [entry.log for entry in entries if entry is not last]
    log = last.log
    output = content_of(log, "output")
    failed = bool(results) and values.flag(log.attributes.get("success")) is False
    return gen_ai_steps.tool(
        name=text_of(log, "tool_name"),
        call_id=text_of(log, "call_id"),
        arguments=content_of(log, "arguments"),
        result=output,
        start_ns=last.time_ns - duration_of(log),
        end_ns=last.time_ns,
        attributes=copied([*others, log], but={"arguments", "output"}),
        error=(str(output) if output else "failed") if failed else None,
    )


def root(entries: Sequence[LogEntry]) -> LogStep:
    prompts = [entry.log for entry in named(entries, "codex.user_prompt")]
    session = text_of(entries[0].log, "conversation.id")
    return gen_ai_steps.turn(NAME, entries, prompts=prompts, session=session)


CODEX = LogAgent(
    DIALECT,
    read,
    build,
    root,
    sent_as={TOOL: ("call_id", "gen_ai.tool.call.id")},
    is_sent_near=True,
)
