"""Log records that carry no trace ids: where each belongs, as rows without their content.

Settling a session works on these rows alone; the records themselves are read for the steps that
change. Every read is one range of an index, whatever the length of the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from typing import Any

import apsw

from hansard_store.search.attributes import attribute_token
from hansard_store.steps.flags import SpanFlag


@dataclass(frozen=True, slots=True)
class SessionLog:
    """One log record of a session; docs/columns.md describes the columns."""

    log: int  # log_record.id
    session: str
    time_ns: int
    start_ns: int
    entry_type: str
    kind: str
    key: str
    sequence: str
    lacks_prompt: bool
    trace_id: bytes | None


_COLUMNS = ", ".join(column.name for column in fields(SessionLog))
_ADD = f"INSERT INTO session_log ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_FIND = f"SELECT {_COLUMNS} FROM session_log WHERE log = ?"
_DROP = "DELETE FROM session_log WHERE log = ?"
_MOVE = "UPDATE session_log SET trace_id = ? WHERE log = ?"
_PLACE = "UPDATE log_record SET trace_id = ?, span_id = ? WHERE id = ?"
_SPAN_OF = "SELECT span_id FROM log_record WHERE id = ?"
_PLACE_SPAN = "UPDATE log_record SET span_id = ? WHERE id = ?"
_LAST_PROMPT = """
SELECT trace_id FROM session_log
WHERE session = ? AND time_ns <= ? AND entry_type = 'prompt'
ORDER BY time_ns DESC, trace_id DESC LIMIT 1
"""
_NEXT_PROMPT = """
SELECT time_ns FROM session_log
WHERE session = ? AND time_ns > ? AND entry_type = 'prompt' ORDER BY time_ns LIMIT 1
"""
_HAS_EARLIER_PROMPT = """
SELECT 1 FROM session_log WHERE session = ? AND time_ns < ? AND entry_type = 'prompt' LIMIT 1
"""
_WITHOUT_PROMPT = f"""
SELECT {_COLUMNS} FROM session_log
WHERE session = ? AND time_ns >= ? AND time_ns < ? AND lacks_prompt = 1 ORDER BY time_ns, log
"""
_OF_TRACE = f"SELECT {_COLUMNS} FROM session_log WHERE trace_id = ? ORDER BY time_ns, log"
_OF_TYPE = f"""
SELECT {_COLUMNS} FROM session_log WHERE trace_id = ? AND entry_type = ? ORDER BY time_ns, log
"""
_BY_KEY = f"SELECT {_COLUMNS} FROM session_log WHERE key = ? AND kind <> '' AND kind = ?"
_BOUNDS = """
SELECT coalesce(
  min(start_ns) FILTER (WHERE entry_type <> 'note' AND (entry_type <> 'session' OR has_prompt = 0)),
  min(start_ns) FILTER (WHERE entry_type <> 'note')
), max(time_ns)
FROM session_log,
  (SELECT count(*) AS has_prompt FROM session_log WHERE trace_id = ?1 AND entry_type = 'prompt')
WHERE trace_id = ?1
"""
_OF_SEQUENCE = f"""
SELECT {_COLUMNS} FROM session_log WHERE trace_id = ? AND sequence = ? ORDER BY time_ns, log
"""
# Records without a time are few, and a session's rows are read only while its turn is not known.
_TURN = """
SELECT trace_id FROM session_log
WHERE session = ? AND time_ns {side} ? AND sequence <> ? AND trace_id IS NOT NULL
ORDER BY time_ns {order}, log {order} LIMIT 1
"""
_TURNS_NEAR = (_TURN.format(side="<=", order="DESC"), _TURN.format(side=">", order="ASC"))
_SENT_RUN = """
SELECT trace_id FROM run WHERE conversation_id = ? AND synthetic = 0
ORDER BY started_ns, trace_id LIMIT 1
"""
_EARLIEST = """
SELECT log FROM session_log WHERE trace_id = ? ORDER BY time_ns, entry_type, key, log LIMIT 1
"""
_CLAIM = """
INSERT INTO traced_turn (turn, trace_id) VALUES (?, ?) ON CONFLICT DO NOTHING
"""
_CLAIMED = "SELECT trace_id FROM traced_turn WHERE turn = ?"
_CLAIMS = "SELECT 1 FROM traced_turn WHERE trace_id = ?"
_SYNTHETIC = int(SpanFlag.SYNTHETIC)
_MADE_SPANS = f"SELECT id, span_id FROM span WHERE trace_id = ? AND flags & {_SYNTHETIC} <> 0"
_LAST_CALL = """
SELECT key FROM session_log
WHERE trace_id = ? AND entry_type = 'step' AND kind = ? ORDER BY time_ns DESC, key DESC LIMIT 1
"""
_SPAN = "SELECT start_ns, end_ns, flags FROM span WHERE trace_id = ? AND span_id = ? AND side = 0"
_SENT_SPANS_WITH = f"""
SELECT span.trace_id, span.span_id
FROM attribute_fts CROSS JOIN span ON span.id = attribute_fts.rowid
WHERE attribute_fts MATCH ? AND span.role = ? AND span.flags & {_SYNTHETIC} = 0
LIMIT 8
"""
_CALLS_LOGGED = """
SELECT log FROM session_log WHERE session = ? AND time_ns BETWEEN ? AND ? AND kind = 'llm'
ORDER BY time_ns LIMIT 1000
"""
_CALL_ENDS = f"""
SELECT span.trace_id, span.span_id, span.end_ns FROM call JOIN span ON span.id = call.span
WHERE call.run = :run AND span.end_ns BETWEEN :from_ns AND :to_ns
  AND span.role = 'llm' AND span.dialect = :dialect AND span.flags & {_SYNTHETIC} = 0
