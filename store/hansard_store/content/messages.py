"""Reading messages: the calls of a run, their lists of messages, and message bodies.

Lists are nodes of the prefix tree (`texts.py`); bodies are read only for what is shown.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from hansard_compiler.calls import Message
from hansard_store.content.texts import read_message
from hansard_store.errors import StoreCorruptError
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.shared_span_ids import shared_side, step_id_of

_CALLS_OF_RUN = f"""
SELECT span.id, span.span_id, span.parent_span_id, coalesce(span.label, span.name), span.role,
  span.agent_name, span.model, span.sort_ns, span.start_ns, span.end_ns, span.flags,
  call.input_prefix, call.output_prefix, call.tokens_input, call.tokens_output,
  call.tokens_cache_read, call.finish_reason, call.input_is_delta, span.trace_id,
  {shared_side("span")}
FROM call CROSS JOIN span ON span.id = call.span
WHERE call.run = :run
ORDER BY span.sort_ns, span.id
"""
_RUNS_OF_CONVERSATION = """
SELECT id FROM run
WHERE conversation_id = :conversation AND started_ns <= :before_ns AND id <> :run
ORDER BY started_ns DESC LIMIT :limit
"""
# UNION, not UNION ALL: the nodes that calls share are walked once, so a run of n turns costs its
# distinct nodes and not the sum of its prompts.
_NODES = """
WITH RECURSIVE node (id, parent, text) AS (
  SELECT id, parent, text FROM message_prefix WHERE id IN (SELECT value FROM json_each(:nodes))
  UNION
  SELECT up.id, up.parent, up.text
  FROM node CROSS JOIN message_prefix AS up ON up.id = node.parent
)
SELECT node.id, node.parent, text.id, text.hash, text.match_hash, text.role
FROM node CROSS JOIN text ON text.id = node.text
"""
_BODIES = "SELECT id, body FROM text WHERE id IN (SELECT value FROM json_each(:texts))"
_CARRIER = f"""
SELECT span.run, span.role, span.trace_id, span.span_id, {shared_side("span")},
  coalesce(span.label, span.name)
FROM text CROSS JOIN span ON span.id = text.first_span
WHERE text.hash = ?
"""
_ANCESTRY = """
SELECT span_id, parent_span_id, role, coalesce(agent_name, label, name)
FROM span WHERE trace_id = (SELECT trace_id FROM run WHERE id = :run)
"""
_BY_HASH = "SELECT body FROM text WHERE hash = ? AND field = 'message'"
_TOOL_EVENTS = f"""
SELECT event.call_id, event.name, asker.trace_id, asker.span_id, {shared_side("asker")},
  coalesce(asker.label, asker.name), tool.trace_id, tool.span_id, {shared_side("tool")},
  coalesce(tool.label, tool.name), tool.start_ns, tool.end_ns, tool.flags
FROM tool_event AS event
LEFT JOIN span AS asker ON asker.id = event.requested
LEFT JOIN span AS tool ON tool.id = event.ran
WHERE event.run = :run AND event.call_id IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message without its body."""

    text: int  # text.id
    hash: bytes
    match_hash: bytes
    role: str


@dataclass(frozen=True, slots=True)
class CallRow:
    """One model call of a run. Prefixes are nodes of the message tree, None for no messages."""

    span: int
    span_id: bytes
    parent_span_id: bytes | None
    name: str
    role: str
    agent_name: str | None
    model: str | None
    sort_ns: int
    start_ns: int | None
    end_ns: int | None
    flags: int
    input_prefix: int | None
    output_prefix: int | None
    tokens_input: int | None
    tokens_output: int | None
    tokens_cache_read: int | None
    finish_reason: str | None
    input_is_delta: bool
    step_id: str


@dataclass(frozen=True, slots=True)
class _StepLink:
    """Enough of a step to link to it."""

    step_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A tool step that ran a call."""

    link: _StepLink
    start_ns: int | None
    end_ns: int | None
    is_error: bool


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """A tool call as a model requested it and as a step ran it; either may be unknown."""

    call_id: str
    name: str | None
    asked_by: _StepLink | None
    ran: ToolRun | None


