"""What a cycle of the heartbeat costs over a day of many agents, and what ingest beside it loses.

The store has 100,000 spans and 10,000 memories (`bench/evaluation_load.py`). Each cycle is its own
process, as a server or cron starts it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import processes
from bench.evaluation_load import SPANS_OF_RUN
from bench.figures import Figure, at_least, below
from bench.load import Agents, send

_RUNS: Final = 2_000
_MEMORIES: Final = 10_000
_FIRST_S, _SECOND_S, _MOST_MIB, _LEAST_PCT = 30, 2, 300, 90
_ROOT: Final = Path(__file__).parent.parent
_WARM_UP: Final = 1_000
# As a server starts it: with lower priority than its own.
_BESIDE: Final = [
    sys.executable, "-c", "import os; os.nice(10); from hansard._cli.main import main; main()",
]  # fmt: skip
_MIB_UNIT: Final = 1 << (20 if sys.platform == "darwin" else 10)  # of ru_maxrss


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle that was measured."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    phases: dict[str, Any]  # its answer, by name


def run(
    *,
    runs: int = _RUNS,
    memories: int = _MEMORIES,
    spans_beside: int = 10_000,
    rounds: int = 3,
) -> list[Figure]:
    """Fill a store, run two cycles over it, then ingest without and with a first cycle, in turn."""
    with processes.folder() as filled:
        _fill(filled, runs=runs, memories=memories)
        with _copy(filled) as data:
            first, second = cycle(data), cycle(data)
        rates = _rates(filled, spans_beside, rounds)
    figures = [
        *_figures(f"first cycle, {runs * SPANS_OF_RUN:,} spans, {memories:,} memories", first,
                  most_s=_FIRST_S),
        *_figures("second cycle, nothing new", second, most_s=_SECOND_S),
    ]  # fmt: skip
    return [*figures, *_beside(rates)]


def _fill(data: Path, *, runs: int, memories: int) -> None:
    """Fill a store in another process: what this one held would count as its children's peak."""
    told = f"fill(Path({str(data)!r}), runs={runs}, memories={memories})"
    script = f"from pathlib import Path; from bench.evaluation_load import fill; {told}"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=_ROOT)


def cycle(data: Path) -> Cycle:
    """Run one cycle by the command, in a process of its own."""
    began = time.perf_counter()
    command = [*processes.HANSARD, "heartbeat", "--once", "--json", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - began
    assert process.returncode == 0, answer
    phases = {one["name"]: one for one in json.loads(answer)["phases"]}
    cpu_s = used.ru_utime + used.ru_stime
    return Cycle(wall_s, cpu_s, used.ru_maxrss / _MIB_UNIT, phases)


def _rates(filled: Path, spans: int, rounds: int) -> dict[str, list[float]]:
    """Return spans a second at a server without and with a cycle over the same store beside it."""
    rates: dict[str, list[float]] = {"without": [], "with": []}
    for number in range(rounds):
        batches = Agents(number).batches(spans)
        for variant in rates if number % 2 == 0 else reversed(rates):
            with _copy(filled) as data, processes.hansard(data) as server:
                server.get("/v1/runs?limit=1")  # answered when all routes are loaded
                send(Agents(900 + number).batches(_WARM_UP), server.grpc)
                with _cycle_beside(data, is_wanted=variant == "with"):
                    rates[variant].append(send(batches, server.grpc).per_second)
    return rates


@contextmanager
def _cycle_beside(data: Path, *, is_wanted: bool) -> Iterator[None]:
    """Run a cycle for the block; it is ended with it."""
    if not is_wanted:
        yield
        return
    command = [*_BESIDE, "heartbeat", "--once", "--json", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment()) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def _copy(filled: Path) -> Iterator[Path]:
    """A copy of a store that nobody has open."""
    with processes.folder() as data:
        shutil.copytree(filled, data, dirs_exist_ok=True)
        yield data


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("HANSARD_")}


def _figures(what: str, one: Cycle, *, most_s: float) -> list[Figure]:
    evaluated = one.phases["evaluation"]["summary"]
    return [
        below(what, one.wall_s, "s", bar=most_s, note=evaluated),
        Figure("its processor time", one.cpu_s, "s"),
        below("its memory", one.peak_mib, "MiB", bar=_MOST_MIB),
    ]


def _beside(rates: dict[str, list[float]]) -> list[Figure]:
    without, beside = (statistics.median(rates[name]) for name in ("without", "with"))
    return [
        Figure("ingest without a cycle", without, "spans/s"),
        Figure("ingest beside a first cycle", beside, "spans/s"),
        at_least("of the rate without", 100 * beside / without, "%", bar=_LEAST_PCT),
    ]
