"""The ledger of what was received as files: by sender, what was rejected, what senders dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Final

from hansard_store.bodies import body_of
from hansard_store.ledger import list_drops, list_refusals, list_senders
from hansard_store.times import time_text
from hansard_web.exports.table import Row, Source, Table
from hansard_web.health.api import Drop, Refusal, SenderBody


def _senders(source: Source, _: Mapping[str, str]) -> Iterator[Row]:
    with source.readers.read() as connection:
        found = list_senders(connection)
    return (body_of(SenderBody, one, **asdict(one.count)) for one in found)


def _refusals(source: Source, _: Mapping[str, str]) -> Iterator[Row]:
    with source.readers.read() as connection:
        found = list_refusals(connection)
    return (body_of(Refusal, one, at=time_text(one.time_ns)) for one in found)


def _drops(source: Source, _: Mapping[str, str]) -> Iterator[Row]:
    with source.readers.read() as connection:
        found = list_drops(connection)
    return (body_of(Drop, one) for one in found)


SENDERS: Final = Table(
    name="senders",
    columns=(
        "service", "transport", "user_agent", "dialect", "address", "received", "stored",
        "duplicate", "rejected", "opened", "deleted", "requests", "refused", "bytes", "first_at",
        "last_at",
    ),
    filters=(),
    rows=_senders,
)  # fmt: skip
REFUSALS: Final = Table(
    name="refusals",
    columns=(
        "at", "service", "transport", "user_agent", "address", "signal", "code", "message", "items",
        "bytes",
    ),
    filters=(),
    rows=_refusals,
)  # fmt: skip
DROPS: Final = Table(
    name="drops",
    columns=("service", "signal", "reason", "items", "processes", "first_at", "last_at"),
    filters=(),
    rows=_drops,
)
