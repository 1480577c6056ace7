"""From exec to the first answer, and what an idle server holds."""

from __future__ import annotations

import statistics
import time

from bench import processes
from bench.figures import Figure, below

_IDLE_S = 5


def run(*, rounds: int = 3) -> list[Figure]:
    """Start on an empty folder some times, and give medians."""
    ready, memory, cpu = [], [], []
    for _ in range(rounds):
        with processes.folder() as data, processes.hansard(data) as server:
            ready.append(server.ready_s)
            before = server.cpu_s()
            time.sleep(_IDLE_S)
            cpu.append((server.cpu_s() - before) / _IDLE_S * 100)
            memory.append(server.rss_mib())
    return [
        below("start to ready", statistics.median(ready), "s", bar=3),
        below("idle memory", statistics.median(memory), "MiB", bar=120),
        Figure("idle processor", statistics.median(cpu), "%"),
    ]
