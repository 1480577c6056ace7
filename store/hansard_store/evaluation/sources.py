"""What evaluation reads: runs that changed, their tool calls and answers, memory, transcripts.

Every function reads a page or a run, so that a window costs what is new in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import orjson

from hansard_compiler.calls import Message
from hansard_store.content.texts import read_message
from hansard_store.database.stored_json import json_text
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import memories_by_number
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.shared_span_ids import shared_side

_HIDDEN: Final = SpanFlag.DUPLICATE | SpanFlag.PENDING | SpanFlag.FOLDED
# What evaluation itself changes: its results are log records of the steps that they judge.
_OWN: Final = SpanFlag.HAS_LOGS | SpanFlag.HAS_EVENTS
_RUN: Final = """
SELECT id, trace_id, change_seq, agent_name, conversation_id, started_ns, ended_ns, last_output,
  last_output_span, model_calls FROM run
"""
_CHANGED: Final = f"""
{_RUN} INDEXED BY run_change WHERE change_seq > :after AND change_seq <= :last
  AND work_count > 0 AND ended_ns >= :since ORDER BY change_seq
"""
_EARLIER: Final = f"""
{_RUN} WHERE work_count > 0 AND change_seq <= :after AND ended_ns >= :since
  AND ended_ns < :covered ORDER BY id
"""
_OF_CONVERSATION: Final = f"""
{_RUN} INDEXED BY run_conversation WHERE conversation_id = :conversation AND started_ns < :before
  AND id <> :run ORDER BY started_ns DESC LIMIT :limit
"""
_BY_TRACE: Final = f"{_RUN} WHERE trace_id IN (SELECT unhex(value) FROM json_each(?))"
_OF_AGENT: Final = f"""
{_RUN} WHERE id IN (SELECT run FROM run_facet WHERE kind = 'agent' AND value = :agent)
  AND ended_ns >= :since ORDER BY started_ns DESC LIMIT :limit
"""
_OF_TOOLS: Final = f"""
{_RUN} WHERE id IN (
  SELECT run FROM run_facet WHERE kind = 'tool' AND value IN (SELECT value FROM json_each(:tools)))
  AND ended_ns >= :since ORDER BY started_ns DESC LIMIT :limit
"""
_LAST_CHANGE: Final = "SELECT coalesce(max(change_seq), 0) FROM run"
_STEPS: Final = f"""
SELECT span.id, span.span_id, {shared_side("span")}, span.sort_ns, span.end_ns, span.status,
  span.flags, span.role, span.tool_name, span.summary, call.output_prefix
FROM span LEFT JOIN call ON call.span = span.id
WHERE span.trace_id = :trace AND span.flags & {_HIDDEN} = 0
  AND (span.role IN ('tool', 'mcp', 'agent', 'workflow') OR call.output_prefix IS NOT NULL)
ORDER BY span.id
"""
# The same steps of several runs, by what `digest_of` needs of them.
_DIGESTED: Final = f"""
SELECT span.trace_id, span.id, span.end_ns, span.status, span.flags & ~{int(_OWN)},
  call.output_prefix, span.role
FROM json_each(?) AS wanted CROSS JOIN span ON span.trace_id = unhex(wanted.value)
LEFT JOIN call ON call.span = span.id
WHERE span.flags & {_HIDDEN} = 0
  AND (span.role IN ('tool', 'mcp', 'agent', 'workflow') OR call.output_prefix IS NOT NULL)
ORDER BY span.trace_id, span.id
"""
_MESSAGES: Final = """
WITH RECURSIVE node (head, id, parent, text) AS (
  SELECT id, id, parent, text FROM message_prefix WHERE id IN (SELECT value FROM json_each(:nodes))
  UNION ALL
  SELECT node.head, up.id, up.parent, up.text
  FROM node CROSS JOIN message_prefix AS up ON up.id = node.parent
)
SELECT head, text FROM node ORDER BY head, id
"""
_BODY: Final = "SELECT body FROM text WHERE id = ? AND field = 'message'"
_TOOL_NAMES: Final = "SELECT DISTINCT value FROM run_facet WHERE kind = 'tool' LIMIT 5000"
_UNRUN: Final = """
SELECT tool_event.name, count(*) FROM run INDEXED BY run_started
CROSS JOIN tool_event INDEXED BY tool_event_unrun ON tool_event.run = run.id
WHERE run.started_ns >= :since AND tool_event.ran IS NULL AND tool_event.name IS NOT NULL
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :limit
"""
_MEMORIES: Final = """
SELECT id FROM memory WHERE id > :after AND state = 'current'
  AND memory_type NOT IN ('correction', 'interest') AND (freshness_ns >= :since
  OR created_ns >= :since) ORDER BY id LIMIT :limit
"""
# Corrections, and the heartbeat's own notes, are written in every cycle: they are no news.
_LAST_MEMORY: Final = """
SELECT id FROM memory WHERE memory_type NOT IN ('correction', 'interest')
  AND agent <> 'hansard.heartbeat' ORDER BY id DESC LIMIT 1
