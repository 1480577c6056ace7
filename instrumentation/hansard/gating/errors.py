"""What a gate refuses, and why. In every case but the last three nothing ran.

InstrumentationError
└── GateError
    ├── GateUnavailable     nobody can decide or record now: the store or server is away, or broken
    ├── CallRefused         this call will never run as it is
    │   ├── UnknownTool       the tool set has no tool of this name
    │   ├── UnclassifiedTool  nobody said whether the tool reads or writes
    │   ├── NoConfirmation    a tool that writes, and no gate to ask through
    │   ├── BadArguments      they do not fit the tool, or cannot be shown and bound exactly
    │   └── PolicyDenied      a rule says deny
    ├── UnknownApproval     no approval has this id
    ├── NotApproved         nobody approved, somebody rejected it, it expired or was replaced
    ├── DecisionConflict    somebody else was first, or the call is not the one that was approved
    ├── MustAwait           an async function, called without await inside a running event loop
    ├── PendingResult       a tool returned a future of the loop that runs: its end is not known
    │   ├── NotBegun          it is a future of a pool, and nobody began its work
    │   └── UnfinishedResult  something in a tool's result has not run, or not to its end
    ├── LazyResult          a tool returned a generator: its body has not run
    ├── DecisionRefused     who decides is not known, may not, or requested the call
└── OutcomeUnknown      it was claimed and its end is not known: it may have run, and is not rerun

RunsFailed is a group: what failed of the calls of `run_decided`, with the results of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from hansard.errors import InstrumentationError

if TYPE_CHECKING:
    from hansard.gating.running import Executed


class GateError(InstrumentationError):
    """A gate did not let a call through."""

    code = "gate"


class GateUnavailable(GateError):
    """What the gate needs cannot be reached, written or understood; nothing ran."""

    code = "gate_unavailable"


class CallRefused(GateError):
    """A call that will not run as it is."""

    code = "refused"

    def __init__(self, tool: str, message: str) -> None:
        super().__init__(message)
        self.tool = tool


class UnknownTool(CallRefused):
    """The tool set has no tool of this name."""

    code = "unknown_tool"

    def __init__(self, tool: str) -> None:
        super().__init__(tool, f"there is no tool {tool!r} in this gate")


class UnclassifiedTool(CallRefused):
    """Nobody said whether the tool reads or writes; its name says nothing."""

    code = "unclassified"

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool,
            f"tool {tool!r} has no class: say @hansard.tool(effect='read') or effect='write'",
        )


class NoConfirmation(CallRefused):
    """A tool that writes was called where nobody can be asked."""

    code = "no_confirmation"

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool,
            f"tool {tool!r} needs a confirmation, and there is no gate to ask through: call "
            "hansard.init() first, or call it inside `with hansard.gate(…)`",
        )


class BadArguments(CallRefused):
    """The arguments do not fit the tool, or cannot be shown and bound exactly."""

    code = "bad_arguments"


class PolicyDenied(CallRefused):
    """A rule says deny; `check` is the record of it."""

    code = "policy_denied"

    def __init__(self, tool: str, reason: str, check: Mapping[str, Any]) -> None:
        super().__init__(tool, f"tool {tool!r} was refused: {reason}")
        self.check = dict(check)


class UnknownApproval(GateError):
    """No approval has this id, or more than one begins with it."""

    code = "not_found"


class NotApproved(GateError):
    """There is no approval to run by; `approval` is the record as it stands."""

    code = "not_approved"

    def __init__(self, message: str, approval: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.approval = dict(approval)


class DecisionConflict(GateError):
    """Somebody else was first, or what is asked for is not what was approved.

    `code` is the store's: `already_claimed`, `arguments_changed`, `must_repropose`, `token_used`,
    `not_approved`, `already_decided`. `details` holds the first decision where there is one.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


class MustAwait(GateError):
    """What is async cannot be waited for on the thread of a running event loop.

    It is raised before anything is claimed: the approval can still be run.
    """

    code = "must_await"

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(
            f"{what} is async, and this thread runs an event loop, which must not be held up; "
            f"nothing ran: call {instead}"
        )
        self.instead = instead


