"""Transcripts in SQLite: each call is one transaction, committed on the caller's thread.

What is appended is redacted and clipped first; the stored message is what the caller gets back and
goes on with. A message of a conversation's line and its event are written together or not at all.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final, TypeVar

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.entry import (
    CLIP_BYTES,
    NewMessage,
    Original,
    TranscriptEntry,
    enter,
)
from hansard_compiler.transcripts.errors import NothingToFold, TranscriptWithheld
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import Row, StoredMessage, decode
from hansard_compiler.transcripts.views import (
    Branch,
    Conversation,
    EndStatus,
    Fold,
    Mark,
    MarkKind,
    open_calls,
    refuse_orphans,
)
from hansard_store.audit import events
from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.content.payloads import (
    PreparedPayload,
    Retained,
    add_payload,
    parse_payload_ref,
    prepare_payload,
    write_file,
)
from hansard_store.content.retention import Retention
from hansard_store.database.connections import accountability_transaction, open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.database.transactions import (
    latest_version,
    schema_version,
    snapshot,
)
from hansard_store.errors import StoreBusyError, StoreError
from hansard_store.transcripts import rows

_TRIES: Final = 4  # each waits three seconds for the lock
_MESSAGE_EVENTS: Final = {
    "user": (EventType.MESSAGE_INBOUND, Actor.ME),
    "assistant": (EventType.MESSAGE_OUTBOUND, Actor.AGENT),
}
_T = TypeVar("_T")
Read = Callable[[], AbstractContextManager[apsw.Connection]]


def open_transcripts(
    data: Path, *, retention: RetentionMode, redactor: Redactor | None = None
) -> SqliteTranscripts:
    """Open the transcripts of a data folder, made where there is none.

    Raises StoreError when the store cannot be opened.
    """
    folder = DataFolder(data)
    try:
        folder.create()
        key = folder.key()
    except OSError as error:
        raise StoreError(f"cannot use {str(data)!r}: {error.strerror}") from error
    if not _is_current(folder):
        open_for_ingest(folder).close()
    return SqliteTranscripts(folder, retention, redactor or Redactor(key), source="embedded")


def _is_current(folder: DataFolder) -> bool:
    if not folder.database.exists():
        return False
    with closing(open_reader(folder)) as connection:
        return schema_version(connection) == latest_version()


class SqliteTranscripts:
    """The transcripts of one store. Thread-safe: each call has a connection of its own.

    Nothing stays open between calls, so a process may fork whenever it is in none.
    """

    def __init__(
        self,
        folder: DataFolder,
        retention: RetentionMode,
        redactor: Redactor,
        *,
        read: Read | None = None,
        clock: Callable[[], int] = time.time_ns,
        source: str = "api",
    ) -> None:
        self._folder = folder
        self._retention = Retention(retention, redactor, folder.key())
        self._read = read or self._reading
        self._clock = clock
        self._source = source

    # ---- conversations

    def ensure(self, name: str) -> Conversation:
        """Return the conversation of this name; made where there is none."""
        retained = self._retained(name)
        try:
            return self.conversation(ConversationId.named(retained))
        except NotFoundError:
            return self._write(
                lambda to: rows.ensure_conversation(to, retained, now_ns=self._clock())
            )

    def conversation(self, log: LogId) -> Conversation:
        """Return the conversation that a log belongs to; raises NotFoundError."""
        with self._read() as connection:
            return rows.conversation_of(connection, log)

    # ---- messages

    def append(
        self, log: LogId, messages: Sequence[NewMessage], *, clip_bytes: int = CLIP_BYTES
    ) -> list[StoredMessage]:
        """Append all or none, and return them as they are stored.

        Raises InvalidMessage, MessageIdUsed, NotFoundError, ResultWithoutCall, StoreBusyError.
        """
        clean = None if self._retention.is_full else self._retained
        self._refuse_withheld()
        entries = [enter(one, clean, clip_bytes=clip_bytes) for one in messages]
        originals = [self._payload(one) for entry in entries for one in entry.originals]
        for made in originals:
            write_file(self._folder, made)

        def add(to: apsw.Connection) -> list[StoredMessage]:
            conversation = rows.conversation_of(to, log)
            for made in originals:
                add_payload(self._folder, to, made)
            return [self._add(to, conversation, log, entry) for entry in entries]

        return self._write(add)

    def _add(
        self, to: apsw.Connection, conversation: Conversation, log: LogId, entry: TranscriptEntry
    ) -> StoredMessage:
        row, is_new = rows.add_message(to, log, entry, now_ns=self._clock())
        stored = decode(log, row)
        if is_new and row.role == "tool":
            self._refuse_orphans(to, stored)
        if is_new and isinstance(log, ConversationId) and row.role in _MESSAGE_EVENTS:
            events.append(to, self._message_event(conversation, row))
        return stored

    def _refuse_orphans(self, connection: apsw.Connection, added: StoredMessage) -> None:
        # No call is open across a fold, so what is before the newest one answers nothing.
        folds = rows.list_folds(connection, added.log)
        after = folds[-1].message_position if folds else -1
        found = rows.walk_back(connection, added.log, before=added.position, after=after)
        refuse_orphans(added.body, (decode(added.log, row).body for row in found))

    def _payload(self, original: Original) -> PreparedPayload:
        made = prepare_payload(
            original.data,
            expected=parse_payload_ref(original.ref),
            media_type=original.media_type,
            received_ns=self._clock(),
            retain=lambda data, _media_type: Retained(data),  # it is redacted already
        )
        assert made is not None
        return made

    def messages(
        self, log: LogId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return messages in order; raises UndecodableMessage, NotFoundError."""
        with self._read() as connection, snapshot(connection):
            found = rows.read_rows(connection, log, after=after, limit=limit)
            if not found:
                rows.conversation_of(connection, log)
        return [decode(log, row) for row in found]

    def head(self, log: LogId) -> int:
        """Return the position of the last message; -1: there is none."""
        with self._read() as connection:
            return rows.head_of(connection, log)

    # ---- folds

    def fold(
        self, log: LogId, summary: str, *, expected_head: int | None = None, actor: str = ""
    ) -> Fold:
        """Let a summary stand for all there is.

        Raises NothingToFold, also while a tool call has no result: it would come after the fold
        and answer to nothing.
        """
        retained = self._retained(summary)
        if not retained.strip():
            raise NothingToFold("the summary is empty")

        def add(to: apsw.Connection) -> Fold:
            conversation = rows.conversation_of(to, log)
            self._refuse_open_calls(to, log)
            made = rows.add_fold(
                to,
                log,
                retained,
                expected_head=expected_head,
                actor=self._retained(actor),
                now_ns=self._clock(),
            )
            events.append(to, self._fold_event(conversation, made))
            return made

        return self._write(add)

    def _refuse_open_calls(self, connection: apsw.Connection, log: LogId) -> None:
        folds = rows.list_folds(connection, log)
        after = folds[-1].message_position if folds else -1
        found = rows.read_rows(connection, log, after=after)
        waiting = open_calls(decode(log, row).body for row in found)
        if waiting:
            raise NothingToFold(
                f"{len(waiting)} tool call(s) have no result yet ({', '.join(waiting[:3])}): "
                "append the results, then fold"
            )

    def folds(self, log: LogId) -> list[Fold]:
        """Return all folds, the oldest first; the last one counts."""
        with self._read() as connection:
            return rows.list_folds(connection, log)

    # ---- marks

    def mark(
        self,
        log: LogId,
        position: int,
        kind: MarkKind,
        *,
        reason: str,
        actor: str = "",
        superseded_by: int | None = None,
    ) -> Mark:
        """Show a message as redacted or superseded from now on, or as it is again."""
        made = Mark(
            position,
            kind,
            self._retained(reason),
            self._retained(actor),
            self._clock(),
            superseded_by,
        )

        def add(to: apsw.Connection) -> Mark:
            rows.conversation_of(to, log)
            rows.add_mark(to, log, made)
            return made

        return self._write(add)

    def marks(self, log: LogId) -> list[Mark]:
        """Return all marks, the oldest first."""
        with self._read() as connection:
            return rows.list_marks(connection, log)

    # ---- sub-agents

    def spawn(self, parent: LogId, name: str) -> Branch:
        """Begin the log of a sub-agent at the head of its parent's."""
        made, retained = BranchId(secrets.token_bytes(16)), self._retained(name)
        return self._write(
            lambda to: rows.add_branch(to, parent, made, retained, now_ns=self._clock())
        )

    def branch(self, branch: BranchId) -> Branch:
        """Return a sub-agent; raises NotFoundError."""
        with self._read() as connection:
            return rows.get_branch(connection, branch)

    def branches(self, log: LogId) -> list[Branch]:
        """Return the sub-agents that began in a log, in order."""
        with self._read() as connection:
            return rows.list_branches(connection, log)

    def end(self, branch: BranchId, status: EndStatus = "done") -> Branch:
        """Say that a sub-agent ended; appending to it resumes it."""
        return self._write(lambda to: rows.add_end(to, branch, status, now_ns=self._clock()))

    # ---- events: ids and keyed hashes, never content

    def _message_event(self, conversation: Conversation, row: Row) -> Event:
        kind, actor = _MESSAGE_EVENTS[row.role]
        return Event(
            type=kind,
            actor=actor,
            action="append",
            source=self._source,
            subject=f"conversation:{conversation.name}",
            time_ns=row.created_ns,
            trace_id=row.trace_id,
            span_id=row.span_id,
            body={
                "conversation_id": str(conversation.id),
                "position": row.position,
                "message_id": row.id.hex(),
                "content": events.keyed_hash(self._retention.key, row.content.encode()),
            },
        )

    def _fold_event(self, conversation: Conversation, fold: Fold) -> Event:
        return Event(
            type=EventType.TRANSCRIPT_FOLDED,
            actor=Actor.ME if self._source == "cli" else Actor.AGENT,
            action="fold",
            source=self._source,
            subject=f"conversation:{conversation.name}",
            time_ns=fold.created_ns,
            who=fold.actor,
            body={
                "conversation_id": str(conversation.id),
                "log": str(fold.log),
                "position": fold.message_position,
                "summary": events.keyed_hash(self._retention.key, fold.summary.encode()),
            },
        )

    # ---- the store

    def _retained(self, text: str) -> str:
        """Return a text without its secrets; in metadata_only nothing is taken at all."""
        self._refuse_withheld()
        return self._retention.clean_text(text)

    def _refuse_withheld(self) -> None:
        if self._retention.is_metadata_only:
            raise TranscriptWithheld

    def _write(self, work: Callable[[apsw.Connection], _T]) -> _T:
        """Do work in one transaction; a lock that others hold is waited for, and requested again.

        Raises StoreBusyError when it cannot be had in time, or the disk refuses.
        """
        for left in reversed(range(_TRIES)):
            try:
                with accountability_transaction(self._folder) as connection:
                    return work(connection)
            except StoreBusyError as error:
                if not left or not isinstance(error.__cause__, apsw.BusyError):
                    raise
        raise AssertionError("the last try returns or raises")

    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        return closing(open_reader(self._folder))
