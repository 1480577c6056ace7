"""One call through a gate: checked against the rules, then run, held for a decision, or refused."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hansard import semconv
from hansard._backend.protocol import checked
from hansard._gate.arguments import Json
from hansard._gate.execution import run_approved
from hansard._gate.flow import Flow, FlowStep, can_wait, ending, may_be_async, pause
from hansard._gate.pending import Proposed, note_pending
from hansard._gate.policy import PolicyJudgement, judged
from hansard._gate.tools import GatedTool
from hansard._gate.tracing import Mirror
from hansard.errors import AwaitRequired, GateUnavailable, InvalidArguments, PolicyDenied
from hansard.results import Completed, GateResult, Pending, result_without_run
from hansard_compiler.policy.approvers import Approvers

if TYPE_CHECKING:
    from hansard._gate.gate import Gate


# Ids of calls: what joins the event before a call to the one after it.


class CallIds:
    """Gives ids that no other call has, in this process or another; threads may share it.

    They count up behind one random beginning, so that those of a process stand together in the
    store's index of subjects: random ones would touch another page each.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Take another beginning: a fork would count on behind that of its parent."""
        # A letter first: what is all digits could be taken for the number of a card.
        self._beginning = f"c{secrets.token_hex(6)}"
        self._numbers = itertools.count(1)

    def next(self) -> str:
        """Return an id: letters, digits and a hyphen."""
        return f"{self._beginning}-{next(self._numbers)}"


_ids = CallIds()
next_call_id = _ids.next

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.begin_anew)


_POLL_S: Final = 20.0  # one long poll; a cancelled task leaves one behind for so long at most
_FIRST_PAUSE_S: Final = 0.01  # between two looks into our own store
_LONGEST_PAUSE_S: Final = 0.25


def call(
    gate: Gate, tool: GatedTool, arguments: Json, *, repropose: str | None = None
) -> Flow[GateResult]:
    """Call a tool through the gate, inside a span of its own."""
    mirror = Mirror.begin(tool, arguments)
    try:
        result = yield from _Call(gate, tool, arguments, mirror).made(repropose)
    except BaseException as error:
        mirror.refused(tool, error)
        mirror.failed(error)
        raise
    mirror.done(result.for_model())
    return result


def answer(gate: Gate, tool: GatedTool, arguments: Json) -> Flow[Any]:
    """Call a tool through the gate, and return what the model gets."""
    return (yield from call(gate, tool, arguments)).for_model()


