"""Events without a record of their own: messages, tool calls, failures, receipts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hansard_compiler.calls import Json
from hansard_store.accounting import Who, Work
from hansard_store.event_types import Actor, EventType


def tell_message(
    work: Work,
    *,
    is_inbound: bool,
    conversation: str,
    who: Who,
    ref: str | None = None,
    text: str | None = None,
    run_id: str | None = None,
    step_id: str | None = None,
    time_ns: int | None = None,
) -> int:
    """Log a message by its reference, or a keyed hash of its text; never the text."""
    ref = None if ref is None else work.keeper.brief(ref)
    body: Json = {"ref": ref, "text": None if text is None else work.keeper.reference(text)}
    return work.tell(
        EventType.MESSAGE_INBOUND if is_inbound else EventType.MESSAGE_OUTBOUND,
        who,
        action="receive" if is_inbound else "send",
        subject=f"conversation:{work.keeper.name('conversation', conversation)}",
        body=body,
        run_id=run_id,
        step_id=step_id,
        time_ns=time_ns,
    )


def tell_tool(
    work: Work,
    tool: str,
    *,
    agent: Who,
    call_id: str | None,
    arguments: Mapping[str, Any] | None = None,
    returned: bool = False,
    is_ok: bool = True,
    result: Any = None,
    result_ref: str | None = None,
    error: str | None = None,
    effect: str | None = None,
    approval_id: str | None = None,
    run_id: str | None = None,
    step_id: str | None = None,
    time_ns: int | None = None,
) -> int:
    """Log a tool call before it is made, or after it returned."""
    tool = work.keeper.name("tool", tool)
    who = Who(Actor.TOOL, tool, agent.principal) if returned else agent
    call_id = None if call_id is None else work.keeper.brief(call_id)
    body: dict[str, Any] = {"call_id": call_id, "effect": effect, "approval_id": approval_id}
    if returned:
        ref = None if result_ref is None else work.keeper.brief(result_ref)
        body |= {"ok": is_ok, "result_ref": ref}
        body["result"] = None if result is None else work.keeper.reference(result)
    else:
        body["arguments"] = None if arguments is None else work.keeper.reference(arguments)
    told = None if error is None else work.keeper.content_text("error", error)
    return work.tell(
        EventType.TOOL_RETURNED if returned else EventType.TOOL_CALLED,
        who,
        action=tool,
        subject=f"call:{call_id}" if call_id else f"tool:{tool}",
        body=body,
        contents=[] if told is None else [work.keeper.content("error", told)],
        run_id=run_id,
        step_id=step_id,
        time_ns=time_ns,
    )


def tell_failure(
    work: Work,
    action: str,
    *,
    who: Who,
    error: str,
    subject: str | None = None,
    run_id: str | None = None,
    step_id: str | None = None,
    time_ns: int | None = None,
) -> int:
    """Log that something failed, and how, without secrets."""
    action = work.keeper.name("action", action)
    return work.tell(
        EventType.FAILURE,
        who,
        action=action,
        subject=work.keeper.brief(subject) if subject else f"action:{action}",
        contents=[work.keeper.content("error", work.keeper.content_text("error", error))],
        run_id=run_id,
        step_id=step_id,
        time_ns=time_ns,
    )


def tell_receipt(
    work: Work,
    tool: str,
    *,
    agent: Who,
    arguments: Mapping[str, Any],
    rule_ids: tuple[str, ...] = (),
    run_id: str | None = None,
    step_id: str | None = None,
) -> str:
    """Store the receipt that policy demands before an action, and return its reference."""
    tool = work.keeper.name("tool", tool)
    body = {
        "arguments": work.keeper.hash_of(arguments),
        "rule_ids": work.keeper.briefs(rule_ids),
    }
    seq = work.tell(
        EventType.ACTION_RECEIPTED,
        agent,
        action=tool,
        subject=f"tool:{tool}",
        body=body,
        run_id=run_id,
        step_id=step_id,
    )
    return f"event:{seq}"
