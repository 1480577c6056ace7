"""Accountability: the one public way to write approvals and the audit log.

Each call is one transaction, record and event together, on the caller's thread, and survives a
power cut once it returns. What cannot be written raises, and nothing of it stays: whoever gates an
action must not let it go on then. The two stores behind this know nothing of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import apsw

from hansard_compiler.redaction import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store import approvals, deciding, proposing, running, telling
from hansard_store.accounting import Refusal, Who, Work, new_id
from hansard_store.approval_claims import lost_claims
from hansard_store.approval_errors import ActionBlocked
from hansard_store.approval_history import drafts_of, history_of
from hansard_store.approval_records import (
    Action,
    Approval,
    ApprovalFilter,
    Claim,
    PolicyNote,
    Proposal,
    Proposed,
)
from hansard_store.approval_states import Status
from hansard_store.argument_keeping import Keeper
from hansard_store.database import DataFolder, transaction
from hansard_store.errors import StoreBusyError
from hansard_store.event_types import (
    Actor,
    ChainReport,
    Event,
    EventFilter,
    EventLog,
    Head,
    StoredEvent,
)
from hansard_store.events import SqliteEventLog
from hansard_store.own_connections import OwnConnections
from hansard_store.policy_port import DENY, AskPolicy, PolicyQuestion, StoredPolicy
from hansard_store.policy_records import CheckKeeper

_T = TypeVar("_T")
ME = "me"
OpenLog = Callable[[apsw.Connection, bytes], EventLog]


class Accountability:
    """Approvals and the audit log of one data folder; threads may share it."""

    def __init__(
        self,
        folder: DataFolder | Path,
        *,
        clock: Callable[[], int] = time.time_ns,
        retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS,
        policy: AskPolicy | None = None,
        source: str = "embedded",
        open_log: OpenLog = SqliteEventLog,
    ) -> None:
        """Make it; the store is opened with the first call. `clock` gives Unix nanoseconds."""
        self.folder = folder if isinstance(folder, DataFolder) else DataFolder(folder)
        self.folder.create()
        key = self.folder.key()
        redactor = Redactor(key)
        self.keeper = Keeper(retention, redactor, key)
        self.source = source
        self._clock = clock
        self._open_log = open_log
        self._connections = OwnConnections(self.folder)
        self._policy = policy or StoredPolicy(
            self.folder, CheckKeeper(retention, redactor, key), self._connections.get
        )

    def from_source(self, source: str) -> Accountability:
        """Return the same store, with another word for where events come from."""
        other = object.__new__(Accountability)
        other.__dict__ = {**self.__dict__, "source": source}
        return other

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- proposing

    def propose(self, proposal: Proposal, *, batch_id: str | None = None) -> Proposed:
        """Create a pending action. Raises ActionBlocked where policy denies it, BadProposal.

        What is proposed in one batch does not take the place of one another.
        """
        return self._propose([replace(proposal, batch_id=batch_id or proposal.batch_id)])[0]

    def propose_batch(self, proposals: Sequence[Proposal]) -> list[Proposed]:
        """Create pending actions that are shown together; all of them, or none."""
        batch_id = new_id()
        return self._propose([replace(one, batch_id=batch_id) for one in proposals])

    def repropose(
        self,
        approval_id: str,
        arguments: Mapping[str, Any],
        *,
        description: str | None = None,
        flags: Mapping[str, Any] = {},
        by: str | None = None,
        proposal_key: str | None = None,
    ) -> Approval:
        """Bring a revised action back with a new draft, which passes policy like the first."""
        before = self.approval(approval_id)
        running.require_proposer(before, proposal_key)
        note = self._ask(_question(before, arguments), who=_agent(by or before.agent))

        def do(work: Work) -> Approval | Refusal:
            approval = deciding.settle(work, approvals.get(work.connection, before.approval_id))
            if approval.status is Status.EXPIRED:
                return deciding.refuse_expired(approval)
            return proposing.repropose(
                work,
                approval,
                arguments,
                note,
                who=_agent(by or approval.agent),
                description=description,
                flags=flags,
            )

        return self._write(do)

    def undo(self, approval_id: str, *, by: str = ME) -> Proposed:
        """Propose the action that undoes an executed one, through the same gate."""
        proposal = self._write(
            lambda work: proposing.undoing(work, approvals.get(work.connection, approval_id))
        )
        note = self._ask(proposing.question_of(proposal), who=Who(Actor.ME, by))
        return self._write(lambda work: proposing.propose(work, proposal, note))

    # ---- deciding

    def approve(
        self,
        approval_id: str,
        *,
        by: str = ME,
        arguments: Mapping[str, Any] | None = None,
        revision: int | None = None,
    ) -> Approval:
        """Grant an action. Edited arguments are a draft of their own and pass policy again.

        Raises AlreadyDecided with the first decision, unless it was the same one by the same.
        """
        who, note = Who(Actor.ME, by), None
        if arguments is not None:
            before = self.approval(approval_id)
            revision = before.revision if revision is None else revision
            if before.is_pending and self.keeper.hash_of(arguments) != before.arguments_hash:
                note = self._ask(_question(before, arguments), who=who)
        return self._write(
            lambda work: deciding.approve(
                work, approval_id, who, revision=revision, edited=arguments, note=note
            )
        )

    def approve_batch(self, batch_id: str, *, by: str = ME) -> list[Approval]:
        """Grant everything of a batch that still awaits a decision; all of it, or nothing."""

        def do(work: Work) -> list[Approval] | Refusal:
            granted = []
            for approval_id in approvals.ids_of_batch(work.connection, batch_id):
                if approvals.get(work.connection, approval_id).status is not Status.AWAITING:
                    continue
                one = deciding.approve(work, approval_id, Who(Actor.ME, by))
                if isinstance(one, Refusal):
                    return one
                granted.append(one)
            return granted

        return self._write(do)

    def reject(
        self,
        approval_id: str,
        *,
        by: str = ME,
        reason: str | None = None,
        revision: int | None = None,
    ) -> Approval:
        """End an action; nothing runs."""
        who = Who(Actor.ME, by)
        return self._write(
            lambda work: deciding.reject(work, approval_id, who, reason=reason, revision=revision)
        )

    def revise(
        self, approval_id: str, *, note: str, by: str = ME, revision: int | None = None
    ) -> Approval:
        """Send an action back to its agent with a note."""
        who = Who(Actor.ME, by)
        return self._write(
            lambda work: deciding.revise(work, approval_id, who, note=note, revision=revision)
        )

    def expire_due(self, *, limit: int = 200) -> list[Approval]:
        """Do what time demands: expire actions and ask the next approver; return what changed."""
        return self._write(lambda work: deciding.settle_due(work, limit=limit))

    # ---- running

    def claim(
        self,
        approval_id: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        proposal_key: str | None = None,
        lease_s: float | None = None,
        holder: str | None = None,
        is_trusted: bool = True,
    ) -> Claim:
        """Take the right to run an approved action once; raises ClaimRefused.

        Without `arguments` those of the record are returned, if it has them exactly. `lease_s`:
        without a result by then its outcome is unknown; None watches this process instead.
        """
        bringing = running.Claiming(
            arguments=arguments,
            token=token,
            proposal_key=proposal_key,
            lease_ns=None if lease_s is None else int(lease_s * 1e9),
            holder=holder,
            is_trusted=is_trusted,
        )
        return self._write(lambda work: running.claim(work, approval_id, bringing))

    def finish(
        self,
        claim: Claim | str,
        *,
        ok: bool,
        result_ref: str | None = None,
        error: str | None = None,
        undo: Action | None = None,
        approval_id: str | None = None,
    ) -> Approval:
        """Tell how a claimed action ended, and how it could be undone."""
        claim_id = claim if isinstance(claim, str) else claim.claim_id
        return self._write(
            lambda work: running.finish(
                work,
                claim_id,
                is_ok=ok,
                result_ref=result_ref,
                error=error,
                undo=undo,
                approval_id=approval_id,
            )
        )

    def recover(self) -> list[Approval]:
        """Mark what gone processes had claimed as of unknown outcome; call it at a start."""
        return self._write(running.recover)

    def token(self, approval_id: str, proposal_key: str) -> str | None:
        """Return the token of an approved action to whoever proposed it; None when there is none.

        Raises ClaimRefused for a wrong key.
        """
        approval = self.approval(approval_id)
        running.require_proposer(approval, proposal_key)
        return running.granted_token(self.keeper.key, approval, now_ns=self._clock())

    # ---- reading

    def approval(self, approval_id: str, *, with_drafts: bool = False) -> Approval:
        """Return an approval by its id, or 8 digits or more of it; one out of time has expired."""
        connection = self._connections.get()
        found = approvals.get(connection, approval_id)
        if deciding.is_over(found, self._clock()):
            found = self._expired(found)
        if not with_drafts:
            return found
        log = self._open_log(connection, self.keeper.key)
        return replace(found, drafts=drafts_of(log, found))

    def approvals(
        self,
        wanted: ApprovalFilter = ApprovalFilter(),  # noqa: B008 - frozen
        *,
        before: int = approvals.ABOVE_ALL,
        limit: int = 50,
    ) -> list[Approval]:
        """Return approvals, the newest first; those out of time have expired."""
        self.settle_quietly()
        return approvals.list_approvals(self._connections.get(), wanted, before=before, limit=limit)

    def waiting(self) -> dict[str, int]:
        """Return how many approvals await a person, and how many an agent."""
        self.settle_quietly()
        return approvals.count_by_status(self._connections.get())

    def settle_quietly(self) -> None:
        """Expire what is due, if the store can be written to now."""
        connection, now_ns = self._connections.get(), self._clock()
        if approvals.due_ids(connection, now_ns=now_ns, limit=1) or approvals.ids_to_escalate(
            connection, now_ns=now_ns, limit=1
        ):
            try:
                self.expire_due()
            except StoreBusyError:
                return

    def recover_quietly(self) -> list[Approval]:
        """Recover where there is something to recover; nothing is written otherwise."""
        connection = self._connections.get()
        if not lost_claims(connection, now_ns=self._clock()):
            return []
        return self.recover()

    def now_ns(self) -> int:
        """Return the time as this desk has it."""
        return self._clock()

    def history(self, approval_id: str) -> list[StoredEvent]:
        """Return every event of an approval, in order, with its drafts and notes."""
        found = approvals.get(self._connections.get(), approval_id)
        return history_of(self._log(), found.approval_id)

    def events(
        self,
        wanted: EventFilter = EventFilter(),  # noqa: B008 - frozen
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> Sequence[StoredEvent]:
        """Return events, the newest first."""
        return self._log().read(wanted, before=before, limit=limit)

    def head(self) -> Head:
        """Return the end of the audit log's chain."""
        return self._log().head()

    def verify(self, *, anchor: Head | None = None) -> ChainReport:
        """Check the audit log's chain, and the drafts and notes it refers to."""
        return self._log().verify(anchor=anchor)

    # ---- events without a record

    def record(self, event: Event) -> int:
        """Append an event of a type that another store of this folder is the author of."""
        return self._write(lambda work: work.log.append(event))

    def message_in(self, conversation: str, *, by: str = "", **told: Any) -> int:
        """Log an inbound message: `ref` or `text` (kept as a keyed hash), `run_id`, `step_id`."""
        who = Who(Actor.ME, by)
        return self._write(
            lambda work: telling.tell_message(
                work, is_inbound=True, conversation=conversation, who=who, **told
            )
        )

    def message_out(self, conversation: str, *, agent: str = "", **told: Any) -> int:
        """Log an outbound message, as `message_in`."""
        who = Who(Actor.AGENT, agent)
        return self._write(
            lambda work: telling.tell_message(
                work, is_inbound=False, conversation=conversation, who=who, **told
            )
        )

    def tool_called(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        agent: str | None = None,
        call_id: str | None = None,
        **told: Any,
    ) -> int:
        """Log a tool call before it is made: `effect`, `approval_id`, `run_id`, `step_id`.

        `time_ns`: it was made then, and is written late.
        """
        return self._write(
            lambda work: telling.tell_tool(
                work, tool, agent=agent, call_id=call_id, arguments=arguments, **told
            )
        )

    def tool_returned(
        self,
        tool: str,
        *,
        ok: bool,
        agent: str | None = None,
        call_id: str | None = None,
        **told: Any,
    ) -> int:
        """Log a tool's result: `result` (kept as a keyed hash), `result_ref`, `error`, as above."""
        return self._write(
            lambda work: telling.tell_tool(
                work, tool, agent=agent, call_id=call_id, returned=True, is_ok=ok, **told
            )
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
        asked = PolicyQuestion(tool, arguments, "write", agent, run_id, step_id)
        note = PolicyNote(DENY, tuple(rule_ids), reason)
        return self._write(lambda work: proposing.note_denial(work, asked, note, _agent(agent)))

    def failed(self, action: str, error: str, *, agent: str | None = None, **told: Any) -> int:
        """Log a failure: `subject`, `run_id`, `step_id`, `time_ns`."""
        who = _agent(agent) if agent else Who(Actor.SYSTEM)
        return self._write(
            lambda work: telling.tell_failure(work, action, who=who, error=error, **told)
        )

    def receipt(self, tool: str, arguments: Mapping[str, Any], **told: Any) -> str:
        """Store the receipt that policy demands, durably, and return its reference.

        Raises StoreBusyError when it cannot be: then the action may not be done.
        """
        told.setdefault("agent", None)
        return self._write(
            lambda work: telling.tell_receipt(work, tool, arguments=arguments, **told)
        )

    # ---- the inside

    def _propose(self, given: Sequence[Proposal]) -> list[Proposed]:
        checked = [proposing.checked(one, self.keeper) for one in given]
        for one in checked:
            self.keeper.keep(one.arguments)  # refused before policy is asked about it
        notes = [self._ask(proposing.question_of(one), who=_agent(one.agent)) for one in checked]

        pairs = list(zip(checked, notes, strict=True))
        return self._write(lambda work: [proposing.propose(work, *one) for one in pairs])

    def _ask(self, asked: PolicyQuestion, *, who: Who) -> PolicyNote:
        """Ask policy outside of any transaction: it records its check in one of its own."""
        note = self._policy(asked)
        if note.effect == DENY:
            self._write(lambda work: proposing.note_denial(work, asked, note, who))
            raise ActionBlocked(asked.tool, note.reason or "a rule denies it", note.rule_ids)
        return note

    def _expired(self, approval: Approval) -> Approval:
        try:
            return self._write(
                lambda work: deciding.settle(
                    work, approvals.get(work.connection, approval.approval_id)
                )
            )
        except StoreBusyError:  # it cannot be written now, and is over all the same
            return replace(approval, status=Status.EXPIRED, reason="expired")

    def _log(self) -> EventLog:
        return self._open_log(self._connections.get(), self.keeper.key)

    def _write(self, do: Callable[[Work], _T | Refusal]) -> _T:
        """Run one compound write; what it refuses is raised once its findings are committed."""
        connection = self._connections.get()
        with transaction(connection):
            log = self._open_log(connection, self.keeper.key)
            done = do(Work(connection, log, self.keeper, self._clock(), self.source))
        if isinstance(done, Refusal):
            raise done.error
        return done


def open_accountability(
    data: Path, *, retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS, source: str = "sdk"
) -> Accountability:
    """Open a data folder for a program's gate, and mark what its dead predecessors left behind."""
    made = Accountability(DataFolder(data), retention=retention, source=source)
    made.recover()
    return made


def _question(approval: Approval, arguments: Mapping[str, Any]) -> PolicyQuestion:
    return PolicyQuestion(
        approval.tool,
        arguments,
        approval.effect,
        agent=approval.agent,
        run_id=approval.run_id,
        step_id=approval.step_id,
        facts=approval.policy.facts,
    )


def _agent(name: str | None) -> Who:
    return Who(Actor.AGENT, name or "")
