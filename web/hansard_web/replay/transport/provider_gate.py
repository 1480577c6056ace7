"""The approval of a request that has side effects at its provider: proposed, claimed, finished.

It is an action like any other: rules judge it, a person decides, it is claimed once, and its end
is recorded after it. Its arguments name the request by its hash, so no other one is sent under it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_compiler.replay.errors import NotReplayable, ReplayReason
from hansard_compiler.replay.provider_side_effects import TOOL, SideEffect
from hansard_store.approvals.errors import ActionBlocked, ApprovalConflict, InvalidProposal
from hansard_store.approvals.records import ApprovalClaim, Proposal, Status
from hansard_store.approvals.service import ApprovalService
from hansard_store.principals.model import Principal
from hansard_web.replay.transport.turn import ReplayTurn

AGENT: Final = "hansard-replay"
_PENDING: Final = (Status.AWAITING, Status.REVISED)


def send_arguments(replay_id: str, turn: ReplayTurn, *, requests: int, **more: Any) -> Json:
    """Return the arguments of the action: what is sent where, how often, and what that does."""
    return {
        "replay_id": replay_id,
        "step_id": turn.source.step.step_id,
        "provider": turn.destination.provider,
        "model": turn.render_input.model,
        "address": f"{(turn.destination.base_url or '').rstrip('/')}{turn.destination.path}",
        "request": turn.ref,
        "most_requests": requests,
        "side_effects": [one.json() for one in turn.side_effects],
        **more,
    }


class ReplayGate:
    """Approvals of replays, in the store where they are decided."""

    def __init__(self, store: ApprovalService) -> None:
        self._store = store

    def acting(self, principal: Principal | None) -> ReplayGate:
        """Return the same as a principal uses it; None: a request without a credential."""
        return ReplayGate(self._store.acting(principal))

    def propose(self, arguments: Mapping[str, Any], *, what: str) -> str:
        """Propose to send a request; returns the approval's id. Raises NotReplayable.

        `what` says in words what is replayed.
        """
        names = ", ".join(dict.fromkeys(one["name"] for one in arguments["side_effects"]))
        replay_id = arguments["replay_id"]
        proposal = Proposal(
            tool=TOOL,
            arguments=arguments,
            description=(
                f"{what}, of step {arguments['step_id']}: {arguments['provider']} at "
                f"{arguments['address']} gets {arguments['request']} at most "
                f"{arguments['most_requests']} times and then acts itself ({names}). Once "
                f"approved, it is sent by: hansard replay {replay_id} --continue"
            ),
            effect="write",
            agent=AGENT,
        )
        try:
            return self._store.propose(proposal).approval.approval_id
        except ActionBlocked as blocked:
            raise NotReplayable(
                ReplayReason.POLICY_DENIED, str(blocked), rule_ids=blocked.details["rule_ids"]
            ) from None
        except InvalidProposal as wrong:
            raise NotReplayable(ReplayReason.APPROVAL_REFUSED, str(wrong)) from None

    def claim(self, approval_id: str, arguments: Mapping[str, Any]) -> ApprovalClaim:
        """Take the right to send exactly what was approved, once. Raises NotReplayable."""
        approval = self._store.approval(approval_id)
        if approval.status in _PENDING:
            raise NotReplayable(
                ReplayReason.NEEDS_APPROVAL, f"approval {approval_id} is {approval.status.value}",
                approval_id=approval_id,
            )  # fmt: skip
        try:
            return self._store.claim(approval_id, arguments)
        except ApprovalConflict as refused:
            raise NotReplayable(
                ReplayReason.APPROVAL_REFUSED, str(refused), approval_id=approval_id
            ) from None

    def finish(self, claim: ApprovalClaim, *, replay_id: str, error: str | None) -> None:
        """Record how what was approved ended; called after it did."""
        self._store.finish(claim, ok=error is None, result_ref=replay_id, error=error)


# Which side effects at the provider a replay may cause, and in how many requests.

_SHOWN = 5


@dataclass(slots=True)
class Permission:
    """What was approved. The lock guards the count: a replay has one thread, its caller another."""

    granted: frozenset[tuple[str, str, str]] = frozenset()
    requests_left: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def spend(self, found: Sequence[SideEffect]) -> None:
        """Take one request; raises NotReplayable for side effects that were not approved."""
        if not found:
            return
        others = [one for one in found if one.identity not in self.granted]
        if others:
            raise refusal_of(others)
        with self._lock:
            if self.requests_left < 1:
                raise NotReplayable(
                    ReplayReason.NEEDS_APPROVAL, "as many requests were sent as were approved"
                )
            self.requests_left -= 1


def permission_for(found: Sequence[SideEffect], *, requests: int) -> Permission:
    """Return the permission for these side effects in so many requests."""
    return Permission(frozenset(one.identity for one in found), requests)


def refusal_of(found: Sequence[SideEffect]) -> NotReplayable:
    """Return why a request with these side effects is not sent."""
    problems = "; ".join(f"{one.path}: {one.text}" for one in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return NotReplayable(
        ReplayReason.PROVIDER_SIDE_EFFECTS,
        f"{problems}{more}. Allow it for this replay with `allow_provider_side_effects`; it is "
        "then sent once a person approved it",
        side_effects=[one.json() for one in found],
    )
