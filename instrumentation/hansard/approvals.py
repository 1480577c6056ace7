"""Decisions on pending calls, and execution of approved ones.

    hansard.approvals.pending()                              # the pending calls
    hansard.approvals.approve(approval_id, by="ana")         # or reject, or revise with a note
    hansard.approvals.run(approval_id).result                # claimed, run once, recorded
    (await hansard.approvals.arun(approval_id)).result       # the same in an event loop

These are for programs; people have the page `/approvals`, `hansard approvals` and chat channels.
Everything works on the gate that is current here. Raises GateError, see `hansard.errors`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hansard._backend.protocol import Decisions, checked
from hansard._gate import execution, invocation
from hansard._gate.arguments import Json
from hansard._gate.flow import Flow, adrive, drive, in_thread
from hansard._gate.gate import Gate, current_gate
from hansard._gate.pending import Proposed, note_pending
from hansard._runtime.durations import Duration, seconds
from hansard.errors import NoConfirmation, UnknownTool
from hansard.results import Executed, GateResult, Pending

__all__ = [
    "Executed",
    "approve",
    "arepropose",
    "arun",
    "arun_all_approved",
    "await_decision",
    "get",
    "pending",
    "reject",
    "repropose",
    "resolve_outcome",
    "revise",
    "run",
    "run_all_approved",
    "undo",
    "wait_decision",
]  # fmt: skip


def pending(*, channel: str | None = None, agent: str | None = None) -> list[Json]:
    """Return the pending calls, the newest first."""
    return _decisions().approvals(status="awaiting", channel=channel, agent=agent, limit=500)


def get(approval_id: str) -> Json:
    """Return an approval in its current state."""
    return checked(_decisions().approval(approval_id))


def wait_decision(approval_id: str, timeout_s: Duration = math.inf) -> Json:
    """Wait until an approval is decided, sent back or expired, and return its state then."""
    limit_s = seconds(timeout_s, "timeout_s")
    return drive(invocation.decided(_gate(), get(approval_id), limit_s))


async def await_decision(approval_id: str, timeout_s: Duration = math.inf) -> Json:
    """The same in an event loop."""
    limit_s = seconds(timeout_s, "timeout_s")
    approval = await in_thread(lambda: get(approval_id))
    return await adrive(invocation.decided(_gate(), approval, limit_s))


def approve(
    approval_id: str,
    *,
    by: str = "",
    arguments: Mapping[str, Any] | None = None,
    revision: int | None = None,
    note: str = "",
    token: str | None = None,
) -> Json:
    """Approve a call as shown; with `arguments`, as changed: the rules are checked again.

    If it requires several approvals it stays `awaiting` until the last person has approved the same
    draft: `approvals_left` is how many more. `note` is stored with this approval in the log.

    `revision` is the draft that the person read (`get(…)["revision"]`). A call that has had more
    than one draft is not approved without it: DecisionConflict `revision_required`.

    A server takes a decision with the `token` of a person (`hansard tokens add`), never with the
    token of `init()` or HANSARD_TOKEN. Raises DecisionRefused.
    """
    body: Json = {"by": by or None, "note": note or None, "token": token}
    body["revision"] = revision
    if arguments is not None:
        body["arguments"] = dict(arguments)
    return checked(_decisions().decide(approval_id, "approve", body))


def reject(approval_id: str, *, by: str = "", reason: str = "", token: str | None = None) -> Json:
    """Reject a call finally; `token` as in `approve`."""
    body: Json = {"by": by or None, "reason": reason or None, "token": token}
    return checked(_decisions().decide(approval_id, "reject", body))


def revise(approval_id: str, note: str, *, by: str = "", token: str | None = None) -> Json:
    """Send a call back with a note; its agent may propose it again. `token` as in `approve`."""
    body: Json = {"by": by or None, "note": note, "token": token}
    return checked(_decisions().decide(approval_id, "revise", body))


def resolve_outcome(
    approval_id: str,
    *,
    executed: bool,
    note: str,
    by: str = "",
    result_ref: str = "",
    token: str | None = None,
) -> Json:
    """Record whether a call of unknown outcome ran, with a note of how you know; nothing runs.

    `token` as in `approve`.
    """
    outcome = "ran" if executed else "did_not_run"
    body: Json = {"by": by or None, "outcome": outcome, "note": note, "token": token}
    body["result_ref"] = result_ref or None
    return checked(_decisions().decide(approval_id, "settle", body))


def repropose(
    approval_id: str, arguments: Mapping[str, Any], *, instance: Any = None
) -> GateResult:
    """Propose a call that was sent back again, with other arguments."""
    return drive(_reproposed(_gate(), get(approval_id), arguments, instance))


async def arepropose(
    approval_id: str, arguments: Mapping[str, Any], *, instance: Any = None
) -> GateResult:
    """The same in an event loop."""
    approval = await in_thread(lambda: get(approval_id))
    return await adrive(_reproposed(_gate(), approval, arguments, instance))


def _reproposed(
    gate: Gate, approval: Json, arguments: Mapping[str, Any], instance: Any
) -> Flow[GateResult]:
    tool = gate.find_tool(str(approval["tool"]))
    if tool is None:
        raise UnknownTool(str(approval["tool"]))
    tool = tool.on(instance)
    named = tool.shape.from_model(arguments)
    return invocation.call(gate, tool, named, repropose=approval["approval_id"])


def run(approval_id: str, *, instance: Any = None) -> Executed:
    """Claim and run an approved call exactly as approved, once, and record its end.

    An async tool runs to its end in an event loop of this call, as with `asyncio.run`. Inside a
    running loop `run` raises AwaitRequired before it claims: use `await arun(approval_id)`.
    `instance` is the object of a tool that is a method, if another process proposed the call.
    """
    return drive(execution.run(_gate(), approval_id, instance=instance))


async def arun(approval_id: str, *, instance: Any = None) -> Executed:
    """The same in an event loop of asyncio or trio, for tools of both kinds.

    If it is cancelled or times out, the outcome is recorded as `unknown`.
    """
    return await adrive(execution.run(_gate(), approval_id, instance=instance))


def run_all_approved(*, channel: str | None = None, agent: str | None = None) -> list[Executed]:
    """Run the approved calls of this process's tools that have not run.

    After a restart this continues where the last process ended: what had begun is not run again.
    Calls that cannot run stay approved. If calls fail, the others run all the same, and RunsFailed
    is raised: `executed` has the calls that ran, `failed` the errors by approval. A cancellation or
    Ctrl-C ends it at once, with both in its attributes. Async tools run one after the other in one
    event loop; inside a running one they raise AwaitRequired: use `await arun_all_approved()`.
    """
    return drive(execution.run_all_approved(_gate(), channel=channel, agent=agent))


async def arun_all_approved(
    *, channel: str | None = None, agent: str | None = None
) -> list[Executed]:
    """The same in an event loop, for tools of both kinds, one after the other."""
    return await adrive(execution.run_all_approved(_gate(), channel=channel, agent=agent))


def undo(
    approval_id: str, *, by: str = "", instance: Any = None, token: str | None = None
) -> Pending:
    """Propose the call that reverts one that ran, through the same gate; it needs an approval, too.

    A call is undone once. `instance` is the object of an undoing tool that is a method, `token` as
    in `approve`.
    """
    gate = _gate()
    undo_call = get(approval_id).get("undo")
    tool = None
    if isinstance(undo_call, Mapping):
        tool = gate.find_tool(str(undo_call.get("tool")))
        if tool is None:
            raise UnknownTool(str(undo_call.get("tool")))
    proposed = gate.decisions.undo(approval_id, {"by": by or None, "token": token})
    approval = checked(proposed)
    if tool is not None:
        arguments, bound_hash = dict(approval["arguments"]), str(approval.get("arguments_hash"))
        call = Proposed(tool.on(instance), arguments, bound_hash, proposed.get("proposal_key"))
        gate.waiting.add(approval, call)
    note_pending(approval)
    return Pending.of(approval)


def _gate() -> Gate:
    found = current_gate()
    if found is None:
        raise NoConfirmation("approvals")
    return found


def _decisions() -> Decisions:
    return _gate().decisions
