"""Whole requests that were refused, until a transaction writes them into the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hansard_collector.pipeline.submission import RefusedRequest, Sender
from hansard_store.ledger.counts import LedgerBatch, Refusal, SenderKey

_MOST_TOLD = 200  # with their sentence, between two transactions; more are only counted
_AGENT_CHARS = 2_000  # of a user agent; the ledger looks through them, and keeps the beginning


class Refusals:
    """A bounded list of refusals; those beyond it are counted by sender and signal."""

    def __init__(self, told: Iterable[RefusedRequest] = ()) -> None:
        self._told: list[RefusedRequest] = []
        self._more: Counter[tuple[SenderKey, str]] = Counter()
        for one in told:
            self.add(one)

    def __bool__(self) -> bool:
        return bool(self._told)

    def add(self, refused: RefusedRequest) -> None:
        """Take one more."""
        if len(self._told) < _MOST_TOLD:
            self._told.append(refused)
        else:
            self._more[sender_key(refused.sender), _signal(refused)] += 1

    def merge(self, other: Refusals) -> None:
        """Take over what another holds."""
        for one in other._told:
            self.add(one)
        self._more += other._more

    def write(self, ledger: LedgerBatch) -> None:
        """Count them, part of the transaction that the ledger belongs to."""
        for one in self._told:
            _write_one(ledger, one)
        for (key, signal), requests in self._more.items():
            count = ledger.of(key, signal, address="")
            count.requests += requests
            count.refused += requests


def sender_key(sender: Sender, service: str = "") -> SenderKey:
    """Return who is counted: the service, its transport and the beginning of its user agent."""
    return SenderKey(service, sender.transport, sender.user_agent[:_AGENT_CHARS])


def _signal(refused: RefusedRequest) -> str:
    return refused.signal or "traces"  # a path that names no signal was meant for some


def _write_one(ledger: LedgerBatch, refused: RefusedRequest) -> None:
    key = sender_key(refused.sender)
    count = ledger.of(key, _signal(refused), address=refused.sender.address)
    count.requests += 1
    count.refused += 1
    count.bytes += refused.size_bytes
    ledger.refuse(
        Refusal(
            sender=key,
            address=refused.sender.address,
            signal=refused.signal,
            code=refused.code,
            message=refused.message,
            items=None,
            size_bytes=refused.size_bytes,
            time_ns=refused.received_ns,
        )
    )
