"""What this process knows of calls that wait: the exact arguments, and the right to claim them.

The store keeps arguments without their secrets. Whoever proposed a call in this process can still
run it with them; after a restart, calls that held none can be run by anybody who may decide.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hansard._gate.arguments import Json
from hansard._gate.tools import GatedTool

_MOST: Final = 10_000


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
