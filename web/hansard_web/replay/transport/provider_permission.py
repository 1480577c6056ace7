"""Which side effects at the provider a replay may cause, and in how many requests."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from hansard_compiler.replay.errors import NotReplayable, Reason
from hansard_compiler.replay.provider_side_effects import SideEffect

_SHOWN = 5


@dataclass(slots=True)
class Permission:
    """What was approved. The lock guards the count: a replay has one thread, its caller another."""

    granted: frozenset[tuple[str, str, str]] = frozenset()
    requests_left: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def spend(self, found: Sequence[SideEffect]) -> None:
        """Take one request; raises NotReplayable for side effects that were not approved."""
        if not found:
            return
        others = [one for one in found if one.identity not in self.granted]
        if others:
            raise refusal_of(others)
        with self._lock:
            if self.requests_left < 1:
                raise NotReplayable(
                    Reason.NEEDS_APPROVAL, "as many requests were sent as were approved"
                )
            self.requests_left -= 1


def permission_for(found: Sequence[SideEffect], *, requests: int) -> Permission:
    """Return the permission for these side effects in so many requests."""
    return Permission(frozenset(one.identity for one in found), requests)


def refusal_of(found: Sequence[SideEffect]) -> NotReplayable:
    """Return why a request with these side effects is not sent."""
    told = "; ".join(f"{one.path}: {one.text}" for one in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return NotReplayable(
        Reason.PROVIDER_SIDE_EFFECTS,
        f"{told}{more}. Allow it for this replay with `allow_provider_side_effects`; it is then "
        "sent once a person approved it",
        side_effects=[one.json() for one in found],
    )
