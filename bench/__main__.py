"""python -m bench [name]: one benchmark, or all but the comparison with a peer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from bench import (
    accountability,
    disk,
    evaluation,
    gate,
    heartbeat,
    hook,
    ingest,
    kill9,
    maintenance,
    memory,
    neighbours,
    notifications,
    pages,
    peers,
    queries,
    receipts,
    sdk_overhead,
    start,
    tokens,
)
from bench import compile as compiling
from bench import diff as comparing
from bench.figures import Figure, print_figures
from bench.quality import conflicts, detection, escalation, interests, longitudinal, recall

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "start": start.run,
    "ingest": ingest.run,
    "kill9": kill9.run,
    "queries": queries.run,
    "pages": pages.run,
    "list-under-load": queries.run_under_load,
    "disk": disk.run,
    "tokens": tokens.run,
    "compile": compiling.run,
    "recall": recall.run,
    "conflicts": conflicts.run,
    "interests": interests.run,
    "detection": detection.run,
    "longitudinal": longitudinal.run,
    "receipts": receipts.run,
    "gate": gate.run,
    "memory": memory.run,
    "maintenance": maintenance.run,
    "neighbours": neighbours.run,
    "notifications": notifications.run,
    "diff": comparing.run,
    "accountability": accountability.run,
    "evaluation": evaluation.run,
    "heartbeat": heartbeat.run,
    "sdk-overhead": sdk_overhead.run,
    "hook": hook.run,
    "escalation": escalation.run,
}


def main() -> int:
    """Run what was asked for; 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [*BENCHMARKS, "peer", "all"]
    parser.add_argument("name", nargs="?", default="all", choices=names)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--peer", default="peer", help="peer: what it is called")
    parser.add_argument("--target", default="127.0.0.1:4317", help="peer: host:port or URL")
    parser.add_argument("--protocol", default="grpc", choices=["grpc", "http"], help="peer")
    parser.add_argument(
        "--peers", action="store_true", help="sdk-overhead: install other SDKs and measure them too"
    )
    parser.add_argument("--spans", type=int, default=pages.SPANS, help="pages: spans of the store")
    parser.add_argument(
        "--data", type=Path, help="pages: the folder of the store, made where it is not there yet"
    )
    given = parser.parse_args()
    if given.name == "peer":
        figures = peers.run(name=given.peer, target=given.target, protocol=given.protocol)
    elif given.name == "pages":
        figures = pages.run(spans=given.spans, data=given.data)
    elif given.peers:
        figures = sdk_overhead.run(peers=True)
    else:
        chosen = BENCHMARKS if given.name == "all" else {given.name: BENCHMARKS[given.name]}
        figures = [figure for run in chosen.values() for figure in run()]
    print_figures(figures, as_json=given.json)
    return int(any(figure.is_met is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
