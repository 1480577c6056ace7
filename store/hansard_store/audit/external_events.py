"""Events that programs tell by name: what a body of `POST /v1/events` becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hansard_store.approvals.errors import InvalidProposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, EventType
from hansard_store.principals.errors import reserved_text
from hansard_store.principals.model import is_own_name

# Of the approvals' own events none may be told: they are written with what they tell of.
TOLD_TYPES: Final = (
    EventType.MESSAGE_INBOUND,
    EventType.MESSAGE_OUTBOUND,
    EventType.POLICY_BLOCKED,
    EventType.ACTION_RECEIPTED,
    EventType.TOOL_CALLED,
    EventType.TOOL_RETURNED,
    EventType.FAILURE,
)
RESERVED_ACTORS: Final = (Actor.SYSTEM, Actor.ME)
_NAMES: Final = ("agent", "by", "tool")  # of whoever acts
_AHEAD_S: Final = 300  # by which the clock of a program may be ahead
MOST_AHEAD_NS: Final = _AHEAD_S * 1_000_000_000
_OF_RUN: Final = ("run_id", "step_id")


def note_event(desk: ApprovalService, told: Mapping[str, Any]) -> int:
    """Append an event and return its number; it is on disk then. Raises InvalidProposal."""
    _refuse_reserved(told)
    _refuse_future(desk, told.get("time_ns"))
    match told.get("type"):
        case EventType.TOOL_CALLED:
            more = _given(told, "agent", "call_id", "effect", "approval_id", "time_ns", *_OF_RUN)
            return desk.tool_called(_needed(told, "tool"), told.get("arguments"), **more)
        case EventType.TOOL_RETURNED:
            more = _given(
                told, "agent", "call_id", "effect", "approval_id", "result", "result_ref", "error",
                "time_ns", *_OF_RUN,
            )  # fmt: skip
            return desk.tool_returned(_needed(told, "tool"), ok=told.get("ok", True), **more)
        case EventType.MESSAGE_INBOUND:
            more = _given(told, "ref", "text", "time_ns", *_OF_RUN)
            return desk.message_in(_conversation(told), by=_name(told, "by"), **more)
        case EventType.MESSAGE_OUTBOUND:
            more = _given(told, "ref", "text", "time_ns", *_OF_RUN)
            agent = _name(told, "agent")
            return desk.message_out(_conversation(told), agent=agent, **more)
        case EventType.POLICY_BLOCKED:
            more = _given(told, "agent", "rule_ids", *_OF_RUN)
            arguments, reason = told.get("arguments") or {}, _name(told, "reason")
            return desk.blocked(_needed(told, "tool"), arguments, reason=reason, **more)
        case EventType.ACTION_RECEIPTED:
            more = _given(told, "agent", *_OF_RUN)
            more["rule_ids"] = tuple(told.get("rule_ids") or ())
            ref = desk.receipt(_needed(told, "tool"), told.get("arguments") or {}, **more)
            return int(ref.partition(":")[2])
        case EventType.FAILURE:
            more = _given(told, "subject", "time_ns", *_OF_RUN)
            more["agent"] = _name(told, "agent")  # never nobody's, which is Hansard's own
            action = told.get("action") or _needed(told, "tool")
            return desk.failed(action, _name(told, "error"), **more)
    known = ", ".join(TOLD_TYPES)
    raise InvalidProposal("type", f"programs tell {known}; not {told.get('type')!r}")


def _refuse_reserved(told: Mapping[str, Any]) -> None:
    """Raise InvalidProposal where a program speaks as Hansard, or as a person who acts."""
    if told.get("actor") in RESERVED_ACTORS:
        raise InvalidProposal(
            "actor", f"events of the actor {told['actor']!r} are written by Hansard alone"
        )
    for name in _NAMES:
        if is_own_name(_name(told, name)):
            raise InvalidProposal(name, reserved_text(_name(told, name)))


def _refuse_future(desk: ApprovalService, time_ns: Any) -> None:
    """Raise InvalidProposal for a time that no clock of another machine has yet."""
    if isinstance(time_ns, int) and time_ns > desk.now_ns() + MOST_AHEAD_NS:
        raise InvalidProposal(
            "time_ns",
            f"the event is dated over {_AHEAD_S} s later than now, by the clock here",
        )


def _given(told: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: told[name] for name in names if told.get(name) is not None}


def _needed(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidProposal(name, f"an event of type {told.get('type')!r} needs its {name}")
    return value


def _conversation(told: Mapping[str, Any]) -> str:
    return _name(told, "channel") or _needed(told, "conversation")


def _name(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""
