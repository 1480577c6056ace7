"""Proposing an action, and proposing it again: the record and its event, in one transaction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.policy.approvers import MOST_APPROVERS
from hansard_store.approvals import rows as approvals
from hansard_store.approvals.argument_display import describe, show
from hansard_store.approvals.errors import (
    ClaimRefused,
    IllegalTransition,
    InvalidProposal,
    NotUndoable,
    ProposalKeyReused,
    RecordAltered,
)
from hansard_store.approvals.records import (
    SUPERSEDED,
    Action,
    Approval,
    Approver,
    PolicyNote,
    Proposal,
    Proposed,
    Status,
    is_legal,
)
from hansard_store.approvals.unit_of_work import (
    SYSTEM,
    Who,
    Work,
    hash_of_secret,
    new_proposal_key,
)
from hansard_store.audit.event_types import Actor, Content, EventType
from hansard_store.content.retention import Kept, Retention
from hansard_store.database.id_prefixes import find_key
from hansard_store.ids import new_id, short_id
from hansard_store.policy.stored_policy import APPROVAL, DENY, FACTS, RECEIPT, PolicyQuestion
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import distinct, is_own_name, is_same, read_as

# What is checked of a proposal before policy decides about it or anything is written.

_HEX_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_STEP_ID: Final = re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}", re.ASCII)
_MIN_LIFETIME_NS: Final = 1_000_000_000
_MAX_LIFETIME_NS: Final = 90 * 24 * 3600 * 1_000_000_000


def question_of(proposal: Proposal) -> PolicyQuestion:
    """Return the question to policy about a proposal."""
    unknown = set(proposal.facts) - set(FACTS)
    if unknown:
        raise InvalidProposal("facts", f"policy knows nothing of {min(unknown)!r}")
    return PolicyQuestion.about(proposal, proposal.arguments, proposal.facts)


def checked(proposal: Proposal, keeper: Retention) -> Proposal:
    """Return a proposal whose names and ids can be stored; raises InvalidProposal."""
    for what in ("tool", "agent", "channel"):
        if (name := getattr(proposal, what)) is not None:
            _check_name(what, name, keeper)
            if what != "channel":
                _check_own(what, name)
    for fact in proposal.facts.values():
        _check_name("fact", fact, keeper)
    if proposal.effect not in ("read", "write"):
        raise InvalidProposal("effect", f"the effect is read or write, not {proposal.effect!r}")
    if not _MIN_LIFETIME_NS <= proposal.lifetime_ns <= _MAX_LIFETIME_NS:
        raise InvalidProposal("expires_in_s", "an approval lives from one second to 90 days")
    if proposal.one_per_channel and proposal.channel is None:
        raise InvalidProposal("channel", "one_per_channel needs a channel")
    if len(proposal.approvers) > MOST_APPROVERS:
        raise InvalidProposal("approvers", f"at most {MOST_APPROVERS} people can be asked")
    for one in proposal.approvers:
        _check_name("approver", one.name, keeper)
        _check_own("approvers", one.name)
    _check_required(proposal)
    if proposal.batch_id is not None and not _HEX_ID.fullmatch(proposal.batch_id):
        raise InvalidProposal("batch_id", "the batch is 32 lower-case hex digits")
    run_id = check_step(proposal.step_id, proposal.run_id)
    if run_id is not None and not _HEX_ID.fullmatch(run_id):
        raise InvalidProposal("run_id", "the run is 32 lower-case hex digits")
    return replace(
        proposal, proposer_policy=_clean(proposal.proposer_policy, keeper), run_id=run_id
    )


def require_enough(
    approvers: Sequence[Approver], required: int, *, requested_by: Sequence[str] = ()
) -> None:
    """Raise InvalidProposal where too few people are named: the requester does not count."""
    names = distinct(one.name for one in approvers)
    able = [one for one in names if read_as(one, requested_by) is None]
    if not names or len(able) >= required:
        return
    without = "" if len(able) == len(names) else ", without the principal that requested it"
    raise InvalidProposal(
        "approvals_required",
        f"{required} approvals are required of {len(able)} approvers{without}: nobody could "
        "approve this",
    )


def _check_required(proposal: Proposal) -> None:
    required = proposal.approvals_required
    if type(required) is not int or not 1 <= required <= MOST_APPROVERS:
        raise InvalidProposal(
            "approvals_required", f"from 1 to {MOST_APPROVERS} approvals can be required"
        )
    require_enough(proposal.approvers, required)


def _check_name(what: str, name: str, keeper: Retention) -> None:
    if (retained := keeper.name(what, name)) != name:
        raise InvalidProposal(what, f"the {what} {retained!r} looks like a secret")


def _check_own(what: str, name: str) -> None:
    if is_own_name(name):
        raise InvalidProposal(what, reserved_text(name))


def _clean(note: PolicyNote | None, keeper: Retention) -> PolicyNote | None:
    """Return the decision of the proposer's own rules, without secrets that it may repeat."""
    if note is None:
        return None
    return replace(
        note,
        rule_ids=tuple(keeper.name("rule_id", one) for one in note.rule_ids),
        reason=None if note.reason is None else keeper.content_text("reason", note.reason),
        receipts=tuple(keeper.name("receipt", one) for one in note.receipts),
    )


