"""The backend of this process's approvals, memory, transcripts and replays, as its callers need it.

A `Backend` is the process's own store or a server: `hansard._backend` says which. Both take and
return the shapes of the HTTP API, so that no caller knows which it has. Every call is a transaction
of its own, on the caller's thread: nothing waits in a queue.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, cast

from hansard._gate.arguments import Json
from hansard.errors import AsyncPort, EmbeddedMissing, GateUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from hansard_compiler.redaction.redactor import Redactor
    from hansard_compiler.retention_modes import RetentionMode
    from hansard_compiler.transcripts.ports import Transcripts

GROUP: Final = "hansard.embedded"
STATUSES: Final = frozenset({"awaiting", "revised", "approved", "rejected", "expired"})
EXECUTIONS: Final = frozenset({"none", "claimed", "done", "failed", "unknown", "not_run"})
_METHODS: Final = (
    "propose", "approval", "approvals", "decide", "claim", "report_result", "undo", "note", "close",
)  # fmt: skip


class Backend(Protocol):
    """One backend for everything; threads may share it. Each part is opened on first use."""

    @property
    def decisions(self) -> Decisions:
        """Return the service of decisions. Raises GateUnavailable."""

    @property
    def memory(self) -> MemoryBackend:
        """Return the service of memory. Raises EmbeddedMissing, StoreError, MemoryUnavailable."""

    def transcripts(self, redactor: Redactor) -> Transcripts:
        """Open the transcripts. Raises EmbeddedMissing, StoreError, TranscriptUnavailable."""

    def make_replay(self, body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
        """Make a replay and return its body; `goes_on` is one that stopped.

        Raises NotReplayable, ReplayUnavailable, NotFoundError.
        """

    def close(self) -> None:
        """Close what was opened; what is requested afterwards is opened again."""


class Decisions(Protocol):
    """Raises GateUnavailable where nothing can be stored, DecisionConflict where it is refused."""

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

    def report_result(self, approval_id: str, body: Json) -> Json:
        """Report the outcome of a claim."""

    def undo(self, approval_id: str, body: Json) -> Json:
        """Propose what takes back a call that ran; its approval, with `proposal_key`."""

    def note(self, event: Json) -> None:
        """Keep an event of a gated call: it is on disk when this returns."""

    def close(self) -> None: ...


class MemoryBackend(Protocol):
    """Raises MemoryRefused or MemoryUnavailable."""

    def ask(self, verb: str, arguments: Json, *, token: str | None = None) -> Json:
        """Write, read or invalidate, which a server takes with a person's `token`."""

    def close(self) -> None: ...


# ---- what an embedded backend is made of, on the floors above


class IngestBackend(Protocol):
    """An open store; used by one thread at a time."""

    def export(self, signal: str, body: bytes) -> str:
        """Store an OTLP request in protobuf; "" or why some of it was refused.

        Raises HansardError; code "malformed" or "too_large" when it will never be taken.
        """

    def close(self) -> None: ...


class EmbeddedParts(Protocol):
    """What the entry point leads to. Raises HansardError where the store cannot be used."""

    def open_embedded(
        self,
        data: Path,
        *,
        retention: RetentionMode,
        sender: str,
        make_redactor: Callable[[bytes], Redactor],
    ) -> IngestBackend: ...

    def make_replay(
        self, data: Path, *, retention: RetentionMode, body: Json, goes_on: str | None = None
    ) -> Json: ...


@cache
def embedded_parts() -> EmbeddedParts:
    """Return the parts by their entry point. Raises EmbeddedMissing where a package is missing."""
    from importlib.metadata import entry_points

    missing = GROUP
    for entry in entry_points(group=GROUP):
        try:
            return cast(EmbeddedParts, entry.load())
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
    raise EmbeddedMissing(missing)


# ---- what both backends share


_Part = TypeVar("_Part", bound="Decisions | MemoryBackend")


class Once(Generic[_Part]):
    """A part that is opened on first use, once, whichever threads use it."""

    def __init__(self, make: Callable[[], _Part]) -> None:
        self._make = make
        self._made: list[_Part] = []
        self._lock = threading.Lock()

    def get(self) -> _Part:
        """Return the part, opened."""
        made = self._made[-1:]
        if made:
            return made[0]
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[-1]

    def close(self) -> None:
        """Close the part where it is open; `get` opens it again."""
        while self._made:
            self._made.pop().close()


class Parts:
    """Approvals and memory of a backend, each opened on first use."""

    def __init__(
        self, open_decisions: Callable[[], Decisions], open_memory: Callable[[], MemoryBackend]
    ) -> None:
        self._decisions = Once(open_decisions)
        self._memory = Once(open_memory)

    @property
    def decisions(self) -> Decisions:
        return self._decisions.get()

    @property
    def memory(self) -> MemoryBackend:
        return self._memory.get()

    def close(self) -> None:
        self._decisions.close()
        self._memory.close()


# ---- answers


def refuse_async(decisions: Decisions) -> None:
    """Raise AsyncPort where a method of the backend would return a coroutine: nobody awaits it."""
    for name in _METHODS:
        if inspect.iscoroutinefunction(getattr(decisions, name, None)):
            raise AsyncPort(name)


def checked(response: object) -> Json:
    """Return an approval that is one; anything else is no decision and raises GateUnavailable."""
    if isinstance(response, Mapping):
        known = response.get("status")
        arguments = response.get("arguments")
        identity = response.get("approval_id")
        if (
            type(known) is str
            and known in STATUSES
            and type(identity) is str
            and identity
            and isinstance(arguments, Mapping)
        ):
            return dict(response)
    raise GateUnavailable("what keeps the decisions answered something that is no approval")


def execution_of(approval: Mapping[str, Any]) -> str:
    """Return the outcome of an approved call: none, claimed, done, failed, unknown, not_run."""
    execution = approval.get("execution")
    state = execution.get("state") if isinstance(execution, Mapping) else None
    if type(state) is not str or state not in EXECUTIONS:
        raise GateUnavailable("what keeps the decisions does not say whether the call ran")
    return state
