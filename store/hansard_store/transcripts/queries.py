"""Reading transcripts for people: lists, sizes, steps, and whether every row decodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_compiler.transcripts.errors import UndecodableMessage
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import Row, StoredMessage, decode
from hansard_compiler.transcripts.views import Conversation
from hansard_store.content.payloads import (
    PayloadState,
    folder_of,
    get_payload,
    payload_ref,
    verify_payload,
)
from hansard_store.database.cursors import Page, decode_cursor, encode_cursor
from hansard_store.database.transactions import snapshot
from hansard_store.errors import StoreCorruptError
from hansard_store.steps.shared_span_ids import shared_side, step_id_of
from hansard_store.transcripts.rows import LINE, TREE, Tables, get_conversation

_KIND = "transcripts"
_NEWEST = (1 << 63) - 1
_AT_ONCE = 500
_LIST = """
SELECT id, name, created_at, number FROM conversation
WHERE number < :before AND (:name IS NULL OR name = :name) ORDER BY number DESC LIMIT :limit
"""
_SIZES = """
SELECT count(*), coalesce(sum(length(CAST(content AS BLOB))), 0), max(created_at)
FROM transcript_message WHERE conversation_id = :id
"""
_FOLDS = "SELECT count(*), max(message_position) FROM checkpoint WHERE conversation_id = :id"
_ROLES = """
SELECT role, count(*) FROM transcript_message WHERE conversation_id = :id GROUP BY role
"""
_OTHERS = """
SELECT (SELECT count(*) FROM branch WHERE conversation_id = :id),
  (SELECT count(DISTINCT position) FROM transcript_mark WHERE conversation_id = :id),
  (SELECT count(*) FROM transcript_archive WHERE conversation_id = :id),
  (SELECT coalesce(sum(length(CAST(content AS BLOB))), 0) FROM transcript_message
   WHERE conversation_id = :id AND position <= :folded),
  (SELECT coalesce(sum(payload.size), 0) FROM transcript_message AS message
   JOIN transcript_payload ON transcript_payload.message = message.id
   JOIN payload ON payload.digest = transcript_payload.payload
   WHERE message.conversation_id = :id)
"""
_FIRST = """
SELECT content FROM transcript_message WHERE conversation_id = :id AND role = 'user'
ORDER BY position LIMIT 1
"""
_STEPS = f"""
SELECT span.trace_id, span.span_id, {shared_side("span")}, coalesce(span.label, span.name)
FROM json_each(:wanted) AS wanted
CROSS JOIN span ON span.trace_id = unhex(wanted.value ->> 0)
  AND span.span_id = unhex(wanted.value ->> 1)
"""
_RUNS = "SELECT count(*) FROM run WHERE conversation_id = ?"
_WALK = """
SELECT rowid, {owner}, id, position, role, content, created_at, schema_version, trace_id, span_id
FROM {message} WHERE rowid > ? ORDER BY rowid LIMIT ?
"""
_GAPS = """
SELECT {owner}, max(position), count(*) FROM {message} GROUP BY {owner}
HAVING count(*) <> max(position) + 1
"""
_AHEAD = """
SELECT {owner}, max(message_position) FROM {checkpoint} AS fold GROUP BY {owner}
HAVING max(message_position) > coalesce(
  (SELECT max(position) FROM {message} AS message WHERE message.{owner} = fold.{owner}), -1)
"""
_NEEDED = "SELECT DISTINCT payload FROM transcript_payload"


@dataclass(frozen=True, slots=True)
class TranscriptItem:
    """A conversation's transcript in a list. Sizes are bytes as stored."""

    conversation: Conversation
    messages: int
    size_bytes: int
    last_ns: int | None  # when something was said last
    folds: int
    folded_until: int | None  # position; None: never folded
    first_input: str | None


@dataclass(frozen=True, slots=True)
class TranscriptSize:
    """How large a transcript is, and how much of it folds have left behind."""

    item: TranscriptItem
    roles: Mapping[str, int]
    branches: int
    marked: int
    archives: int
    folded_bytes: int
    payload_bytes: int  # of originals of clipped results, and media


@dataclass(frozen=True, slots=True)
class StepOfMessage:
    """The step that a message was appended in, if it is stored."""

    step_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """What reading every message of every transcript found."""

    messages: int
    versions: Mapping[int, int]  # messages by schema version
    failures: tuple[UndecodableMessage, ...]
    problems: tuple[str, ...]  # gaps, folds ahead of their log, originals that are gone

    @property
    def is_sound(self) -> bool:
        return not self.failures and not self.problems


