"""What receivers hand to the pipeline, and what they get back after the commit."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar

from hansard_collector.errors import StoreBusy
from hansard_store.ledger import LedgerBatch, RefusedItem, SenderKey

_MOST_REFUSALS = 200  # with their messages, between two transactions; more are only counted
_AGENT_CHARS = 2_000  # of a user agent; the ledger looks through them, and keeps the beginning
_LEAST_BYTES: Final = 256 * 1024  # of a request that may be repeated: others are answered in time
_MOST_KNOWN: Final = 64
_REMEMBERED_S: Final = 120.0  # after the answer: exporters that try again do so within a minute
# Receivers wait as long for an answer: half of the exporters' usual timeout.
LATE_S: Final = 5.0

_Error = TypeVar("_Error", bound=BaseException)


class Signal(StrEnum):
    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Encoding(StrEnum):
    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RequestSender:
    """Who sent a request, as far as the connection shows."""

    address: str  # "127.0.0.1:53122", "unix", …
    user_agent: str
    transport: str  # "grpc", "http" or "embedded"


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One export request as received, decompressed and not yet decoded."""

    signal: Signal
    encoding: Encoding
    body: bytes
    sender: RequestSender
    received_ns: int


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The outcome of a request; `rejected` items were refused singly, `message` has the reason."""

    accepted: int
    rejected: int = 0
    message: str = ""


def without_frames(error: _Error) -> _Error:
    """Return the error without the frames it passed through, to be stored in a future.

    Those frames hold the request with its body and often the future itself: a cycle, which stays in
    memory until Python's collector walks over it.
    """
    error.__context__ = None
    return error.with_traceback(None)


class Ingest(Protocol):
    """The pipeline as receivers see it."""

    def submit(self, request: IngestRequest) -> Future[IngestResult]:
        """Queue a request; the future resolves after the commit that holds all of it.

        Raises StoreBusy at once when the queue is full. The future may fail with MalformedRequest
        or StoreBusy; any other exception is a bug of ours (500, INTERNAL).
        """
        ...

    def refuse(self, request: RefusedRequest) -> None:
        """Count a request that a receiver refused before it reached the queue."""
        ...


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """For the ledger and /health: who sent what, and the sentence of the response."""

    signal: str  # "traces", "logs", "metrics" or "" when the path names none
    sender: RequestSender
    code: str  # short and stable: "too_large", "unsupported_type", "unauthenticated", …
    message: str
    size_bytes: int
    received_ns: int


class Refusals:
    """Refused requests until a transaction writes them into the ledger.

    The first are listed; those beyond are counted by sender and signal.
    """

    def __init__(self) -> None:
        self._listed: list[RefusedRequest] = []
        self._more: Counter[tuple[SenderKey, str]] = Counter()

    def __bool__(self) -> bool:
        return bool(self._listed)

    def add(self, refused: RefusedRequest) -> None:
        """Take one more."""
        if len(self._listed) < _MOST_REFUSALS:
            self._listed.append(refused)
        else:
            self._more[sender_key(refused.sender), _signal(refused)] += 1

    def merge(self, other: Refusals) -> None:
        """Take over what another holds."""
        for one in other._listed:
            self.add(one)
        self._more += other._more

    def write(self, ledger: LedgerBatch) -> None:
        """Count them, part of the transaction that the ledger belongs to."""
        for one in self._listed:
            _write_one(ledger, one)
        for (key, signal), requests in self._more.items():
            count = ledger.of(key, signal, address="")
            count.update(requests=requests, refused=requests)


def sender_key(sender: RequestSender, service: str = "") -> SenderKey:
    """Return who is counted: the service, its transport and the beginning of its user agent."""
    return SenderKey(service, sender.transport, sender.user_agent[:_AGENT_CHARS])


def _signal(refused: RefusedRequest) -> str:
    return refused.signal or "traces"  # a path that names no signal was meant for some


def _write_one(ledger: LedgerBatch, refused: RefusedRequest) -> None:
    key = sender_key(refused.sender)
    count = ledger.of(key, _signal(refused), address=refused.sender.address)
    count.update(requests=1, refused=1, bytes=refused.size_bytes)
    list_refusal(ledger, key, refused)


def list_refusal(
    ledger: LedgerBatch, key: SenderKey, refused: RefusedRequest, *, items: int | None = None
) -> None:
    """List a refused request, or that many items of one that was taken, in the ledger."""
    ledger.refuse(
        RefusedItem(
            sender=key,
            address=refused.sender.address,
            signal=refused.signal,
            code=refused.code,
            message=refused.message,
            items=items,
            size_bytes=refused.size_bytes,
            time_ns=refused.received_ns,
        )
    )


# Large requests that are sent again: their senders get the answer to the first one. A sender waits
# some seconds for an answer and then sends the same bytes again; to work on them a second time
# would take as long as the first, and end no sooner.


@dataclass(frozen=True, slots=True)
class _Repeatable:
    future: Future[IngestResult]
    began_s: float
    ended_s: float | None = None


class RepeatedRequests:
    """Large requests by their content, until some time after their late response.

    One that was answered in time is worked on again, and its spans count as duplicates. Any thread
    may use it.
    """

    def __init__(self, late_s: float = LATE_S) -> None:
        self._late_s = late_s
        self._lock = threading.Lock()
        self._known: dict[bytes, _Repeatable] = {}

    def key_of(self, request: IngestRequest) -> bytes | None:
        """Return what identifies a request; None for one that is not large."""
        if len(request.body) < _LEAST_BYTES:
            return None
        kind = f"{request.signal.value}/{request.encoding.value}/".encode()
        return hashlib.blake2b(kind + hashlib.blake2b(request.body).digest()).digest()

    def find(self, key: bytes) -> Future[IngestResult] | None:
        """Return the future of the response to a request with the same content.

        None where there was none for some minutes, or it may be stored when it is tried again.
        """
        with self._lock:
            known = self._known.get(key)
        if known is None:
            return None
        if not known.future.done():
            return known.future
        if known.future.cancelled() or isinstance(known.future.exception(), StoreBusy):
            return None
        ended_s = known.ended_s or time.monotonic()
        is_late = ended_s - known.began_s >= self._late_s
        return known.future if is_late and time.monotonic() - ended_s <= _REMEMBERED_S else None

    def add(self, key: bytes, future: Future[IngestResult]) -> None:
        """Remember a request that is worked on."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = _Repeatable(future, time.monotonic())
            for oldest in list(self._known)[:-_MOST_KNOWN]:
                del self._known[oldest]
        future.add_done_callback(partial(self._answered, key))

    def _answered(self, key: bytes, future: Future[IngestResult]) -> None:
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.future is future:
                self._known[key] = replace(known, ended_s=time.monotonic())
