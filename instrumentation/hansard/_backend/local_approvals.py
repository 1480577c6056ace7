"""Decisions kept in this process's own store, on the caller's thread.

The store is found by its entry point, as the package may be installed without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from hansard._gate.arguments import Json
from hansard.errors import (
    BadArguments,
    DecisionConflict,
    DecisionRefused,
    EmbeddedMissing,
    GateError,
    GateUnavailable,
    PolicyDenied,
    UnknownApproval,
)
from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard._config.settings import Settings

GROUP: Final = "hansard.accountability"
_OF_PEOPLE: Final = frozenset(
    {"not_an_approver", "self_approval", "credentials_required", "name_reserved"}
)
_T = TypeVar("_T")


class Store(Protocol):
    """What the entry point leads to; threads may share it. Raises HansardError."""

    def propose(self, told: Json) -> Json: ...
    def approval(self, approval_id: str) -> Json: ...
    def approvals(self, filters: Mapping[str, Any]) -> list[Json]: ...
    def decide(self, approval_id: str, verb: str, told: Json) -> Json: ...
    def claim(self, approval_id: str, told: Json) -> Json: ...
    def result(self, approval_id: str, told: Json) -> Json: ...
    def undo(self, approval_id: str, told: Json) -> Json: ...
    def note(self, told: Json) -> None: ...
    def close(self) -> None: ...


class OpenStore(Protocol):
    """The entry point itself."""

    def __call__(self, data: Path, *, retention: RetentionMode) -> Store: ...


@cache
def _find_store() -> OpenStore:
    missing = GROUP
    for entry in entry_points(group=GROUP):
        try:
            return cast(OpenStore, entry.load())
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
    raise EmbeddedMissing(missing)


def open_local(settings: Settings) -> LocalDecisions:
    """Open the store in the data folder. Raises GateUnavailable."""
    open_store = _asked("", _find_store)
    store = _asked("", lambda: open_store(settings.data, retention=settings.retention))
    return LocalDecisions(store)


class LocalDecisions:
    """The store of this process."""

    is_local = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def propose(self, proposal: Json) -> Json:
        return _asked(str(proposal.get("tool")), lambda: self._store.propose(proposal))

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        """Return an approval as it stands: waiting is the caller's, who polls."""
        return _asked("", lambda: self._store.approval(approval_id))

    def approvals(self, **filters: str | int | None) -> list[Json]:
        return _asked("", lambda: self._store.approvals(filters))

    def decide(self, approval_id: str, verb: str, body: Json) -> Json:
        return _asked("", lambda: self._store.decide(approval_id, verb, body))

    def claim(self, approval_id: str, body: Json) -> Json:
        return _asked("", lambda: self._store.claim(approval_id, body))

    def tell_result(self, approval_id: str, body: Json) -> Json:
        return _asked("", lambda: self._store.result(approval_id, body))

    def undo(self, approval_id: str, body: Json) -> Json:
        return _asked("", lambda: self._store.undo(approval_id, body))

    def note(self, event: Json) -> None:
        try:
            self._store.note(event)
        except Exception as error:
            raise _refusal(error, str(event.get("tool"))) from error

    def close(self) -> None:
        self._store.close()


def _asked(tool: str, ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except Exception as error:  # whatever the store or SQLite raises, no decision was had
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