def check_step(step_id: str | None, run_id: str | None = None) -> str | None:
    """Return the run of a step, which is `run_id` where that is given.

    Raises InvalidProposal for what is no step's id, or one of another run.
    """
    if step_id is None:
        return run_id
    found = _STEP_ID.fullmatch(step_id)
    if found is None or run_id not in (None, found[1]):
        raise InvalidProposal(
            "step_id", "the step is 32 and 16 hex digits with - between, of its run"
        )
    return found[1]


# Proposing, and proposing again.


def unaltered(work: Work, approval_id: str) -> Approval:
    """Return an approval for a decision about it; raises RecordAltered."""
    found = approvals.get(work.connection, approval_id)
    if approvals.is_altered(work.connection, found):
        raise RecordAltered(
            f"approval {short_id(found.approval_id)} is not as Hansard wrote it: nothing is "
            "decided by it, and nothing runs; look at `hansard verify`"
        )
    return found


def note_denial(work: Work, question: PolicyQuestion, note: PolicyNote, who: Who) -> int:
    """Log that policy blocked an action."""
    tool = work.keeper.clean_text(question.tool)
    return work.tell(
        EventType.POLICY_BLOCKED,
        who,
        action=tool,
        subject=f"tool:{tool}",
        body={
            "effect": DENY,
            "rule_ids": work.keeper.clean_texts(note.rule_ids),
            "check_id": note.check_id,
            "arguments": work.keeper.reference(question.arguments),
        },
        contents=_reason(work, note),
        run_id=question.run_id,
        step_id=question.step_id,
    )


def joined(note: PolicyNote, claimed: PolicyNote | None) -> PolicyNote:
    """Return policy's decision, with that of the proposer's own rules; the stricter holds."""
    if claimed is None:
        return note
    return replace(
        note,
        effect=note.effect or claimed.effect,
        rule_ids=tuple(dict.fromkeys((*note.rule_ids, *claimed.rule_ids))),
        reason=note.reason if note.rule_ids else claimed.reason or note.reason,
        obligations=tuple(sorted({*note.obligations, *claimed.obligations})),
        receipts=claimed.receipts,
    )


def propose(
    work: Work, proposal: Proposal, note: PolicyNote, *, who: Who | None = None
) -> Proposed:
    """Create a pending action and log it; what it takes the place of ends before."""
    who = who or Who(Actor.AGENT, proposal.agent or "")
    key = proposal.proposal_key or new_proposal_key()
    known = approvals.find_of_proposal(work.connection, hash_of_secret(key))
    if known is not None:
        if (known.tool, known.arguments_hash) != (
            proposal.tool,
            work.keeper.hash_of(proposal.arguments),
        ):
            raise ProposalKeyReused("this proposal key stands for another proposal")
        return Proposed(_requested_again(work, known, who), key)
    replaced = _replace_pending(work, proposal, who)
    note = joined(note, proposal.proposer_policy)
    made = _new(work, proposal, note, key=key, who=who)
    approval = approvals.add(work.connection, made)
    body: dict[str, Any] = {
        "arguments": approval.arguments_hash,
        "expires_ns": str(approval.expires_ns),
        "batch_id": approval.batch_id,
        "undo_of": approval.undo_of,
        "replaces": list(replaced) or None,
        "requested_by": list(approval.requested_by) or None,
        **_approvers_of(approval),
    }
    work.tell_of(
        EventType.ACTION_CREATED, who, approval, body=body, contents=[draft_content(work, approval)]
    )
    _note_gate(work, approval, note)
    return Proposed(approval, key, tuple(replaced))


