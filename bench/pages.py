"""Processor time of each page over a store of thirty days, warm.

The pages are those of the navigation, and what the daily ones lead to. Processor time is the whole
server's over the calls, so that a busy machine does not count; the median wait is beside it. A
page of a run has no bar here (`queries` measures it by its size).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import month, processes
from bench.figures import Figure, below, percentile
from bench.load import NEEDLE
from hansard_web.ui.navigation import PLACES

SPANS: Final = 100_000
_LARGE: Final = 1_000_000
_BAR_MS, _LARGE_BAR_MS = 40, 80  # below a million spans; from there on
_CALLS: Final = 20
_WARM_UP: Final = 3
_QUIET_SHARE: Final = 0.05  # of one processor, over a second: the server's own work is done
_QUIET_S: Final = 12  # in a row: figures by hour are computed some seconds after the start
_PATIENCE_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Page:
    what: str
    path: str
    has_bar: bool = True
    is_fragment: bool = False  # what htmx requests


def run(*, spans: int = SPANS, data: Path | None = None, calls: int = _CALLS) -> list[Figure]:
    """Measure every page; `data` is a folder that holds the store, or will, for the next time."""
    with processes.folder() if data is None else nullcontext(data) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        month.fill(folder, spans=spans)
        with processes.hansard(folder) as server:
            server.get("/v1/runs?limit=1")  # answered when all routes are loaded
            yielded_s = _wait_until_quiet(server)
            bar_ms = _BAR_MS if spans < _LARGE else _LARGE_BAR_MS
            figures = [_measure(server, page, bar_ms, calls) for page in _pages(server)]
            rss = Figure("memory of the server", server.rss_mib(), "MiB")
    return [Figure("its own work after the start", yielded_s, "s"), *figures, rss]


def _pages(server: processes.Measured) -> Iterator[Page]:
    for place in PLACES:
        yield Page(place.label, place.href)
    for name, path in _daily(_newest(server)):
        yield Page(name, path, is_fragment=path.startswith("/fragments/"))
    run_id, step_id = _newest_step(server)
    yield Page("one run", f"/runs/{run_id}", has_bar=False)
    yield Page("one step", f"/steps/{step_id}", has_bar=False)


def _daily(run: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "Runs: counts of the facets", "/fragments/runs/counts"
    yield "Runs: failed", "/?status=error"
    yield "Runs: of one agent", f"/?agent={run['agent']}"
    yield "Runs: of one conversation", f"/?conversation={run['conversation_id']}"
    yield "Runs: of one model", "/?model=claude-haiku-4-5"
    yield "Runs: slowest", "/?sort=-duration_ms"
    yield "Runs: dearest", "/?sort=-cost_usd"
    yield "Usage of 7 days", "/usage?since=7d"
    yield "Usage of all time", "/usage?since=all"
    yield "Search", f"/search?q={NEEDLE}"


def _newest(server: processes.Measured) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(server.get("/v1/runs?limit=1"))["items"][0]
    return run


def _newest_step(server: processes.Measured) -> tuple[str, str]:
    run_id: str = _newest(server)["run_id"]
    steps = json.loads(server.get(f"/v1/runs/{run_id}/steps?limit=1"))["items"]
    return run_id, steps[0]["step_id"]


def _measure(server: processes.Measured, page: Page, bar_ms: float, calls: int) -> Figure:
    headers = {"HX-Request": "true"} if page.is_fragment else {}
    for _ in range(_WARM_UP):
        size = len(server.get(page.path, headers))
    waits, used_s = [], server.cpu_s()
    for _ in range(calls):
        began = time.perf_counter()
        server.get(page.path, headers)
        waits.append(time.perf_counter() - began)
    used_ms = (server.cpu_s() - used_s) / calls * 1_000
    note = f"median wait {percentile(waits, 0.5) * 1_000:.0f} ms, {size / 1_000:,.0f} kB"
    what = f"{page.what}  {page.path}"
    if not page.has_bar:
        return Figure(what, used_ms, "ms", note=note)
    return below(what, used_ms, "ms", bar=bar_ms, note=note)


def _wait_until_quiet(server: processes.Measured) -> float:
    """Wait until the server has done its own work, as after a migration; return the seconds."""
    began, quiet_s = time.perf_counter(), 0
    while quiet_s < _QUIET_S and time.perf_counter() - began < _PATIENCE_S:
        used_s, from_s = server.cpu_s(), time.perf_counter()
        time.sleep(1)
        is_quiet = server.cpu_s() - used_s < _QUIET_SHARE * (time.perf_counter() - from_s)
        quiet_s = quiet_s + 1 if is_quiet else 0
    return time.perf_counter() - began
