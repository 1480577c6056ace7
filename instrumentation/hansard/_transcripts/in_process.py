"""Transcripts that end with the process: for tests of agents, and where nothing may be kept.

The same port and the same rules as in the store. Originals of clipped results are kept, too.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hansard_compiler.errors import NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.transcripts.entry import CLIP_BYTES, Entry, NewMessage, enter
from hansard_compiler.transcripts.errors import HeadMoved, MessageIdUsed, NothingToFold
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import SCHEMA_VERSION, Row, StoredMessage, decode
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

_T = TypeVar("_T")


@dataclass(slots=True)
class _Log:
    """One log; `about` is the conversation, or the sub-agent it belongs to."""

    about: Conversation | Branch
    rows: list[Row] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    end: tuple[int, EndStatus] | None = None


class LocalTranscripts:
    """A back end without a store. The lock guards all logs."""

    def __init__(
        self, *, redactor: Redactor | None = None, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._redactor = redactor or Redactor(secrets.token_bytes(32))
        self._clock = clock
        self._lock = threading.RLock()
        self._logs: dict[LogId, _Log] = {}
        self._by_id: dict[bytes, tuple[LogId, Row]] = {}
        self.originals: dict[str, bytes] = {}  # of clipped results, by reference

    def ensure(self, name: str) -> Conversation:
        """Return the conversation of this name; made where there is none."""
        kept = self._kept(name)
        made = ConversationId.named(kept)
        with self._lock:
            about = Conversation(made, kept, self._clock(), len(self._logs) + 1)
            found = self._logs.setdefault(made, _Log(about)).about
        assert isinstance(found, Conversation)
        return found

    def conversation(self, log: LogId) -> Conversation:
        """Return the conversation that a log belongs to; raises NotFoundError."""
        about = self._log(log).about
        return self.conversation(about.conversation) if isinstance(about, Branch) else about

    def append(
        self, log: LogId, messages: Sequence[NewMessage], *, clip_bytes: int = CLIP_BYTES
    ) -> list[StoredMessage]:
        """Append all or none, and return them as they are stored."""
        entries = [enter(one, self._kept, clip_bytes=clip_bytes) for one in messages]
        with self._lock:
            to = self._log(log)
            for entry in entries:
                self._refuse_other(log, entry)
            self._refuse_orphans(log, to, entries)
            return [decode(log, self._add(log, to, entry)) for entry in entries]

    def _refuse_other(self, log: LogId, entry: Entry) -> None:
        known = self._by_id.get(entry.id)
        if known is not None:
            where, row = known
            if (where, row.role, row.content) != (log, entry.role, entry.content):
                raise MessageIdUsed(entry.id.hex())

    def _refuse_orphans(self, log: LogId, to: _Log, entries: Sequence[Entry]) -> None:
        after = to.folds[-1].message_position if to.folds else -1
        bodies = [decode(log, row).body for row in to.rows[after + 1 :]]
        for entry in entries:
            if entry.id not in self._by_id:
                body = {"role": entry.role, **json.loads(entry.content)}
                refuse_orphans(body, reversed(bodies))
                bodies.append(body)

    def _add(self, log: LogId, to: _Log, entry: Entry) -> Row:
        if entry.id in self._by_id:
            return self._by_id[entry.id][1]
        row = Row(
            entry.id, len(to.rows), entry.role, entry.content, self._clock(), SCHEMA_VERSION,
            entry.trace_id, entry.span_id,
        )  # fmt: skip
        self.originals.update({one.ref: one.data for one in entry.originals})
        self._by_id[entry.id] = (log, row)
        to.rows.append(row)
        return row

    def messages(
        self, log: LogId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return messages in order, those after a position."""
        with self._lock:
            rows = self._log(log).rows[after + 1 :]
        return [decode(log, row) for row in (rows if limit is None else rows[:limit])]

    def fold(
        self, log: LogId, summary: str, *, expected_head: int | None = None, actor: str = ""
    ) -> Fold:
        """Let a summary stand for all there is; raises NothingToFold, HeadMoved."""
        kept = self._kept(summary)
        if not kept.strip():
            raise NothingToFold("the summary is empty")
        with self._lock:
            to = self._log(log)
            after = to.folds[-1].message_position if to.folds else -1
            waiting = open_calls(decode(log, row).body for row in to.rows[after + 1 :])
            if waiting:
                raise NothingToFold(f"{len(waiting)} tool call(s) have no result yet")
            head = len(to.rows) - 1
            if head < 0:
                raise NothingToFold("there are no messages yet")
            if expected_head not in (None, head):
                raise HeadMoved(expected=expected_head or 0, found=head)
            to.folds.append(Fold(log, head, kept, self._kept(actor), self._clock()))
            return to.folds[-1]

    def folds(self, log: LogId) -> list[Fold]:
        """Return all folds, the oldest first; the last one counts."""
        return list(self._log(log).folds)

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
            position, kind, self._kept(reason), self._kept(actor), self._clock(), superseded_by
        )
        with self._lock:
            to = self._log(log)
            if not 0 <= position < len(to.rows):
                raise NotFoundError("message", f"{log} {position}")
            to.marks.append(made)
        return made

    def marks(self, log: LogId) -> list[Mark]:
        """Return all marks, the oldest first."""
        return list(self._log(log).marks)

    def spawn(self, parent: LogId, name: str) -> Branch:
        """Begin the log of a sub-agent at the head of its parent's."""
        with self._lock:
            at = len(self._log(parent).rows) - 1
            made = Branch(
                id=BranchId(secrets.token_bytes(16)),
                conversation=self.conversation(parent).id,
                parent=parent,
                parent_position=at,
                name=self._kept(name),
                created_ns=self._clock(),
                messages=0,
                ended=None,
            )
            self._logs[made.id] = _Log(made)
        return made

    def branch(self, branch: BranchId) -> Branch:
        """Return a sub-agent."""
        found = self._log(branch)
        assert isinstance(found.about, Branch)
        head = len(found.rows) - 1
        ended = found.end[1] if found.end and found.end[0] == head else None
        return replace(found.about, messages=len(found.rows), ended=ended)

    def branches(self, log: LogId) -> list[Branch]:
        """Return the sub-agents that began in a log, in order."""
        self._log(log)
        with self._lock:
            abouts = [one.about for one in self._logs.values()]
        return [
            self.branch(about.id)
            for about in abouts
            if isinstance(about, Branch) and about.parent == log
        ]

    def end(self, branch: BranchId, status: EndStatus = "done") -> Branch:
        """Say that a sub-agent ended; appending to it resumes it."""
        found = self._log(branch)
        found.end = (len(found.rows) - 1, status)
        return self.branch(branch)

    def _log(self, log: LogId) -> _Log:
        found = self._logs.get(log)
        if found is None:
            kind = "sub-agent" if isinstance(log, BranchId) else "conversation"
            raise NotFoundError(kind, str(log))
        return found

    def _kept(self, text: str) -> str:
        return self._redactor.redact_text(text).text
