"""The states of an approval, and which may follow which. Pure.

`revised` is not the end: the agent brings the action back to `awaiting` with a new draft. That a
revised one may also be rejected or expire is our reading (an agent that never answers would block
for ever); that it cannot be approved follows from there being no draft to approve.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """Where a pending action stands."""

    AWAITING = "awaiting"
    REVISED = "revised"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"


PENDING: Final = frozenset({Status.AWAITING, Status.REVISED})
TERMINAL: Final = frozenset(Status) - PENDING
LEGAL: Final = frozenset(
    {
        (Status.AWAITING, Status.APPROVED),
        (Status.AWAITING, Status.REJECTED),
        (Status.AWAITING, Status.REVISED),
        (Status.AWAITING, Status.EXPIRED),
        (Status.REVISED, Status.AWAITING),  # only together with a new draft
        (Status.REVISED, Status.REJECTED),
        (Status.REVISED, Status.EXPIRED),
    }
)


def is_legal(current: Status, wanted: Status) -> bool:
    """Say whether one state may follow another."""
    return (current, wanted) in LEGAL
