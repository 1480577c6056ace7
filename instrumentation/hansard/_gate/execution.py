"""Execution of approved calls: claimed first, run once, exactly as shown.

Between the claim and the result a crash leaves the outcome unknown, and so does a cancellation or a
timeout: it is shown as that, and the call is never run again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hansard import semconv
from hansard._backend.protocol import Decisions, checked, execution_of
from hansard._decorators import capture
from hansard._gate.arguments import Json, plain_copy
from hansard._gate.flow import Flow, FlowStep, can_wait, ending
from hansard._gate.interruption import may_have_run
from hansard._gate.pending import Proposed
from hansard._gate.policy import judged
from hansard._gate.redaction import is_veiled
from hansard._gate.tools import GatedTool, gated
from hansard._gate.tracing import Mirror
from hansard._runtime.warnings import warn_once
from hansard.errors import (
    AwaitRequired,
    DecisionConflict,
    GateError,
    NotApproved,
    OutcomeUnknown,
    PolicyDenied,
    RunsFailed,
    UnknownTool,
)
from hansard.results import Executed, approver_names
from hansard_compiler.canonical import content_digest

if TYPE_CHECKING:
    from hansard._gate.gate import Gate


def run(
    gate: Gate, approval_id: str, *, instance: Any = None, begun: set[str] | None = None
) -> Flow[Executed]:
    """Claim and run an approved call, in a span that is linked to the span of the proposal.

    `begun` gets its id once it is claimed: an error after that is one of a call that may have run.
    """
    decisions = gate.decisions
    known = gate.waiting.find(approval_id)
    key = known.key if known else None
    response = yield FlowStep(
        lambda: decisions.approval(approval_id, key=key), not decisions.is_local
    )
    approval = checked(response)
    tool = _tool_of(gate, approval, known, instance)
    mirror = Mirror.begin(tool, approval["arguments"], proposed_in=approval.get("step_id"))
    try:
        executed = yield from run_approved(gate, approval, mirror=mirror, tool=tool, begun=begun)
    except BaseException as error:
        mirror.refused(tool, error)
        mirror.failed(error)
        raise
    mirror.done(executed.result)
    return executed


def run_all_approved(gate: Gate, *, channel: str | None, agent: str | None) -> Flow[list[Executed]]:
    """Run the approved calls of this process's tools that have not run.

    Raises AwaitRequired before any of them runs if one has to be awaited and cannot be. One that
    fails does not stop the others; RunsFailed is raised at the end, with all that ran. A
    cancellation or Ctrl-C ends it at once, with the same attributes.
    """
    ask = partial(
        gate.decisions.approvals,
        status="approved",
        execution="none",
        channel=channel,
        agent=agent,
        limit=500,
    )
    found = yield FlowStep(ask, not gate.decisions.is_local)
    runnable = [one for one in reversed(found) if gate.find_tool(str(one["tool"]))]
    for approval in runnable:
        tool = gate.find_tool(str(approval["tool"]))
        if tool is not None and tool.may_wait:
            yield can_wait(
                AwaitRequired(f"tool {tool.name!r}", "`await approvals.arun_all_approved()`")
            )
    done: list[Executed] = []
    failed: dict[str, Exception] = {}
    begun: set[str] = set()
    for approval in runnable:
        identity = approval["approval_id"]
        try:
            done.append((yield from run(gate, identity, begun=begun)))
        except Exception as error:
            # Others were claimed by another process, or cannot run in this one.
            if identity in begun or not isinstance(error, GateError):
                failed[identity] = error
        except BaseException as error:
            with suppress(AttributeError, TypeError):
                error.executed, error.failed = tuple(done), failed  # type: ignore[attr-defined]
            raise
    if failed:
        raise RunsFailed(done, failed)
    return done


def run_approved(
    gate: Gate,
    approval: Json,
    *,
    mirror: Mirror,
    tool: GatedTool | None = None,
    begun: set[str] | None = None,
) -> Flow[Executed]:
    """Claim and run inside a span that is open. Raises before it ran, or what the tool raises."""
    decisions, is_slow = gate.decisions, not gate.decisions.is_local
    identity = approval["approval_id"]
    known = gate.waiting.find(identity)
    key = known.key if known else None
    _refuse_undecided(approval)
    tool = tool or _tool_of(gate, approval, known, None)
    arguments = _arguments_of(approval, known)
    tool.shape.check(arguments)
    if tool.may_wait:
        yield can_wait(
            AwaitRequired(f"tool {tool.name!r}", f"`await approvals.arun({identity!r})`")
        )
    judgement = judged(gate.policy, tool, arguments, agent=approval.get("agent"))
    if judgement.is_denied:  # an edit, or newer rules
        call = {name: approval.get(name) for name in ("tool", "agent", "run_id", "step_id")}
        policy = {"rule_ids": judgement.rule_ids, "reason": judgement.reason}
        event = {"type": "policy.blocked", "arguments": arguments, **call, **policy}
        yield FlowStep(partial(decisions.note, event), is_slow)
        raise PolicyDenied(tool.name, judgement.reason, judgement.json())
    claim = yield FlowStep(
        lambda: decisions.claim(identity, {"arguments": arguments, "proposal_key": key}),
        is_slow,
        if_late=lambda late: _report_end(decisions, identity, _not_begun(late)),
    )
    # From here on it counts as begun.
    if begun is not None:
        begun.add(identity)
    mirror.approval(approval)
    by = approver_names(approval) or str(approval.get("decided_by") or "")
    mirror.event(semconv.EVENT_APPROVAL_CLAIMED, id=identity, tool=tool.name, by=by)
    claimed = _Claimed(gate, decisions, tool, arguments, identity, str(claim["claim_id"]), mirror)
    result = yield from claimed.run()
    changes = _changes(approval, known, arguments)
    description = str(approval.get("description") or tool.name)
    return Executed(identity, tool.name, description, by, result, arguments, changes)


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A claimed call: whatever happens from here on, its end is recorded."""

    gate: Gate
    decisions: Decisions  # of the claim: its end goes there, after `shutdown` too
    tool: GatedTool
    arguments: Json
    identity: str
    claim_id: str
    mirror: Mirror
    pid: int = field(default_factory=os.getpid)  # of who claimed: what it forks has claimed nothing

    def run(self) -> Flow[Any]:
        """Run it to its end, and record that end once it is there."""
        self.gate.waiting.forget(self.identity)
        handled = sys.exc_info()[1]
        try:
            result = yield from self.tool.run(self.arguments, within=self.mirror)
        except BaseException as error:
            ok = None if may_have_run(error, handled=handled) else False
            yield from self._ends(error, ok=ok, error=type(error).__name__)
            raise
        try:
            undo = yield from _undo_of(self.tool, self.arguments, result)
        except BaseException as error:  # cancelled meanwhile: the call itself has run
            yield from self._ends(error, ok=True)
            raise
        ended = {"undo": undo, "result_digest": _digest_of(result)}
        yield FlowStep(lambda: self._record(ok=True, **ended), self._is_slow, is_final=True)
        if self.gate.seen:
            self.gate.seen.add(result)
        return result

    @property
    def _is_slow(self) -> bool:
        return not self.decisions.is_local

    def _ends(self, raised: BaseException, /, **end: Any) -> Flow[None]:
        yield from ending(raised, lambda: self._record(**end), is_slow=self._is_slow)

    def _record(self, **end: Any) -> None:
        if os.getpid() != self.pid:
            return  # the end of a process that the tool forked is not the end of the call
        _report_end(self.decisions, self.identity, {"claim_id": self.claim_id, **end})