class PendingResult(GateError):
    """A tool returned what only the running event loop brings to an end: nobody knows how."""

    code = "pending_result"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"the function returned a {kind}, which cannot be waited for while this thread runs "
            "an event loop: how it ends is not known; call the awaited form (`arun`, `acall`)"
        )


class UnfinishedResult(PendingResult):
    """Something in a tool's result has not run: how the call ends is not known.

    `kind` is what it is (`coroutine`, `generator`, `map`), `where` its place in the result. What is
    looked at stands in `hansard.gating.unfinished`.
    """

    code = "unfinished_result"

    def __init__(self, tool: str, kind: str, where: str) -> None:
        place = f" at {where}" if where else ""
        GateError.__init__(
            self,
            f"tool {tool!r} returned a {kind}{place}, which has not run to its end: await it, or "
            "read it, before the tool returns. What else the call did is done, so its outcome is "
            "unknown",
        )
        self.tool, self.kind, self.where = tool, kind, where


class NotBegun(PendingResult):
    """A future stood for longer than it may, and nobody had begun its work; it was cancelled."""

    code = "not_begun"

    def __init__(self, kind: str, after_s: float) -> None:
        GateError.__init__(
            self,
            f"the function returned a {kind} whose work nobody had begun after {after_s:g} "
            "seconds; it is cancelled. What else the call did is done, so its outcome is unknown",
        )
        self.kind = kind


class AsyncPort(GateError, TypeError):
    """What keeps the decisions is asked without await, and has an async method."""

    code = "async_port"

    def __init__(self, method: str) -> None:
        super().__init__(
            f"decisions= has an async method {method!r}: a store of decisions answers when it is "
            "called, and an event loop asks it in a thread"
        )
        self.method = method


class LazyResult(GateError):
    """A tool returned a generator, whose body nobody has run."""

    code = "lazy_result"

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"tool {tool!r} returned a generator: what it would do has not been done, and a gate "
            "lets a call run whole"
        )
        self.tool = tool


class DecisionRefused(GateError):
    """A decision was not taken because of who sent it; nothing ran.

    `code` is the store's: `credential_needed`, `own_request`, `not_asked` (`details["asked"]` names
    the approvers), `scope_missing`, `unauthenticated`.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


class OutcomeUnknown(GateError):
    """The call was begun and nobody told its end."""

    code = "outcome_unknown"

    def __init__(self, approval_id: str) -> None:
        super().__init__(
            f"approval {approval_id} was claimed, and its end is not known: it may have run. "
            "Look at what it changes; it is not run again"
        )
        self.approval_id = approval_id


class RunsFailed(ExceptionGroup[Exception]):
    """Some of the calls that `run_decided` ran have failed; all others ran, or were left.

    `executed` holds what ran, in order, and `failed` each error by the id of its approval. The
    errors are those of the group: `except*` finds them by their class.
    """

    executed: Sequence[Executed]
    failed: Mapping[str, Exception]

    def __new__(cls, executed: Sequence[Executed], failed: Mapping[str, Exception]) -> Self:
        total = len(executed) + len(failed)
        told = f"{len(failed)} of {total} approved calls failed"
        made = super().__new__(cls, told, list(failed.values()))
        made.executed, made.failed = tuple(executed), dict(failed)
        return made

    def __init__(self, executed: Sequence[Executed], failed: Mapping[str, Exception]) -> None:
        """Take what `__new__` has kept: the class of all groups would refuse these arguments."""

    def derive(  # type: ignore[override] # of a group of this class, all are Exceptions
        self, excs: Sequence[Exception], /
    ) -> RunsFailed:
        """Return the same of a part of the errors: what ran is reachable from it too."""
        wanted = {id(one) for one in excs}
        return RunsFailed(
            self.executed, {key: one for key, one in self.failed.items() if id(one) in wanted}
        )
