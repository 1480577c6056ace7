"""Rows of transcripts: what runs inside somebody's transaction. Nothing here changes a row.

A conversation's line and a sub-agent's log are the same statements over tables of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_compiler.transcripts.entry import TranscriptEntry
from hansard_compiler.transcripts.errors import HeadStale, MessageIdUsed, NothingToFold
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import SCHEMA_VERSION, Row
from hansard_compiler.transcripts.views import Branch, Conversation, EndStatus, Fold, Mark


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of one kind of log."""

    owner: str  # the column that says whose a row is
    message: str
    checkpoint: str
    mark: str

    def sql(self, text: str) -> str:
        return text.format(**asdict(self))


LINE: Final = Tables("conversation_id", "transcript_message", "checkpoint", "transcript_mark")
TREE: Final = Tables("branch_id", "branch_message", "branch_checkpoint", "branch_mark")

_COLUMNS = "id, position, role, content, created_at, schema_version, trace_id, span_id"
_APPEND = """
INSERT INTO {message}
  (id, {owner}, position, role, content, created_at, schema_version, trace_id, span_id)
VALUES (:id, :log,
  coalesce((SELECT max(position) + 1 FROM {message} WHERE {owner} = :log), 0),
  :role, :content, :now, :version, :trace_id, :span_id)
RETURNING position
"""
_BY_ID = f"SELECT {{owner}}, {_COLUMNS} FROM {{message}} WHERE id = ?"
_READ = f"""
SELECT {_COLUMNS} FROM {{message}} WHERE {{owner}} = :log AND position > :after
ORDER BY position LIMIT :limit
"""
_BACKWARDS = f"""
SELECT {_COLUMNS} FROM {{message}} WHERE {{owner}} = :log
  AND position < :before AND position > :after ORDER BY position DESC
"""
_HEAD = "SELECT coalesce(max(position), -1) FROM {message} WHERE {owner} = ?"
_ADD_PAYLOAD = """
INSERT INTO transcript_payload (payload, message) VALUES (?, ?) ON CONFLICT DO NOTHING
"""
_FOLD = """
INSERT INTO {checkpoint} ({owner}, message_position, summary, actor, created_at)
VALUES (?, ?, ?, ?, ?)
"""
_FOLDS = """
SELECT message_position, summary, actor, created_at FROM {checkpoint} WHERE {owner} = ?
ORDER BY number
"""
_MARK = """
INSERT INTO {mark} ({owner}, position, kind, superseded_by, reason, actor, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_MARKS = """
SELECT position, kind, reason, actor, created_at, superseded_by FROM {mark} WHERE {owner} = ?
ORDER BY number
"""
_ENSURE = "INSERT INTO conversation (id, name, created_at) VALUES (?, ?, ?)"
_CONVERSATION = "SELECT id, name, created_at, number FROM conversation WHERE id = ?"
_BRANCH_COLUMNS = """
SELECT branch.id, conversation_id, parent_id, parent_position, name, branch.created_at,
  (SELECT coalesce(max(position), -1) + 1 FROM branch_message WHERE branch_id = branch.id)
    AS messages,
  (SELECT json_array(position, status) FROM branch_end WHERE branch_id = branch.id
   ORDER BY number DESC LIMIT 1)
