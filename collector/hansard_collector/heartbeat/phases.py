"""The phases of a cycle, in their order: the one list."""

from __future__ import annotations

from typing import Final

from hansard_collector.heartbeat import memories, tasks
from hansard_collector.heartbeat.phase import Phase

PHASES: Final[tuple[Phase, ...]] = (
    Phase("memories", memories.run),
    Phase("tasks", tasks.run),
)
