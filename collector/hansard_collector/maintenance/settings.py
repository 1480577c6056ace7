"""Bounds and thresholds of maintenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

DAY_NS: Final = 24 * 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class LinkThresholds:
    """From which similarity on a correction is linked; cosines of two embedders differ in scale."""

    certain: float  # at least so near, and
    margin: float  # nearer than the second by at least so much: it is linked
    doubtful: float  # at least so near: a person is to decide; further away there is no link


# Chosen on the first half of tests/fixtures/heartbeat/corrections.jsonl; docs/benchmarks.md has
# the figures of the other half.
LINK_THRESHOLDS: Final[Mapping[str, LinkThresholds]] = MappingProxyType(
    {
        "hashed-pieces/1": LinkThresholds(certain=0.4, margin=0.2, doubtful=0.25),
        "wordllama/1": LinkThresholds(certain=0.45, margin=0.2, doubtful=0.28),
    }
)
# Of an embedder that was never measured: rather a task for review than a wrong link.
UNMEASURED: Final = LinkThresholds(certain=0.85, margin=0.15, doubtful=0.6)


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """What one run may do at most, and from when on it acts."""

    most_calls: int = 5_000  # of the classifier; further pairs are left to the next run
    most_corrections: int = 200  # that are linked in one run
    most_tasks: int = 20  # opened in one run; further doubts are left to the next
    certain: float = 0.8  # score of a contradiction that is acted on
    doubtful: float = 0.4  # score from which on a person decides
    stale_ns: int = 30 * DAY_NS
    links: Mapping[str, LinkThresholds] = field(default_factory=lambda: LINK_THRESHOLDS)

    def thresholds_of(self, embedder: str) -> LinkThresholds:
        """Return the thresholds of an embedder."""
        return self.links.get(embedder, UNMEASURED)
