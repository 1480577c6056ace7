"""Pending calls of this process: their exact arguments, and the keys to claim them.

The store has arguments without their secrets. The process that proposed a call can run it with its
secrets; after a restart, only calls without secrets can run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from hansard._gate.arguments import Json
from hansard._gate.tools import GatedTool

_MOST: Final = 10_000
_turn: ContextVar[PendingTurn | None] = ContextVar("hansard-turn", default=None)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A call that was proposed here."""

    tool: GatedTool
    arguments: Json = field(repr=False)  # exact, as they were proposed
    arguments_hash: str  # the store's, of just these
    key: str | None = field(default=None, repr=False)  # fetches the token once it is approved


class Waiting:
    """Calls by approval id, the oldest forgotten first. Single operations, so no lock."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, Proposed] = OrderedDict()

    def add(self, approval: Mapping[str, Any], call: Proposed) -> None:
        self._calls[approval["approval_id"]] = call
        while len(self._calls) > _MOST:
            self._calls.popitem(last=False)

    def find(self, approval_id: str) -> Proposed | None:
        return self._calls.get(approval_id)

    def forget(self, approval_id: str) -> None:
        self._calls.pop(approval_id, None)


@dataclass(slots=True)
class PendingTurn:
    """The pending calls of an agent since its last message."""

    pending: list[Json] = field(default_factory=list)  # approvals, in the order of the calls

    @property
    def is_pending(self) -> bool:
        return bool(self.pending)


@contextmanager
def current_turn() -> Iterator[PendingTurn]:
    """Collect the pending calls of a block."""
    turn = PendingTurn()
    token = _turn.set(turn)
    try:
        yield turn
    finally:
        _turn.reset(token)


def note_pending(approval: Json) -> None:
    """Add a pending call to the current turn."""
    turn = _turn.get()
    if turn is not None:
        turn.pending.append(approval)
