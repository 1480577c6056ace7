"""What receivers hand to the pipeline, and what they get back after the commit."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

_Error = TypeVar("_Error", bound=BaseException)


class Signal(StrEnum):
    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Encoding(StrEnum):
    PROTOBUF = "protobuf"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a request, as far as the connection tells."""

    address: str  # "127.0.0.1:53122", "unix", …
    user_agent: str
    transport: str  # "grpc", "http" or "embedded"


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One export request as received, decompressed and not yet decoded."""

    signal: Signal
    encoding: Encoding
    body: bytes
    sender: Sender
    received_ns: int


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of a request; `rejected` items were refused singly, `message` says why."""

    accepted: int
    rejected: int = 0
    message: str = ""


def without_frames(error: _Error) -> _Error:
    """Return the error without the frames it passed through, to be kept in a future.

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
    """For the ledger and /health: who sent what, and the sentence they were answered."""

    signal: str  # "traces", "logs", "metrics" or "" when the path names none
    sender: Sender
    code: str  # short and stable: "too_large", "unsupported_type", "unauthenticated", …
    message: str
    size_bytes: int
    received_ns: int