FROM branch
"""
_BRANCH = f"{_BRANCH_COLUMNS} WHERE branch.id = ?"
_OF_LINE = f"""{_BRANCH_COLUMNS}
WHERE conversation_id = ? AND parent_id IS NULL ORDER BY branch.number
"""
_OF_TREE = f"""{_BRANCH_COLUMNS}
WHERE conversation_id = (SELECT conversation_id FROM branch WHERE id = :id) AND parent_id = :id
ORDER BY branch.number
"""
_SPAWN = """
INSERT INTO branch (id, conversation_id, parent_id, parent_position, name, created_at)
VALUES (?, ?, ?, ?, ?, ?)
"""
_END = "INSERT INTO branch_end (branch_id, position, status, created_at) VALUES (?, ?, ?, ?)"
_ALL = -1  # no LIMIT


def tables_of(log: LogId) -> Tables:
    """Return the tables of a log."""
    return TREE if isinstance(log, BranchId) else LINE


# ---- conversations and branches


def ensure_conversation(connection: apsw.Connection, name: str, *, now_ns: int) -> Conversation:
    """Return the conversation of this name, made where there is none."""
    conversation = ConversationId.named(name)
    if connection.execute(_CONVERSATION, (conversation.digest,)).get is None:
        connection.execute(_ENSURE, (conversation.digest, name, now_ns))
    return get_conversation(connection, conversation)


def get_conversation(connection: apsw.Connection, conversation: ConversationId) -> Conversation:
    """Return a conversation; raises NotFoundError."""
    row: Any = connection.execute(_CONVERSATION, (conversation.digest,)).fetchone()
    if row is None:
        raise NotFoundError("conversation", str(conversation))
    return Conversation(ConversationId(row[0]), *row[1:])


def conversation_of(connection: apsw.Connection, log: LogId) -> Conversation:
    """Return the conversation that a log belongs to; raises NotFoundError."""
    if isinstance(log, BranchId):
        log = get_branch(connection, log).conversation
    return get_conversation(connection, log)


def get_branch(connection: apsw.Connection, branch: BranchId) -> Branch:
    """Return a sub-agent; raises NotFoundError."""
    row: Any = connection.execute(_BRANCH, (branch.digest,)).fetchone()
    if row is None:
        raise NotFoundError("sub-agent", str(branch))
    return _branch(row)


def list_branches(connection: apsw.Connection, log: LogId) -> list[Branch]:
    """Return the sub-agents that began in a log."""
    if isinstance(log, BranchId):
        return [_branch(row) for row in connection.execute(_OF_TREE, {"id": log.digest})]
    return [_branch(row) for row in connection.execute(_OF_LINE, (log.digest,))]


def _branch(row: Any) -> Branch:
    made, conversation, parent, position, name, created_ns, messages, end = row
    line = ConversationId(conversation)
    return Branch(
        id=BranchId(made),
        conversation=line,
        parent=line if parent is None else BranchId(parent),
        parent_position=position,
        name=name,
        created_ns=created_ns,
        messages=messages,
        ended=_ended(end, last=messages - 1),
    )


def _ended(end: str | None, *, last: int) -> EndStatus | None:
    if end is None:
        return None
    position, _, status = end.strip("[]").partition(",")
    if int(position) != last:
        return None  # it was resumed
    return "failed" if "failed" in status else "done"


def add_branch(
    connection: apsw.Connection, parent: LogId, made: BranchId, name: str, *, now_ns: int
) -> Branch:
    """Begin a sub-agent's log at the head of its parent's."""
    line = conversation_of(connection, parent).id
    above = parent.digest if isinstance(parent, BranchId) else None
    at = head_of(connection, parent)
    connection.execute(_SPAWN, (made.digest, line.digest, above, at, name, now_ns))
    return get_branch(connection, made)


def add_end(
    connection: apsw.Connection, branch: BranchId, status: EndStatus, *, now_ns: int
) -> Branch:
    """Say that a sub-agent ended here."""
    get_branch(connection, branch)
    head = head_of(connection, branch)
    connection.execute(_END, (branch.digest, head, status, now_ns))
    return get_branch(connection, branch)


# ---- messages


def head_of(connection: apsw.Connection, log: LogId) -> int:
    """Return the position of the last message; -1: there is none."""
    return int(connection.execute(tables_of(log).sql(_HEAD), (log.digest,)).get)


def add_message(
    connection: apsw.Connection, log: LogId, entry: TranscriptEntry, *, now_ns: int
) -> tuple[Row, bool]:
    """Append a message, and say whether it is new: one that was sent twice stands once.

    Raises MessageIdUsed where its id is that of another message.
    """
    tables = tables_of(log)
    known: Any = connection.execute(tables.sql(_BY_ID), (entry.id,)).fetchone()
    if known is not None:
        row = Row(*known[1:])
        if (known[0], row.role, row.content) != (log.digest, entry.role, entry.content):
            raise MessageIdUsed(entry.id.hex())
        return row, False
    parameters = {
        "id": entry.id,
        "log": log.digest,
        "role": entry.role,
        "content": entry.content,
        "now": now_ns,
        "version": SCHEMA_VERSION,
        "trace_id": entry.trace_id,
        "span_id": entry.span_id,
    }
    position = connection.execute(tables.sql(_APPEND), parameters).get
    for ref in entry.payloads:
        digest = _digest_of(ref)
        if digest is not None:
            connection.execute(_ADD_PAYLOAD, (digest, entry.id))
    row = Row(
        entry.id, position, entry.role, entry.content, now_ns, SCHEMA_VERSION, entry.trace_id,
        entry.span_id,
    )  # fmt: skip
    return row, True


def _digest_of(ref: str) -> bytes | None:
    # Media may name anything; only what names a payload keeps one.
    kind, _, digits = ref.partition(":")
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        return None
    return digest if kind == "sha256" and len(digest) == 32 else None


def read_rows(
    connection: apsw.Connection, log: LogId, *, after: int = -1, limit: int | None = None
) -> list[Row]:
    """Return messages as they are stored, in order, those after a position."""
    parameters = {"log": log.digest, "after": after, "limit": _ALL if limit is None else limit}
    rows: Any = connection.execute(tables_of(log).sql(_READ), parameters)
    return [Row(*row) for row in rows]


def walk_back(
    connection: apsw.Connection, log: LogId, *, before: int, after: int = -1
) -> Iterator[Row]:
    """Yield messages between two positions, the newest first, read as they are requested."""
    parameters = {"log": log.digest, "before": before, "after": after}
    rows: Any = connection.execute(tables_of(log).sql(_BACKWARDS), parameters)
    return (Row(*row) for row in rows)


# ---- folds and marks


def add_fold(
    connection: apsw.Connection,
    log: LogId,
    summary: str,
    *,
    expected_head: int | None,
    actor: str,
    now_ns: int,
) -> Fold:
    """Write a fold at the head; raises NothingToFold, HeadStale."""
    head = head_of(connection, log)
    if head < 0:
        raise NothingToFold("there are no messages yet")
    if expected_head is not None and expected_head != head:
        raise HeadStale(expected=expected_head, found=head)
    parameters = (log.digest, head, summary, actor, now_ns)
    connection.execute(tables_of(log).sql(_FOLD), parameters)
    return Fold(log, head, summary, actor, now_ns)


def list_folds(connection: apsw.Connection, log: LogId) -> list[Fold]:
    """Return all folds, the oldest first."""
    rows: Any = connection.execute(tables_of(log).sql(_FOLDS), (log.digest,))
    return [Fold(log, *row) for row in rows]


def add_mark(connection: apsw.Connection, log: LogId, mark: Mark) -> None:
    """Mark a message; raises NotFoundError where there is none at that position."""
    if not 0 <= mark.position <= head_of(connection, log):
        raise NotFoundError("message", f"{log} {mark.position}")
    parameters = (
        log.digest, mark.position, mark.kind, mark.superseded_by, mark.reason, mark.actor,
        mark.created_ns,
    )  # fmt: skip
    connection.execute(tables_of(log).sql(_MARK), parameters)


def list_marks(connection: apsw.Connection, log: LogId) -> list[Mark]:
    """Return all marks, the oldest first."""
    rows: Sequence[Any] = connection.execute(tables_of(log).sql(_MARKS), (log.digest,)).fetchall()
    return [Mark(*row) for row in rows]
