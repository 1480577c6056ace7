"""The own store of this process, on the caller's thread.

What is above the SDK's floor comes by the entry point; what the extra lacks is one clear error.
Each part imports what it needs when it is opened: they cost a quarter of a second each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from hansard._backend.protocol import Decisions, Memory, Once, embedded_parts, needing_the_extra
from hansard._gate.arguments import Json
from hansard.errors import (
    BadArguments,
    DecisionConflict,
    DecisionRefused,
    GateError,
    GateUnavailable,
    MemoryRefused,
    MemoryUnavailable,
    PolicyDenied,
    UnknownApproval,
)
from hansard_compiler.errors import ConfigError, HansardError

if TYPE_CHECKING:
    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor
    from hansard_compiler.transcripts.ports import Transcripts
    from hansard_store.approvals.local_backend import GatePort
    from hansard_store.memory.service import MemoryBook

_OF_PEOPLE: Final = frozenset(
    {"not_an_approver", "self_approval", "credentials_required", "name_reserved"}
)
_BUSY: Final = frozenset({"busy", "connection_lost", "store_error", "corrupt", "no_space"})


class LocalBackend:
    """The store in a data folder as a Backend."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._decisions = Once(self._open_decisions)
        self._memory = Once(self._open_memory)

    @property
    def decisions(self) -> Decisions:
        return self._decisions.get()

    @property
    def memory(self) -> Memory:
        return self._memory.get()

    def _open_decisions(self) -> LocalDecisions:
        with _refusals(), needing_the_extra():
            from hansard_store.approvals.local_backend import open_decisions
        settings = self._settings
        with _refusals():
            return LocalDecisions(open_decisions(settings.data, retention=settings.retention))

    def _open_memory(self) -> LocalMemory:
        with needing_the_extra():
            from hansard_store.memory.service import open_memory
        settings = self._settings
        return LocalMemory(open_memory(settings.data, retention=settings.retention))

    def transcripts(self, redactor: Redactor) -> Transcripts:
        with needing_the_extra():
            from hansard_store.transcripts.service import open_transcripts
        settings = self._settings
        return open_transcripts(settings.data, retention=settings.retention, redactor=redactor)

    def make_replay(self, body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
        with needing_the_extra():
            make = embedded_parts().make_replay
        settings = self._settings
        return make(settings.data, retention=settings.retention, body=body, goes_on=goes_on)

    def close(self) -> None:
        self._decisions.close()
        self._memory.close()


class LocalDecisions:
    """The approvals of this process's store."""

    is_local = True

    def __init__(self, store: GatePort) -> None:
        self._store = store

    def propose(self, proposal: Json) -> Json:
        with _refusals(str(proposal.get("tool"))):
            return self._store.propose(proposal)

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        """Return an approval as it stands: waiting is the caller's, who polls."""
        with _refusals():
            return self._store.approval(approval_id)

    def approvals(self, **filters: str | int | None) -> list[Json]:
        with _refusals():
            return self._store.approvals(filters)

    def decide(self, approval_id: str, verb: str, body: Json) -> Json:
        with _refusals():
            return self._store.decide(approval_id, verb, body)

    def claim(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            return self._store.claim(approval_id, body)

    def tell_result(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            return self._store.result(approval_id, body)

    def undo(self, approval_id: str, body: Json) -> Json:
        with _refusals():
            return self._store.undo(approval_id, body)

    def note(self, event: Json) -> None:
        with _refusals(str(event.get("tool"))):
            self._store.note(event)

    def close(self) -> None:
        self._store.close()


@contextmanager
def _refusals(tool: str = "") -> Iterator[None]:
    """Raise as a GateError whatever the store or SQLite raises: no decision was had."""
    try:
        yield
    except Exception as error:
        raise _refusal(error, tool) from error


def _refusal(error: Exception, tool: str) -> GateError:
    """Return a store's error as what the caller can do about it: by its code, not its class."""
    if not isinstance(error, HansardError) or isinstance(error, ConfigError):
        return GateUnavailable(f"the store cannot be used: {type(error).__name__}: {error}")
    details = getattr(error, "details", None)
    if error.code == "blocked":
        told = {"rule_ids": list(getattr(error, "rule_ids", ()))}
        return PolicyDenied(tool, str(getattr(error, "reason", error)), told)
    if error.code in ("not_found", "ambiguous_id"):
        return UnknownApproval(str(error))
    if error.code == "invalid_proposal":
        return BadArguments(tool, str(error))
    if error.code in _OF_PEOPLE:
        return DecisionRefused(error.code, str(error), details)
    if isinstance(details, Mapping):
        return DecisionConflict(error.code, str(error), details)
    return GateUnavailable(f"the store cannot keep a decision now: {error}")


class LocalMemory:
    """The memory of this process's store."""

    def __init__(self, book: MemoryBook) -> None:
        self._book = book

    def ask(self, verb: str, told: Json, *, token: str | None = None) -> Json:
        do = {
            "write": self._book.write_json,
            "read": self._book.read_json,
            "invalidate": self._book.invalidate_json,
        }[verb]
        try:
            return do(told)
        except HansardError as error:
            if error.code in _BUSY:
                raise MemoryUnavailable(str(error)) from error
            raise MemoryRefused(error.code, str(error)) from error
        except Exception as error:  # of SQLite or the disk
            raise MemoryUnavailable(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._book.close()
