"""What the model is told of a call that a gate held, in plain words and with a status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hansard._gate.arguments import Json
from hansard._gate.description import visible

if TYPE_CHECKING:
    from hansard._gate.execution import Executed
    from hansard._gate.policy import Judgement


def pending(approval: Mapping[str, Any]) -> Json:
    """Tell that the call waits: the model can say so to its user."""
    counted = progress(approval)
    needs = (
        f"confirmation by {approval['approvals_required']} people" if counted else "confirmation"
    )
    answer: Json = {
        "status": "pending_confirmation",
        "message": f"This action requires {needs}: {approval.get('description') or ''}",
        "approval_id": approval["approval_id"],
    }
    if counted:
        answer["approvals"] = counted
    return answer


def progress(approval: Mapping[str, Any]) -> str:
    """Tell how many approved, where it takes several: `1 of 2 approved, by ana; 1 more needed`."""
    required = approval.get("approvals_required")
    if not isinstance(required, int) or required < 2:
        return ""
    names = approvers(approval)
    left = approval.get("approvals_left")
    by = f", by {names}" if names else ""
    more = f"; {left} more needed" if left else ""
    return f"{len(approval.get('approved_by') or ())} of {required} approved{by}{more}"


def approvers(approval: Mapping[str, Any]) -> str:
    """Return who approved the draft that is there: `ana and bo`; nobody is an empty text."""
    names = [str(one.get("name")) for one in approval.get("approved_by") or ()]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def outcome(approval: Mapping[str, Any], *, waited_s: float = math.inf) -> Json:
    """Tell how it stands with a call that did not run."""
    status = str(approval["status"])
    by = approval.get("decided_by") or "somebody"
    both = approvers(approval) or by
    counted = progress(approval)
    what = approval.get("description") or approval.get("tool")
    if status == "awaiting":
        waited = "" if math.isinf(waited_s) else f" within {waited_s:g} s"
        return {
            **pending(approval),
            "message": f"{counted or 'Nobody decided'}{waited}; still waiting for a decision: "
            f"{what}",
        }
    message = {
        "revised": f"Sent back with a note, and not run: {_sentence(approval.get('note'))} "
        f"Propose it again, changed as the note asks: {what}",
        "rejected": f"Rejected by {by}, and not run{_because(approval)}: {what}",
        "expired": f"Nobody decided in time, so it expired and was not run: {what}",
        "approved": f"Approved by {both}, and not run yet: {what}",
    }[status]
    answer: Json = {
        "status": status,
        "message": message,
        "approval_id": approval["approval_id"],
    }
    for name in ("reason", "note"):
        if approval.get(name):
            answer[name] = approval[name]
    return answer


def executed(done: Executed) -> Json:
    """Tell of a call that ran with other arguments than the model gave: what changed, by whom."""
    changes = "; ".join(
        f"{name}: {_value(change, 'proposed')} -> {_value(change, 'run')}"
        for name, change in done.changes.items()
    )
    return {
        "status": "executed",
        "message": f"Approved by {done.by} with changes, and run as changed. Do not run it again. "
        f"{changes}",
        "changed": {name: dict(change) for name, change in done.changes.items()},
        "changed_by": done.by,
        "approval_id": done.approval_id,
        "result": done.result,
    }


def of_policy(judgement: Judgement) -> Json:
    """Return what rules demanded, for events and approvals."""
    told: Json = {"rule_ids": judgement.rule_ids, "reason": judgement.reason or None}
    if judgement.obligations:
        told["obligations"] = judgement.obligations
    return told


def _sentence(note: str | None) -> str:
    """Return a note with a full stop, if it ends without one."""
    said = (note or "").strip()
    return said if not said or said.endswith((".", "!", "?", "…")) else f"{said}."


def _because(approval: Mapping[str, Any]) -> str:
    return f" ({approval['reason']})" if approval.get("reason") else ""


def _value(change: Mapping[str, Any], side: str) -> str:
    return visible(change[side]) if side in change else "(not given)"
