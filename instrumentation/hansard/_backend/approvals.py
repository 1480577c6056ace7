"""Where decisions live, as a gate needs it: the store of this process, or a server's.

Both speak the shapes of the HTTP API (`/v1/approvals`), so that a gate does not know which it has.
Every call is a transaction of its own, on the caller's thread: nothing waits in a queue.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final, Protocol

from hansard._gate.arguments import Json
from hansard.errors import AsyncPort, GateUnavailable

STATUSES: Final = frozenset({"awaiting", "revised", "approved", "rejected", "expired"})
EXECUTIONS: Final = frozenset({"none", "claimed", "done", "failed", "unknown", "not_run"})


_METHODS: Final = (
    "propose", "approval", "approvals", "decide", "claim", "tell_result", "undo", "note", "close",
)  # fmt: skip


class Decisions(Protocol):
    """Raises GateUnavailable where nothing can be kept, DecisionConflict where it is refused."""

    is_local: bool  # answers in about a millisecond, so an event loop may ask on its own thread

    def propose(self, proposal: Json) -> Json:
        """Keep a call that waits for a decision; its approval, with `proposal_key` beside it."""

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        """Return an approval; with `wait_s`, when it is decided, drafted anew, or time is up.

        With the proposer's key it has the `token` to claim with, once it is approved.
        """

    def approvals(self, **filters: str | int | None) -> list[Json]:
        """Return the newest approvals that the filters let through."""

    def decide(self, approval_id: str, verb: str, body: Json) -> Json:
        """Approve, reject, revise, repropose or settle; the approval as it stands then."""

    def claim(self, approval_id: str, body: Json) -> Json:
        """Take the right to run a call, once: `claim_id`, and the `arguments` to run."""

    def tell_result(self, approval_id: str, body: Json) -> Json:
        """Tell what became of a claim."""

    def undo(self, approval_id: str, body: Json) -> Json:
        """Propose what takes back a call that ran; its approval, with `proposal_key`."""

    def note(self, event: Json) -> None:
        """Keep an event of a gated call: it is on disk when this returns."""

    def close(self) -> None: ...


def refuse_async(decisions: Decisions) -> None:
    """Raise AsyncPort where a method of the place would return a coroutine: nobody awaits it."""
    for name in _METHODS:
        if inspect.iscoroutinefunction(getattr(decisions, name, None)):
            raise AsyncPort(name)


def checked(answer: object) -> Json:
    """Return an approval that is one; anything else is no decision and raises GateUnavailable."""
    if isinstance(answer, Mapping):
        known = answer.get("status")
        arguments = answer.get("arguments")
        identity = answer.get("approval_id")
        if (
            type(known) is str
            and known in STATUSES
            and type(identity) is str
            and identity
            and isinstance(arguments, Mapping)
        ):
            return dict(answer)
    raise GateUnavailable("what keeps the decisions answered something that is no approval")


def execution_of(approval: Mapping[str, Any]) -> str:
    """Return what became of an approved call: none, claimed, done, failed, unknown, not_run."""
    execution = approval.get("execution")
    state = execution.get("state") if isinstance(execution, Mapping) else None
    if type(state) is not str or state not in EXECUTIONS:
        raise GateUnavailable("what keeps the decisions does not say whether the call ran")
    return state
