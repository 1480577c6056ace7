"""Acknowledged spans lost when the process is killed in the middle of it."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from bench import processes
from bench.figures import Figure, below
from bench.load import Agents, Batch, send

_BY_TRACE = "SELECT count(*) FROM span WHERE trace_id = ?"


def run(*, spans: int = 20_000, kills: int = 3) -> list[Figure]:
    """Kill the server after a third of a load, some times on one folder, and look for the rest."""
    acknowledged: list[Batch] = []
    recoveries = []
    with processes.folder() as data:
        for round_ in range(kills):
            with processes.hansard(data) as server:
                recoveries.append(server.ready_s)
                batches = Agents(round_).batches(spans)
                done = threading.Event()
                killer = threading.Thread(target=_kill_after, args=(server, spans // 3, done))
                killer.start()
                acknowledged += send(batches, server.grpc, tries=0).acknowledged
                done.set()
                killer.join()
        lost, check = _lost(data, acknowledged)
    total = sum(batch.spans for batch in acknowledged)
    return [
        below("acknowledged spans lost on kill -9", lost, "spans", bar=1,
              note=f"of {total:,} acknowledged before {kills} kills"),
        below("integrity_check after it", 0 if check == "ok" else 1, "faults", bar=1),
        below("ready again after a kill", max(recoveries[1:]), "s", bar=3),
    ]  # fmt: skip


def _kill_after(server: processes.Measured, spans: int, done: threading.Event) -> None:
    """Kill it when so many more spans are stored, or when nothing is sent any more."""
    start = server.count_spans()
    while server.count_spans() - start < spans and not done.wait(0.02):
        continue
    server.process.kill()
    server.process.wait()


def _lost(data: Path, acknowledged: list[Batch]) -> tuple[int, str]:
    """Return how many spans of acknowledged requests are missing, and SQLite's own verdict."""
    wanted: dict[bytes, int] = {}
    for batch in acknowledged:
        for trace_id, count in batch.traces.items():
            wanted[trace_id] = wanted.get(trace_id, 0) + count
    connection = apsw.Connection(str(data / "hansard.db"))
    lost = sum(
        max(0, count - connection.execute(_BY_TRACE, (trace_id,)).get)
        for trace_id, count in wanted.items()
    )
    check = str(connection.execute("PRAGMA integrity_check").get)
    connection.close()
    return lost, check