"""
_AGENT_SPAN = f"""
SELECT span_id FROM span
WHERE trace_id = ? AND role = 'agent' AND flags & {_SYNTHETIC} = 0 ORDER BY sort_ns, span_id LIMIT 1
"""
_RUNS_OF_SESSION = """
SELECT id FROM run
WHERE conversation_id = :session AND started_ns <= :to_ns AND ended_ns >= :from_ns
"""
_SESSION_KEYS = ("session.id", "conversation.id", "gen_ai.conversation.id")
_PACKED = "SELECT id, time_ns, received_ns, record, resource, scope FROM log_record"
_RECORDS = f"""
{_PACKED} WHERE trace_id = ? AND span_id = ? ORDER BY time_ns, event_name, mac, ordinal LIMIT ?
"""
_RECORD = f"{_PACKED} WHERE id = ?"
# Newest by order of arrival: the page is opened by people, and a store may hold millions.
_HOMELESS = """
SELECT resource.service_name, scope.name, count(*), max(received_ns), count(trace_id)
FROM (SELECT id FROM log_record ORDER BY id DESC LIMIT ?) AS newest
JOIN log_record ON log_record.id = newest.id
JOIN resource ON resource.id = log_record.resource JOIN scope ON scope.id = log_record.scope
GROUP BY resource.service_name, scope.name ORDER BY resource.service_name, scope.name
"""
_IS_REPEATED = "SELECT ordinal > 0 FROM log_record WHERE id = ?"


def add_session_log(connection: apsw.Connection, row: SessionLog) -> None:
    """Note what a log record is; a record is noted once."""
    connection.execute(_ADD, astuple(row))


def find_session_log(connection: apsw.Connection, log: int) -> SessionLog | None:
    """Return what was noted of a log record."""
    return next(iter(_rows(connection, _FIND, (log,))), None)


def drop_session_log(connection: apsw.Connection, log: int) -> None:
    """Forget what was noted of a log record."""
    connection.execute(_DROP, (log,))


def place_log(
    connection: apsw.Connection, log: int, *, trace_id: bytes | None, span_id: bytes | None
) -> None:
    """Give a log record to a step of a run, or to the run alone."""
    connection.execute(_PLACE, (trace_id, span_id, log))
    connection.execute(_MOVE, (trace_id, log))


def place_on_span(connection: apsw.Connection, log: int, span_id: bytes) -> bytes | None:
    """Give a log record to a step of its run, and return the one that it was on."""
    before: bytes | None = connection.execute(_SPAN_OF, (log,)).get
    if before != span_id:
        connection.execute(_PLACE_SPAN, (span_id, log))
    return before


def last_prompt(connection: apsw.Connection, session: str, time_ns: int) -> bytes | None:
    """Return the trace id of the last prompt that was not after a time."""
    found: bytes | None = connection.execute(_LAST_PROMPT, (session, time_ns)).get
    return found


def next_prompt_ns(connection: apsw.Connection, session: str, time_ns: int) -> int | None:
    """Return when the next prompt after a time came."""
    found: int | None = connection.execute(_NEXT_PROMPT, (session, time_ns)).get
    return found


def is_first_prompt(connection: apsw.Connection, session: str, time_ns: int) -> bool:
    """Return whether no prompt of the session is known from before a time."""
    return connection.execute(_HAS_EARLIER_PROMPT, (session, time_ns)).get is None


def logs_without_prompt(
    connection: apsw.Connection, session: str, *, from_ns: int, before_ns: int
) -> list[SessionLog]:
    """Return the records of a time that name no prompt."""
    return _rows(connection, _WITHOUT_PROMPT, (session, from_ns, before_ns))


def logs_of_trace(connection: apsw.Connection, trace_id: bytes) -> list[SessionLog]:
    """Return all records assigned to a trace."""
    return _rows(connection, _OF_TRACE, (trace_id,))


def logs_of_types(
    connection: apsw.Connection, trace_id: bytes, types: Iterable[str]
) -> list[SessionLog]:
    """Return the records of a trace of these entry types."""
    return [row for one in types for row in _rows(connection, _OF_TYPE, (trace_id, one))]


def logs_in_sequence(
    connection: apsw.Connection, trace_id: bytes, sequence: str
) -> list[SessionLog]:
    """Return the records of one sequence of a trace."""
    return _rows(connection, _OF_SEQUENCE, (trace_id, sequence))


def turn_near(
    connection: apsw.Connection, session: str, time_ns: int, *, but_sequence: str
) -> bytes | None:
    """Return the trace of the last record before a time, else of the first one after it."""
    for sql in _TURNS_NEAR:
        found: bytes | None = connection.execute(sql, (session, time_ns, but_sequence)).get
        if found is not None:
            return found
    return None


def sent_run_of(connection: apsw.Connection, session: str) -> bytes | None:
    """Return the trace of the first stored run of a session that was sent as spans."""
    found: bytes | None = connection.execute(_SENT_RUN, (session,)).get
    return found


def logs_with_key(connection: apsw.Connection, key: str, kind: str) -> list[SessionLog]:
    """Return the records about a step of a kind that its sender calls so."""
    return _rows(connection, _BY_KEY, (key, kind))


def bounds_of(connection: apsw.Connection, trace_id: bytes) -> tuple[int | None, int | None]:
    """Return when the first thing of a trace began and its last record was made, in ns.

    What was noted before the prompt (a session's settings) is no beginning.
    """
    row: Any = connection.execute(_BOUNDS, (trace_id,)).fetchone()
    return row[0], row[1]


def earliest_log(connection: apsw.Connection, trace_id: bytes) -> int | None:
    """Return the log_record.id of a trace's first record."""
    found: int | None = connection.execute(_EARLIEST, (trace_id,)).get
    return found


def claim_turn(connection: apsw.Connection, turn: bytes, trace_id: bytes) -> bool:
    """Assign a turn to a trace that was sent; False when it has one already."""
    connection.execute(_CLAIM, (turn, trace_id))
    return connection.changes() > 0


def claimed_by(connection: apsw.Connection, turn: bytes) -> bytes | None:
    """Return the trace that a turn is assigned to."""
    found: bytes | None = connection.execute(_CLAIMED, (turn,)).get
    return found


def is_sent_trace(connection: apsw.Connection, trace_id: bytes) -> bool:
    """Return whether a trace has turns assigned to it, so that no step is made in it."""
    return connection.execute(_CLAIMS, (trace_id,)).get is not None


def made_spans(connection: apsw.Connection, trace_id: bytes) -> dict[bytes, int]:
    """Return the spans of a run that were made from log records: span id -> span.id."""
    rows: list[Any] = connection.execute(_MADE_SPANS, (trace_id,)).fetchall()
    return {span_id: number for number, span_id in rows}


def last_key(connection: apsw.Connection, trace_id: bytes, kind: str) -> str | None:
    """Return the key of a run's last step of a kind."""
    found: str | None = connection.execute(_LAST_CALL, (trace_id, kind)).get
    return found


@dataclass(frozen=True, slots=True)
class _MadeSpan:
    """The facts needed of a span that was made before."""

    start_ns: int | None
    end_ns: int | None
    flags: int


def made_span(connection: apsw.Connection, trace_id: bytes, span_id: bytes) -> _MadeSpan | None:
    """Return a span that was made of log records."""
    row: Any = connection.execute(_SPAN, (trace_id, span_id)).fetchone()
    return None if row is None else _MadeSpan(*row)


def sent_spans_with(
    connection: apsw.Connection,
    keys: Iterable[str],
    values: Iterable[str],
    *,
    role: str,
    session: str = "",
) -> list[tuple[bytes, bytes]]:
    """Return (trace id, span id) of sent spans that have one of the values under one of the keys.

    At most eight; with a `session`, those that tell it. Spans of the transaction that runs are not
    found: their index rows are written at its end.
    """
    tokens = [attribute_token(key, value) for value in values for key in keys]
    if not tokens:
        return []
    match = " OR ".join(tokens)
    if session:
        sessions = " OR ".join(attribute_token(key, session) for key in _SESSION_KEYS)
        match = f"({match}) AND ({sessions})"
    rows: list[Any] = connection.execute(_SENT_SPANS_WITH, (match, role)).fetchall()
    return [(trace_id, span_id) for trace_id, span_id in rows]


def calls_logged(
    connection: apsw.Connection, session: str, *, from_ns: int, to_ns: int
) -> set[int]:
    """Return the log records (log_record.id) about model calls, of a session and a time."""
    rows: list[Any] = connection.execute(_CALLS_LOGGED, (session, from_ns, to_ns)).fetchall()
    return {log for (log,) in rows}


def agent_span(connection: apsw.Connection, trace_id: bytes) -> bytes | None:
    """Return the id of the first span of a trace that was sent and is an agent's turn."""
    found: bytes | None = connection.execute(_AGENT_SPAN, (trace_id,)).get
    return found


def calls_of_session(
    connection: apsw.Connection, session: str, *, dialect: str, from_ns: int, to_ns: int
) -> list[tuple[bytes, bytes, int]]:
    """Return (trace id, span id, end) of the calls of a session's stored runs that ended in a time.

    Only of spans that were sent. Runs of the transaction that runs are found by `calls_of_run`.
    """
    bounds = {"session": session, "from_ns": from_ns, "to_ns": to_ns}
    runs: list[Any] = connection.execute(_RUNS_OF_SESSION, bounds).fetchall()
    found: list[tuple[bytes, bytes, int]] = []
    for (run,) in runs:
        found += calls_of_run(connection, run, dialect=dialect, from_ns=from_ns, to_ns=to_ns)
    return found


def calls_of_run(
    connection: apsw.Connection, run: int, *, dialect: str, from_ns: int, to_ns: int
) -> list[tuple[bytes, bytes, int]]:
    """Return (trace id, span id, end) of the calls of a run that ended in a time."""
    bounds = {"run": run, "dialect": dialect, "from_ns": from_ns, "to_ns": to_ns}
    rows: list[Any] = connection.execute(_CALL_ENDS, bounds).fetchall()
    return [(trace_id, span_id, end_ns) for trace_id, span_id, end_ns in rows]


@dataclass(frozen=True, slots=True)
class PackedLog:
    """A stored log record, still packed."""

    log: int
    time_ns: int
    received_ns: int
    record: bytes
    resource: int
    scope: int


def records_of_step(
    connection: apsw.Connection, trace_id: bytes, span_id: bytes, *, limit: int
) -> list[PackedLog]:
    """Return the log records of a step in an order that does not depend on their arrival."""
    rows: list[Any] = connection.execute(_RECORDS, (trace_id, span_id, limit)).fetchall()
    return [PackedLog(*row) for row in rows]


def record_of(connection: apsw.Connection, log: int) -> PackedLog:
    """Return one log record."""
    row: Any = connection.execute(_RECORD, (log,)).fetchone()
    return PackedLog(*row)


def is_repeated(connection: apsw.Connection, log: int) -> bool:
    """Return whether its request held the very same record before."""
    return bool(connection.execute(_IS_REPEATED, (log,)).get)


def _rows(connection: apsw.Connection, sql: str, parameters: tuple[Any, ...]) -> list[SessionLog]:
    rows: list[Any] = connection.execute(sql, parameters).fetchall()
    return [SessionLog(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class LogSender:
    """Who sent some of the newest log records, and how many of them belong to a run."""

    service: str | None
    scope: str
    records: int
    last_ns: int
    with_run: int


def newest_log_senders(connection: apsw.Connection, *, limit: int = 5000) -> list[LogSender]:
    """Return the senders of the newest log records, by service and scope."""
    rows: list[Any] = connection.execute(_HOMELESS, (limit,)).fetchall()
    return [LogSender(*row) for row in rows]
