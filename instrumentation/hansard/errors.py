"""Every error the SDK raises on purpose.

HansardError
├── InstrumentationError   something the program asked of the SDK that it cannot do
│   ├── NotStarted           `hansard.init()` was not called, or the SDK is switched off
│   ├── NotDecoratable       what a decorator was put on is no function
│   ├── AsyncCallback        an async function where a plain one is called
│   ├── MemoryRefused        memory that may not be written, read or ended as it was asked
│   ├── MemoryUnavailable    the memory's store or server is away, or has no room
│   ├── SpoolError           the disk spool cannot be read or written
│   ├── PayloadError         a payload cannot be found, or is not what its digest says
│   ├── ReplayUnavailable    nobody who makes replays can be reached
│   ├── TranscriptUnavailable  no transcript can be read or written now
│   └── GateError            a gate held a call back; in all but the last three nothing ran
│       ├── GateUnavailable    nothing can be decided or recorded now: store or server away
│       ├── CallRefused        this call will never run as it is
│       │   ├── UnknownTool      the tool set has no tool of this name
│       │   ├── UnclassifiedTool nobody said whether the tool reads or writes
│       │   ├── NoConfirmation   a tool that writes, and no gate to ask through
│       │   ├── BadArguments     they do not fit the tool, or cannot be shown and bound exactly
│       │   └── PolicyDenied     a rule says deny
│       ├── UnknownApproval    no approval has this id
│       ├── NotApproved        nobody approved, somebody rejected it, it expired or was replaced
│       ├── DecisionConflict   another program was first, or the call is not the approved one
│       ├── MustAwait          an async function, called without await inside a running event loop
│       ├── AsyncPort          an async function where the gate calls a plain one
│       ├── DecisionRefused    who decides is not known, may not, or requested the call
│       ├── PendingResult      a tool returned a future of the loop that runs: its end is not known
│       │   ├── NotBegun         it is a future of a pool, and nobody began its work
│       │   └── UnfinishedResult something in a tool's result has not run, or not to its end
│       ├── LazyResult         a tool returned a generator: its body has not run
│       └── OutcomeUnknown     it was claimed and its end is not known: it may have run; no rerun
├── CompileError           a context that cannot be compiled
├── ProviderError          a model call that was not made or failed
│   ├── RequestRefused       it was refused before it was sent
│   └── CallFailed           the provider answered with an error, or not at all
├── TranscriptError        a message or read that a transcript does not take
├── NotReplayable          a recorded call that cannot be made again
├── NotFoundError          nothing is stored under this id
│                          (AmbiguousIdError: more than one id begins so)
└── ConfigError            a setting or argument that cannot work
    ├── PolicyRuleError      a rule that cannot be used
    └── EmbeddedMissing      `embedded=True`, and the packages for it are not installed

Only explicit requests raise. Recording never does: what goes wrong while a span is made, stored or
sent is counted and logged once on the logger `hansard`.

RunsFailed is an ExceptionGroup: the errors of the calls of `run_all_approved`, with the results of
the calls that ran.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from hansard_compiler.errors import AmbiguousIdError, ConfigError, HansardError, NotFoundError

if TYPE_CHECKING:
    from hansard.results import Executed
    from hansard_compiler.compile.errors import CompileError
    from hansard_compiler.policy.errors import PolicyRuleError
    from hansard_compiler.providers.transport.failures import (
        CallFailed,
        ProviderError,
        RequestRefused,
    )
    from hansard_compiler.replay.errors import NotReplayable
    from hansard_compiler.transcripts.errors import TranscriptError

__all__ = [
    "AmbiguousIdError",
    "AsyncCallback",
    "AsyncPort",
    "BadArguments",
    "CallFailed",
    "CallRefused",
    "CompileError",
    "ConfigError",
    "DecisionConflict",
    "DecisionRefused",
    "EmbeddedMissing",
    "GateError",
    "GateUnavailable",
    "HansardError",
    "InstrumentationError",
    "LazyResult",
    "MemoryRefused",
    "MemoryUnavailable",
    "MustAwait",
    "NoConfirmation",
    "NotApproved",
    "NotBegun",
    "NotDecoratable",
    "NotFoundError",
    "NotReplayable",
    "NotStarted",
    "OutcomeUnknown",
    "PayloadError",
    "PendingResult",
    "PolicyDenied",
    "PolicyRuleError",
    "ProviderError",
    "ReplayUnavailable",
    "RequestRefused",
    "RunsFailed",
    "SpoolError",
    "TranscriptError",
    "TranscriptUnavailable",
    "UnclassifiedTool",
    "UnfinishedResult",
    "UnknownApproval",
    "UnknownTool",
]

# Of the compiler, imported when they are used: catching an error of the gate does not load it.
_LAZY = {
    "CallFailed": "hansard_compiler.providers.transport.failures",
    "CompileError": "hansard_compiler.compile.errors",
    "NotReplayable": "hansard_compiler.replay.errors",
    "PolicyRuleError": "hansard_compiler.policy.errors",
    "ProviderError": "hansard_compiler.providers.transport.failures",
    "RequestRefused": "hansard_compiler.providers.transport.failures",
    "TranscriptError": "hansard_compiler.transcripts.errors",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class InstrumentationError(HansardError):
    """Something the program asked of the SDK that it cannot do."""

    code = "instrumentation_error"


class NotStarted(InstrumentationError):
    """The call needs a running SDK."""

    code = "not_started"

    def __init__(self, wanted: str) -> None:
        super().__init__(f"{wanted} needs hansard.init() first (and no OTEL_SDK_DISABLED=true)")
        self.wanted = wanted


class NotDecoratable(InstrumentationError, TypeError):
    """A decorator was put on something that is no function."""

    code = "not_decoratable"

    def __init__(self, decorator: str, found: object, *, why: str | None = None) -> None:
        told = f"options go by name: @hansard.{decorator}(name=…)" if why is None else why
        super().__init__(
            f"@hansard.{decorator} is for functions and methods, not for {found!r}; {told}"
        )
        self.decorator = decorator


class AsyncCallback(InstrumentationError, TypeError):
    """A function that is handed in is called without await, and is async."""

    code = "async_callback"

    def __init__(self, name: str, instead: str = "a plain function") -> None:
        super().__init__(
            f"{name} is called without await, and an async function was given: give {instead}"
        )
        self.name = name


def refuse_async(name: str, function: object, instead: str = "a plain function") -> None:
    """Raise AsyncCallback for an async function: what it returns would be thrown away."""
    call = inspect.getattr_static(type(function), "__call__", None)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise AsyncCallback(name, instead)


class MemoryRefused(InstrumentationError):
    """Memory that may not be written, read or ended so; `code` says why, as the API does."""

    def __init__(
        self, code: str, message: str, details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


class MemoryUnavailable(InstrumentationError):
    """The memory's store or server cannot be reached, or cannot write now; nothing was done."""

    code = "memory_unavailable"


