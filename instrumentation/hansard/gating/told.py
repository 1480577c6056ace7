"""What the model is told of a call that a gate held, in plain words and with a status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hansard.gating.arguments import Json
from hansard.gating.describing import visible

if TYPE_CHECKING:
    from hansard.gating.judging import Judgement
    from hansard.gating.running import Executed


def pending(approval: Mapping[str, Any]) -> Json:
    """Tell that the call waits: the model can say so to its user."""
    return {
        "status": "pending_confirmation",
        "message": f"This action requires confirmation: {approval.get('description') or ''}",
        "approval_id": approval["approval_id"],
    }


def outcome(approval: Mapping[str, Any], *, waited_s: float = math.inf) -> Json:
    """Tell how it stands with a call that did not run."""
    status = str(approval["status"])
    by = approval.get("decided_by") or "somebody"
    what = approval.get("description") or approval.get("tool")
    if status == "awaiting":
        waited = "" if math.isinf(waited_s) else f" within {waited_s:g} s"
        return {
            **pending(approval),
            "message": f"Nobody decided{waited}; still waiting for a decision: {what}",
        }
    message = {
        "revised": f"Sent back with a note, and not run: {_sentence(approval.get('note'))} "
        f"Propose it again, changed as the note asks: {what}",
        "rejected": f"Rejected by {by}, and not run{_because(approval)}: {what}",
        "expired": f"Nobody decided in time, so it expired and was not run: {what}",
        "approved": f"Approved by {by}, and not run yet: {what}",
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
