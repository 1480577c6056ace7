"""`/metrics`: what this process and its store report to Prometheus.

Counts of the store are read from it at each scrape, so they survive restarts and are the same from
every process of one store. What goes down when runs are deleted is a gauge. There are no labels
whose values senders choose but models, of which the most used are named: anything else would let
them grow a time series each.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Final

import apsw
from fastapi import APIRouter
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.approvals.rows import count_by_status
from hansard_store.audit.events import head
from hansard_store.database.disk import disk_use, free_bytes
from hansard_store.ledger import LedgerCount, ledger_totals, list_drops
from hansard_store.notifications.deliveries import count_deliveries
from hansard_store.notifications.records import DELIVERY_STATUSES
from hansard_store.runs.usage import UsageRow, list_usage, total_usage
from hansard_store.tasks.rows import count_tasks
from hansard_web.app.site import Site, SiteDep

router = APIRouter()

_OUTCOMES: Final = ("stored", "duplicate", "rejected", "opened", "deleted")
_SIGNALS: Final = {"traces": "spans", "logs": "logs", "metrics": "metric_points"}
_MOST_MODELS: Final = 50
_OTHER: Final = "other"  # models that are not among the most used
_USAGE_S: Final = 15.0  # sums over all calls are read at most so often
_TIMEOUT_MS: Final = 10_000
_NANO: Final = 10**9


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request, site: SiteDep) -> Response:
    """Return all metrics in the text format of Prometheus, or OpenMetrics where it is accepted."""
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_StoreCollector(site, request.app.state.usage_sums))
    ProcessCollector(namespace="hansard", registry=registry)
    return Response(encode(registry), media_type=media_type)


class UsageSums:
    """Sums of tokens and cost by model, read again when they are older than some seconds.

    Two scrapes at once may both read them; neither is wrong.
    """

    def __init__(self) -> None:
        self._rows: list[UsageRow] = []
        self._read_s = -_USAGE_S

    def rows(self, connection: apsw.Connection) -> list[UsageRow]:
        """Return a row a model, the dearest first."""
        if time.monotonic() - self._read_s >= _USAGE_S:
            self._rows = list_usage(connection, "model")
            self._read_s = time.monotonic()
        return self._rows


class _StoreCollector:
    """Reads the store of one site; registered for one scrape."""

    def __init__(self, site: Site, sums: UsageSums) -> None:
        self._site = site
        self._sums = sums

    def collect(self) -> Iterable[Metric]:
        """Return every metric of the store; called by the registry."""
        site = self._site
        found = [_build(site), *_queue(site), *_disk_free(site)]
        with site.readers.read(timeout_ms=_TIMEOUT_MS) as connection:
            found += _ingest(connection)
            found += _decisions(connection)
            found += _disk(site, connection)
            found += _usage(self._sums.rows(connection))
        return found


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"hansard_{name}", text, value=value)


def _build(site: Site) -> Metric:
    found = GaugeMetricFamily(
        "hansard_build_info", "Version of this server; always 1.", labels=["version"]
    )
    found.add_metric([version("hansard")], 1, timestamp=None)
    return found


def _queue(site: Site) -> Iterator[Metric]:
    """Yield what the ingest queue of this process holds; nothing of one that only reads."""
    up_s = (time.time_ns() - site.started_ns) / _NANO
    yield _gauge("up_seconds", "Seconds since this server started.", up_s)
    if isinstance(site.ingest, Pipeline):
        state = site.ingest.queue_state()
        yield _gauge("ingest_queue_requests", "Requests that wait to be stored.", state.requests)
        yield _gauge("ingest_queue_bytes", "Bytes of requests in memory.", state.bytes)
        yield _gauge(
            "ingest_queue_limit_bytes", "Bytes from which requests are refused.", state.max_bytes
        )


def _ingest(connection: apsw.Connection) -> Iterator[Metric]:
    totals = ledger_totals(connection)
    items = CounterMetricFamily(
        "hansard_ingest_items",
        "Items received, by signal and outcome; their sum is what was received.",
        labels=["signal", "outcome"],
    )
    requests = CounterMetricFamily(
        "hansard_ingest_requests", "Requests received, by signal.", labels=["signal"]
    )
    refused = CounterMetricFamily(
        "hansard_ingest_refused_requests", "Requests refused whole, by signal.", labels=["signal"]
    )
    received = CounterMetricFamily(
        "hansard_ingest_bytes", "Bytes received, by signal.", labels=["signal"]
    )
    for signal, name in _SIGNALS.items():
        count: LedgerCount = totals[signal]
        for outcome in _OUTCOMES:
            items.add_metric([name, outcome], getattr(count, outcome))
        requests.add_metric([name], count.requests)
        refused.add_metric([name], count.refused)
        received.add_metric([name], count.bytes)
    dropped = CounterMetricFamily(
        "hansard_sender_dropped_items",
        "Items that senders report to have dropped before sending, by signal.",
        labels=["signal"],
    )
    sums: dict[str, int] = {"spans": 0, "logs": 0}
    for one in list_drops(connection):
        sums[one.signal] = sums.get(one.signal, 0) + one.items
    for signal, count_dropped in sums.items():
        dropped.add_metric([signal], count_dropped)
    yield from (items, requests, refused, received, dropped)


def _decisions(connection: apsw.Connection) -> Iterator[Metric]:
    pending = GaugeMetricFamily(
        "hansard_approvals_pending", "Approvals without a decision, by status.", labels=["status"]
    )
    for status, count in count_by_status(connection).items():
        pending.add_metric([status], count)
    yield pending
    reviews = count_tasks(connection).get("blocked", 0)
    yield _gauge("reviews_pending", "Reviews without a decision.", reviews)
    yield CounterMetricFamily(
        "hansard_audit_log_events", "Events of the audit log.", value=head(connection).seq
    )
    deliveries = GaugeMetricFamily(
        "hansard_notification_deliveries",
        "Deliveries of notifications to webhooks, by status.",
        labels=["status"],
    )
    counts = count_deliveries(connection)
    for status in DELIVERY_STATUSES:
        deliveries.add_metric([status], counts.get(status, 0))
    yield deliveries


def _disk_free(site: Site) -> Iterator[Metric]:
    yield _gauge(
        "disk_free_bytes", "Bytes free on the disk of the store.", max(free_bytes(site.folder), 0)
    )


def _disk(site: Site, connection: apsw.Connection) -> Iterator[Metric]:
    use = disk_use(site.folder, connection)
    parts = GaugeMetricFamily(
        "hansard_store_bytes", "Bytes that the store takes, by part.", labels=["part"]
    )
    parts.add_metric(["database"], use.database_bytes)
    parts.add_metric(["log"], use.log_bytes)
    parts.add_metric(["blobs"], use.blob_bytes)
    yield parts


def _usage(rows: Iterable[UsageRow]) -> Iterator[Metric]:
    calls = GaugeMetricFamily(
        "hansard_stored_model_calls",
        "Model calls of the runs that are stored now, by model.",
        labels=["model"],
    )
    tokens = GaugeMetricFamily(
        "hansard_stored_tokens",
        "Tokens of the runs that are stored now, by model and type.",
        labels=["model", "type"],
    )
    cost = GaugeMetricFamily(
        "hansard_stored_cost_usd",
        "Cost in US dollars of the runs that are stored now, by model; without calls whose price "
        "is not known.",
        labels=["model"],
    )
    for model, row in _by_model(rows):
        calls.add_metric([model], row.model_calls)
        for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
            count = getattr(row.tokens, name, None)
            if count is not None:
                tokens.add_metric([model, name], count)
        if row.cost_usd_nano is not None:
            cost.add_metric([model], row.cost_usd_nano / _NANO)
    yield from (calls, tokens, cost)


def _by_model(rows: Iterable[UsageRow]) -> Iterator[tuple[str, UsageRow]]:
    """Yield rows with the name of their model; those after the first 50 as one."""
    ranked = sorted(rows, key=lambda row: (-(row.cost_usd_nano or 0), -row.model_calls))
    yield from ((row.key or "", row) for row in ranked[:_MOST_MODELS])
    if rest := ranked[_MOST_MODELS:]:
        yield _OTHER, total_usage(rest)
