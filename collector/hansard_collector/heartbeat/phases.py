"""The phases of a cycle, in their order: the one list."""

from __future__ import annotations

from typing import Final

from hansard_collector.heartbeat import (
    detection,
    evaluation,
    hooks,
    interests,
    log_review,
    longitudinal,
    maintenance,
    memories,
    report,
    scan,
    tasks,
)
from hansard_collector.heartbeat.phase import DAY_NS, Phase

PHASES: Final[tuple[Phase, ...]] = (
    Phase("hooks", hooks.run),
    Phase("memories", memories.run),
    Phase("tasks", tasks.run),
    Phase("evaluation", evaluation.run),
    Phase("maintenance", maintenance.run),
    Phase("interests", interests.run),
    Phase("scan", scan.run, every_ns=DAY_NS),
    Phase("log_review", log_review.run),
    Phase("longitudinal", longitudinal.run, every_ns=longitudinal.EVERY_NS),
    Phase("detection", detection.run),
    Phase("report", report.run),
)
