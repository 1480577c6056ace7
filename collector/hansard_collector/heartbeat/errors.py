"""What can keep a cycle or a phase from running."""

from __future__ import annotations

from hansard_compiler.errors import HansardError


class HeartbeatUnderWay(HansardError):
    """Another process runs a cycle on this store; nothing was changed."""

    code = "heartbeat_running"

    def __init__(self) -> None:
        super().__init__("a heartbeat is under way on this store; it does not run twice at once")


class PhaseSkipped(HansardError):
    """A phase has nothing to do, or lacks what it needs; the message says which."""

    code = "phase_skipped"
