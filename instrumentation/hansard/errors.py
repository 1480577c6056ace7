"""Every error the SDK raises on purpose.

HansardError
├── InstrumentationError   a call of the SDK that it cannot do
│   ├── NotStarted           `hansard.init()` was not called, or the SDK is switched off
│   ├── NotDecoratable       a decorator on something that is no function
│   ├── AsyncCallback        an async function where a plain one is needed
│   ├── MemoryRefused        memory that may not be written, read or invalidated like this
│   ├── MemoryUnavailable    the store or server of memory cannot be reached or is full
│   ├── SpoolError           the disk spool cannot be read or written
│   ├── ReplayUnavailable    the store or server of replays cannot be reached
│   ├── TranscriptUnavailable  the store or server of transcripts cannot be reached
│   └── GateError            a gate did not run a call; only in the last three it may have run
│       ├── GateUnavailable    the store or server of approvals cannot be reached
│       ├── CallRefused        this call will never run as it is
│       │   ├── UnknownTool      the tool set has no tool of this name
│       │   ├── UnclassifiedTool no effect says whether the tool reads or writes
│       │   ├── NoConfirmation   a tool that writes, called without a gate
│       │   ├── InvalidArguments   they do not fit the tool, or JSON cannot represent them
│       │   └── PolicyDenied     a rule denies the call
│       ├── UnknownApproval    no approval has this id
│       ├── NotApproved        the call is not approved: pending, rejected, expired or replaced
│       ├── DecisionConflict   another program was first, or the call differs from the approved one
│       ├── AwaitRequired      an async function, called without await inside a running event loop
│       ├── AsyncPort          an async method of decisions=, which the gate calls without await
│       ├── DecisionRefused    the person is unknown, may not decide, or requested the call
│       ├── PendingResult      a tool returned a future of the running loop: its end is unknown
│       │   ├── FutureNotStarted   a future of a pool whose work has not begun
│       │   └── UnfinishedResult a part of a tool's result has not run, or not to its end
│       ├── LazyResult         a tool returned a generator: its body has not run
│       └── OutcomeUnknown     the call was claimed and its end is unknown: it may have run
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

from hansard_compiler.errors import AmbiguousIdError as AmbiguousIdError
from hansard_compiler.errors import ConfigError as ConfigError
from hansard_compiler.errors import HansardError as HansardError
from hansard_compiler.errors import NotFoundError as NotFoundError

if TYPE_CHECKING:
    from hansard.results import Executed
    from hansard_compiler.compile.errors import CompileError as CompileError
    from hansard_compiler.policy.errors import PolicyRuleError as PolicyRuleError
    from hansard_compiler.providers.transport.failures import CallFailed as CallFailed
    from hansard_compiler.providers.transport.failures import ProviderError as ProviderError
    from hansard_compiler.providers.transport.failures import RequestRefused as RequestRefused
    from hansard_compiler.replay.errors import NotReplayable as NotReplayable
    from hansard_compiler.transcripts.errors import TranscriptError as TranscriptError

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


def __dir__() -> list[str]:
    return sorted(name for name in (*globals(), *_LAZY) if not name.startswith("_"))


class InstrumentationError(HansardError):
    """A call of the SDK that it cannot do."""

    code = "instrumentation_error"


class NotStarted(InstrumentationError):
    """The call needs a running SDK."""

    code = "not_started"

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} needs hansard.init() first (and no OTEL_SDK_DISABLED=true)")
        self.call = call


class NotDecoratable(InstrumentationError, TypeError):
    """A decorator on something that is no function."""

    code = "not_decoratable"

    def __init__(self, decorator: str, found: object, *, why: str | None = None) -> None:
        reason = f"options go by name: @hansard.{decorator}(name=…)" if why is None else why
        super().__init__(
            f"@hansard.{decorator} is for functions and methods, not for {found!r}; {reason}"
        )
        self.decorator = decorator


class AsyncCallback(InstrumentationError, TypeError):
    """An async function where the SDK calls a plain one."""

    code = "async_callback"

    def __init__(self, name: str, instead: str = "a plain function") -> None:
        super().__init__(
            f"{name} is called without await, and is an async function: pass {instead}"
        )
        self.name = name


def refuse_async(name: str, function: object, instead: str = "a plain function") -> None:
    """Raise AsyncCallback for an async function: its coroutine would never be awaited."""
    call = inspect.getattr_static(type(function), "__call__", None)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise AsyncCallback(name, instead)


class _Refusal(InstrumentationError):
    """What a store or server refuses, with its own code and details."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})


class MemoryRefused(_Refusal):
    """Memory that may not be written, read or invalidated like this; `code` is that of the API."""


class MemoryUnavailable(InstrumentationError):
    """The store or server of memory cannot be reached, or cannot write now; nothing changed."""

    code = "memory_unavailable"


class SpoolError(InstrumentationError):
    """The disk spool cannot be read or written."""

    code = "spool_error"


class TranscriptUnavailable(InstrumentationError):
    """The store or server of transcripts cannot be reached, or fails."""

    code = "transcript_unavailable"


class ReplayUnavailable(InstrumentationError):
    """The store or server of replays cannot be reached, or refuses."""

    code = "replay_unavailable"


class EmbeddedMissing(ConfigError):
    """Embedded mode, without the packages that it needs."""

    code = "embedded_missing"

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"embedded mode needs the package {missing!r}: pip install 'hansard[embedded]'"
        )
        self.missing = missing


class GateError(InstrumentationError):
    """A gate did not run a call."""

    code = "gate_error"