@dataclass(frozen=True, slots=True)
class Carrier:
    """The step that first carried a text."""

    run: int
    role: str
    link: _StepLink


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A span on the way up."""

    parent_span_id: bytes | None
    role: str
    name: str


def list_calls(connection: apsw.Connection, run: int) -> list[CallRow]:
    """Return all calls of a run in the order of their start, duplicates included."""
    return [_call(row) for row in connection.execute(_CALLS_OF_RUN, {"run": run})]


def list_earlier_runs(
    connection: apsw.Connection, *, run: int, conversation_id: str, before_ns: int, limit: int = 3
) -> list[int]:
    """Return the nearest earlier runs of the same conversation, the latest first."""
    bindings = {
        "conversation": conversation_id,
        "before_ns": before_ns,
        "run": run,
        "limit": limit,
    }
    return [found for (found,) in connection.execute(_RUNS_OF_CONVERSATION, bindings)]


def read_chain(connection: apsw.Connection, node: int | None) -> list[MessageRef]:
    """Return the messages of one list, first to last; empty for None. Raises StoreCorruptError."""
    if node is None:
        return []
    return _climb(read_nodes(connection, [node]), node)


def read_chains(
    connection: apsw.Connection, nodes: Iterable[int | None]
) -> dict[int, list[MessageRef]]:
    """Return many lists at once, by node; nodes that lists share are read once."""
    found = {node for node in nodes if node is not None}
    above = read_nodes(connection, found)
    return {node: _climb(above, node) for node in found}


def read_nodes(
    connection: apsw.Connection, nodes: Collection[int]
) -> dict[int, tuple[int, MessageRef]]:
    """Return these nodes and all above them: node -> (parent, message); parent 0 is the top."""
    bindings = {"nodes": json.dumps(sorted(nodes))}
    return {
        node: (parent, MessageRef(*message))
        for node, parent, *message in connection.execute(_NODES, bindings)
    }


def _climb(above: Mapping[int, tuple[int, MessageRef]], node: int) -> list[MessageRef]:
    found = []
    while node:
        if node not in above:
            raise StoreCorruptError(f"node {node} of a list of messages is not stored")
        node, message = above[node]
        found.append(message)
    return found[::-1]


def read_messages(connection: apsw.Connection, texts: Collection[int]) -> dict[int, Message]:
    """Return message bodies by text id; raises StoreCorruptError for one that is not stored."""
    bindings = {"texts": json.dumps(sorted(set(texts)))}
    found = {
        text: read_message(connection, body) for text, body in connection.execute(_BODIES, bindings)
    }
    missing = set(texts) - found.keys()
    if missing:
        raise StoreCorruptError(f"texts {sorted(missing)[:5]} are named by a list but not stored")
    return found


def list_tool_events(connection: apsw.Connection, run: int) -> dict[str, ToolEvent]:
    """Return the tool calls of a run that have a call id, by that id."""
    return {row[0]: _tool_event(row) for row in connection.execute(_TOOL_EVENTS, {"run": run})}


def _call(row: Sequence[Any]) -> CallRow:
    *columns, is_delta, trace_id, side = row
    return CallRow(*[*columns, bool(is_delta), step_id_of(trace_id, columns[1], side)])


def _tool_event(row: Sequence[Any]) -> ToolEvent:
    return ToolEvent(row[0], row[1], asked_by=_link(row[2:6]), ran=_tool_run(row[6:]))


def _link(columns: Sequence[Any]) -> _StepLink | None:
    trace_id, span_id, side, name = columns
    return None if span_id is None else _StepLink(step_id_of(trace_id, span_id, side), name)


def _tool_run(columns: Sequence[Any]) -> ToolRun | None:
    link = _link(columns[:4])
    if link is None:
        return None
    start_ns, end_ns, flags = columns[4:]
    return ToolRun(link, start_ns, end_ns, bool(flags & SpanFlag.ERROR))


def first_carriers(connection: apsw.Connection, hashes: Collection[bytes]) -> dict[bytes, Carrier]:
    """Return who first carried texts, by text.hash; unknown hashes are left out."""
    found = {}
    for digest in hashes:
        row = connection.execute(_CARRIER, (digest,)).fetchone()
        if row is not None:
            run, role, *link = row
            found[digest] = Carrier(run, role, _StepLink(step_id_of(*link[:3]), link[3]))
    return found


def list_ancestry(connection: apsw.Connection, run: int) -> dict[bytes, Ancestor]:
    """Return every span of a run by span id, as far as finding the agent above one needs it."""
    rows = connection.execute(_ANCESTRY, {"run": run})
    return {span_id: Ancestor(*rest) for span_id, *rest in rows}


def find_text(connection: apsw.Connection, digest: str) -> Message | None:
    """Return a message by its hash in hex, None when there is none."""
    try:
        key = bytes.fromhex(digest)
    except ValueError:
        return None
    body = connection.execute(_BY_HASH, (key,)).get
    return None if body is None else read_message(connection, body)
