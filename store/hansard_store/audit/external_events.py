"""Events that programs tell by name: what a body of `POST /v1/events` becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hansard_store.approvals.errors import InvalidProposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, EventType
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import is_own_name

# Programs may not append the approvals' own events: these are written with the approval.
REPORTED_TYPES: Final = (
    EventType.MESSAGE_INBOUND,
    EventType.MESSAGE_OUTBOUND,
    EventType.POLICY_BLOCKED,
    EventType.ACTION_RECEIPTED,
    EventType.TOOL_CALLED,
    EventType.TOOL_RETURNED,
    EventType.FAILURE,
)
RESERVED_ACTORS: Final = (Actor.SYSTEM, Actor.ME)
_NAMES: Final = ("agent", "by", "tool")  # of the actor
_AHEAD_S: Final = 300  # by which the clock of a program may be ahead
MOST_AHEAD_NS: Final = _AHEAD_S * 1_000_000_000
_OF_RUN: Final = ("run_id", "step_id")
_OF_CALL: Final = ("agent", "call_id", "effect", "approval_id", "time_ns")
_OF_MESSAGE: Final = ("ref", "text", "time_ns")
_OPTIONAL: Final[Mapping[str, Sequence[str]]] = {
    EventType.TOOL_CALLED: _OF_CALL,
    EventType.TOOL_RETURNED: (*_OF_CALL, "result", "result_ref", "error"),
    EventType.MESSAGE_INBOUND: _OF_MESSAGE,
    EventType.MESSAGE_OUTBOUND: _OF_MESSAGE,
    EventType.POLICY_BLOCKED: ("agent", "rule_ids"),
    EventType.ACTION_RECEIPTED: ("agent", "rule_ids"),
    EventType.FAILURE: ("subject", "time_ns"),
}


def note_event(approvals: ApprovalService, fields: Mapping[str, Any]) -> int:
    """Append an event and return its number; it is on disk then. Raises InvalidProposal."""
    _refuse_reserved(fields)
    _refuse_future(approvals, fields.get("time_ns"))
    more = _fields_of(fields, *_OF_RUN, *_OPTIONAL.get(str(fields.get("type", "")), ()))
    match fields.get("type"):
        case EventType.TOOL_CALLED:
            return approvals.tool_called(_needed(fields, "tool"), fields.get("arguments"), **more)
        case EventType.TOOL_RETURNED:
            ok = fields.get("ok", True)
            return approvals.tool_returned(_needed(fields, "tool"), ok=ok, **more)
        case EventType.MESSAGE_INBOUND:
            return approvals.message_in(_conversation(fields), by=_name(fields, "by"), **more)
        case EventType.MESSAGE_OUTBOUND:
            agent = _name(fields, "agent")
            return approvals.message_out(_conversation(fields), agent=agent, **more)
        case EventType.POLICY_BLOCKED:
            arguments, reason = fields.get("arguments") or {}, _name(fields, "reason")
            return approvals.blocked(_needed(fields, "tool"), arguments, reason=reason, **more)
        case EventType.ACTION_RECEIPTED:
            ref = approvals.receipt(_needed(fields, "tool"), fields.get("arguments") or {}, **more)
            return int(ref.partition(":")[2])
        case EventType.FAILURE:
            more["agent"] = _name(fields, "agent")  # never nobody's, which is Hansard's own
            action = fields.get("action") or _needed(fields, "tool")
            return approvals.failed(action, _name(fields, "error"), **more)
    known = ", ".join(REPORTED_TYPES)
    raise InvalidProposal("type", f"programs tell {known}; not {fields.get('type')!r}")


def _refuse_reserved(fields: Mapping[str, Any]) -> None:
    """Raise InvalidProposal where a program speaks as Hansard, or as a person who acts."""
    if fields.get("actor") in RESERVED_ACTORS:
        raise InvalidProposal(
            "actor", f"events of the actor {fields['actor']!r} are written by Hansard alone"
        )
    for name in _NAMES:
        if is_own_name(_name(fields, name)):
            raise InvalidProposal(name, reserved_text(_name(fields, name)))


def _refuse_future(approvals: ApprovalService, time_ns: Any) -> None:
    """Raise InvalidProposal for a time that no clock of another machine has yet."""
    if isinstance(time_ns, int) and time_ns > approvals.now_ns() + MOST_AHEAD_NS:
        raise InvalidProposal(
            "time_ns",
            f"the event is dated over {_AHEAD_S} s later than now, by the clock here",
        )


def _fields_of(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _needed(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidProposal(name, f"an event of type {fields.get('type')!r} needs its {name}")
    return value


def _conversation(fields: Mapping[str, Any]) -> str:
    return _name(fields, "channel") or _needed(fields, "conversation")


def _name(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
