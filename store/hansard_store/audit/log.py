"""The service of the audit log: events without a record of their own, and reading the log.

Each call is one transaction on the caller's thread, and survives a power cut once it returns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals import proposals
from hansard_store.approvals.records import PolicyNote
from hansard_store.approvals.unit_of_work import ApprovalRefusal, Who, Work
from hansard_store.audit.anchors import (
    Anchor,
    AnchoredChain,
    Anchors,
    acceptance,
    accepted_heads,
    copy_folder,
)
from hansard_store.audit.clock import Measure, measure_uptime, notice, unknown_uptime
from hansard_store.audit.daily_heads import keep_head, read_heads, verify_with_heads
from hansard_store.audit.event_types import (
    Actor,
    ChainReport,
    Content,
    EventFilter,
    EventLog,
    EventType,
    Head,
    StoredEvent,
)
from hansard_store.audit.events import SqliteEventLog
from hansard_store.audit.sealer import Sealed, seal
from hansard_store.content.retention import Retention
from hansard_store.database.connections import OwnConnections
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import store_errors, transaction
from hansard_store.errors import StoreError
from hansard_store.policy.stored_policy import DENY, PolicyQuestion
from hansard_store.principals.authority import Authority, DecideMode
from hansard_store.principals.model import Principal, check_given

_T = TypeVar("_T")
OpenLog = Callable[[apsw.Connection], EventLog]


class AuditService:
    """The audit log of one data folder; threads may share it."""

    def __init__(
        self,
        folder: DataFolder | Path,
        *,
        clock: Callable[[], int] = time.time_ns,
        retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        source: str = "embedded",
        open_log: OpenLog = SqliteEventLog,
        heads_copy: str | None = None,
        uptime: Measure | None = None,
        decide: DecideMode = "claimed",
    ) -> None:
        """Make it; the store is opened with the first call. `clock` gives Unix nanoseconds.

        `uptime` goes with the clock; None takes the machine's, where the clock is the machine's.
        `heads_copy`: the setting of that name; None asks the environment, then the platform.
        `decide` says who may decide: see `Authority`.
        """
        self.folder = folder if isinstance(folder, DataFolder) else DataFolder(folder)
        try:
            self.folder.create()
            key = self.folder.key()
        except OSError as error:
            raise StoreError(f"cannot use {str(self.folder.path)!r}: {error.strerror}") from error
        self.keeper = Retention(retention, Redactor(key), key)
        self.source = source
        self.anchors = Anchors(self.folder, key, copy=copy_folder(heads_copy))
        self._authority = Authority.of(decide)
        self._clock = clock
        own_clock = clock is time.time_ns
        self._uptime = uptime or (measure_uptime if own_clock else unknown_uptime)
        self._open_log = open_log
        self._connections = OwnConnections(self.folder)

    def from_source(self, source: str) -> Self:
        """Return the same store, with another word for where events come from."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "source": source}
        return other

    def acting(self, principal: Principal | None) -> Self:
        """Return the same store as a principal uses it; None: a request without a credential."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "_authority": self._authority.acting(principal)}
        return other

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def now_ns(self) -> int:
        """Return the time by this service's clock."""
        return self._clock()

    def events(
        self,
        filters: EventFilter = EventFilter(),  # noqa: B008 - frozen
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> Sequence[StoredEvent]:
        """Return events, the newest first."""
        with self._reading() as connection:
            return self._open_log(connection).read(filters, before=before, limit=limit)

    def count_events(self, filters: EventFilter, *, at_most: int) -> int:
        """Return how many events meet a filter; counting ends at `at_most`."""
        with self._reading() as connection:
            return self._open_log(connection).count(filters, at_most=at_most)

    def head(self) -> Head:
        """Return the end of the audit log's chain."""
        with self._reading() as connection:
            return self._open_log(connection).head()

    def verify(self, *, anchor: Head | None = None) -> ChainReport:
        """Check the audit log's chain, and the drafts and notes it refers to.

        It is held against the heads that were stored day by day and at each decision, and against
        an anchor.
        """
        with self._reading() as connection:
            log = self._open_log(connection)
            return verify_with_heads(
                self.folder,
                lambda heads: log.verify(anchor=anchor, heads=heads),
                latest=lambda: [one.head for one in self.anchors.stored()],
                given_up=accepted_heads(connection, self.keeper.key),
            )

    def accept_head(self, *, by: str, note: str = "") -> list[Anchor]:
        """Take the log as it is for the valid one; return the heads that are given up by it.

        It is a decision, and an event, where any head was stored that the log has not come by.
        """

        def do(work: Work) -> list[Anchor]:
            chain = self._chain(work.connection, work.log)
            broken = self.anchors.broken(chain, skips_damaged=True)
            days = self._older_days(work.log)
            heads = list(dict.fromkeys([*(one.head for one in broken), *days]))
            if heads:
                body = acceptance(self.keeper.key, work.log.head(), heads)
                reason = work.keeper.words("note", note) if note else None
                work.tell(
                    EventType.HEAD_ACCEPTED,
                    self._decider(by),
                    action="accept_head",
                    subject="store",
                    body=body,
                    contents=[] if reason is None else [work.keeper.content("note", reason)],
                )
            return broken

        return self._decide(do, accepts=True)

    def keep_head(self) -> Head | None:
        """Store the head of today beside the database; None where nothing was to store."""
        with self._reading() as connection:
            return keep_head(self.folder, self._open_log(connection), now_ns=self._clock())

    def seal(self) -> Sealed | None:
        """Seal what was written since the last seal; None where nothing was, or another did it.

        The head is stored where it is another one than the stored one.
        """
        connection = self._connections.get()
        sealed = seal(connection, self.keeper.key)
        log = self._open_log(connection)
        if self.anchors.is_behind(log.head()):
            with self.anchors.keeping() as keeping:
                keeping.prepare(self._chain(connection, log))
                keeping.keep()
        return sealed

    def message_in(self, conversation: str, *, by: str = "", **fields: Any) -> int:
        """Log an inbound message: `ref` or `text` (stored as a keyed hash), `run_id`, `step_id`."""
        who = self._person(by)
        return self._message(EventType.MESSAGE_INBOUND, "receive", conversation, who, **fields)

    def message_out(self, conversation: str, *, agent: str = "", **fields: Any) -> int:
        """Log an outbound message, as `message_in`."""
        who = self._agent(agent)
        return self._message(EventType.MESSAGE_OUTBOUND, "send", conversation, who, **fields)

    def _message(
        self,
        type: EventType,
        action: str,
        conversation: str,
        who: Who,
        *,
        ref: str | None = None,
        text: str | None = None,
        **at: Any,
    ) -> int:
        """Log a message by its reference, or a keyed hash of its text; never the text."""
        body = {
            "ref": None if ref is None else self.keeper.clean_text(ref),
            "text": None if text is None else self.keeper.reference(text),
        }
        subject = f"conversation:{self.keeper.name('conversation', conversation)}"
        return self._write(
            lambda work: work.tell(type, who, action=action, subject=subject, body=body, **at)
        )

    def tool_called(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        agent: str | None = None,
        **fields: Any,
    ) -> int:
        """Log a tool call before it is made.

        `fields`: `call_id`, `effect`, `approval_id`, `run_id`, `step_id`; `time_ns`: it was made
        then, and is written late. That of a reading tool survives any crash of the process, and a
        power cut with the next write that does.
        """
        who, tool = self._agent(agent), self.keeper.name("tool", tool)
        body = {"arguments": None if arguments is None else self.keeper.reference(arguments)}
        return self._tool(EventType.TOOL_CALLED, tool, who, body, **fields)

    def tool_returned(
        self,
        tool: str,
        *,
        ok: bool,
        agent: str | None = None,
        result: Any = None,
        result_ref: str | None = None,
        **fields: Any,
    ) -> int:
        """Log a tool's result: `result` (stored as a keyed hash), `result_ref`, `error`."""
        principal, tool = self._agent(agent).principal, self.keeper.name("tool", tool)
        body = {
            "ok": ok,
            "result_ref": None if result_ref is None else self.keeper.clean_text(result_ref),
            "result": None if result is None else self.keeper.reference(result),
        }
        who = Who(Actor.TOOL, tool, principal)
        return self._tool(EventType.TOOL_RETURNED, tool, who, body, **fields)

    def _tool(
        self,
        type: EventType,
        tool: str,
        who: Who,
        body: Mapping[str, Any],
        *,
        call_id: str | None = None,
        error: str | None = None,
        effect: str | None = None,
        approval_id: str | None = None,
        **at: Any,
    ) -> int:
        call_id = None if call_id is None else self.keeper.clean_text(call_id)
        details = {"call_id": call_id, "effect": effect, "approval_id": approval_id, **body}
        contents = [] if error is None else [self._error(error)]
        subject = f"call:{call_id}" if call_id else f"tool:{tool}"
        return self._write(
            lambda work: work.tell(
                type, who, action=tool, subject=subject, body=details, contents=contents, **at
            ),
            in_full=effect != "read",
        )

    def blocked(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        reason: str,
        rule_ids: Sequence[str] = (),
        agent: str | None = None,
        run_id: str | None = None,
        step_id: str | None = None,
    ) -> int:
        """Log that policy, or the gate itself, blocked a call."""
        question = PolicyQuestion(tool, arguments, "write", agent, run_id, step_id)
        note = PolicyNote(DENY, tuple(rule_ids), reason)
        return self._write(
            lambda work: proposals.note_denial(work, question, note, self._agent(agent))
        )

    def failed(
        self,
        action: str,
        error: str,
        *,
        agent: str | None = None,
        subject: str | None = None,
        **at: Any,
    ) -> int:
        """Log a failure: `subject`, `run_id`, `step_id`, `time_ns`; Hansard's without agent."""
        who = Who(Actor.SYSTEM) if agent is None else self._agent(agent)
        action = self.keeper.name("action", action)
        subject = self.keeper.clean_text(subject) if subject else f"action:{action}"
        contents = [self._error(error)]
        return self._write(
            lambda work: work.tell(
                EventType.FAILURE, who, action=action, subject=subject, contents=contents, **at
            )
        )

    def receipt(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        agent: str | None = None,
        rule_ids: Sequence[str] = (),
        **at: Any,
    ) -> str:
        """Store the receipt that policy demands, durably, and return its reference.

        Raises StoreBusyError when it cannot be: then the action may not be done.
        """
        who, tool = self._agent(agent), self.keeper.name("tool", tool)
        hashed, rules = self.keeper.hash_of(arguments), self.keeper.clean_texts(rule_ids)
        body = {"arguments": hashed, "rule_ids": rules}
        subject = f"tool:{tool}"
        seq = self._write(
            lambda work: work.tell(
                EventType.ACTION_RECEIPTED, who, action=tool, subject=subject, body=body, **at
            )
        )
        return f"event:{seq}"

    # ---- the inside

    def _error(self, text: str) -> Content:
        return self.keeper.content("error", self.keeper.content_text("error", text))

    def _person(self, name: str) -> Who:
        return Who(Actor.ME, self.keeper.clean_text(check_given(name)), self._authority.principal)

    def _agent(self, name: str | None) -> Who:
        name = check_given(name or "")
        return Who(Actor.AGENT, self.keeper.clean_text(name), self._authority.principal)

    def _requester(self, name: str | None) -> Who:
        return self._authority.requester(self.keeper.clean_text(name or ""))

    def _decider(self, stated: str) -> Who:
        return self._authority.decider(self.keeper.clean_text(stated))

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """Lend this thread's connection; what it cannot read is a StoreError."""
        with store_errors():
            yield self._connections.get()

    def _chain(self, connection: apsw.Connection, log: EventLog) -> AnchoredChain:
        return AnchoredChain(log, accepted_heads(connection, self.keeper.key))

    def _older_days(self, log: EventLog) -> list[Head]:
        """Return the heads of days that the log has not come by."""
        heads = [one.head for one in read_heads(self.folder)]
        return [one for one in heads if log.hash_at(one.seq) != one.hash]

    def _write(self, do: Callable[[Work], _T | ApprovalRefusal], *, in_full: bool = True) -> _T:
        """Run one compound write; what it refuses is raised once its findings are committed."""
        connection = self._connections.get(in_full=in_full)
        with transaction(connection):
            work = self._work(connection)
            if in_full:  # what a reading tool logs has no deadline
                notice(work, self._uptime())
            done = do(work)
        return _allowed(done)

    def _decide(self, do: Callable[[Work], _T | ApprovalRefusal], *, accepts: bool = False) -> _T:
        """Run a compound write that decides or claims; its head is on disk when it returns.

        Raises StoreBusyError, before anything is written, where the head could not be stored.
        """
        with self.anchors.keeping() as keeping:
            connection = self._connections.get()
            with transaction(connection):
                work = self._work(connection)
                notice(work, self._uptime())
                done = do(work)
                keeping.prepare(self._chain(connection, work.log), accepts=accepts)
            keeping.keep()
        return _allowed(done)

    def _work(self, connection: apsw.Connection) -> Work:
        log, is_open = self._open_log(connection), self._authority.is_open
        return Work(connection, log, self.keeper, self._clock(), self.source, is_open)


def _allowed(done: _T | ApprovalRefusal) -> _T:
    if isinstance(done, ApprovalRefusal):
        raise done.error
    return done
