"""What a gate in a program asks of the store, in plain JSON, as it would ask a server.

`hansard._backend.local` calls it. Each call is one transaction on the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.retention import RetentionMode
from hansard_store.approvals.errors import BadProposal
from hansard_store.approvals.json import approval_json
from hansard_store.approvals.records import (
    HOUR_NS,
    Action,
    Approval,
    ApprovalFilter,
    Approver,
    PolicyNote,
    Proposal,
)
from hansard_store.approvals.service import Accountability, open_accountability
from hansard_store.audit.external_events import note_event
from hansard_store.principals.authority import ME

_SECOND_NS: Final = 1_000_000_000
_PLACE: Final = ("run_id", "step_id")


def open_decisions(data: Path, *, retention: RetentionMode) -> GatePort:
    """Open a data folder for the gate of a program; made where there is none."""
    return GatePort(open_accountability(data, retention=retention))


class GatePort:
    """Approvals and events in the shapes of the API; threads may share it. Raises HansardError."""

    def __init__(self, store: Accountability) -> None:
        self.store = store

    def propose(self, told: Json) -> Json:
        """Create a pending action; its approval, with `proposal_key`."""
        proposed = self.store.propose(_proposal(told))
        return {**approval_json(proposed.approval), "proposal_key": proposed.proposal_key}

    def approval(self, approval_id: str) -> Json:
        """Return an approval with its drafts."""
        return approval_json(self.store.approval(approval_id, with_drafts=True))

    def approvals(self, filters: Mapping[str, Any]) -> list[Json]:
        """Return the newest approvals that the filters let through."""
        given = {name: value for name, value in filters.items() if value is not None}
        limit = int(given.pop("limit", 50))
        if "status" in given:
            given["status"] = (given["status"],)
        return [
            approval_json(one) for one in self.store.approvals(ApprovalFilter(**given), limit=limit)
        ]

    def decide(self, approval_id: str, verb: str, told: Json) -> Json:
        """Approve, reject, revise, repropose, or settle an unknown outcome."""
        deciding: dict[str, Callable[[str, Json], Approval]] = {
            "approve": self._approve,
            "reject": self._reject,
            "revise": self._revise,
            "repropose": self._repropose,
            "settle": self._settle,
        }
        return approval_json(deciding[verb](approval_id, told))

    def _approve(self, approval_id: str, told: Json) -> Approval:
        by, arguments = told.get("by") or ME, told.get("arguments")
        note = told.get("note")
        return self.store.approve(
            approval_id,
            by=by,
            arguments=arguments,
            revision=told.get("revision"),
            comment=note,
        )

    def _reject(self, approval_id: str, told: Json) -> Approval:
        return self.store.reject(approval_id, by=told.get("by") or ME, reason=told.get("reason"))

    def _revise(self, approval_id: str, told: Json) -> Approval:
        return self.store.revise(approval_id, by=told.get("by") or ME, note=told["note"])

    def _repropose(self, approval_id: str, told: Json) -> Approval:
        return self.store.repropose(
            approval_id,
            told["arguments"],
            description=told.get("description"),
            flags=told.get("flags") or {},
            by=told.get("agent"),
            step_id=told.get("step_id"),
        )

    def _settle(self, approval_id: str, told: Json) -> Approval:
        by, note = told.get("by") or ME, told["note"]
        ref = told.get("result_ref")
        return self.store.settle_outcome(
            approval_id, told["outcome"], note=note, by=by, result_ref=ref
        )

    def claim(self, approval_id: str, told: Json) -> Json:
        """Take the right to run an approved action, once."""
        claim = self.store.claim(
            approval_id, told["arguments"], proposal_key=told.get("proposal_key")
        )
        return {"claim_id": claim.claim_id, "arguments": claim.arguments}

    def result(self, approval_id: str, told: Json) -> Json:
        """Tell how a claimed action ended."""
        undo = told.get("undo")
        ended = self.store.finish(
            told["claim_id"],
            ok=told["ok"],
            error=told.get("error"),
            result_ref=told.get("result_ref"),
            undo=None if undo is None else Action(undo["tool"], undo["arguments"]),
            approval_id=approval_id,
            result_digest=told.get("result_digest"),
        )
        return approval_json(ended)

    def undo(self, approval_id: str, told: Json) -> Json:
        """Propose what takes back an executed action; its approval, with `proposal_key`."""
        proposed = self.store.undo(approval_id, by=told.get("by") or ME)
        return {**approval_json(proposed.approval), "proposal_key": proposed.proposal_key}

    def note(self, told: Json) -> None:
        """Log an event of a gate; it is on disk when this returns."""
        note_event(self.store, told)

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def _of(told: Json, *names: str) -> dict[str, Any]:
    return {name: told[name] for name in names if told.get(name) is not None}


def _proposal(told: Json) -> Proposal:
    expires_s, required = told.get("expires_in_s"), told.get("approvals_required")
    return Proposal(
        tool=told["tool"],
        arguments=told["arguments"],
        description=told.get("description"),
        flags=told.get("flags") or {},
        lifetime_ns=HOUR_NS if expires_s is None else _ns("expires_in_s", expires_s),
        approvers=[Approver(one) for one in told.get("approvers") or ()],
        approvals_required=1 if required is None else required,
        told=_policy(told.get("policy") or {}),
        **_of(
            told,
            "effect",
            "agent",
            "channel",
            "one_per_channel",
            "batch_id",
            "undo_of",
            "facts",
            *_PLACE,
        ),
    )


def _ns(what: str, seconds: Any) -> int:
    if isinstance(seconds, bool):
        raise BadProposal(what, f"{what} is a number of seconds, not {seconds}")
    return int(seconds * _SECOND_NS)


def _policy(told: Json) -> PolicyNote:
    """Return what the proposer's own rules said."""
    return PolicyNote(
        rule_ids=tuple(told.get("rule_ids") or ()),
        reason=told.get("reason"),
        obligations=tuple(told.get("obligations") or ()),
        receipts=tuple(told.get("receipts") or ()),
    )