def _digest_of(result: Any) -> str | None:
    """Return the digest of a text or an object, to compare memory of this result with.

    None for any other result, and for an object that holds what cannot be written as JSON.
    """
    try:
        return content_digest(result) if type(result) in (str, dict) else None
    except Exception:  # of a value's own class; the call has run, and its end is to be recorded
        return None


def _not_begun(claim: Json) -> Json:
    """Return the end of a claim that was granted after its caller had been cancelled."""
    return {"claim_id": str(claim["claim_id"]), "ok": False, "error": "cancelled before it began"}


def _refuse_undecided(approval: Json) -> None:
    """Raise unless the status is `approved` and the call has not run."""
    identity, status, state = approval["approval_id"], approval["status"], execution_of(approval)
    if status != "approved":
        raise NotApproved(f"approval {identity} is {status}, so the call does not run", approval)
    if state == "unknown":
        raise OutcomeUnknown(identity)
    if state == "not_run":
        raise DecisionConflict(
            "outcome_known",
            f"the call of approval {identity} did not run, as a person recorded; an approval is "
            "good for one claim, so propose the call again",
        )
    if state != "none":
        raise DecisionConflict("already_claimed", f"approval {identity} was run already: {state}")


def _tool_of(gate: Gate, approval: Json, known: Proposed | None, instance: Any) -> GatedTool:
    """Return the approved tool, by its exact name, on its object."""
    name = approval.get("tool")
    tool = known.tool if known is not None else gate.find_tool(str(name))
    if tool is None or tool.name != name:
        _refuse_undecided(approval)  # that it ran already is the nearer reason
        raise UnknownTool(str(name))
    return tool.on(instance)