class SpoolError(InstrumentationError):
    """The disk spool cannot be read or written."""

    code = "spool_error"


class PayloadError(InstrumentationError):
    """A payload cannot be found, or its bytes are not what its digest says."""

    code = "payload_error"


class TranscriptUnavailable(InstrumentationError):
    """Nobody who keeps transcripts can be reached, or it fails."""

    code = "transcript_unavailable"


class ReplayUnavailable(InstrumentationError):
    """Nobody who makes replays can be reached, or it refuses to."""

    code = "replay_unavailable"


class EmbeddedMissing(ConfigError):
    """Embedded mode was asked for, and what it needs is not installed."""

    code = "embedded_missing"

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"embedded mode needs the package {missing!r}: pip install 'hansard[embedded]'"
        )
        self.missing = missing


class GateError(InstrumentationError):
    """A gate did not let a call through."""

    code = "gate_error"


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

    code = "invalid_arguments"


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

    code = "await_required"

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
    looked at stands in `hansard._gate.unfinished`.
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

    code = "future_not_started"

    def __init__(self, kind: str, after_s: float) -> None:
        GateError.__init__(
            self,
            f"the function returned a {kind} whose work nobody had begun after {after_s:g} "
            "seconds; it is cancelled. What else the call did is done, so its outcome is unknown",
        )
        self.kind = kind


class AsyncPort(GateError, TypeError):
    """What keeps the decisions is asked without await, and has an async method."""

    code = "async_backend"

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

    `code` is the store's: `credentials_required`, `self_approval`, `not_an_approver` (with the
    approvers in `details["requested_approvers"]`), `scope_missing`, `unauthenticated`.
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
    """Some of the calls that `run_all_approved` ran have failed; all others ran, or were left.

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
