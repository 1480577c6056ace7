"""Transcripts in a program: the agent's whole memory of a conversation, on disk before it counts.

    talk = hansard.transcript("support-42")
    answer = talk.run("go on", lambda messages: my_loop(messages))

A first run and the thousandth resume are the same lines. What is appended comes back as it is
stored, without secrets and clipped; the loop goes on with that, so its prompts keep their prefix.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, get_args

from opentelemetry import trace

from hansard import semconv
from hansard._backend import open_backend, settings_of_this_process
from hansard._export.secret_scanner import ForkSafeRedactor
from hansard._runtime import recorder as _state
from hansard.errors import refuse_async
from hansard_compiler.calls import Json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.cost import WINDOW_TOKENS, ResumeCost
from hansard_compiler.transcripts.entry import (
    CLIP_BYTES,
    AnyMessage,
    NewMessage,
    TranscriptEntry,
    enter,
)
from hansard_compiler.transcripts.errors import (
    HeadStale,
    InvalidConversationId,
    InvalidMessage,
    MessageIdUsed,
    NothingToFold,
    TranscriptWithheld,
)
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId
from hansard_compiler.transcripts.messages import SCHEMA_VERSION, Row, StoredMessage, decode
from hansard_compiler.transcripts.ports import Transcripts
from hansard_compiler.transcripts.reads import (
    CacheEffect,
    active,
    cache_effect,
    check_summary,
    cost_of,
)
from hansard_compiler.transcripts.summary_check import FoldCheck
from hansard_compiler.transcripts.views import (
    Branch,
    Conversation,
    EndStatus,
    Fold,
    Mark,
    MarkKind,
    current_marks,
    open_calls,
    prefix_hash,
    refuse_orphans,
)
from hansard_compiler.transcripts.views import veiled as _veiled

if TYPE_CHECKING:
    from hansard._config.settings import Settings

__all__ = ["LocalTranscripts", "Resumed", "Transcript", "transcript"]

Loop = Callable[[list[Json]], Sequence[AnyMessage]]
AsyncLoop = Callable[[list[Json]], Awaitable[Sequence[AnyMessage]]]


@dataclass(frozen=True, slots=True)
class Resumed:
    """The next call's messages. `messages` are the caller's own: changing them changes nothing.

    `open_calls` are tool calls without a result, as a program leaves them that was killed between
    the two: providers refuse a prompt with one, so answer each before you go on.
    """

    messages: list[Json]
    head: int  # position of the last message; -1: none
    prefix_hash: str
    open_calls: tuple[str, ...]
    fold: Fold | None


class Transcript:
    """The log of one conversation, or of a sub-agent of it. Threads may share it."""

    def __init__(self, backend: Transcripts, log: LogId, name: str) -> None:
        self._backend = backend
        self._log = log
        self.name = name  # gen_ai.conversation.id, or what the sub-agent is called

    @property
    def id(self) -> str:
        """`conv_…`, of a sub-agent `br_…`."""
        return str(self._log)

    # ---- going on

    def run(self, prompt: str | AnyMessage, loop: Loop) -> list[Json]:
        """Append a prompt, run the loop on what is active, append what it returns.

        The prompt is stored before the loop begins: a program that is killed in it finds the prompt
        again. The loop returns the messages it added, in order, its new tail; those are stored, all
        or none, and returned as they are stored. What else it does to its list changes nothing.
        """
        refuse_async("loop", loop, "it to `await arun(…)`")
        self.append(prompt)
        return self.append(*loop(self.resume().messages))

    async def arun(self, prompt: str | AnyMessage, loop: AsyncLoop) -> list[Json]:
        """Do the same with a loop that is awaited."""
        self.append(prompt)
        return self.append(*await loop(self.resume().messages))

    def resume(self) -> Resumed:
        """Return the messages of the next call, and record it on the current step."""
        now = active(self._backend, self._log)
        messages = list(now.messages)
        made = Resumed(messages, now.head, prefix_hash(messages), now.open_calls, now.fold)
        self._record(made)
        return made

    def append(
        self, *messages: str | AnyMessage, is_evidence: bool = False, clip_bytes: int = CLIP_BYTES
    ) -> list[Json]:
        """Append messages, all or none, and return them as they are stored; text is a user's.

        Long results of tools are clipped, unless they are evidence; what is left of one names the
        payload that has the whole.
        """
        trace_id, span_id = _current_step()
        new = [
            NewMessage(
                {"role": "user", "content": one} if isinstance(one, str) else one,
                trace_id=trace_id,
                span_id=span_id,
                is_evidence=is_evidence,
            )
            for one in messages
        ]
        if not new:
            return []
        return [one.body for one in self._backend.append(self._log, new, clip_bytes=clip_bytes)]

    def messages(self) -> list[Json]:
        """Return everything ever, marked messages as they are shown."""
        marks = current_marks(self._backend.marks(self._log))
        found = self._backend.messages(self._log)
        return [_veiled(one.body, marks.get(one.position)) for one in found]

    # ---- folds

    def fold(self, summary: str, *, expected_head: int | None = None, by: str = "") -> Fold:
        """Fold all messages into a summary; nothing is deleted.

        With `expected_head`, the `head` of the `Resumed` that was summed up, a message that came
        meanwhile is not lost from view: HeadStale is raised. NothingToFold while a call is open.
        """
        if not isinstance(summary, str):
            raise InvalidMessage(f"a summary is text, not {type(summary).__name__}")
        return self._backend.fold(self._log, summary, expected_head=expected_head, actor=by)

    def check(self, summary: str | None = None) -> FoldCheck:
        """Say which constraints and requests a summary lost; without one, the newest fold."""
        return check_summary(self._backend, self._log, summary)

    def cost(
        self, *, provider: str = "", model: str = "", window_tokens: int = WINDOW_TOKENS
    ) -> ResumeCost:
        """Estimate what going on costs, and whether to fold."""
        return cost_of(
            self._backend, self._log, provider=provider, model=model, window_tokens=window_tokens
        )

    # ---- marks

    def redact(self, position: int, *, reason: str, by: str = "") -> CacheEffect:
        """Take a message out of views and prompts; its row stays. Returns what that costs."""
        _check_positions(position)
        self._backend.mark(self._log, position, "redacted", reason=reason, actor=by)
        return cache_effect(self._backend, self._log, position)

    def supersede(
        self, position: int, *, by_position: int, reason: str, by: str = ""
    ) -> CacheEffect:
        """Show that a later message replaces this one."""
        _check_positions(position, by_position)
        self._backend.mark(
            self._log,
            position,
            "superseded",
            reason=reason,
            actor=by,
            superseded_by=by_position,
        )
        return cache_effect(self._backend, self._log, position)

    # ---- sub-agents

    def branch(self, name: str) -> Transcript:
        """Begin a sub-agent with a log of its own."""
        if not isinstance(name, str):
            raise InvalidConversationId(repr(name), "sub-agent")
        made = self._backend.spawn(self._log, name)
        return Transcript(self._backend, made.id, made.name)

    def branches(self) -> list[Branch]:
        """Return the sub-agents that began here, in order."""
        return self._backend.branches(self._log)

    def resume_branch(self, branch_id: str) -> Transcript:
        """Return the transcript of a sub-agent, to go on with it, ended or not."""
        found = self._backend.branch(BranchId.parse(branch_id))
        return Transcript(self._backend, found.id, found.name)

    def end(self, status: EndStatus = "done") -> Branch:
        """Say that this sub-agent ended; raises InvalidConversationId on a conversation."""
        if status not in get_args(EndStatus):
            raise InvalidMessage(f"a sub-agent ends as {' or '.join(get_args(EndStatus))}")
        return self._backend.end(BranchId.parse(self.id), status)

    def _record(self, made: Resumed) -> None:
        span = trace.get_current_span()
        if not span.is_recording():
            return
        span.set_attribute(semconv.TRANSCRIPT_ID, self.id)
        span.set_attribute(semconv.TRANSCRIPT_HEAD, made.head)
        span.set_attribute(semconv.TRANSCRIPT_PREFIX_HASH, made.prefix_hash)


def _check_positions(*positions: object) -> None:
    if not all(type(one) is int for one in positions):
        raise InvalidMessage("the position of a message is a whole number")


def transcript(conversation: str, *, backend: Transcripts | None = None) -> Transcript:
    """Return the transcript of a conversation, made where there is none.

    `conversation` is what `gen_ai.conversation.id` is on its spans. It is stored where `init()` or
    the environment says: in the program's own store when embedded, else at the server. Raises
    InvalidConversationId for what is no text, TranscriptUnavailable or StoreError where that
    cannot be reached: a transcript does not depend on telemetry, and telemetry does not stand in
    for it. `backend` is another one, such as LocalTranscripts.
    """
    if not isinstance(conversation, str):
        raise InvalidConversationId(repr(conversation), "conversation")
    backend = backend or open_transcripts(settings_of_this_process())
    found = backend.ensure(conversation)
    return Transcript(backend, found.id, found.name)


def open_transcripts(settings: Settings) -> Transcripts:
    """Open the place that settings name; raises TranscriptWithheld in metadata_only."""
    if settings.retention is RetentionMode.METADATA_ONLY:
        raise TranscriptWithheld
    return open_backend(settings).transcripts(_redactor(settings))


def _redactor(settings: Settings) -> ForkSafeRedactor:
    from hansard._runtime.data_folder import read_or_make_key

    recorder = _state.active()
    if recorder is not None and isinstance(recorder.redactor, ForkSafeRedactor):
        return recorder.redactor
    return ForkSafeRedactor(read_or_make_key(settings.data))


def _current_step() -> tuple[bytes | None, bytes | None]:
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return None, None
    return context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big")


_T = TypeVar("_T")


@dataclass(slots=True)
class _Log:
    """One log; `about` is the conversation, or the sub-agent."""

    about: Conversation | Branch
    rows: list[Row] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    end: tuple[int, EndStatus] | None = None

    def unfolded(self, log: LogId) -> list[Json]:
        """Return the messages after the last fold."""
        after = self.folds[-1].message_position if self.folds else -1
        return [decode(log, row).body for row in self.rows[after + 1 :]]


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
        redacted = self._redacted(name)
        made = ConversationId.named(redacted)
        with self._lock:
            about = Conversation(made, redacted, self._clock(), len(self._logs) + 1)
            found = self._logs.setdefault(made, _Log(about)).about
        assert isinstance(found, Conversation)
        return found

    def conversation(self, log: LogId) -> Conversation:
        """Return the conversation of a log; raises NotFoundError."""
        about = self._log(log).about
        return self.conversation(about.conversation) if isinstance(about, Branch) else about

    def append(
        self, log: LogId, messages: Sequence[NewMessage], *, clip_bytes: int = CLIP_BYTES
    ) -> list[StoredMessage]:
        """Append all or none, and return them as they are stored."""
        entries = [enter(one, self._redacted, clip_bytes=clip_bytes) for one in messages]
        with self._lock:
            to = self._log(log)
            for entry in entries:
                self._refuse_other(log, entry)
            self._refuse_orphans(log, to, entries)
            return [decode(log, self._add(log, to, entry)) for entry in entries]

    def _refuse_other(self, log: LogId, entry: TranscriptEntry) -> None:
        known = self._by_id.get(entry.id)
        if known is not None:
            where, row = known
            if (where, row.role, row.content) != (log, entry.role, entry.content):
                raise MessageIdUsed(entry.id.hex())

    def _refuse_orphans(self, log: LogId, to: _Log, entries: Sequence[TranscriptEntry]) -> None:
        bodies = to.unfolded(log)
        for entry in entries:
            if entry.id not in self._by_id:
                body = {"role": entry.role, **json.loads(entry.content)}
                refuse_orphans(body, reversed(bodies))
                bodies.append(body)

    def _add(self, log: LogId, to: _Log, entry: TranscriptEntry) -> Row:
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
        """Fold all messages into a summary; raises NothingToFold, HeadStale."""
        redacted = self._redacted(summary)
        if not redacted.strip():
            raise NothingToFold("the summary is empty")
        with self._lock:
            to = self._log(log)
            waiting = open_calls(to.unfolded(log))
            if waiting:
                raise NothingToFold(f"{len(waiting)} tool call(s) have no result yet")
            head = len(to.rows) - 1
            if head < 0:
                raise NothingToFold("there are no messages yet")
            if expected_head not in (None, head):
                raise HeadStale(expected=expected_head or 0, found=head)
            to.folds.append(Fold(log, head, redacted, self._redacted(actor), self._clock()))
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
            position,
            kind,
            self._redacted(reason),
            self._redacted(actor),
            self._clock(),
            superseded_by,
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
                name=self._redacted(name),
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

    def _redacted(self, text: str) -> str:
        return self._redactor.redact_text(text).text
