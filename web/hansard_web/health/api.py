"""The collector's own count, and whether this process can write."""

from __future__ import annotations

import time
from dataclasses import asdict
from http import HTTPStatus
from importlib.metadata import version

from hansard._export.otlp.exporter import PRODUCT
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.database.write_probe import why_not_writable
from hansard_store.ledger import (
    DropSum,
    LedgerCount,
    LedgerRefusal,
    LedgerSender,
    ledger_totals,
    list_drops,
    list_refusals,
    list_senders,
)
from hansard_web.api.openapi import answers
from hansard_web.api.router import Answer, NounRouter
from hansard_web.api.values import Body, time_text
from hansard_web.app.site import Site, SiteDep

router = NounRouter("health")

# What the signals are counted in.
_ITEMS = {"traces": "spans", "logs": "logs", "metrics": "metric_points"}


@router.get("/v1/ledger", response_class=Answer, responses=answers("api.schemas.Ledger"))
def ledger(site: SiteDep) -> Answer:
    """Show what was received and what became of it, by signal and by sender.

    received = stored + duplicate + rejected + opened + deleted, for every signal and sender.
    """
    with site.readers.read() as connection:
        totals = ledger_totals(connection)
        senders = list_senders(connection)
        refusals = list_refusals(connection)
        drops = list_drops(connection)
    return Answer(
        {
            **{name: asdict(totals[signal]) for signal, name in _ITEMS.items()},
            "senders": [_sender(one) for one in senders],
            "refusals": [_refusal(one) for one in refusals],
            "drops": [_drop(one) for one in drops],
            "queue": _queue(site),
        }
    )


def _sender(sender: LedgerSender) -> Body:
    return {
        "service": sender.service,
        "transport": sender.transport,
        "user_agent": sender.user_agent,
        "dialect": sender.dialect,
        "address": sender.address,
        "first_at": time_text(sender.first_ns),
        "last_at": time_text(sender.last_ns),
        **_count(sender.count),
    }


def _count(count: LedgerCount) -> Body:
    return asdict(count)


def _refusal(refusal: LedgerRefusal) -> Body:
    return {
        "at": time_text(refusal.time_ns),
        "service": refusal.service,
        "transport": refusal.transport,
        "user_agent": refusal.user_agent,
        "address": refusal.address,
        "signal": refusal.signal,
        "code": refusal.code,
        "message": refusal.message,
        "items": refusal.items,
        "bytes": refusal.bytes,
    }


def _drop(drop: DropSum) -> Body:
    return {
        "service": drop.service,
        "signal": drop.signal,
        "reason": drop.reason,
        "items": drop.items,
        "processes": drop.processes,
        "first_at": time_text(drop.first_ns),
        "last_at": time_text(drop.last_ns),
    }


def _queue(site: Site) -> Body | None:
    """Return how full the queue of this process is; None where it only reads."""
    return asdict(site.ingest.queue_state()) if isinstance(site.ingest, Pipeline) else None


@router.get("/healthz", response_class=Answer, responses=answers("api.schemas.Health"))
def health(site: SiteDep) -> Answer:
    """Say whether the store can be written; 503 when it cannot. Tells nothing of its content."""
    reason = why_not_writable(site.folder)
    if reason is not None:
        body = {
            "status": "unavailable",
            "product": PRODUCT,
            "reason": reason,
            "version": version("hansard"),
        }
        return Answer(body, status_code=HTTPStatus.SERVICE_UNAVAILABLE)
    up_s = (time.time_ns() - site.started_ns) / 1e9
    return Answer(
        {
            "status": "ok",
            "product": PRODUCT,
            "version": version("hansard"),
            "up_seconds": round(up_s, 1),
        }
    )
