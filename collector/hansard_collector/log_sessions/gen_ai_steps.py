"""Steps in the keys of the GenAI conventions, for agents whose spans speak them or none at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hansard_collector.dialects.engine import values
from hansard_collector.dialects.engine.item_views import LogView, Value
from hansard_collector.log_sessions.marks import (
    LogEntry,
    LogStep,
    copied,
    of_session,
    present,
    prompt_text,
    text_of,
)


def turn(
    name: str, entries: Sequence[LogEntry], *, prompts: Sequence[LogView], session: str
) -> LogStep:
    """Return a turn's own step: the agent with its prompt."""
    first = entries[0]
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": session,
        **of_session(first.log),
        **copied(prompts[:1], but={"prompt"}),
        **present({"gen_ai.input.messages": prompt_text(prompts)}),
    }
    return LogStep(f"invoke_agent {name}", first.time_ns, first.time_ns, attributes=attributes)


def call(
    *, model: str, start_ns: int, end_ns: int, attributes: Mapping[str, Value], error: str | None
) -> LogStep:
    """Return a model call."""
    return LogStep(
        f"chat {model}".rstrip(),
        start_ns,
        end_ns,
        attributes={
            "gen_ai.operation.name": "chat",
            **present({"gen_ai.request.model": model or None}),
            **attributes,
        },
        error=error,
    )


def tool(
    *,
    name: str,
    call_id: str,
    arguments: Value,
    result: Value,
    start_ns: int,
    end_ns: int,
    attributes: Mapping[str, Value],
    error: str | None,
) -> LogStep:
    """Return a tool that was run, or was decided on."""
    return LogStep(
        f"execute_tool {name}".rstrip(),
        start_ns,
        end_ns,
        attributes={
            **attributes,
            "gen_ai.operation.name": "execute_tool",
            **present(
                {
                    "gen_ai.tool.name": name or None,
                    "gen_ai.tool.call.id": call_id or None,
                    "gen_ai.tool.call.arguments": arguments,
                    "gen_ai.tool.call.result": result,
                }
            ),
        },
        error=error,
    )


def failure(log: LogView) -> tuple[str, dict[str, Value]]:
    """Return a failed request's message, and its facts under the keys of the conventions."""
    facts = {
        "error.type": text_of(log, "error.type", "error_type") or None,
        "http.response.status_code": values.first(
            log.attributes, ("http.response.status_code", "http.status_code", "status_code")
        ),
    }
    return text_of(log, "error.message", "error") or "the request failed", present(facts)