def _requested_again(work: Work, known: Approval, who: Who) -> Approval:
    """Return a proposal that was sent again, with a principal that had not requested it before.

    Raises ProposalKeyReused for one that has approved it: a requester cannot be an approver.
    """
    requested_by = requesters(known.requested_by, who)
    if requested_by == known.requested_by:
        return known
    known = unaltered(work, known.approval_id)
    if read_as(requested_by[-1], [one.name for one in known.grants]) is not None:
        raise ProposalKeyReused("you approved this proposal: propose it under a key of your own")
    _check_reachable(work, known.approvers, known.approvals_required, requested_by)
    changed = approvals.change(
        work.connection, known, requested_by=requested_by, updated_ns=work.now_ns
    )
    body = {"requested_by": list(requested_by)}
    work.tell_of(EventType.ACTION_REQUESTED, who, changed, body=body)
    return changed


def _approvers_of(approval: Approval) -> dict[str, Any]:
    """Return what the event of a draft says of who is to approve it."""
    several = approval.approvals_required > 1
    return {
        "approvers": [one.name for one in approval.approvers] or None,
        "approvals_required": approval.approvals_required if several else None,
    }


def repropose(
    work: Work,
    approval: Approval,
    arguments: Mapping[str, Any],
    note: PolicyNote,
    *,
    who: Who,
    description: str | None = None,
    flags: Mapping[str, Any] = {},
    step_id: str | None = None,
) -> Approval:
    """Bring a revised action back with a new draft: it awaits again, for its whole time again.

    `step_id` is the step that proposes it; without one it is that of the draft before.
    """
    require(approval, Status.AWAITING)
    retained = work.keeper.keep(arguments)
    drafted = _draft(work, approval.tool, retained, description, flags, before=approval.arguments)
    lifetime = approval.lifetime_ns
    requested_by = requesters(approval.requested_by, who)
    approvers, required = _by_rules(approval.approvers, approval.approvals_required, note)
    _check_reachable(work, approvers, required, requested_by)
    requested = requested_first(approvers, required)
    changed = approvals.change(
        work.connection,
        approval,
        status=Status.AWAITING,
        revision=approval.revision + 1,
        **drafted,
        **{
            "note": None,
            "decided_by": None,
            "decided_method": None,
            "decided_ns": None,
            "approvers": approvers,
            "approvals_required": required,
            "approved_by": (),
            "requested_by": requested_by,
            "policy": _of_draft(note, approval.policy),
            "updated_ns": work.now_ns,
            "expires_ns": work.now_ns + lifetime,
            "asked": requested,
            "escalates_ns": next_escalation(approvers, requested, work.now_ns),
        },
    )
    body: dict[str, Any] = {
        "arguments": changed.arguments_hash,
        "expires_ns": str(changed.expires_ns),
        "requested_by": list(changed.requested_by) or None,
        **_approvers_of(changed),
    }
    content = [draft_content(work, changed)]
    work.tell_of(
        EventType.ACTION_REPROPOSED, who, changed, body=body, contents=content, step_id=step_id
    )
    _note_gate(work, changed, note)
    return changed


def _of_draft(note: PolicyNote, before: PolicyNote) -> PolicyNote:
    """Return what policy decided of a new draft; a receipt that was demanded before still is.

    The proposer's own rules said so once, and are not repeated by the editor of a draft.
    """
    demanded = {RECEIPT} & set(before.obligations)
    obligations = tuple(sorted({*note.obligations, *demanded}))
    return replace(note, obligations=obligations, receipts=before.receipts)


def undoing(work: Work, approval: Approval) -> Proposal:
    """Return the proposal that undoes what an approval's action did; raises NotUndoable."""
    if approval.execution.state != "done":
        raise NotUndoable(
            f"what {short_id(approval.approval_id)} did cannot be undone: its action is "
            f"{approval.execution.state}",
            execution=approval.execution.state,
        )
    if approval.undo is None:
        raise NotUndoable(f"{approval.tool!r} did not say how it is undone")
    if not approval.undo["is_exact"]:
        raise ClaimRefused(
            "must_repropose", "how it is undone holds a secret, which only its program knows"
        )
    other = approvals.find_undoing(work.connection, approval.approval_id)
    if other is not None:
        raise NotUndoable(f"{short_id(other)} undoes it already", approval_id=other)
    return Proposal(
        tool=approval.undo["tool"],
        arguments=approval.undo["arguments"],
        agent=approval.agent,
        run_id=approval.run_id,
        step_id=approval.step_id,
        channel=approval.channel,
        lifetime_ns=approval.lifetime_ns,
        undo_of=approval.approval_id,
        approvers=approval.approvers,
        approvals_required=approval.approvals_required,
        facts=approval.policy.facts,
        requested_by=approval.requested_by,
    )


