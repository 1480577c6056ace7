"""Histograms of durations: percentiles that can be merged, with a bounded error.

Buckets are logarithmic, 16 a doubling, as in DDSketch (Masson et al., VLDB 2019, "DDSketch: A Fast
and Fully-Mergeable Quantile Sketch"): a percentile is the middle of its bucket, at most 2.2 % from
the exact one, however many histograms were merged. Sums of counts are exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

BUCKETS_A_DOUBLING: Final = 16
RELATIVE_ERROR: Final = 2 ** (1 / (2 * BUCKETS_A_DOUBLING)) - 1  # 0.0219


def bucket_of(duration_ns: int) -> int:
    """Return the bucket of a duration; nothing, and less than that, is in that of 1 ns."""
    return math.floor(math.log2(max(duration_ns, 1)) * BUCKETS_A_DOUBLING)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many durations lie in each bucket."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def percentile_ns(self, share: float) -> float | None:
        """Return the duration that `share` of all do not exceed (0.95: p95); None without any.

        The nearest rank: of n durations the ceil(share * n)-th, to within RELATIVE_ERROR.
        """
        total = self.total
        if not total:
            return None
        rank, seen = max(math.ceil(share * total), 1), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return float(2 ** ((bucket + 0.5) / BUCKETS_A_DOUBLING))
        raise AssertionError("counts add up to their total")

    @property
    def p50_ns(self) -> float | None:
        return self.percentile_ns(0.50)

    @property
    def p95_ns(self) -> float | None:
        return self.percentile_ns(0.95)

    @property
    def p99_ns(self) -> float | None:
        return self.percentile_ns(0.99)

    def text(self) -> str:
        """Return it as it is stored: JSON, [first bucket, counts …] with gaps as zeros."""
        if not self.counts:
            return ""
        first, last = min(self.counts), max(self.counts)
        return json.dumps([first, *(self.counts.get(one, 0) for one in range(first, last + 1))])


EMPTY: Final = Histogram()


def add_text(counts: dict[int, int], text: str) -> None:
    """Add a stored histogram to counts."""
    if not text:
        return
    first, *stored = json.loads(text)
    for bucket, count in enumerate(stored, first):
        if count:
            counts[bucket] = counts.get(bucket, 0) + count


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return the histogram of all durations of some."""
    counts: dict[int, int] = {}
    for one in histograms:
        for bucket, count in one.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
    return Histogram(counts)
