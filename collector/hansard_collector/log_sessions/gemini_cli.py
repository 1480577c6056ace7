"""Gemini CLI's log events (genai-dialects.md §15; google-gemini/gemini-cli, telemetry/types.ts).

A call is `api_response` or `api_error`; the event of the conventions that repeats the same call
has its time to the millisecond and no prompt. Thoughts and tool prompts are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hansard_collector.dialects import others
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions import gen_ai_steps
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
    named,
    present,
    text_of,
)

DIALECT = "gemini_cli"
NAME = "gemini-cli"
_PREFIX = "gemini_cli."
_DETAILS = "gen_ai.client.inference.operation.details"
# A sub-agent's prompts are named after the one that they serve.
_MAIN_PROMPT = re.compile(r"(.+?########\d+)")
_CONTENT = frozenset({"request_text", "response_text", "function_args"})
_COUNTS = frozenset(
    {
        "input_token_count", "output_token_count", "cached_content_token_count",
        "thoughts_token_count", "tool_token_count", "total_token_count",
    }
)  # fmt: skip


def speaks(log: LogView) -> bool:
    by_gemini = log.resource.get("service.name") == NAME or "installation.id" in log.attributes
    return log.event_name.startswith(_PREFIX) or (log.event_name == _DETAILS and by_gemini)


def read(log: LogView) -> LogMark | None:
    prompt = _prompt_id(log)
    name = log.event_name.removeprefix(_PREFIX)
    if name == "user_prompt":
        return LogMark(EntryType.PROMPT, prompt=prompt)
    if name == "api_request":
        return LogMark(EntryType.START, prompt=prompt)
    if name in ("api_response", "api_error", _DETAILS):
        moment = text_of(log, "event.timestamp")
        return LogMark(
            EntryType.ABOUT if name == _DETAILS else EntryType.STEP,
            LLM,
            key=f"at {moment}" if moment else "",
            duration_ns=duration_of(log),
            prompt=prompt,
        )
    kind = _KINDS.get(name)
    if kind is None:
        return LogMark(EntryType.NOTE, prompt=prompt)
    key = text_of(log, "agent_id") if kind == AGENT else text_of(log, "call_id", "tool_call_id")
    return LogMark(EntryType.STEP, kind, key=key, duration_ns=duration_of(log), prompt=prompt)


_KINDS = {
    "tool_call": TOOL,
    "agent.start": AGENT,
    "agent.finish": AGENT,
    "chat_compression": TASK,
}


def _prompt_id(log: LogView) -> str:
    sent = text_of(log, "prompt_id")
    main = _MAIN_PROMPT.match(sent)
    return main[1] if main else sent


def build(kind: str, entries: Sequence[LogEntry]) -> LogStep | None:
    if kind == LLM:
        return build_call(entries)
    if kind == TOOL:
        return build_tool(entries)
    first, last = entries[0], entries[-1]
    attributes = copied([entry.log for entry in entries])
    error = text_of(last.log, "error", "error.message") or None
    start_ns = min(first.time_ns, last.time_ns - duration_of(last.log))
    if kind == TASK:
        return LogStep(last.log.event_name, start_ns, last.time_ns, attributes, error)
    name = text_of(last.log, "agent_name")
    attributes |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return LogStep(f"invoke_agent {name}".rstrip(), start_ns, last.time_ns, attributes, error)


def build_call(entries: Sequence[LogEntry]) -> LogStep | None:
    """Return a call of its response or error; the other records alone make none."""
    ends = [entry for entry in entries if _is(entry, "api_response", "api_error")]
    if not ends:
        return None
    end = ends[-1]
    failed = _is(end, "api_error")
    error, facts = gen_ai_steps.failure(end.log) if failed else (None, {})
    details = [entry.log for entry in entries if entry.log.event_name == _DETAILS]
    attributes: dict[str, Value] = {
        **copied(details, but={"gen_ai.input.messages", "gen_ai.output.messages"}),
        **copied([end.log], but={*_CONTENT, *_COUNTS, "error", "error.message"}),
        **({} if failed else others.gemini_usage(end.log.attributes)),
        **present({"gen_ai.response.finish_reasons": end.log.attributes.get("finish_reasons")}),
        **_content(entries, end.log, details=details),
        **facts,
    }
    return gen_ai_steps.call(
        model=text_of(end.log, "model"),
        start_ns=end.time_ns - duration_of(end.log),
        end_ns=end.time_ns,
        attributes=attributes,
        error=error,
    )


def _content(
    entries: Sequence[LogEntry], end: LogView, *, details: Sequence[LogView]
) -> dict[str, Value]:
    """The messages, where the event of the conventions does not hold them already."""
    found: dict[str, Value] = {}
    requests = [entry.log for entry in entries if _is(entry, "api_request")]
    if requests and not any("gen_ai.input.messages" in log.attributes for log in details):
        found["gen_ai.input.messages"] = content_of(requests[-1], "request_text")
    if not any("gen_ai.output.messages" in log.attributes for log in details):
        found["gen_ai.output.messages"] = content_of(end, "response_text")
    return present(found)


def build_tool(entries: Sequence[LogEntry]) -> LogStep:
    last = entries[-1]
    log = last.log
    return gen_ai_steps.tool(
        name=text_of(log, "function_name", "tool_name"),
        call_id=text_of(log, "call_id", "tool_call_id"),
        arguments=content_of(log, "function_args"),
        result=content_of(log, "output"),
        start_ns=last.time_ns - duration_of(log),
        end_ns=last.time_ns,
        attributes=copied([log], but={"function_args", "output"}),
        error=failure_of(log, "error", "error.message"),
    )


def _is(entry: LogEntry, *names: str) -> bool:
    return entry.log.event_name.rpartition(".")[2] in names


def root(entries: Sequence[LogEntry]) -> LogStep:
    prompts = [entry.log for entry in named(entries, "gemini_cli.user_prompt")]
    session = text_of(entries[0].log, "session.id")
    return gen_ai_steps.turn(NAME, entries, prompts=prompts, session=session)


GEMINI_CLI = LogAgent(
    DIALECT,
    read,
    build,
    root,
    sent_as={TOOL: ("gen_ai.tool.call_id", "gen_ai.tool.call.id")},
    is_sent_near=True,
)
