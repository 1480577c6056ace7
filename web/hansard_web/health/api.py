"""The collector's own count, and whether this process can write."""

from __future__ import annotations

import time
from dataclasses import asdict
from http import HTTPStatus
from importlib.metadata import version
from typing import Annotated, Final, Literal, NotRequired

from hansard._export.otlp.exporter import PRODUCT
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_store.bodies import Answer, Body, Description, body_of
from hansard_store.database.connections import why_not_writable
from hansard_store.ledger import (
    ledger_totals,
    list_drops,
    list_refusals,
    list_senders,
)
from hansard_store.times import time_text
from hansard_web.api.router import ApiResponse, NounRouter
from hansard_web.app.site import SiteDep

router = NounRouter("health")

# What the signals are counted in.
_ITEMS: Final = {"traces": "spans", "logs": "logs", "metrics": "metric_points"}


class LedgerCountBody(Body):
    """received = stored + duplicate + rejected + opened + deleted; refused are whole requests."""

    received: int
    stored: int
    duplicate: int
    rejected: int
    opened: int
    deleted: int
    requests: int
    refused: int
    bytes: int


class SenderBody(LedgerCountBody):
    service: str
    transport: str
    user_agent: str
    dialect: str
    address: str
    first_at: str
    last_at: str


class Refusal(Body):
    at: str
    service: str
    transport: str
    user_agent: str
    address: str
    signal: str
    code: str
    message: str
    items: Annotated[int | None, Description("null: the whole request")]
    bytes: int


class Queue(Body):
    requests: int
    bytes: int
    max_bytes: int


class Drop(Body):
    service: str
    signal: Annotated[str, Description("spans or logs")]
    reason: str
    items: int
    processes: int
    first_at: str
    last_at: str


class Ledger(Answer):
    spans: LedgerCountBody
    logs: LedgerCountBody
    metric_points: LedgerCountBody
    senders: list[SenderBody]
    refusals: list[Refusal]
    drops: Annotated[list[Drop], Description("what senders report that they dropped")]
    queue: Annotated[Queue | None, Description("of this process; null where it only reads")]


class Health(Answer):
    status: Literal["ok", "unavailable"]
    product: Annotated[Literal["hansard"], Description("who answers: senders of open spans ask")]
    version: str
    up_seconds: NotRequired[float | None]
    reason: NotRequired[str | None]


@router.get("/v1/ledger", "health.api.Ledger")
def ledger(site: SiteDep) -> ApiResponse:
    """Show what was received and what became of it, by signal and by sender.

    received = stored + duplicate + rejected + opened + deleted, for every signal and sender.
    """
    with site.readers.read() as connection:
        totals = ledger_totals(connection)
        senders = list_senders(connection)
        refusals = list_refusals(connection)
        drops = list_drops(connection)
    ingest = site.ingest
    queue = body_of(Queue, ingest.queue_state()) if isinstance(ingest, Pipeline) else None
    body = body_of(
        Ledger,
        **{name: body_of(LedgerCountBody, totals[signal]) for signal, name in _ITEMS.items()},
        senders=[body_of(SenderBody, one, **asdict(one.count)) for one in senders],
        refusals=[body_of(Refusal, one, at=time_text(one.time_ns)) for one in refusals],
        drops=[body_of(Drop, one) for one in drops],
        queue=queue,
    )
    return ApiResponse(body)


@router.get("/healthz", "health.api.Health")
def health(site: SiteDep) -> ApiResponse:
    """Say whether the store can be written; 503 when it cannot. Tells nothing of its content."""
    common = {"product": PRODUCT, "version": version("hansard")}
    reason = why_not_writable(site.folder)
    if reason is not None:
        body = body_of(Health, status="unavailable", reason=reason, **common)
        return ApiResponse(body, status_code=HTTPStatus.SERVICE_UNAVAILABLE)
    up_s = (time.time_ns() - site.started_ns) / 1e9
    return ApiResponse(body_of(Health, status="ok", up_seconds=round(up_s, 1), **common))
