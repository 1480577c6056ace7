"""The store of a transcript: the port that every back end implements (TR-22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.ids import BranchId, LogId
from hansard_compiler.transcripts.messages import StoredMessage
from hansard_compiler.transcripts.views import Branch, Conversation, EndStatus, Fold, Mark, MarkKind


class Transcripts(Protocol):
    """Conversations and the logs of their sub-agents. Thread-safe; nothing is ever changed.

    Calls raise TranscriptError, NotFoundError for an id that is not there, and what the back end
    itself raises when it cannot write.
    """

    def ensure(self, name: str) -> Conversation:
        """Return the conversation of this name; made where there is none."""

    def conversation(self, log: LogId) -> Conversation:
        """Return the conversation of a log."""

    def append(
        self, log: LogId, messages: Sequence[NewMessage], *, clip_bytes: int = ...
    ) -> list[StoredMessage]:
        """Append all or none, and return them as they are stored."""

    def messages(
        self, log: LogId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return messages in order, those after a position."""

    def fold(
        self, log: LogId, summary: str, *, expected_head: int | None = None, actor: str = ""
    ) -> Fold:
        """Fold all messages into a summary; raises NothingToFold, HeadStale."""

    def folds(self, log: LogId) -> list[Fold]:
        """Return all folds, the oldest first; the last one counts."""

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

    def marks(self, log: LogId) -> list[Mark]:
        """Return all marks, the oldest first."""

    def spawn(self, parent: LogId, name: str) -> Branch:
        """Begin the log of a sub-agent at the head of its parent's."""

    def branch(self, branch: BranchId) -> Branch:
        """Return a sub-agent."""

    def branches(self, log: LogId) -> list[Branch]:
        """Return the sub-agents that began in a log, in order."""

    def end(self, branch: BranchId, status: EndStatus = "done") -> Branch:
        """Say that a sub-agent ended; appending to it resumes it."""
