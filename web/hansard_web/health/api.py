"""The collector's own count, and whether this process can write."""

from __future__ import annotations

import time
from dataclasses import asdict
from http import HTTPStatus
from importlib.metadata import version
from typing import Final

from hansard._export.otlp.exporter import PRODUCT
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.database.connections import why_not_writable
from hansard_store.ledger import (
    ledger_totals,
    list_drops,
    list_refusals,
    list_senders,
)
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.api.values import stored_fields, time_text
from hansard_web.app.site import SiteDep

router = NounRouter("health")

# What the signals are counted in.
_ITEMS: Final = {"traces": "spans", "logs": "logs", "metrics": "metric_points"}
_SENDER: Final = "service transport user_agent dialect address first_at last_at"
_REFUSAL: Final = "service transport user_agent address signal code message items bytes"
_DROP: Final = "service signal reason items processes first_at last_at"


@router.get("/v1/ledger", "api.schemas.Ledger")
def ledger(site: SiteDep) -> ApiResponse:
    """Show what was received and what became of it, by signal and by sender.

    received = stored + duplicate + rejected + opened + deleted, for every signal and sender.
    """
    ingest = site.ingest
    with site.readers.read() as connection:
        totals = ledger_totals(connection)
        senders = list_senders(connection)
        refusals = list_refusals(connection)
        drops = list_drops(connection)
    return ApiResponse(
        {
            **{name: asdict(totals[signal]) for signal, name in _ITEMS.items()},
            "senders": [{**stored_fields(one, _SENDER), **asdict(one.count)} for one in senders],
            "refusals": [
                {"at": time_text(one.time_ns), **stored_fields(one, _REFUSAL)} for one in refusals
            ],
            "drops": [stored_fields(one, _DROP) for one in drops],
            # How full the queue of this process is; None where it only reads.
            "queue": asdict(ingest.queue_state()) if isinstance(ingest, Pipeline) else None,
        }
    )


@router.get("/healthz", "api.schemas.Health")
def health(site: SiteDep) -> ApiResponse:
    """Say whether the store can be written; 503 when it cannot. Tells nothing of its content."""
    common = {"product": PRODUCT, "version": version("hansard")}
    reason = why_not_writable(site.folder)
    if reason is not None:
        body = {"status": "unavailable", **common, "reason": reason}
        return ApiResponse(body, status_code=HTTPStatus.SERVICE_UNAVAILABLE)
    up_s = (time.time_ns() - site.started_ns) / 1e9
    return ApiResponse({"status": "ok", **common, "up_seconds": round(up_s, 1)})
