"""Agents without a module of their own: events with the names and keys that most of them use.

Forks keep the shape of what they were made from (Qwen Code logs `qwen-code.api_response` with
Gemini CLI's keys). Instrumentation by the conventions logs one event a call with everything in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_collector.dialects import others
from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions import gen_ai_steps
from hansard_collector.log_sessions.marks import (
    LLM,
    TASK,
    TOOL,
    EntryType,
    LogAgent,
    LogEntry,
    LogMark,
    LogStep,
    copied,
    duration_of,
    failure_of,
    newest_content,
    newest_text,
    present,
    text_of,
)

DIALECT = "generic"
_DETAILS = "gen_ai.client.inference.operation.details"
_PROMPTS = ("prompt.id", "prompt_id", "turn.id")
_REQUESTS = ("request_id", "gen_ai.response.id", "response_id")
_CALLS = ("tool_use_id", "call_id", "tool_call_id", "gen_ai.tool.call.id")
_MODELS = ("gen_ai.request.model", "gen_ai.response.model", "model")
# The conventions' own key first; without a word on cached tokens they count as the conventions do.
_USAGE = {
    "gen_ai.usage.input_tokens": ("gen_ai.usage.input_tokens", "input_tokens"),
    "gen_ai.usage.output_tokens": ("gen_ai.usage.output_tokens", "output_tokens"),
    "gen_ai.usage.cache_read.input_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "cache_read_tokens", "cached_tokens",
    ),
    "gen_ai.usage.cache_write.input_tokens": (
        "gen_ai.usage.cache_write.input_tokens", "cache_creation_tokens",
    ),
    "gen_ai.usage.cost": ("gen_ai.usage.cost", "cost_usd"),
}  # fmt: skip
_TASKS = ("chat_compression", "compaction")
_KNOWN = frozenset(
    {
        "user_prompt", "api_request", "api_response", "api_error", "assistant_response",
        "tool_call", "tool_result", "tool_decision", *_TASKS,
    }
)  # fmt: skip


def speaks(log: LogView) -> bool:
    agent, dot, event = log.event_name.rpartition(".")
    return log.event_name == _DETAILS or bool(agent and dot and event in _KNOWN)


def _name(log: LogView) -> str:
    return _DETAILS if log.event_name == _DETAILS else log.event_name.rpartition(".")[2]


def read(log: LogView) -> LogMark | None:
    name, prompt = _name(log), text_of(log, *_PROMPTS)
    if name == "user_prompt":
        return LogMark(EntryType.PROMPT, prompt=prompt)
    if name in ("api_response", "api_error", _DETAILS) or (name == "api_request" and _counts(log)):
        return LogMark(
            EntryType.STEP,
            LLM,
            key=text_of(log, *_REQUESTS),
            duration_ns=duration_of(log),
            prompt=prompt,
        )
    if name == "api_request":
        return LogMark(EntryType.START, prompt=prompt)
    if name == "assistant_response":
        request = text_of(log, *_REQUESTS)
        entry_type, kind = (EntryType.STEP, LLM) if request else (EntryType.END, "")
        return LogMark(entry_type, kind, key=request, prompt=prompt)
    call = text_of(log, *_CALLS)
    if name in ("tool_call", "tool_result") or (name == "tool_decision" and call):
        return LogMark(EntryType.STEP, TOOL, key=call, duration_ns=duration_of(log), prompt=prompt)
    if name in _TASKS:
        return LogMark(EntryType.STEP, TASK, duration_ns=duration_of(log), prompt=prompt)
    return LogMark(EntryType.NOTE, prompt=prompt)


def _counts(log: LogView) -> bool:
    keys = (*_USAGE["gen_ai.usage.input_tokens"], *_USAGE["gen_ai.usage.output_tokens"])
    return any(values.count(log.attributes.get(key)) is not None for key in keys)


def build(kind: str, entries: Sequence[LogEntry]) -> LogStep | None:
    if kind == LLM:
        return _build_call(entries)
    if kind == TOOL:
        return _build_tool(entries)
    last = entries[-1]
    start_ns = last.time_ns - duration_of(last.log)
    return LogStep(last.log.event_name, start_ns, last.time_ns, copied([last.log]))


def _build_call(entries: Sequence[LogEntry]) -> LogStep:
    answers = [entry for entry in entries if _name(entry.log) == "assistant_response"]
    starts = [entry for entry in entries if _starts(entry.log)]
    ends = [entry for entry in entries if entry not in answers and entry not in starts] or answers
    end = ends[-1]
    failed = _name(end.log) == "api_error"
    error, facts = gen_ai_steps.failure(end.log) if failed else (None, {})
    logs = [entry.log for entry in (*starts, *answers, *ends)]
    attributes: dict[str, Value] = {
        **copied(logs, but={"request_text", "response_text", "response", "error", "error.message"}),
        **({} if failed else others.gemini_usage(end.log.attributes) | _usage(logs)),
        **present(
            {
                "gen_ai.response.finish_reasons": end.log.attributes.get("finish_reasons"),
                "gen_ai.input.messages": newest_content(
                    logs, "gen_ai.input.messages", "request_text"
                ),
                "gen_ai.output.messages": newest_content(
                    logs, "gen_ai.output.messages", "response_text", "response"
                ),
            }
        ),
        **facts,
    }
    start_ns = min([end.time_ns - duration_of(end.log), *(entry.time_ns for entry in starts)])
    return gen_ai_steps.call(
        model=text_of(end.log, *_MODELS),
        start_ns=start_ns,
        end_ns=end.time_ns,
        attributes=attributes,
        error=error,
    )


def _starts(log: LogView) -> bool:
    return _name(log) == "api_request" and not _counts(log)


def _usage(logs: Sequence[LogView]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for log in logs:
        for key, sent in _USAGE.items():
            values = (log.attributes[name] for name in sent if name in log.attributes)
            found |= present({key: next(values, None)})
    return found


def _build_tool(entries: Sequence[LogEntry]) -> LogStep:
    results = [entry for entry in entries if _name(entry.log) != "tool_decision"]
    last = (results or entries)[-1]
    log = last.log
    logs = [entry.log for entry in entries]
    return gen_ai_steps.tool(
        name=newest_text(logs, "gen_ai.tool.name", "tool_name", "function_name"),
        call_id=newest_text(logs, *_CALLS),
        arguments=newest_content(
            logs,
            "gen_ai.tool.call.arguments", "function_args", "tool_input", "tool_parameters",
            "arguments",
        ),
        result=newest_content(logs, "gen_ai.tool.call.result", "output", "result"),
        start_ns=min(last.time_ns - duration_of(log), *(entry.time_ns for entry in entries)),
        end_ns=last.time_ns,
        attributes=copied(logs),
        error=failure_of(log, "error", "error.message"),
    )  # fmt: skip


def root(entries: Sequence[LogEntry]) -> LogStep:
    log = entries[0].log
    name = text_of(log, "gen_ai.agent.name") or log.event_name.rpartition(".")[0]
    if log.event_name == _DETAILS:
        service = log.resource.get("service.name")
        name = text_of(log, "gen_ai.agent.name") or (service if isinstance(service, str) else "")
    prompts = [entry.log for entry in entries if _name(entry.log) == "user_prompt"]
    session = text_of(log, *SESSIONS)
    return gen_ai_steps.turn(name or "agent", entries, prompts=prompts, session=session)


SESSIONS = ("gen_ai.conversation.id", "session.id", "conversation.id")
GENERIC = LogAgent(DIALECT, read, build, root)
