"""A gate on a real store, with a clock that tests turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hansard import approvals
from hansard._backend.local_approvals import LocalDecisions
from hansard._gate.gate import Gate
from hansard._gate.pending import Waiting
from hansard_store.approvals.service import ApprovalService
from tests.store.empty import empty_store

SECOND_NS = 1_000_000_000
NOW_NS = 1_800_000_000 * SECOND_NS


@dataclass
class Desk:
    """A store whose time stands still until it is turned on."""

    store: ApprovalService
    now_ns: list[int]
    decisions: LocalDecisions = field(init=False)

    def __post_init__(self) -> None:
        self.decisions = LocalDecisions(self.store)

    def gate(self, *tools: Any, **options: Any) -> Gate:
        return Gate(tools=tools, decisions=self.decisions, **options)

    def pass_time(self, seconds: float) -> None:
        self.now_ns[0] += int(seconds * SECOND_NS)

    def events(self) -> list[str]:
        """Types and actions of all events, the oldest first."""
        return [f"{one.type} {one.action}" for one in reversed(self.store.events(limit=500))]

    def approve(self, answer: Any, **options: Any) -> str:
        """Approve what a call answered, as a person would elsewhere; its id."""
        found = answer if isinstance(answer, dict) else answer.for_model()
        identity: str = found["approval_id"]
        self.store.approve(identity, **{"by": "ana", **options})
        return identity


@contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    now_ns = [NOW_NS]
    with ApprovalService(empty_store(folder), clock=lambda: now_ns[0]) as store:
        yield Desk(store, now_ns)


def restarted(gate: Gate) -> Gate:
    """Return the gate as another process would have it: it remembers nothing."""
    again = Gate(tools=gate.tools, decisions=gate.decisions, channel=gate.channel)
    again.waiting = Waiting()
    return again


def state_of(gate: Gate, identity: str) -> tuple[str, str]:
    """Return status and what became of it."""
    with gate:
        found = approvals.get(identity)
    return found["status"], found["execution"]["state"]