def kept_undo(keeper: Retention, undo: Action | None) -> Json | None:
    """Return how an action is undone, as it is stored."""
    if undo is None:
        return None
    retained = keeper.keep(undo.arguments)
    tool = keeper.name("tool", undo.tool)
    return {
        "tool": tool,
        "arguments": retained.arguments,
        "arguments_hash": retained.hash,
        "is_exact": retained.is_exact,
    }


def require(approval: Approval, target: Status) -> None:
    """Raise IllegalTransition where a state cannot follow."""
    if not is_legal(approval.status, target):
        raise IllegalTransition(
            f"approval {short_id(approval.approval_id)} is {approval.status}: it cannot become "
            f"{target}",
            status=str(approval.status),
            wanted=str(target),
        )


def draft_content(work: Work, approval: Approval) -> Content:
    """Return a draft as the log refers to it."""
    draft = {
        "revision": approval.revision,
        "tool": approval.tool,
        "arguments": approval.arguments,
        "description": approval.description,
    }
    return work.keeper.content("draft", draft)


def _new(work: Work, proposal: Proposal, note: PolicyNote, *, key: str, who: Who) -> Approval:
    retained = work.keeper.keep(proposal.arguments)
    lifetime = _lifetime(proposal)
    undo_of = None
    if proposal.undo_of is not None:
        undo_of = find_key(work.connection, "approval", proposal.undo_of).hex()
    requested_by = requesters(proposal.requested_by, who)
    approvers, required = _by_rules(proposal.approvers, proposal.approvals_required, note)
    _check_reachable(work, approvers, required, requested_by)
    requested = requested_first(approvers, required)
    return Approval(
        number=0,
        approval_id=new_id().hex(),
        status=Status.AWAITING,
        revision=1,
        version=1,
        tool=proposal.tool,
        **_draft(work, proposal.tool, retained, proposal.description, proposal.flags),
        effect=proposal.effect,
        agent=proposal.agent,
        run_id=proposal.run_id,
        step_id=proposal.step_id,
        channel=proposal.channel,
        batch_id=proposal.batch_id,
        undo_of=undo_of,
        undo=kept_undo(work.keeper, proposal.undo),
        created_ns=work.now_ns,
        updated_ns=work.now_ns,
        lifetime_ns=lifetime,
        expires_ns=work.now_ns + lifetime,
        approvers=approvers,
        approvals_required=required,
        asked=requested,
        escalates_ns=next_escalation(approvers, requested, work.now_ns),
        policy=note,
        proposal_key=hash_of_secret(key),
        requested_by=requested_by,
        requested_method=who.method,
    )


def requesters(before: Sequence[str], who: Who) -> tuple[str, ...]:
    """Return the principals that requested an action, with the one that does so now."""
    principal = who.principal
    if who.actor is not Actor.AGENT or principal is None or not principal.is_authenticated:
        return tuple(before)
    return tuple(dict.fromkeys((*before, principal.name)))


def _draft(
    work: Work,
    tool: str,
    retained: Kept,
    description: str | None,
    flags: Mapping[str, Any],
    *,
    before: Json | None = None,
) -> dict[str, Any]:
    """Return the columns that a draft sets. What a person is shown has no secrets either."""
    description_text = (
        None if description is None else work.keeper.content_text("description", description)
    )
    if description is not None and description_text != description:
        # Parts of it were cut out: it can no longer be held against the arguments.
        shown = show(retained.arguments, flags=flags, before=before)
    else:
        shown = show(retained.arguments, description=description_text, flags=flags, before=before)
    return {
        "arguments": retained.arguments,
        "arguments_hash": retained.hash,
        "is_redacted": retained.is_redacted,
        "is_exact": retained.is_exact,
        "description": describe(tool, shown, description_text),
        "fields": shown,
    }


def _lifetime(proposal: Proposal) -> int:
    """Return how long it lives: as long as those who are asked have together, if all are timed."""
    times = [one.within_ns for one in proposal.approvers]
    if not times or any(one is None for one in times):
        return proposal.lifetime_ns
    return sum(one for one in times if one is not None)


