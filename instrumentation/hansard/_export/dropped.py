"""What never reached the collector, counted by reason, and stored beyond the process.

Counts only grow, and each is sent with the instance it belongs to: the collector keeps the larger
of two, so a count that is sent twice counts once.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

FILE: Final = "losses.json"


class DropReason(StrEnum):
    """Why something was lost; a closed list, in words that people read on /health."""

    QUEUE_FULL = "queue full"  # the program made more than the memory limit allows
    SPOOL_FULL = "spool full"  # the oldest of the spool made room
    SPOOL_UNWRITABLE = "spool unwritable"  # disk full, read-only, no rights
    REFUSED = "refused by the collector"  # permanently; stored in the spool's folder `refused`
    UNREADABLE = "spool file unreadable"  # torn by a power cut, or changed from outside
    NOT_RECEIVED = "not received there"  # the endpoint takes no such signal
    DROPPED_BY_HAND = "dropped by hand"  # hansard spool drop
    BROKEN = "could not be encoded"


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose losses these are."""

    service: str
    instance: str  # service.instance.id


@dataclass(frozen=True, slots=True)
class Loss:
    """A count since the sender started."""

    sender: Sender
    signal: str  # "spans" or "logs"
    reason: str
    items: int


@dataclass(slots=True)
class Losses:
    """The counts of one process, and how many of them the collector knows.

    Callers hold the pipeline's lock: every thread of the SDK may lose something.
    """

    sender: Sender
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    reported: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, signal: str, reason: DropReason, items: int) -> None:
        """Count something that will not reach the collector."""
        if items > 0:
            self.counts[signal, str(reason)] += items

    def unreported(self) -> list[Loss]:
        """Return the counts that the collector does not know yet."""
        return [
            Loss(self.sender, signal, reason, items)
            for (signal, reason), items in self.counts.items()
            if items != self.reported[signal, reason]
        ]

    def note_reported(self, losses: list[Loss]) -> None:
        """Note that the collector has these counts."""
        for loss in losses:
            self.reported[loss.signal, loss.reason] = loss.items

    def save(self, folder: Path) -> None:
        """Write the counts down where the next start finds them. Raises OSError."""
        path = folder / FILE
        if not self.unreported():
            path.unlink(missing_ok=True)
            return
        content = {
            "service": self.sender.service,
            "instance": self.sender.instance,
            "counts": [[*key, items, self.reported[key]] for key, items in self.counts.items()],
        }
        beside = path.with_suffix(f".{os.getpid()}")
        beside.touch(mode=0o600)
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(path)


def load_losses(folder: Path) -> Losses | None:
    """Return the counts that a process left; None when there are none that can be read."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        losses = Losses(Sender(str(content["service"]), str(content["instance"])))
        for signal, reason, items, reported in content["counts"]:
            losses.counts[str(signal), str(reason)] = int(items)
            losses.reported[str(signal), str(reason)] = int(reported)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return losses