"""
_PLACES: Final = """
SELECT memory.project, memory.user, memory.agent, count(*)
FROM memory_access INDEXED BY memory_access_run
CROSS JOIN memory ON memory.id = memory_access.memory
WHERE memory_access.trace_id = :trace AND memory.memory_type <> 'working'
GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3 LIMIT 1
"""
_TOUCHING: Final = """
SELECT DISTINCT memory_access.trace_id FROM memory_access
WHERE memory_access.trace_id IS NOT NULL AND memory_access.time_ns >= :since
  AND memory_access.memory IN (SELECT id FROM memory WHERE project = :project AND project <> '')
LIMIT :limit
"""
_MESSAGE: Final = """
SELECT message.rowid, message.id, conversation.name, message.content, message.created_at,
  message.trace_id, message.span_id
FROM transcript_message AS message JOIN conversation ON conversation.id = message.conversation_id
"""
_TRANSCRIPT: Final = f"""{_MESSAGE}
WHERE message.rowid > :after AND message.role = 'assistant' AND message.created_at >= :since
ORDER BY message.rowid LIMIT :limit
"""
_BY_ID: Final = f"""{_MESSAGE}
WHERE message.id IN (SELECT unhex(value) FROM json_each(:ids)) ORDER BY message.rowid
"""
_LAST_MESSAGE: Final = "SELECT coalesce(max(rowid), 0) FROM transcript_message"


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run, as far as claims and their evidence need it."""

    id: int
    trace_id: bytes
    change_seq: int
    agent_name: str | None
    conversation_id: str | None
    started_ns: int
    ended_ns: int
    last_output: str | None  # the beginning of it
    last_output_span: int | None
    model_calls: int


@dataclass(frozen=True, slots=True)
class EvaluatedStep:
    """A tool call, or a step that says something."""

    id: int
    step_id: str
    sort_ns: int
    end_ns: int | None
    status: int
    flags: int
    role: str
    tool_name: str | None
    summary: str | None
    output_prefix: int | None

    @property
    def is_tool(self) -> bool:
        return self.role in ("tool", "mcp") and self.tool_name is not None


@dataclass(frozen=True, slots=True)
class TranscriptText:
    """An assistant's message in a transcript; `content` is the message without its role."""

    number: int
    message_id: bytes
    conversation: str
    content: Any
    created_ns: int
    trace_id: bytes | None
    span_id: bytes | None


def last_change(connection: apsw.Connection) -> int:
    """Return the number of the last change of any run."""
    return int(connection.execute(_LAST_CHANGE).get)


def changed_runs(
    connection: apsw.Connection, *, after: int, last: int, since_ns: int, covered_ns: int
) -> list[EvaluatedRun]:
    """Return the runs of a window that changed after a change, or that no window had before.

    `covered_ns` is the beginning of the longest window so far.
    """
    parameters = {"after": after, "last": last, "since": since_ns, "covered": covered_ns}
    found = _runs(connection, _CHANGED, parameters)
    if since_ns < covered_ns and after:
        found += _runs(connection, _EARLIER, parameters)
    return found


def runs_of_conversation(
    connection: apsw.Connection, run: EvaluatedRun, *, limit: int
) -> list[EvaluatedRun]:
    """Return the runs of a run's conversation that began before it, the newest first."""
    if run.conversation_id is None:
        return []
    about = {"conversation": run.conversation_id, "before": run.ended_ns, "run": run.id}
    return _runs(connection, _OF_CONVERSATION, {**about, "limit": limit})


def runs_by_trace(connection: apsw.Connection, traces: Iterable[bytes]) -> list[EvaluatedRun]:
    """Return those of some runs that are stored."""
    return _runs(connection, _BY_TRACE, (json_text([one.hex() for one in traces]),))


def runs_of_agent(
    connection: apsw.Connection, agent: str, *, since_ns: int, limit: int
) -> list[EvaluatedRun]:
    """Return the runs of a window in which an agent took part, the newest first."""
    return _runs(connection, _OF_AGENT, {"agent": agent, "since": since_ns, "limit": limit})


def runs_of_tools(
    connection: apsw.Connection, tools: Sequence[str], *, since_ns: int, limit: int
) -> list[EvaluatedRun]:
    """Return the runs of a window in which one of some tools was called, the newest first."""
    parameters = {"tools": json_text(list(tools)), "since": since_ns, "limit": limit}
    return _runs(connection, _OF_TOOLS, parameters)


def steps_of(connection: apsw.Connection, trace_id: bytes) -> list[EvaluatedStep]:
    """Return the tool calls, model calls and agents of a run, in the order of ingest."""
    return [
        EvaluatedStep(
            number, f"{trace_id.hex()}-{span_id.hex()}{'.server' if server else ''}", *rest
        )
        for number, span_id, server, *rest in connection.execute(_STEPS, {"trace": trace_id})
    ]