class _Call:
    """One call on its way through the gate."""

    def __init__(self, gate: Gate, tool: GatedTool, arguments: Json, mirror: Mirror) -> None:
        self._gate = gate
        self._tool = tool
        self._arguments = arguments
        self._mirror = mirror
        self._call_id = next_call_id()
        self._agent = gate.agent
        self._decisions = gate.decisions
        self._is_slow = not self._decisions.is_local

    def made(self, repropose: str | None) -> Flow[GateResult]:
        judgement = judged(self._gate.policy, self._tool, self._arguments, agent=self._agent)
        yield from self._check_waiting(judgement)
        if judgement.is_denied:
            why = {"rule_ids": judgement.rule_ids, "reason": judgement.reason or None}
            yield from self._note("policy.blocked", arguments=self._arguments, **why)
            raise PolicyDenied(self._tool.name, judgement.reason, judgement.json())
        if judgement.needs_approval:
            return (yield from self._held(judgement, repropose))
        self._mirror.event(
            semconv.EVENT_GATE_ALLOWED, tool=self._tool.name, rule_ids=judgement.rule_ids
        )
        if judgement.needs_receipt:
            # On the disk before anything runs; with an approval the claim does it.
            yield from self._note(
                "action.receipted", arguments=self._arguments, rule_ids=judgement.rule_ids
            )
        return (yield from self._let_through())

    def _check_waiting(self, judgement: PolicyJudgement) -> Flow[None]:
        """Raise AwaitRequired before the call begins, if a function has to be awaited and cannot
        be.
        """
        name, instead = self._tool.name, "`await gate.acall(…)`"
        waits = judgement.needs_approval
        if not judgement.is_denied and waits and may_be_async(self._tool.describe):
            yield can_wait(AwaitRequired(f"describe= of tool {name!r}", instead), is_of_tool=False)
        runs = not judgement.is_denied and (not waits or self._wait_s() > 0)
        if runs and self._tool.may_wait:
            yield can_wait(AwaitRequired(f"tool {name!r}", instead))

    # ---- calls without an approval

    def _let_through(self) -> Flow[Completed]:
        """Run a tool that needs no approval; without an event before it, it does not run."""
        yield from self._note("tool.called", arguments=self._arguments)
        pid = os.getpid()
        try:
            result = yield from self._tool.run(self._arguments, within=self._mirror)
        except BaseException as error:
            if os.getpid() != pid:  # a process that the tool forked: not the end of the call
                raise
            event = self._event("tool.returned", ok=False, error=type(error).__name__)
            yield from ending(error, lambda: self._decisions.note(event), is_slow=self._is_slow)
            raise
        if os.getpid() == pid:
            yield from self._note("tool.returned", ok=True)
        if self._gate.seen:
            self._gate.seen.add(result)
        return Completed(self._tool.name, result)

    # ---- calls that need a decision

    def _held(self, judgement: PolicyJudgement, repropose: str | None) -> Flow[GateResult]:
        if Approvers(names=self._gate.approvers or None).joined(judgement.approvers).names == ():
            raise InvalidArguments(
                self._tool.name, "the rules let none of the gate's approvers approve this call"
            )
        # What cannot run needs no decision.
        self._tool.shape.check(self._arguments)
        approval = yield from self._proposed(judgement, repropose)
        note_pending(approval)
        wait_s = self._wait_s()
        if wait_s == 0:
            return Pending.of(approval)
        approval = yield from decided(self._gate, approval, wait_s)
        self._mirror.approval(approval)
        if approval["status"] != "awaiting":
            self._mirror.decided(approval)
        if approval["status"] != "approved":
            return result_without_run(approval, waited_s=wait_s)
        return (yield from run_approved(self._gate, approval, mirror=self._mirror))

    def _proposed(self, judgement: PolicyJudgement, repropose: str | None) -> Flow[Json]:
        described = yield from self._tool.description_of(self._arguments)
        proposal = self._proposal(judgement, described)
        if repropose is None:
            response = yield FlowStep(lambda: self._decisions.propose(proposal), self._is_slow)
        else:
            response = yield FlowStep(
                lambda: self._decisions.decide(repropose, "repropose", proposal), self._is_slow
            )
        approval = checked(response)
        if approval["status"] != "awaiting" or approval.get("tool") != self._tool.name:
            raise GateUnavailable("the store of decisions did not store this call as pending")
        known = self._gate.waiting.find(approval["approval_id"])
        key = response.get("proposal_key") or (known.key if known else None)
        call = Proposed(self._tool, self._arguments, str(approval.get("arguments_hash")), key)
        self._gate.waiting.add(approval, call)
        self._mirror.approval(approval)
        self._mirror.event(
            semconv.EVENT_APPROVAL_REQUESTED,
            id=approval["approval_id"],
            tool=self._tool.name,
            reason=judgement.reason,
            rule_ids=judgement.rule_ids,
            receipts=list(self._gate.receipts),
        )
        return approval

    def _proposal(self, judgement: PolicyJudgement, description: str | None) -> Json:
        gate, tool = self._gate, self._tool
        named = Approvers(gate.approvals_required, gate.approvers or None)
        people = named.joined(judgement.approvers)
        missing = gate.seen.missing(tool.doubtful(self._arguments))
        run_id, step_id = self._mirror.step_id
        return {
            "tool": tool.name,
            "arguments": self._arguments,
            "description": description,
            "flags": dict.fromkeys(missing, "not_in_context"),
            "effect": tool.effect,
            "agent": self._agent,
            "run_id": run_id,
            "step_id": step_id,
            "channel": gate.channel,
            "one_per_channel": gate.one_per_channel,
            "batch_id": gate.batch_id,
            "approvers": None if people.names is None else list(people.names),
            "approvals_required": people.required,
            "expires_in_s": gate.expires_in_s,
            "facts": {"tool_class": tool.tool_class} if tool.tool_class else None,
            "policy": {**judgement.demands(), "receipts": list(gate.receipts)},
        }

    def _wait_s(self) -> float:
        """Return how long this call waits for its decision; infinity until it expires."""
        return self._tool.wait_s if self._gate.wait_s is None else self._gate.wait_s

    # ---- events

    def _note(self, kind: str, **more: Any) -> Flow[None]:
        event = self._event(kind, **more)
        yield FlowStep(lambda: self._decisions.note(event), self._is_slow)

    def _event(self, kind: str, **more: Any) -> Json:
        run_id, step_id = self._mirror.step_id
        return {
            "type": kind,
            "tool": self._tool.name,
            "effect": self._tool.effect,
            "agent": self._agent,
            "channel": self._gate.channel,
            "run_id": run_id,
            "step_id": step_id,
            "call_id": self._call_id,
            **more,
        }


def decided(gate: Gate, approval: Json, wait_s: float) -> Flow[Json]:
    """Wait for a decision, and return the approval when it is decided or time is up."""
    decisions, identity = gate.decisions, approval["approval_id"]
    revision = int(approval.get("revision") or 1)
    until_s = time.monotonic() + wait_s
    pause_s = _FIRST_PAUSE_S
    while approval["status"] == "awaiting":
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            break
        if decisions.is_local:
            yield pause(min(left_s, pause_s))
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            response = yield FlowStep(partial(decisions.approval, identity))
        else:
            poll_s = min(left_s, _POLL_S)
            ask = partial(decisions.approval, identity, wait_s=poll_s, revision=revision)
            response = yield FlowStep(ask, is_slow=True)
        approval = checked(response)
    return approval
