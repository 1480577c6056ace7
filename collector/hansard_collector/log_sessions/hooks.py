"""Log records of hooks, `hansard.hook.<event>`: what `hansard hook` reports of any agent's session.

They are records of the session of the agent that ran the hook, beside those that it exports itself:
the same call is one step, by its id, and the session's turns are those of the agent's own records
or spans. Where there are none, the whole session is one run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions import gen_ai_steps
from hansard_collector.log_sessions.marks import (
    TOOL,
    EntryType,
    LogAgent,
    LogEntry,
    LogMark,
    LogStep,
    failure_of,
    newest_content,
    newest_text,
    present,
    prompt_text,
    text_of,
)

PREFIX: Final = "hansard.hook."
SEQUENCE: Final = "hook"  # of all rows that these records make
EVALUATED: Final = f"{PREFIX}evaluated"
WARNED: Final = f"{PREFIX}warned"
ENDED: Final = f"{PREFIX}post_tool_use"
_CALLS: Final = (f"{PREFIX}pre_tool_use", EVALUATED, WARNED, ENDED)
_PROMPT: Final = f"{PREFIX}prompt"
_STOP: Final = f"{PREFIX}stop"
_DIALECTS: Final[Mapping[str, str]] = {
    "claude-code": "claude_code",
    "codex": "codex",
    "codex_cli_rs": "codex",
    "gemini-cli": "gemini_cli",
}
_FACTS: Final = (
    "hansard.hook.score", "hansard.hook.threshold", "hansard.hook.warned", "hansard.hook.rule",
    "hansard.hook.classifier", "hansard.hook.classifier_step", "hansard.hook.fallback",
    "agent_id", "agent_type", "permission_mode",
)  # fmt: skip


def speaks(log: LogView) -> bool:
    """Return whether a record is of a hook."""
    return log.event_name.startswith(PREFIX)


def dialect_of(log: LogView) -> str:
    """Return the dialect of the agent that ran the hook; `generic` for an unknown one."""
    return _DIALECTS.get(values.text(log.resource.get("service.name")) or "", "generic")


def read(log: LogView) -> LogMark:
    """Return the parent of a record: its call, or the session as a whole."""
    if log.event_name in _CALLS:
        return LogMark(EntryType.STEP, TOOL, key=text_of(log, "tool_use_id"), sequence=SEQUENCE)
    return LogMark(EntryType.SESSION, sequence=SEQUENCE)


def joined(agent: LogAgent) -> LogAgent:
    """Return an agent whose steps come from hooks, from its own records, or from both."""

    def build(kind: str, entries: Sequence[LogEntry]) -> LogStep | None:
        own, hooked = _apart(entries)
        if not hooked:
            return agent.build(kind, own)
        step = agent.build(kind, own) if own else None
        return _build(hooked) if step is None else _completed(step, hooked)

    def root(entries: Sequence[LogEntry]) -> LogStep:
        own, hooked = _apart(entries)
        return agent.root(own) if own else _root(hooked)

    return replace(agent, build=build, root=root)


def _apart(entries: Sequence[LogEntry]) -> tuple[list[LogEntry], list[LogEntry]]:
    """Return the agent's own records, and those of hooks."""
    hooked = [entry for entry in entries if speaks(entry.log)]
    return ([entry for entry in entries if not speaks(entry.log)] if hooked else [*entries]), hooked


def _build(entries: Sequence[LogEntry]) -> LogStep:
    """Return the step of a call that only hooks report: from before it to after it."""
    logs = [entry.log for entry in entries]
    ends = [entry for entry in entries if entry.log.event_name == ENDED]
    last = (ends or entries)[-1]
    return gen_ai_steps.tool(
        name=newest_text(logs, "tool_name"),
        call_id=newest_text(logs, "tool_use_id"),
        arguments=newest_content(logs, "tool_input"),
        result=newest_content(logs, "tool_response"),
        start_ns=min(entry.time_ns for entry in entries),
        end_ns=last.time_ns,
        attributes=_facts(logs),
        error=failure_of(last.log, "error") if ends else None,
    )


def _completed(step: LogStep, entries: Sequence[LogEntry]) -> LogStep:
    """Return a step of the agent's own records with what only hooks report of it."""
    logs = [entry.log for entry in entries]
    known = step.attributes
    added = {
        "gen_ai.tool.call.arguments": newest_content(logs, "tool_input"),
        "gen_ai.tool.call.result": newest_content(logs, "tool_response"),
    }
    has_arguments = any(
        key in known
        for key in ("gen_ai.tool.call.arguments", "tool_input", "tool_parameters", "arguments")
    )
    if has_arguments:
        del added["gen_ai.tool.call.arguments"]
    return replace(step, attributes={**present(added), **_facts(logs), **known})


def _root(entries: Sequence[LogEntry]) -> LogStep:
    """Return the session's own step: the prompts, and the last response."""
    logs = [entry.log for entry in entries]
    first = logs[0]
    name = values.text(first.resource.get("service.name")) or "agent"
    step = gen_ai_steps.turn(name, entries, prompts=(), session=text_of(first, "session.id"))
    ends = [log for log in logs if log.event_name == _STOP]
    content = {
        "gen_ai.input.messages": prompt_text([log for log in logs if log.event_name == _PROMPT]),
        "gen_ai.output.messages": newest_content(ends, "last_assistant_message"),
        "cwd": newest_content(logs, "cwd"),
    }
    return replace(step, attributes={**step.attributes, **present(content)})


def _facts(logs: Sequence[LogView]) -> dict[str, Value]:
    """Return what hooks report of a call beside its content: its score, and whether they warned."""
    return {key: log.attributes[key] for log in logs for key in _FACTS if key in log.attributes}
