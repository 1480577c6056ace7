"""Which agent a log record is of: the first in the table that speaks so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.dialects.engine.item_views import LogView
from hansard_collector.log_sessions import claude_code, codex, gemini_cli, generic, hooks
from hansard_collector.log_sessions.marks import LogAgent, SessionEvent, text_of

# Whether a record is of the agent, the agent, and the keys under which it names its session.
_TABLE: tuple[tuple[Callable[[LogView], bool], LogAgent, tuple[str, ...]], ...] = (
    (claude_code.speaks, claude_code.CLAUDE_CODE, ("session.id",)),
    (codex.speaks, codex.CODEX, ("conversation.id",)),
    (gemini_cli.speaks, gemini_cli.GEMINI_CLI, ("session.id",)),
    (generic.speaks, generic.GENERIC, generic.SESSIONS),
)
AGENTS: Mapping[str, LogAgent] = {agent.dialect: hooks.joined(agent) for _, agent, _ in _TABLE}


def recognise(log: LogView, record: LogRecord) -> SessionEvent | None:
    """Return what a log record is in the session of a coding agent; None for any other record.

    A record that names no session is none: its turn is unknown.
    """
    if not log.event_name and not isinstance(log.body, str):
        return None
    if hooks.speaks(log):
        return _of_hook(log, record)
    for speaks, agent, keys in _TABLE:
        if not speaks(log):
            continue
        session = text_of(log, *keys)
        mark = agent.read(log) if session else None
        if mark is None:
            return None
        return SessionEvent(agent.dialect, session, mark, _digest_of(record))
    return None


def _of_hook(log: LogView, record: LogRecord) -> SessionEvent | None:
    session = text_of(log, "session.id")
    if not session:
        return None
    return SessionEvent(hooks.dialect_of(log), session, hooks.read(log), _digest_of(record))


def _digest_of(record: LogRecord) -> str:
    return hashlib.sha256(record.SerializeToString()).hexdigest()[:16]
