"""How many agent spans a second are stored, searchable and committed before the answer."""

from __future__ import annotations

import statistics

from bench import ceiling, processes
from bench.figures import Figure, at_least
from bench.load import Agents, send

FLOOR = 3_000
WARM_UP = 2_000


def run(*, spans: int = 20_000, rounds: int = 3) -> list[Figure]:
    """Measure both protocols and the machine's ceiling in turn, and give medians."""
    batches = [Agents(seed).batches(spans) for seed in range(rounds)]
    rates: dict[str, list[float]] = {"grpc": [], "http": [], "ceiling": []}
    cpu_us, retried = [], 0
    for number, some in enumerate(batches):
        for protocol in ("grpc", "http"):
            with processes.folder() as data, processes.hansard(data) as server:
                target = server.grpc if protocol == "grpc" else server.http
                server.get("/v1/runs?limit=1")  # answered when all routes are loaded
                send(Agents(900 + number).batches(WARM_UP), target, protocol=protocol)
                before = server.cpu_s()
                sent = send(some, target, protocol=protocol)
                stored = server.count_spans() - WARM_UP
                assert sent.spans == spans, f"{sent.failed} requests were given up"
                assert stored == spans, f"{stored} spans of {spans} are stored"
                retried += sent.retried
                rates[protocol].append(sent.per_second)
                cpu_us.append((server.cpu_s() - before) / spans * 1e6)
        with processes.folder() as data:
            rates["ceiling"].append(ceiling.spans_per_second(some, data))
    size = sum(len(b.body) for b in batches[0]) / spans
    return [
        at_least(
            "ingest over gRPC",
            statistics.median(rates["grpc"]),
            "spans/s",
            bar=FLOOR,
            note=f"{size:,.0f} bytes a span; 5,000 wanted",
        ),
        at_least(
            "ingest over HTTP",
            statistics.median(rates["http"]),
            "spans/s",
            bar=FLOOR,
            note=f"{retried} requests sent again" if retried else "",
        ),
        Figure("processor time of the server", statistics.median(cpu_us), "µs/span"),
        Figure(
            "ceiling of this machine",
            statistics.median(rates["ceiling"]),
            "spans/s",
            note="one thread: parse, one bare row a span, commit",
        ),
    ]
