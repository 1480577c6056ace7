"""ApprovalService: the one public way to write approvals and the audit log.

Each call is one transaction, record and event together, on the caller's thread, and survives a
power cut once it returns. What cannot be written raises, and nothing of it stays: a caller that
gates an action must not let it go on then. The two stores behind this know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals import claims, decisions
from hansard_store.approvals import proposals as proposing
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.claim_rows import lost_claims
from hansard_store.approvals.errors import ActionBlocked, ClaimRefused, InvalidProposal
from hansard_store.approvals.json import is_claimed
from hansard_store.approvals.records import (
    Action,
    Approval,
    ApprovalClaim,
    ApprovalFilter,
    ApprovalNote,
    Draft,
    Outcome,
    PolicyNote,
    Proposal,
    Proposed,
    Status,
)
from hansard_store.approvals.unit_of_work import ApprovalRefusal, Who, Work
from hansard_store.audit import clock
from hansard_store.audit.event_types import EventFilter, EventLog, EventType, StoredEvent
from hansard_store.audit.log import AuditService
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.transactions import store_errors
from hansard_store.errors import SchemaAlteredError, StoreBusyError, StoreError
from hansard_store.ids import new_id
from hansard_store.memory.queries import written_under
from hansard_store.memory.records import Memory
from hansard_store.policy.stored_policy import (
    DENY,
    EvaluatePolicy,
    PolicyQuestion,
    StoredPolicy,
)
from hansard_store.principals.authority import ME
from hansard_store.principals.model import is_same

# How an approval came to be as it is, by the audit log alone: drafts and notes in order.

_AT_ONCE = 500


def history_of(log: EventLog, approval_id: str) -> list[StoredEvent]:
    """Return every event of an approval, in order."""
    filters = EventFilter(approval_id=bytes.fromhex(approval_id))
    found: list[StoredEvent] = []
    before: int | None = None
    while True:
        page = log.read(filters, before=before, limit=_AT_ONCE)
        found += page
        if len(page) < _AT_ONCE:
            return found[::-1]
        before = page[-1].seq


# Events that approve a draft; each may hold a note.
APPROVALS: Final = (EventType.ACTION_APPROVAL_ADDED, EventType.ACTION_APPROVED)


def drafts_of(log: EventLog, approval: Approval) -> tuple[Draft, ...]:
    """Return every draft with its notes; empty where the log has none of them."""
    drafts: list[Draft] = []
    for event in history_of(log, approval.approval_id):
        who = f"{event.actor}:{event.who}" if event.who else event.actor
        if "draft" in event.contents:
            draft = event.contents["draft"]
            drafts.append(
                Draft(
                    draft["revision"], draft["arguments"], draft["description"], who, event.time_ns
                )
            )
        elif event.type == EventType.ACTION_REVISED and drafts:
            drafts[-1] = replace(
                drafts[-1],
                note=event.contents.get("note"),
                note_by=who,
                note_is_claimed=is_claimed(event),
            )
        elif event.type in APPROVALS and drafts and event.contents.get("note"):
            added = ApprovalNote(event.contents["note"], who, is_claimed(event), event.time_ns)
            drafts[-1] = replace(drafts[-1], approval_notes=(*drafts[-1].approval_notes, added))
    return tuple(drafts)


_CANNOT_WRITE = StoreBusyError, SchemaAlteredError  # now; what is read is so all the same


class ApprovalService(AuditService):
    """Approvals and the audit log of one data folder; threads may share it."""

    def __init__(
        self, folder: DataFolder | Path, *, policy: EvaluatePolicy | None = None, **options: Any
    ) -> None:
        """Make it as an AuditService.

        `policy` judges proposals, by default the store's own rules.
        """
        super().__init__(folder, **options)
        self._policy = policy or StoredPolicy(self.folder, self.keeper, self._connections.get)

    # ---- proposing

    def propose(self, proposal: Proposal, *, batch_id: str | None = None) -> Proposed:
        """Create a pending action. Raises ActionBlocked where policy denies it, InvalidProposal.

        What is proposed in one batch does not take the place of one another.
        """
        return self._propose([replace(proposal, batch_id=batch_id or proposal.batch_id)])[0]

    def propose_batch(self, proposals: Sequence[Proposal]) -> list[Proposed]:
        """Create pending actions that are shown together; all of them, or none."""
        batch_id = new_id().hex()
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
        step_id: str | None = None,
    ) -> Approval:
        """Bring a revised action back with a new draft, which passes policy like the first.

        `step_id` is the step that proposes this draft. Raises InvalidProposal for what is none.
        """
        proposing.check_step(step_id)
        before = self.approval(approval_id)
        claims.require_proposer(before, proposal_key)
        note = self._ask(
            PolicyQuestion.about(before, arguments, before.policy.facts),
            who=self._requester(by or before.agent),
        )

        def do(work: Work) -> Approval | ApprovalRefusal:
            approval = decisions.settle(work, proposing.unaltered(work, before.approval_id))
            if approval.status is Status.EXPIRED:
                return decisions.refuse_expired(approval)
            return proposing.repropose(
                work,
                approval,
                arguments,
                note,
                who=self._requester(by or approval.agent),
                description=description,
                flags=flags,
                step_id=step_id,
            )

        return self._write(do)

    def undo(self, approval_id: str, *, by: str = ME) -> Proposed:
        """Propose the action that undoes an executed one, through the same gate."""
        proposal = self._write(
            lambda work: proposing.undoing(work, proposing.unaltered(work, approval_id))
        )
        who = self._decider(by)
        note = self._ask(proposing.question_of(proposal), who=who)
        return self._write(lambda work: proposing.propose(work, proposal, note, who=who))

    # ---- deciding

    def approve(
        self,
        approval_id: str,
        *,
        by: str = ME,
        arguments: Mapping[str, Any] | None = None,
        revision: int | None = None,
        comment: str | None = None,
    ) -> Approval:
        """Grant an action. Edited arguments are a draft of their own and pass policy again.

        Where it requires several people it awaits until the last of them approved the same draft;
        a second approval of one of them is AnotherApproverRequired. `comment` is stored in the log.
        `revision` is the draft that was looked at: without one, only an action of one draft is
        granted. Raises AlreadyDecided with the first decision, unless it was the same one by the
        same.
        """
        who, note = self._decider(by), None
        if arguments is not None:
            before = self.approval(approval_id)
            revision = before.revision if revision is None else revision
            if before.is_pending and self.keeper.hash_of(arguments) != before.arguments_hash:
                note = self._ask(
                    PolicyQuestion.about(before, arguments, before.policy.facts), who=who
                )
        return self._decide(
            lambda work: decisions.approve(
                work,
                approval_id,
                who,
                revision=revision,
                edited=arguments,
                note=note,
                comment=comment,
            )
        )

    def approve_batch(
        self, batch_id: str, *, by: str = ME, revisions: Mapping[str, int] | None = None
    ) -> list[Approval]:
        """Grant everything of a batch that still awaits this person's decision, or nothing of it.

        `revisions`: the drafts that were looked at, by approval id; no others are granted. Raises
        InvalidProposal where they name none, or one of another batch.
        """

        def do(work: Work) -> list[Approval]:
            granted, who = [], self._decider(by)
            of_batch = approvals.ids_of_batch(work.connection, batch_id)
            if revisions is not None and (not revisions or set(revisions) - set(of_batch)):
                raise InvalidProposal(
                    "revisions",
                    "say which drafts of this batch you looked at: {approval_id: revision}",
                )
            for approval_id in of_batch:
                found = approvals.get(work.connection, approval_id)
                if decisions.settle(work, found).status is not Status.AWAITING:
                    continue
                if revisions is not None and approval_id not in revisions:
                    continue
                if any(is_same(one.name, who.name) for one in found.approved_by):
                    continue  # it awaits somebody else
                seen = None if revisions is None else revisions[approval_id]
                one = decisions.approve(work, approval_id, who, revision=seen)
                if isinstance(one, ApprovalRefusal):
                    raise one.error  # undoes what was granted before it
                granted.append(one)
            return granted

        return self._decide(do)

    def reject(
        self,
        approval_id: str,
        *,
        by: str = ME,
        reason: str | None = None,
        revision: int | None = None,
    ) -> Approval:
        """End an action; nothing runs."""
        who = self._decider(by)
        return self._decide(
            lambda work: decisions.reject(work, approval_id, who, reason=reason, revision=revision)
        )

    def revise(
        self, approval_id: str, *, note: str, by: str = ME, revision: int | None = None
    ) -> Approval:
        """Send an action back to its agent with a note."""
        who = self._decider(by)
        return self._decide(
            lambda work: decisions.revise(work, approval_id, who, note=note, revision=revision)
        )

    def expire_due(self, *, limit: int = 200) -> list[Approval]:
        """Do what time demands: expire actions and ask the next approver; return what changed."""
        return self._write(lambda work: decisions.settle_due(work, limit=limit))

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
    ) -> ApprovalClaim:
        """Take the right to run an approved action once; raises ClaimRefused.

        Without `arguments` those of the record are returned, if it has them exactly. `lease_s`:
        without a result by then its outcome is unknown; None watches this process instead.
        """
        bringing = claims.Claiming(
            arguments=arguments,
            token=token,
            proposal_key=proposal_key,
            lease_ns=None if lease_s is None else int(lease_s * 1e9),
            holder=holder,
            is_trusted=is_trusted,
        )

        def do(work: Work) -> ApprovalClaim | ApprovalRefusal:
            self._refuse_older(work)
            return claims.claim(work, approval_id, bringing)

        return self._decide(do)

    def finish(
        self,
        claim: ApprovalClaim | str,
        *,
        ok: bool | None,
        result_ref: str | None = None,
        error: str | None = None,
        undo: Action | None = None,
        approval_id: str | None = None,
        result_digest: str | None = None,
    ) -> Approval:
        """Record how a claimed action ended (None: unknown), and how it could be undone."""
        claim_id = claim if isinstance(claim, str) else claim.claim_id
        return self._write(
            lambda work: claims.finish(
                work,
                claim_id,
                is_ok=ok,
                result_ref=result_ref,
                error=error,
                undo=undo,
                approval_id=approval_id,
                result_digest=result_digest,
            )
        )

    def settle_outcome(
        self,
        approval_id: str,
        outcome: Outcome,
        *,
        note: str,
        by: str = ME,
        result_ref: str | None = None,
    ) -> Approval:
        """Say whether an action of unknown outcome had run, as a person found it; nothing runs.

        Raises OutcomeKnown where it is not unknown, InvalidProposal without a note.
        """
        who = self._decider(by)
        return self._decide(
            lambda work: claims.settle_outcome(
                work, approval_id, who, outcome=outcome, note=note, result_ref=result_ref
            )
        )

    def recover(self) -> list[Approval]:
        """Mark what gone processes had claimed as of unknown outcome; call it at a start."""
        return self._write(claims.recover)

    def token(self, approval_id: str, proposal_key: str) -> str | None:
        """Return the token of an approved action to its proposer; None when there is none.

        Raises ClaimRefused for a wrong key.
        """
        approval = self.approval(approval_id)
        claims.require_proposer(approval, proposal_key)
        return claims.granted_token(self.keeper.key, approval, now_ns=self._clock())

    # ---- reading

    def approval(self, approval_id: str, *, with_drafts: bool = False) -> Approval:
        """Return an approval by its id, or 8 digits or more of it; one out of time has expired."""
        with self._reading() as connection:
            found = approvals.get(connection, approval_id)
            if decisions.is_over(connection, found, self._clock()):
                found = self._expired(found)
            if found.execution.state == "claimed":
                found = self._recovered(connection, found)
            found = claims.as_it_counts(connection, found, self._clock())
            if not with_drafts:
                return found
            return replace(found, drafts=drafts_of(self._open_log(connection), found))

    def approvals(
        self,
        filters: ApprovalFilter = ApprovalFilter(),  # noqa: B008 - frozen
        *,
        before: int = approvals.ABOVE_ALL,
        limit: int = 50,
    ) -> list[Approval]:
        """Return approvals, the newest first; those out of time have expired."""
        return self._in_time(
            lambda to: approvals.list_approvals(to, filters, before=before, limit=limit)
        )

    def urgent(self, filters: ApprovalFilter, *, limit: int = 50) -> list[Approval]:
        """Return what waits of some approvals, the nearest deadline first."""
        return self._in_time(lambda to: approvals.list_urgent(to, filters, limit=limit))

    def waiting(self) -> dict[str, int]:
        """Return how many approvals await a person, and how many an agent."""
        self.settle_quietly()
        with self._reading() as connection:
            return approvals.count_by_status(connection)

    def settle_quietly(self) -> None:
        """Expire what is due, and mark what gone processes had claimed, if that can be written."""
        with self._reading() as connection:
            now_ns = self._clock() + clock.most_lost_ns(connection)
            is_due = approvals.due_ids(connection, now_ns=now_ns, limit=1)
            is_due = is_due or approvals.ids_to_escalate(connection, now_ns=now_ns, limit=1)
        with suppress(*_CANNOT_WRITE):
            if is_due:
                self.expire_due()
            self.recover_quietly()

    def recover_quietly(self) -> list[Approval]:
        """Recover where there is something to recover; nothing is written otherwise."""
        with self._reading() as connection:
            now_ns = self._clock() + clock.most_lost_ns(connection)
            is_lost = lost_claims(connection, now_ns=now_ns)
        return self.recover() if is_lost else []

    def history(self, approval_id: str) -> list[StoredEvent]:
        """Return every event of an approval, in order, with its drafts and notes."""
        with self._reading() as connection:
            found = approvals.get(connection, approval_id)
            return history_of(self._open_log(connection), found.approval_id)

    def memories(self, approval_id: str) -> list[Memory]:
        """Return what was written to memory under an approval, the last first; at most 50."""
        with self._reading() as connection:
            found = approvals.get(connection, approval_id)
            return written_under(connection, found.approval_id, now_ns=self._clock())

    # ---- the inside

    def _propose(self, proposals: Sequence[Proposal]) -> list[Proposed]:
        checked = [proposing.checked(one, self.keeper) for one in proposals]
        for one in checked:
            self.keeper.keep(one.arguments)  # refused before policy is asked about it
        notes = [
            self._ask(proposing.question_of(one), who=self._requester(one.agent)) for one in checked
        ]

        pairs = list(zip(checked, notes, strict=True))
        return self._write(
            lambda work: [
                proposing.propose(work, *one, who=self._requester(one[0].agent)) for one in pairs
            ]
        )

    def _ask(self, question: PolicyQuestion, *, who: Who) -> PolicyNote:
        """Ask policy outside of any transaction: it records its check in one of its own."""
        with store_errors():
            note = self._policy(question)
        if note.effect == DENY:
            self._write(lambda work: proposing.note_denial(work, question, note, who))
            raise ActionBlocked(question.tool, note.reason or "a rule denies it", note.rule_ids)
        return note

    def _refuse_older(self, work: Work) -> None:
        """Raise ClaimRefused where the store has not come by a head that was stored of it."""
        chain = self._chain(work.connection, work.log)
        for one in self.anchors.broken(chain):
            ends, expected = work.log.head().seq, one.head.seq
            difference = f"ends at event {ends}" if ends < expected else "went another way"
            raise ClaimRefused(
                "store_rolled_back",
                f"this store {difference}, and had come to event {expected} as "
                f"{str(one.path)!r} holds of {one.folder!r}: what it would run may have run "
                "already; look at `hansard verify`, put the newer store back, or take this one "
                "for valid with `hansard events accept-head`",
                kept=one.head.text,
                head=work.log.head().text,
                folder=one.folder,
            )

    def _in_time(self, read: Callable[..., list[Approval]]) -> list[Approval]:
        """Read a list; what no index finds to be over, as a clock was set back, is so by then."""
        self.settle_quietly()
        with self._reading() as connection:
            found, now_ns = read(connection), self._clock()
            over = [one for one in found if decisions.is_over(connection, one, now_ns)]
        for one in over:
            self._expired(one)
        with self._reading() as connection:
            found = read(connection) if over else found
            return [claims.as_it_counts(connection, one, now_ns) for one in found]

    def _expired(self, approval: Approval) -> Approval:
        try:
            return self._write(
                lambda work: decisions.settle(
                    work, approvals.get(work.connection, approval.approval_id)
                )
            )
        except _CANNOT_WRITE:  # it is over all the same
            return replace(approval, status=Status.EXPIRED, reason="expired")

    def _recovered(self, connection: apsw.Connection, approval: Approval) -> Approval:
        """Return a claimed approval as it is: of unknown outcome where its process is gone."""
        now_ns = self._clock() + clock.most_lost_ns(connection)
        lost = lost_claims(connection, now_ns=now_ns)
        if approval.approval_id not in {one.approval_id for one in lost}:
            return approval
        try:
            self.recover()
        except _CANNOT_WRITE:  # nobody knows all the same
            return replace(approval, execution=replace(approval.execution, state="unknown"))
        return approvals.get(connection, approval.approval_id)


def open_accountability(
    data: Path, *, retention: RetentionMode = RetentionMode.REDACTED_PAYLOADS, source: str = "sdk"
) -> ApprovalService:
    """Open a data folder for a program's gate, and mark what its dead predecessors left behind."""
    made = ApprovalService(DataFolder(data), retention=retention, source=source)
    made.recover()
    with suppress(OSError, StoreError):  # it is an anchor more, and no reason not to begin
        made.keep_head()
        made.seal()
    return made
