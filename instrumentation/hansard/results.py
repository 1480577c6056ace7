"""What a call through a gate returns: one class for each state of the call.

    result = gate.call("wire", {"to": "Acme", "amount": 500})
    if isinstance(result, hansard.Pending):
        ...                                   # nothing ran; result.approval_id names the approval
    answer = result.for_model()               # what the model gets as the answer of its tool call

A decorated tool returns `for_model()` itself, so that an agent needs to know nothing of the gate.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self, TypeAlias

from hansard._gate.arguments import Json
from hansard_compiler.canonical import canonical_json

__all__ = [
    "Completed",
    "Executed",
    "Expired",
    "GateResult",
    "Pending",
    "Rejected",
    "Revised",
]


@dataclass(frozen=True, slots=True)
class Completed:
    """A call that needed no approval and ran."""

    tool: str
    result: Any = field(repr=False)

    def for_model(self) -> Any:
        """Return the tool's result."""
        return self.result


@dataclass(frozen=True, slots=True)
class Executed:
    """An approved call that ran."""

    approval_id: str
    tool: str
    description: str
    by: str  # who approved it
    result: Any = field(repr=False)
    arguments: Json = field(repr=False)  # as it ran
    changes: Mapping[str, Json] = field(default_factory=dict)  # by the approver; proposed and run

    def for_model(self) -> Any:
        """Return the tool's result; if the approver changed arguments, what changed and by whom."""
        if not self.changes:
            return self.result
        changes = "; ".join(
            f"{name}: {_value(change, 'proposed')} -> {_value(change, 'run')}"
            for name, change in self.changes.items()
        )
        return {
            "status": "executed",
            "message": f"Approved by {self.by} with changes, and run as changed. "
            f"Do not run it again. {changes}",
            "changed": {name: dict(change) for name, change in self.changes.items()},
            "changed_by": self.by,
            "approval_id": self.approval_id,
            "result": self.result,
        }


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for a decision; it did not run."""

    approval_id: str
    tool: str
    description: str
    message: str  # for the model, which can say so to its user
    approvals: str = ""  # if several people have to approve: `1 of 2 approved, by ana; …`

    @classmethod
    def of(cls, approval: Mapping[str, Any], *, waited_s: float = 0.0) -> Pending:
        """Return the result for an approval without a decision, after a wait of `waited_s`."""
        counted = progress(approval)
        described = approval.get("description")
        if waited_s:
            within = "" if math.isinf(waited_s) else f" within {waited_s:g} s"
            message = (
                f"{counted or 'Nobody decided'}{within}; still waiting for a decision: "
                f"{described or approval.get('tool')}"
            )
        else:
            people = f" by {approval['approvals_required']} people" if counted else ""
            message = f"This action requires confirmation{people}: {described or ''}"
        return cls(
            approval_id=approval["approval_id"],
            tool=str(approval.get("tool") or ""),
            description=described or "",
            message=message,
            approvals=counted,
        )

    def for_model(self) -> Json:
        """Return status `pending_confirmation`, with the message and the id of the approval."""
        content: Json = {
            "status": "pending_confirmation",
            "message": self.message,
            "approval_id": self.approval_id,
        }
        if self.approvals:
            content["approvals"] = self.approvals
        return content


@dataclass(frozen=True, slots=True)
class _Decided:
    """A call that was decided against: what the three classes below share."""

    status: ClassVar[str]

    approval_id: str
    tool: str
    description: str
    by: str  # who decided; empty if nobody did
    reason: str
    note: str
    message: str  # for the model

    @classmethod
    def of(cls, approval: Mapping[str, Any]) -> Self:
        """Return the result for an approval with a decision."""
        tool, by, reason, note = (
            str(approval.get(name) or "") for name in ("tool", "decided_by", "reason", "note")
        )
        description = str(approval.get("description") or "")
        message = f"{_outcome(cls.status, by, reason, note)}: {description or tool}"
        return cls(approval["approval_id"], tool, description, by, reason, note, message)

    def for_model(self) -> Json:
        """Return the status with the message, the id of the approval, reason and note."""
        content = {"status": self.status, "message": self.message, "approval_id": self.approval_id}
        return content | {
            name: text for name, text in (("reason", self.reason), ("note", self.note)) if text
        }


@dataclass(frozen=True, slots=True)
class Rejected(_Decided):
    """A call that a person rejected; it never runs."""

    status: ClassVar[str] = "rejected"


@dataclass(frozen=True, slots=True)
class Revised(_Decided):
    """A call that a person sent back with a note: propose it again, changed by the note."""

    status: ClassVar[str] = "revised"


@dataclass(frozen=True, slots=True)
class Expired(_Decided):
    """A call without a decision in time; it never runs."""

    status: ClassVar[str] = "expired"


def _outcome(status: str, by: str, reason: str, note: str) -> str:
    """Return what was decided, as a model reads it."""
    if status == Rejected.status:
        because = f" ({reason})" if reason else ""
        return f"Rejected by {by or 'somebody'}, and not run{because}"
    if status == Expired.status:
        return "Nobody decided in time, so it expired and was not run"
    note = note.strip()
    stop = "" if not note or note.endswith((".", "!", "?", "…")) else "."
    return (
        f"Sent back with a note, and not run: {note}{stop} "
        "Propose it again, changed as the note asks"
    )


_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
GateResult: TypeAlias = Completed | Executed | Pending | Rejected | Revised | Expired


def result_without_run(approval: Mapping[str, Any], *, waited_s: float) -> GateResult:
    """Return the result for a call that did not run after it waited."""
    if approval["status"] == "awaiting":
        return Pending.of(approval, waited_s=waited_s)
    kinds: dict[str, type[_Decided]] = {one.status: one for one in (Rejected, Revised, Expired)}
    return kinds[approval["status"]].of(approval)  # type: ignore[return-value]  # one of the three


def progress(approval: Mapping[str, Any]) -> str:
    """Return how many approved, if it takes several: `1 of 2 approved, by ana; 1 more needed`."""
    required = approval.get("approvals_required")
    if not isinstance(required, int) or required < 2:
        return ""
    names = approver_names(approval)
    left = approval.get("approvals_left")
    by = f", by {names}" if names else ""
    more = f"; {left} more needed" if left else ""
    return f"{len(approval.get('approved_by') or ())} of {required} approved{by}{more}"


def approver_names(approval: Mapping[str, Any]) -> str:
    """Return who approved the current draft: `ana and bo`; empty if nobody did."""
    names = [str(one.get("name")) for one in approval.get("approved_by") or ()]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def visible(value: Any) -> str:
    """Return a value as text, with invisible and direction-changing characters escaped."""
    text = value if isinstance(value, str) else canonical_json(value)  # as the store shows it
    return "".join(
        f"‹U+{ord(one):04X}›" if unicodedata.category(one) in _INVISIBLE else one for one in text
    )


def _value(change: Mapping[str, Any], side: str) -> str:
    return visible(change[side]) if side in change else "(not given)"