def digest_of(steps: Iterable[EvaluatedStep]) -> bytes:
    """Return a digest of what a run's verdicts rest on; evaluation results leave it as it was."""
    made = hashlib.blake2b(digest_size=16)
    for one in steps:
        state = (one.id, one.end_ns, one.status, one.flags & ~_OWN, one.output_prefix, one.role)
        made.update(repr(state).encode())
    return made.digest()


def digests_of(connection: apsw.Connection, traces: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return what `digest_of` says of the steps of some runs, without reading all of each step."""
    trace_ids = json_text([one.hex() for one in traces])
    made: dict[bytes, Any] = {}
    for trace_id, *row in connection.execute(_DIGESTED, (trace_ids,)):
        digest = made.get(trace_id)
        if digest is None:
            digest = made[trace_id] = hashlib.blake2b(digest_size=16)
        digest.update(repr(tuple(row)).encode())
    return {trace_id: digest.digest() for trace_id, digest in made.items()}


def message_texts(connection: apsw.Connection, nodes: Sequence[int]) -> dict[int, list[int]]:
    """Return the texts (text.id) of lists of messages, by their last nodes."""
    found: dict[int, list[int]] = {}
    for head, text in connection.execute(_MESSAGES, {"nodes": json_text(list(nodes))}):
        found.setdefault(head, []).append(text)
    return found


def find_message(connection: apsw.Connection, text: int) -> Message | None:
    """Return a message by its text; None where it is gone."""
    body = connection.execute(_BODY, (text,)).get
    return None if body is None else read_message(connection, body)


def tool_names(connection: apsw.Connection) -> list[str]:
    """Return the names of all tools that a step ran."""
    return [name for (name,) in connection.execute(_TOOL_NAMES)]


def unrecorded_tools(
    connection: apsw.Connection, *, since_ns: int, limit: int = 50
) -> list[tuple[str, int]]:
    """Return the tools that models requested and no step tells to have run, and how often."""
    return [*connection.execute(_UNRUN, {"since": since_ns, "limit": limit})]


def last_memory(connection: apsw.Connection) -> int:
    """Return the number of the newest memory record that may claim something; 0 of none."""
    return int(connection.execute(_LAST_MEMORY).get or 0)


def iter_memories(
    connection: apsw.Connection, *, after: int, since_ns: int, now_ns: int, at_once: int = 500
) -> Iterator[Memory]:
    """Yield the current records of a window whose numbers are above one, in their order."""
    while True:
        parameters = {"after": after, "since": since_ns, "limit": at_once}
        numbers = [number for (number,) in connection.execute(_MEMORIES, parameters)]
        found = memories_by_number(connection, numbers, now_ns=now_ns)
        yield from (found[number] for number in numbers if number in found)
        if len(numbers) < at_once:
            return
        after = numbers[-1]


def place_of_run(connection: apsw.Connection, trace_id: bytes) -> tuple[str, str, str] | None:
    """Return the namespace (project, user, agent) of most of the memory that a run touched."""
    row: Any = connection.execute(_PLACES, {"trace": trace_id}).fetchone()
    return None if row is None else (row[0], row[1], row[2])


def runs_touching(
    connection: apsw.Connection, project: str, *, since_ns: int, limit: int
) -> list[bytes]:
    """Return the runs that read or wrote memory of a project since a time."""
    parameters = {"project": project, "since": since_ns, "limit": limit}
    return [bytes(trace_id) for (trace_id,) in connection.execute(_TOUCHING, parameters)]


def last_message(connection: apsw.Connection) -> int:
    """Return the number of the newest message of a transcript."""
    return int(connection.execute(_LAST_MESSAGE).get)


def iter_transcripts(
    connection: apsw.Connection, *, after: int, since_ns: int, at_once: int = 500
) -> Iterator[TranscriptText]:
    """Yield the assistants' messages in transcripts of a window, in the order of writing."""
    while True:
        parameters = {"after": after, "since": since_ns, "limit": at_once}
        rows: list[Any] = connection.execute(_TRANSCRIPT, parameters).fetchall()
        yield from map(_transcript_text, rows)
        if len(rows) < at_once:
            return
        after = rows[-1][0]


def transcripts_by_id(connection: apsw.Connection, ids: Iterable[bytes]) -> list[TranscriptText]:
    """Return messages of transcripts by their ids, in the order of writing."""
    ids_json = json_text([one.hex() for one in ids])
    return [_transcript_text(row) for row in connection.execute(_BY_ID, {"ids": ids_json})]


def _transcript_text(row: Any) -> TranscriptText:
    number, message_id, name, content, created_ns, trace_id, span_id = row
    text = orjson.loads(content)
    return TranscriptText(number, message_id, name, text, created_ns, trace_id, span_id)


def _runs(connection: apsw.Connection, sql: str, parameters: Any) -> list[EvaluatedRun]:
    return [EvaluatedRun(*row) for row in connection.execute(sql, parameters)]
