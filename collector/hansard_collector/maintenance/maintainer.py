"""One run of maintenance: contradictions, corrections, staleness.

A part whose classifier or embedder is missing is skipped, and says so; nothing is guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hansard_collector.judges import JudgeMissing, Judges
from hansard_collector.maintenance.contradictions import ContradictionSearch
from hansard_collector.maintenance.corrections import CorrectionLinking
from hansard_collector.maintenance.result import (
    Contradictions,
    Corrections,
    MaintenanceResult,
    Skipped,
)
from hansard_collector.maintenance.settings import MaintenanceSettings
from hansard_store.memory.maintenance.service import MaintenanceService


@dataclass(frozen=True, slots=True)
class Maintainer:
    """Maintains the memory of one store."""

    service: MaintenanceService
    judges: Judges
    settings: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    is_dry: bool = False  # nothing is written: a later run judges the same again

    def run(self) -> MaintenanceResult:
        """Do all three parts. Raises StoreError."""
        skipped: list[Skipped] = []
        contradictions = self._contradictions(skipped)
        opened = 0 if contradictions is None else len(contradictions.proposed)
        corrections = self._corrections(skipped, most_tasks=self.settings.most_tasks - opened)
        stale = self.service.stale(self.settings.stale_ns)
        return MaintenanceResult(
            self.is_dry, contradictions, corrections, stale, self.settings.stale_ns, skipped
        )

    def _contradictions(self, skipped: list[Skipped]) -> Contradictions | None:
        try:
            classifier = self.judges.for_task("contradiction")
        except JudgeMissing as missing:
            skipped.append(Skipped("contradictions", str(missing)))
            return None
        found = ContradictionSearch(
            self.service, classifier, self.settings, self.is_dry, self.settings.most_tasks
        ).run()
        if found.failed and found.failed == found.calls:
            skipped.append(Skipped("contradictions", f"{classifier.name} gives no usable answer"))
        return found

    def _corrections(self, skipped: list[Skipped], *, most_tasks: int) -> Corrections | None:
        try:
            embedder = self.judges.need_embedder()
        except JudgeMissing as missing:
            skipped.append(Skipped("corrections", str(missing)))
            return None
        found = CorrectionLinking(
            self.service, embedder, self.settings, self.is_dry, most_tasks
        ).run()
        if found.failed:
            skipped.append(Skipped("corrections", f"{embedder.name} gives no vectors"))
        return found
