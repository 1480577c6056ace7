"""Validation of a proposal, before policy decides about it or anything is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hansard_store.approvals.errors import InvalidProposal
from hansard_store.approvals.records import Approver, PolicyNote, Proposal
from hansard_store.content.retention import Retention
from hansard_store.policy.stored_policy import FACTS, PolicyQuestion
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import distinct, is_own_name, read_as

_HEX_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_STEP_ID: Final = re.compile(r"([0-9a-f]{32})-[0-9a-f]{16}", re.ASCII)
MOST_APPROVERS: Final = 20
MIN_LIFETIME_NS: Final = 1_000_000_000
MAX_LIFETIME_NS: Final = 90 * 24 * 3600 * 1_000_000_000


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
    if not MIN_LIFETIME_NS <= proposal.lifetime_ns <= MAX_LIFETIME_NS:
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
