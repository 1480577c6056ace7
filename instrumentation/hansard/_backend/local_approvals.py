"""Approvals of this process's own store, in the shapes of the API, as it would ask a server.

Each call is one transaction on the calling thread. Imported once the store's packages are known to
be installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hansard._gate.arguments import Json
from hansard.errors import (
    DecisionConflict,
    DecisionRefused,
    GateError,
    GateUnavailable,
    InvalidArguments,
    PolicyDenied,
    UnknownApproval,
)
from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.approvals.errors import ApprovalConflict, InvalidProposal
from hansard_store.approvals.json import approval_json
from hansard_store.approvals.records import (
    HOUR_NS,
    Action,
    Approval,
    ApprovalFilter,
    Approver,
    PolicyNote,
    Proposal,
    Proposed,
)
from hansard_store.approvals.service import ApprovalService, open_accountability
from hansard_store.audit.external_events import note_event
from hansard_store.principals.authority import ME

_SECOND_NS: Final = 1_000_000_000
_OF_PEOPLE: Final = frozenset(
    {"not_an_approver", "self_approval", "credentials_required", "name_reserved"}
)


def open_decisions(data: Path, *, retention: RetentionMode) -> LocalDecisions:
    """Open a data folder for the gate of a program; made where there is none."""
    with _refusals():
        return LocalDecisions(open_accountability(data, retention=retention))


class LocalDecisions:
    """The approvals and events of one store; threads may share it."""

    is_local = True

    def __init__(self, store: ApprovalService) -> None:
        self._store = store

    def propose(self, proposal: Json) -> Json:
        with _refusals(str(proposal.get("tool"))):
            return _proposed_json(self._store.propose(_proposal(proposal)))

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        """Return an approval with its drafts as it stands: waiting is the caller's, who polls."""
        with _refusals():
            return dict(approval_json(self._store.approval(approval_id, with_drafts=True)))

    def approvals(self, **filters: Any) -> list[Json]:
        fields = {name: value for name, value in filters.items() if value is not None}
        with _refusals():
            limit = int(fields.pop("limit", 50))
            if "status" in fields:
                fields["status"] = (fields["status"],)
            found = self._store.approvals(ApprovalFilter(**fields), limit=limit)
            return [dict(approval_json(one)) for one in found]

    def decide(self, approval_id: str, verb: str, body: Json) -> Json:
        with _refusals():
            return dict(approval_json(self._decided(approval_id, verb, body)))

    def _decided(self, approval_id: str, verb: str, body: Json) -> Approval:
        store, by, note = self._store, body.get("by") or ME, body.get("note")
        match verb:
            case "approve":
                changed, revision = body.get("arguments"), body.get("revision")
                return store.approve(
                    approval_id, by=by, arguments=changed, revision=revision, comment=note
                )
            case "reject":
                return store.reject(approval_id, by=by, reason=body.get("reason"))
            case "revise":
                return store.revise(approval_id, by=by, note=body["note"])
            case "repropose":
                return store.repropose(
                    approval_id,
                    body["arguments"],
                    description=body.get("description"),
                    flags=body.get("flags") or {},
                    by=body.get("agent"),
                    step_id=body.get("step_id"),
                )
            case "settle":
                ref = body.get("result_ref")
                return store.settle_outcome(
                    approval_id, body["outcome"], note=body["note"], by=by, result_ref=ref
                )
        raise ValueError(f"a decision of no kind: {verb}")

    def claim(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            key = body.get("proposal_key")
            claim = self._store.claim(approval_id, body["arguments"], proposal_key=key)
            return {"claim_id": claim.claim_id, "arguments": claim.arguments}

    def report_result(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            undo = body.get("undo")
            ended = self._store.finish(
                body["claim_id"],
                ok=body["ok"],
                error=body.get("error"),
                result_ref=body.get("result_ref"),
                undo=None if undo is None else Action(undo["tool"], undo["arguments"]),
                approval_id=approval_id,
                result_digest=body.get("result_digest"),
            )
            return dict(approval_json(ended))

    def undo(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            return _proposed_json(self._store.undo(approval_id, by=body.get("by") or ME))

    def note(self, event: Json) -> None:
        with _refusals(str(event.get("tool"))):
            note_event(self._store, event)

    def close(self) -> None:
        self._store.close()


# ---- requests as records, and records as JSON


def _proposed_json(proposed: Proposed) -> Json:
    return {**approval_json(proposed.approval), "proposal_key": proposed.proposal_key}


_UNCHANGED: Final = (
    "effect", "agent", "channel", "one_per_channel", "batch_id", "undo_of", "facts", "run_id",
    "step_id",
)  # fmt: skip


def _proposal(body: Json) -> Proposal:
    expires_s, required = body.get("expires_in_s"), body.get("approvals_required")
    policy = body.get("policy") or {}  # what the proposer's own rules said
    unchanged = {name: body[name] for name in _UNCHANGED if body.get(name) is not None}
    return Proposal(
        tool=body["tool"],
        arguments=body["arguments"],
        description=body.get("description"),
        flags=body.get("flags") or {},
        lifetime_ns=HOUR_NS if expires_s is None else _ns("expires_in_s", expires_s),
        approvers=[Approver(one) for one in body.get("approvers") or ()],
        approvals_required=1 if required is None else required,
        proposer_policy=PolicyNote(
            rule_ids=tuple(policy.get("rule_ids") or ()),
            reason=policy.get("reason"),
            obligations=tuple(policy.get("obligations") or ()),
            receipts=tuple(policy.get("receipts") or ()),
        ),
        **unchanged,
    )


def _ns(what: str, seconds: Any) -> int:
    if isinstance(seconds, bool):
        raise InvalidProposal(what, f"{what} is a number of seconds, not {seconds}")
    return int(seconds * _SECOND_NS)


# ---- errors


@contextmanager
def _refusals(tool: str = "") -> Iterator[None]:
    """Raise as a GateError whatever the store or SQLite raises: no decision was had."""
    try:
        yield
    except Exception as error:
        raise _refusal(error, tool) from error


def _refusal(error: Exception, tool: str) -> GateError:
    """Return a store's error as what the caller can do about it: by its code, not its class."""
    if not isinstance(error, HansardError) or isinstance(error, ConfigError):
        return GateUnavailable(f"the store cannot be used: {type(error).__name__}: {error}")
    details = getattr(error, "details", None)
    if error.code == "blocked" and details:
        return PolicyDenied(tool, details["reason"], {"rule_ids": details["rule_ids"]})
    if error.code in ("not_found", "ambiguous_id"):
        return UnknownApproval(str(error))
    if error.code == "invalid_proposal":
        return InvalidArguments(tool, str(error))
    if error.code in _OF_PEOPLE:
        return DecisionRefused(error.code, str(error), details)
    if isinstance(error, ApprovalConflict):
        return DecisionConflict(error.code, str(error), details)
    return GateUnavailable(f"the store cannot keep a decision now: {error}")