def list_transcripts(
    connection: apsw.Connection,
    *,
    name: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[TranscriptItem]:
    """Return transcripts, the conversation that began last first."""
    before = decode_cursor(_KIND, cursor, count=1)[0] if cursor else _NEWEST
    parameters = {"before": before, "name": name, "limit": limit + 1}
    with snapshot(connection):
        rows: list[Any] = connection.execute(_LIST, parameters).fetchall()
        items = [
            _item(connection, Conversation(ConversationId(row[0]), *row[1:]))
            for row in rows[:limit]
        ]
    more = len(rows) > limit
    return Page(tuple(items), encode_cursor(_KIND, items[-1].conversation.number) if more else None)


def find_transcript(connection: apsw.Connection, name: str) -> TranscriptItem | None:
    """Return the transcript of the conversation that spans call `name`."""
    items = list_transcripts(connection, name=name, limit=1).items
    return items[0] if items else None


def transcript_size(connection: apsw.Connection, conversation: ConversationId) -> TranscriptSize:
    """Return how large a transcript is; raises NotFoundError."""
    with snapshot(connection):
        item = _item(connection, get_conversation(connection, conversation))
        parameters = {"id": conversation.digest}
        folded = -1 if item.folded_until is None else item.folded_until
        others: Any = connection.execute(_OTHERS, {**parameters, "folded": folded}).fetchone()
        roles: list[Any] = connection.execute(_ROLES, parameters).fetchall()
    return TranscriptSize(item, MappingProxyType(dict(roles)), *others)


def _item(connection: apsw.Connection, conversation: Conversation) -> TranscriptItem:
    parameters = {"id": conversation.id.digest}
    sizes: Any = connection.execute(_SIZES, parameters).fetchone()
    messages, size_bytes, last_ns = sizes
    folded: Any = connection.execute(_FOLDS, parameters).fetchone()
    folds, folded_until = folded
    first = _first_text(connection.execute(_FIRST, parameters).get)
    return TranscriptItem(conversation, messages, size_bytes, last_ns, folds, folded_until, first)


def _first_text(content: Any) -> str | None:
    try:
        parts = json.loads(content)["parts"]
        return next((part["text"] for part in parts if part["type"] == "text"), None)
    except (ValueError, TypeError, KeyError):
        return None  # nothing was said, or a row that `doctor` names


def count_runs(connection: apsw.Connection, name: str) -> int:
    """Return how many runs carry a conversation's name."""
    return int(connection.execute(_RUNS, (name,)).get)


def steps_of(
    connection: apsw.Connection, messages: Iterable[StoredMessage]
) -> dict[tuple[str, str], StepOfMessage]:
    """Return the steps that messages were appended in, by trace and span, those that are stored."""
    pairs = {(one.trace_id, one.span_id) for one in messages if one.trace_id and one.span_id}
    found: Any = connection.execute(_STEPS, {"wanted": json.dumps(sorted(pairs))})
    return {
        (trace_id.hex(), span_id.hex()): StepOfMessage(step_id_of(trace_id, span_id, side), name)
        for trace_id, span_id, side, name in found
    }


# ---- doctor


def decode_all(connection: apsw.Connection) -> Decoded:
    """Decode every message of every transcript, and look for gaps and for missing originals."""
    versions: Counter[int] = Counter()
    failures: list[UndecodableMessage] = []
    for tables in (LINE, TREE):
        for log, row in _walk(connection, tables):
            versions[row.schema_version] += 1
            try:
                decode(log, row)
            except UndecodableMessage as error:
                failures.append(error)
    problems = [*_order(connection, LINE), *_order(connection, TREE), *_originals(connection)]
    return Decoded(
        versions.total(),
        MappingProxyType(dict(sorted(versions.items()))),
        tuple(failures),
        tuple(problems),
    )


def _walk(connection: apsw.Connection, tables: Tables) -> Iterator[tuple[LogId, Row]]:
    last = 0
    while True:
        rows: list[Any] = connection.execute(tables.sql(_WALK), (last, _AT_ONCE)).fetchall()
        for rowid, owner, *columns in rows:
            last = rowid
            yield _log_of(tables, owner), Row(*columns)
        if len(rows) < _AT_ONCE:
            return


def _log_of(tables: Tables, owner: bytes) -> LogId:
    return ConversationId(owner) if tables is LINE else BranchId(owner)


def _order(connection: apsw.Connection, tables: Tables) -> Iterator[str]:
    for owner, last, count in connection.execute(tables.sql(_GAPS)):
        yield f"{_log_of(tables, owner)}: {count} messages, but the last is at position {last}"
    for owner, position in connection.execute(tables.sql(_AHEAD)):
        yield f"{_log_of(tables, owner)}: a fold at position {position} is ahead of its messages"


def _originals(connection: apsw.Connection) -> Iterator[str]:
    folder = folder_of(connection)
    needed: list[Any] = connection.execute(_NEEDED).fetchall()
    for (digest,) in needed:
        try:
            state = verify_payload(folder, get_payload(connection, digest))
        except NotFoundError:
            continue  # media that was named before it came; the originals have rows
        except StoreCorruptError as error:
            yield str(error)
            continue
        if state not in (PayloadState.INTACT, PayloadState.REDACTED):
            yield f"the payload {payload_ref(digest)} is {state}"