class GateUnavailable(GateError):
    """The store or server of approvals cannot be reached or read; nothing ran."""

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
    """The tool has no effect: its name does not show whether it reads or writes."""

    code = "unclassified"

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool,
            f"tool {tool!r} has no effect: use @hansard.tool(effect='read') or effect='write'",
        )


class NoConfirmation(CallRefused):
    """A tool that writes was called without a gate."""

    code = "no_confirmation"

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool,
            f"tool {tool!r} needs a confirmation, and there is no gate: call "
            "hansard.init() first, or call it inside `with hansard.gate(…)`",
        )


class InvalidArguments(CallRefused):
    """The arguments do not fit the tool, or JSON cannot represent them."""

    code = "invalid_arguments"


class PolicyDenied(CallRefused):
    """A rule denies the call; `check` is the record of the decision."""

    code = "policy_denied"

    def __init__(self, tool: str, reason: str, check: Mapping[str, Any]) -> None:
        super().__init__(tool, f"tool {tool!r} was refused: {reason}")
        self.check = dict(check)


class UnknownApproval(GateError):
    """No approval has this id, or more than one begins with it."""

    code = "not_found"


class NotApproved(GateError):
    """The call is not approved; `approval` is its record."""

    code = "not_approved"

    def __init__(self, message: str, approval: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.approval = dict(approval)


class DecisionConflict(_Refusal, GateError):
    """Another program or person was first, or the call differs from the approved one.

    `code` is the store's: `already_claimed`, `arguments_changed`, `must_repropose`, `token_used`,
    `not_approved`, `already_decided`. `details` holds the first decision where there is one.
    """


class AwaitRequired(GateError):
    """An async function cannot be awaited on the thread of a running event loop.

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
    """A tool returned a future of the running event loop: its end is unknown."""

    code = "pending_result"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"the function returned a {kind}, which cannot be waited for while this thread runs "
            "an event loop: how it ends is not known; call the awaited form (`arun`, `acall`)"
        )


class UnfinishedResult(PendingResult):
    """A part of a tool's result has not run: the end of the call is unknown.

    `kind` is what it is (`coroutine`, `generator`, `map`), `where` its path in the result.
    docs/limits.md lists which parts are checked.
    """

    code = "unfinished_result"

    def __init__(self, tool: str, kind: str, where: str) -> None:
        path = f" at {where}" if where else ""
        GateError.__init__(
            self,
            f"tool {tool!r} returned a {kind}{path}, which has not run to its end: await it, or "
            "read it, before the tool returns. What else the call did is done, so its outcome is "
            "unknown",
        )
        self.tool, self.kind, self.where = tool, kind, where


class FutureNotStarted(PendingResult):
    """The work of a future had not begun after a minute; it was cancelled."""

    code = "future_not_started"

    def __init__(self, kind: str, after_s: float) -> None:
        GateError.__init__(
            self,
            f"the function returned a {kind} whose work had not begun after {after_s:g} "
            "seconds; it is cancelled. What else the call did is done, so its outcome is unknown",
        )
        self.kind = kind


class AsyncPort(GateError, TypeError):
    """The object of `decisions=` has an async method; the gate calls it without await."""

    code = "async_backend"

    def __init__(self, method: str) -> None:
        super().__init__(
            f"decisions= has an async method {method!r}: its methods are plain functions, and an "
            "event loop calls them in a thread"
        )
        self.method = method


class LazyResult(GateError):
    """A tool returned a generator, whose body has not run."""

    code = "lazy_result"

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"tool {tool!r} returned a generator: its body has not run, and a gate runs a call to "
            "its end"
        )
        self.tool = tool


class DecisionRefused(_Refusal, GateError):
    """A decision was refused because of its sender; nothing ran.

    `code` is the store's: `credentials_required`, `self_approval`, `not_an_approver` (with the
    approvers in `details["requested_approvers"]`), `scope_missing`, `unauthenticated`.
    """


class OutcomeUnknown(GateError):
    """The call was claimed and its end is unknown."""

    code = "outcome_unknown"

    def __init__(self, approval_id: str) -> None:
        super().__init__(
            f"approval {approval_id} was claimed, and its end is not known: it may have run. "
            "Check what it changes; it is not run again"
        )
        self.approval_id = approval_id


class RunsFailed(ExceptionGroup[Exception]):
    """Some of the calls of `run_all_approved` failed; the others ran, or cannot run here.

    `executed` holds what ran, in order, and `failed` each error by the id of its approval. The
    errors are those of the group: `except*` finds them by their class.
    """

    executed: Sequence[Executed]
    failed: Mapping[str, Exception]

    def __new__(cls, executed: Sequence[Executed], failed: Mapping[str, Exception]) -> Self:
        total = len(executed) + len(failed)
        message = f"{len(failed)} of {total} approved calls failed"
        made = super().__new__(cls, message, list(failed.values()))
        made.executed, made.failed = tuple(executed), dict(failed)
        return made

    def __init__(self, executed: Sequence[Executed], failed: Mapping[str, Exception]) -> None:
        """Do nothing: `__new__` did it, and ExceptionGroup would refuse these arguments."""

    def derive(  # type: ignore[override] # of a group of this class, all are Exceptions
        self, excs: Sequence[Exception], /
    ) -> RunsFailed:
        """Return the group of a part of the errors, with all calls that ran."""
        ids = {id(one) for one in excs}
        return RunsFailed(
            self.executed, {key: one for key, one in self.failed.items() if id(one) in ids}
        )
