"""What was received and what became of it, what was refused and why, and how the store is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Final

import apsw
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from hansard._config.setting import Setting
from hansard_collector.derivation.rebuild import Unfinished, unfinished_rebuild
from hansard_collector.log_sessions.unread import UnreadLogs, unread_logs
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.database.connections import why_not_writable
from hansard_store.database.transactions import schema_version
from hansard_store.ledger import (
    SIGNALS,
    DropSum,
    LedgerCount,
    LedgerRefusal,
    PeriodLine,
    ledger_lines,
    list_drops,
    list_refusals,
)
from hansard_store.policy.rules import policy_problem
from hansard_web.app.config import SETTINGS
from hansard_web.app.connections import DESCRIPTORS
from hansard_web.app.site import Site, SiteDep
from hansard_web.ui import format as figures

router = APIRouter()

_NS_PER_S: Final = 1_000_000_000
_PERIODS: Final = {"1h": ("1 hour", 3600), "24h": ("24 hours", 86_400), "7d": ("7 days", 604_800)}
_DEFAULT: Final = "24h"
_REFUSALS: Final = 50
_DROPS: Final = 20
_SPARK_POINTS: Final = 96
_SPARK_HEIGHT: Final = 22
_ITEMS: Final = {"traces": "spans", "logs": "log records", "metrics": "metric points"}
_TRANSPORTS: Final = {"grpc": "gRPC", "http": "HTTP", "embedded": "in process"}
_DURABILITY: Final = {
    "normal": "survives any crash of a process; a power cut may undo the last second",
    "full": "survives a power cut too",
}


@dataclass(frozen=True, slots=True)
class _Period:
    label: str
    url: str
    is_on: bool


@dataclass(frozen=True, slots=True)
class _Sum:
    """The count of one signal as an equation."""

    items: str  # what is counted: spans, log records, …
    received: int
    parts: tuple[tuple[str, int, bool], ...]  # (what became of them, how many, whether it is bad)
    adds_up: bool


@dataclass(frozen=True, slots=True)
class _Spark:
    """A line of what was received over the period, as paths in a 100 × 24 box."""

    area: str
    line: str
    bad: tuple[float, ...]  # x of quarters with something rejected


@dataclass(frozen=True, slots=True)
class LedgerRow:
    line: PeriodLine
    sender: str
    transport: str
    spark: _Spark


@dataclass(frozen=True, slots=True)
class Gauge:
    label: str
    value: str
    pct: float


@dataclass(frozen=True, slots=True)
class HealthPage:
    problem: str  # why nothing can be written, "" when all is well
    policy: str  # why nothing is decided by the rules of policy, "" when all is well
    rebuild: Unfinished | None  # search and lists may miss steps until it ends
    up: str
    version: str
    periods: tuple[_Period, ...]
    period: str
    refresh_url: str
    sums: tuple[_Sum, ...]
    rows: tuple[LedgerRow, ...]
    refusals: tuple[LedgerRefusal, ...]
    drops: tuple[DropSum, ...]  # what senders dropped, the latest first
    unread: tuple[UnreadLogs, ...]  # agents whose log records made no run
    gauges: tuple[Gauge, ...]
    facts: tuple[tuple[str, str, str], ...]  # (label, value, what it means)
    settings: tuple[Setting, ...] = SETTINGS


@router.get("/health")
def health(request: Request, site: SiteDep, period: Annotated[str, Query()] = _DEFAULT) -> Response:
    page = _health_page(site, period)
    return site.renderer.page(request, "health.html", here="health", page=page)


@router.get("/fragments/health")
def health_fragment(
    request: Request, site: SiteDep, period: Annotated[str, Query()] = _DEFAULT
) -> Response:
    page = _health_page(site, period)
    if request.headers.get("hx-request") != "true":
        return RedirectResponse(page.refresh_url.removeprefix("/fragments"), 303)
    return site.renderer.fragment(request, "health/_body.html", page=page)


def _health_page(site: Site, period: str) -> HealthPage:
    period = period if period in _PERIODS else _DEFAULT
    label, length_s = _PERIODS[period]
    now_ns = time.time_ns()
    with site.readers.read() as connection:
        lines = ledger_lines(connection, since_ns=now_ns - length_s * _NS_PER_S, until_ns=now_ns)
        refusals = list_refusals(connection, limit=_REFUSALS)
        drops = list_drops(connection, limit=_DROPS)
        facts = _facts(site, connection)
        unfinished = unfinished_rebuild(site.folder, connection)
        unread = unread_logs(connection)
    problem = why_not_writable(site.folder) or ""
    return HealthPage(
        problem=problem,
        policy="" if problem else policy_problem(site.folder) or "",
        rebuild=unfinished,
        up=_up(now_ns - site.started_ns),
        version=version("hansard"),
        periods=tuple(
            _Period(name, f"/health?period={key}", is_on=key == period)
            for key, (name, _) in _PERIODS.items()
        ),
        period=label,
        refresh_url=f"/fragments/health?period={period}",
        sums=tuple(_sums(lines)),
        rows=tuple(_row(line) for line in lines),
        refusals=tuple(refusals),
        drops=tuple(drops),
        unread=tuple(unread),
        gauges=tuple(_gauges(site)),
        facts=tuple(facts),
    )


def _up(length_ns: int) -> str:
    if length_ns < 60 * _NS_PER_S:
        return f"{length_ns // _NS_PER_S} s"
    return figures.duration(length_ns)


def _sums(lines: Sequence[PeriodLine]) -> list[_Sum]:
    return [
        _sum(_ITEMS[signal], [line.count for line in lines if line.signal == signal])
        for signal in SIGNALS
        if any(line.signal == signal and line.count.received for line in lines)
    ]


def _sum(items: str, counts: Sequence[LedgerCount]) -> _Sum:
    def total(name: str) -> int:
        return sum(getattr(count, name) for count in counts)

    parts = [
        ("stored", total("stored"), False),
        ("duplicate, sent again", total("duplicate"), False),
        ("rejected, with a reason", total("rejected"), True),
    ]
    # Rare, so they are named only where there are some.
    rare = (
        ("start records, replaced by their span", total("opened"), False),
        ("of deleted runs, not stored", total("deleted"), False),
    )
    parts += [part for part in rare if part[1]]
    received = total("received")
    return _Sum(items, received, tuple(parts), received == sum(count for _, count, _ in parts))


def _row(line: PeriodLine) -> LedgerRow:
    return LedgerRow(
        line,
        sender=line.service or "no service named",
        transport=_TRANSPORTS.get(line.transport, line.transport),
        spark=_spark(line.received, line.troubled),
    )


def _spark(received: Sequence[int], troubled: Sequence[int]) -> _Spark:
    size = -(-len(received) // _SPARK_POINTS)  # quarters a point, rounded up
    points = [sum(received[at : at + size]) for at in range(0, len(received), size)]
    most = max(*points, 1)
    step = 100 / max(len(points) - 1, 1)
    places = [
        f"{number * step:.2f} {24 - _SPARK_HEIGHT * count / most:.2f}"
        for number, count in enumerate(points)
    ]
    line = "M" + " L".join(places)
    bad = tuple(sorted({round(number // size * step, 2) for number in troubled}))
    return _Spark(f"{line} L100 24 L0 24 Z", line, bad)


def _gauges(site: Site) -> Iterator[Gauge]:
    if isinstance(site.ingest, Pipeline):
        queue = site.ingest.queue_state()
        shown = f"{figures.file_size(queue.bytes)} of {figures.file_size(queue.max_bytes)}"
        yield _gauge("write queue", shown, queue.bytes, queue.max_bytes)
    used = sum(
        path.stat().st_size for path in site.folder.path.glob("hansard.db*") if path.is_file()
    )
    free = shutil.disk_usage(site.folder.path).free
    shown = f"{figures.file_size(used)} in the database, {figures.file_size(free)} free"
    yield _gauge("disk", shown, used, used + free)
    open_now = DESCRIPTORS.state()
    if open_now is not None:
        times = open_now.times_used_up
        often = f", used up {times} times since the start" if times else ""
        shown = f"{open_now.used:,} of {open_now.limit:,} open{often}"
        yield _gauge("connections and files", shown, open_now.used, open_now.limit)


def _gauge(label: str, shown: str, part: int, whole: int) -> Gauge:
    return Gauge(label, shown, round(100 * part / max(whole, 1), 1))


def _facts(site: Site, connection: apsw.Connection) -> list[tuple[str, str, str]]:
    settings = site.settings
    endpoints = [("OTLP/HTTP", settings.http_address, "")]
    if settings.grpc_address:
        endpoints.insert(0, ("OTLP/gRPC", settings.grpc_address, ""))
    return [
        *endpoints,
        ("data", str(site.folder.path), ""),
        ("retention", settings.retention, ""),
        ("durability", settings.durability, _DURABILITY.get(settings.durability, "")),
        ("failed sign-ins", str(site.attempts.total), "wrong tokens since this server started"),
        ("schema", str(schema_version(connection)), f"SQLite {apsw.sqlite_lib_version()}"),
    ]