def _by_rules(
    approvers: Sequence[Approver], required: int, note: PolicyNote
) -> tuple[tuple[Approver, ...], int]:
    """Return who has to approve a draft, and how many, once rules have narrowed it.

    Raises InvalidProposal where the rules leave nobody.
    """
    named, required = tuple(approvers), max(required, note.approvals_required)
    if note.approvers is None:
        return named, required
    if not named:
        allowed = tuple(Approver(one) for one in note.approvers)
    else:
        allowed = tuple(
            one for one in named if any(is_same(one.name, other) for other in note.approvers)
        )
    if not allowed:
        raise InvalidProposal("approvers", "the rules let none of these approvers approve this")
    return allowed, required


def _check_reachable(
    work: Work, approvers: Sequence[Approver], required: int, requested_by: Sequence[str]
) -> None:
    """Raise InvalidProposal where those who requested it are needed to approve it."""
    if not work.is_open:
        require_enough(approvers, required, requested_by=requested_by)


def requested_first(approvers: Sequence[Approver], required: int) -> int:
    """Return how many approvers are asked at once: as many as have to approve."""
    return requested_with(approvers, required - 1)


def requested_with(approvers: Sequence[Approver], at: int) -> int:
    """Return how many are asked once one is: who has no time of their own delays nobody."""
    while at < len(approvers) and approvers[at].within_ns is None:
        at += 1
    return min(at + 1, len(approvers))


def next_escalation(approvers: Sequence[Approver], requested: int, since_ns: int) -> int | None:
    """Return when the next approver is asked; None where nobody is left."""
    if not 0 < requested < len(approvers):
        return None
    within_ns = approvers[requested - 1].within_ns
    return None if within_ns is None else since_ns + within_ns


def _replace_pending(work: Work, proposal: Proposal, who: Who) -> list[str]:
    """End what the same requester has pending in the channel; nobody ends what another requested.

    All requests without a credential are of one requester.
    """
    if not proposal.one_per_channel or proposal.channel is None:
        return []
    pending = approvals.pending_of_channel(work.connection, proposal.channel)
    earlier = [approvals.get(work.connection, one) for one in pending]
    # What is proposed together stays together.
    ended = [
        one
        for one in earlier
        if (one.batch_id is None or one.batch_id != proposal.batch_id) and _is_of(one, who)
    ]
    proof = who.proof
    cause = {"caused_by": who.text, "caused_by_principal": proof.get("principal")}
    for approval in ended:
        end(work, approval, Status.REJECTED, who=SYSTEM, reason=SUPERSEDED, cause=cause)
    return [one.approval_id for one in ended]


def _is_of(approval: Approval, who: Who) -> bool:
    """Whether somebody is among the principals that requested an action."""
    principal = who.principal
    if principal is None or not principal.is_authenticated:
        return not approval.requested_by
    return any(is_same(one, principal.name) for one in approval.requested_by)


def decided(work: Work, approval: Approval, status: Status, who: Who, **changes: Any) -> Approval:
    """Write who decided about an action, and when; nobody else is asked about it."""
    return approvals.change(
        work.connection,
        approval,
        status=status,
        decided_by=who.name or str(who.actor),
        decided_method=who.method,
        decided_ns=work.now_ns,
        updated_ns=work.now_ns,
        escalates_ns=None,
        **changes,
    )


def end(
    work: Work,
    approval: Approval,
    status: Status,
    *,
    who: Who,
    reason: str | None,
    cause: Mapping[str, Any] = {},
) -> Approval:
    """Reject or expire a pending action; the event has who caused what Hansard does, in `cause`."""
    require(approval, status)
    changed = decided(work, approval, status, who, reason=reason)
    is_expired = status is Status.EXPIRED
    type = EventType.ACTION_EXPIRED if is_expired else EventType.ACTION_REJECTED
    contents = [work.keeper.content("reason", reason)] if reason and not is_expired else []
    work.tell_of(type, who, changed, body=cause, contents=contents)
    return changed


def _note_gate(work: Work, approval: Approval, note: PolicyNote) -> None:
    if not {APPROVAL, RECEIPT} & {note.effect, *note.obligations}:
        return
    body = {
        "effect": note.effect,
        "obligations": list(note.obligations),
        "rule_ids": list(note.rule_ids),
        "check_id": note.check_id,
    }
    contents = _reason(work, note)
    work.tell_of(EventType.POLICY_GATED, SYSTEM, approval, body=body, contents=contents)


def _reason(work: Work, note: PolicyNote) -> list[Content]:
    if note.reason is None:
        return []
    return [work.keeper.content("reason", work.keeper.words("reason", note.reason))]