def _arguments_of(approval: Json, known: Proposed | None) -> Json:
    """Return the arguments to run: our exact ones, unless they were changed since."""
    if known is not None and known.arguments_hash == approval.get("arguments_hash"):
        return known.arguments
    if approval.get("must_repropose") is not False or is_veiled(approval["arguments"]):
        raise DecisionConflict(
            "must_repropose",
            f"the arguments of approval {approval['approval_id']} are stored without secrets, and "
            "this process did not propose them: propose the call again",
        )
    arguments: Json = plain_copy(approval["arguments"])
    return arguments


def _report_end(decisions: Decisions, identity: str, body: Json) -> None:
    """Report the end of a call. It ran, so a store that is away is no error for the caller.

    The outcome is shown as unknown then.
    """
    try:
        decisions.report_result(identity, body)
    except GateError as error:
        warn_once(
            "gate result",
            "the call of approval %s ended, and its result could not be stored: %s; "
            "its outcome is shown as unknown",
            identity,
            error,
        )


def _undo_of(tool: GatedTool, arguments: Json, result: Any) -> Flow[Json | None]:
    """Return the call that takes this one back, as its tool declares it, or None."""
    if tool.undo is None:
        return None
    try:
        back, with_arguments = yield FlowStep(partial(tool.undo, dict(arguments), result))
        found = gated(back)
        name = found.name if found is not None else back
        return {
            "tool": name if isinstance(name, str) else capture.name_of(back),
            "arguments": plain_copy(dict(with_arguments)),
        }
    except Exception as error:
        warn_once("gate undo", "tool %s cannot be undone: %r", tool.name, error)
        return None


def _changes(approval: Json, known: Proposed | None, arguments: Json) -> dict[str, Json]:
    """Return what the approver changed, argument by argument."""
    proposed = known.arguments if known is not None else _last_draft_of_agent(approval)
    changes: dict[str, Json] = {}
    for name in proposed.keys() | arguments.keys():
        before, after = proposed.get(name), arguments.get(name)
        if (name in proposed) != (name in arguments) or before != after:
            changes[name] = {
                **({"proposed": before} if name in proposed else {}),
                **({"run": after} if name in arguments else {}),
            }
    return dict(sorted(changes.items()))


def _last_draft_of_agent(approval: Json) -> Json:
    drafts = [one for one in approval.get("drafts") or () if str(one.get("by")).startswith("agent")]
    found = drafts[-1].get("arguments") if drafts else None
    return dict(found) if isinstance(found, Mapping) else dict(approval["arguments"])
