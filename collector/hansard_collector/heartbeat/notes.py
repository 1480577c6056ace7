"""Notes in memory of what each phase found: the latest of a phase, with the ones before.

They are in a namespace of the heartbeat's own, which no project and no user reads, and say that
they are diagnostic: extractors of topics leave them out by that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from hansard_compiler.models.memory import Namespace, WriteMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_store.heartbeat import PhaseRecord
from hansard_store.memory.service import MemoryService

AGENT: Final = "hansard.heartbeat"  # the namespace of notes
DIAGNOSTIC: Final = "diagnostic"  # the origin in the metadata of a note
# What notes of these phases begin with in older systems; filters go by the origin.
_PREFIXES: Final = {"evaluation": "[evaluation]", "log_review": "[log-review]"}


class PhaseNotes:
    """Writes the note of a phase; nothing where the store keeps no content."""

    def __init__(
        self, folder: DataFolder, mode: RetentionMode, *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._memory = None
        if mode is not RetentionMode.METADATA_ONLY:
            self._memory = MemoryService(folder, mode, origin="cli", clock=clock)

    def close(self) -> None:
        """Close all connections."""
        if self._memory is not None:
            self._memory.close()

    def write(self, record: PhaseRecord) -> None:
        """Write what a phase found. An equal note is confirmed, another one is superseded."""
        if self._memory is None or record.status == "skipped":
            return
        prefix = _PREFIXES.get(record.name, f"[{record.name.replace('_', '-')}]")
        self._memory.write(
            WriteMemory(
                writer="post_step_summarizer",
                by=f"heartbeat:{record.name}",
                agent=AGENT,
                step_id=record.step_id,
                memory_type="note",
                subject=f"heartbeat {record.name}",
                attribute="result",
                content=f"{prefix} {record.status}: {record.summary}",
                namespace=Namespace(agent=AGENT),
                tags=[DIAGNOSTIC],
                metadata={"origin": DIAGNOSTIC, "phase": record.name},
            )
        )
