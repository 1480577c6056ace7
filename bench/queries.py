"""Reads over HTTP at 100,000 spans, and the same while spans come in at full rate."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from bench import processes
from bench.figures import Figure, below, percentile
from bench.load import NEEDLE, Agents, Batch, send

_CALLS = 30
_SMALL, _LARGE, _HUGE = 30, 5_000, 50_000


@dataclass(frozen=True, slots=True)
class Query:
    what: str
    path: str
    bar_ms: float


def run(*, spans: int = 100_000) -> list[Figure]:
    """Fill a store and measure each read; medians of 30 calls over a new connection each."""
    agents = Agents(7)
    small = agents.batches(_SMALL, trace_spans=_SMALL)
    large = agents.batches(_LARGE, trace_spans=_LARGE)
    rest = agents.batches(spans - _SMALL - _LARGE)
    with processes.folder() as data, processes.hansard(data) as server:
        for batches in (small, large, rest):
            send(batches, server.grpc)
        assert server.count_spans() == spans
        figures = [_measure(server, query) for query in _queries(small, large)]
        huge = agents.batches(_HUGE, trace_spans=_HUGE)
        send(huge, server.grpc)
        page = Query("page of a 50,000-span run", f"/runs/{_id(huge)}", 1_000)
        figures.append(_measure(server, page))
    return figures


def run_under_load(*, spans: int = 30_000) -> list[Figure]:
    """Ask for the list again and again while spans come in as fast as they are acknowledged."""
    agents = Agents(11)
    first, load = agents.batches(20_000), agents.batches(spans)
    waits: list[float] = []
    with processes.folder() as data, processes.hansard(data) as server:
        send(first, server.grpc)
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                waits.append(_time(server, "/"))

        reader = threading.Thread(target=read)
        reader.start()
        sent = send(load, server.grpc)
        done.set()
        reader.join()
    return [
        below(
            "list page p95 under full ingest",
            percentile(waits, 0.95) * 1000,
            "ms",
            bar=150,
            note=f"{len(waits)} pages beside {sent.per_second:,.0f} spans/s",
        ),
        Figure("list page p50 under full ingest", percentile(waits, 0.5) * 1000, "ms"),
    ]


def _queries(small: list[Batch], large: list[Batch]) -> list[Query]:
    return [
        Query("list: newest 50 runs", "/v1/runs?limit=50", 30),
        Query("run of 30 spans", f"/v1/runs/{_id(small)}", 30),
        Query("its steps", f"/v1/runs/{_id(small)}/steps?limit=500", 30),
        Query("attribute filter", "/v1/runs?attribute=gen_ai.tool.name:run_sql", 50),
        Query("attribute filter, no match", "/v1/runs?attribute=gen_ai.tool.name:none", 50),
        Query("text: newest 50 hits", f"/v1/search?q={NEEDLE}&limit=50", 50),
        Query("text: no match", "/v1/search?q=zzyzxnomatch", 50),
        Query("page of runs", "/", 150),
        Query("page of a 5,000-span run", f"/runs/{_id(large)}", 300),
    ]


def _measure(server: processes.Measured, query: Query) -> Figure:
    _time(server, query.path)  # the first call fills caches, as the first of a session does
    waits = [_time(server, query.path) for _ in range(_CALLS)]
    note = f"p95 {percentile(waits, 0.95) * 1000:.0f} ms"
    return below(query.what, percentile(waits, 0.5) * 1000, "ms", bar=query.bar_ms, note=note)


def _time(server: processes.Measured, path: str) -> float:
    began = time.perf_counter()
    server.get(path)
    return time.perf_counter() - began


def _id(batches: list[Batch]) -> str:
    return next(iter(batches[0].traces)).hex()
