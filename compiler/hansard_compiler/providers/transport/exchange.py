"""What went over the wire in one call: the exact bytes of the request and of every response to it.

An `Answer` is what an adapter reads from it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hansard_compiler.canonical import ref_of

if TYPE_CHECKING:
    from hansard_compiler.calls import Call, Json
    from hansard_compiler.providers.transport.failures import CallFailed

# The recorded headers of a response. Cookies and everything unknown stay out of the record.
RECORDED_HEADERS = frozenset(
    {
        "content-type", "content-encoding", "request-id", "x-request-id", "retry-after",
        "retry-after-ms", "x-should-retry", "openai-processing-ms", "openai-version",
    }
)  # fmt: skip


_RECORDED_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


# What another request like it needs, and which package in which version sent it. Never a key.
SENT_HEADERS = frozenset(
    {
        "content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta",
        "user-agent", "x-stainless-package-version",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try: what came back, and when. Times count from the moment the try began."""

    request: bytes  # the body as it was sent
    status: int | None = None  # None: no answer came
    headers: Mapping[str, str] = field(default_factory=dict)  # those of RECORDED_HEADERS
    response: bytes = b""  # the body as it arrived, as far as it did
    first_chunk_ms: float | None = None
    duration_ms: float = 0.0
    error: str | None = None  # what broke the connection, by its type
    address: str = ""  # scheme, host, port and path; no user, password or query
    sent_headers: Mapping[str, str] = field(default_factory=dict)  # those of SENT_HEADERS

    @property
    def body(self) -> bytes:
        """The response's body, decompressed; ValueError where it cannot be."""
        encoding = self.headers.get("content-encoding", "identity").lower()
        try:
            if encoding == "gzip":
                return gzip.decompress(self.response)
            if encoding == "deflate":
                return zlib.decompress(self.response)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"not {encoding}: {error}") from None
        if encoding != "identity":
            raise ValueError(f"cannot read content-encoding {encoding!r}")
        return self.response

    @property
    def request_id(self) -> str | None:
        return self.headers.get("request-id") or self.headers.get("x-request-id")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call to a provider with all its attempts; the last one counts."""

    provider: str
    path: str
    request: bytes
    is_stream: bool
    attempts: tuple[Attempt, ...] = ()

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def response(self) -> bytes:
        """The body of the last response as it arrived, empty when none came."""
        return self.last.response if self.last else b""

    @property
    def request_ref(self) -> str:
        return ref_of(self.request)

    @property
    def response_ref(self) -> str | None:
        return ref_of(self.response) if self.response else None


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """A call that came back: its normal form, the response as JSON, and the exchange itself.

    `shortfall` is an answer's own failure: cut at the limit, stopped by a filter. What there is of
    the answer is in `call` all the same.
    """

    call: Call
    response: Json
    exchange: Exchange
    metadata: Json = field(default_factory=dict)  # what belongs on the step beside the call
    shortfall: CallFailed | None = None


class Watcher(Protocol):
    """Gets what goes over the wire, as it goes. Must not raise."""

    def sending(self, path: str, body: bytes) -> None: ...

    def exchanged(self, exchange: Exchange) -> None: ...


_watcher: ContextVar[Watcher | None] = ContextVar("hansard_exchanges", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Observe every exchange made in this block, however it ends.

    That is what an answer and a CallFailed hold too, and besides: a provider's count of tokens, and
    a stream that the caller left before its end.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def note_sending(path: str, body: bytes) -> None:
    """Notify the observers that a body is about to be sent; wires call this once for each."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.sending(path, body)


def note_exchange(exchange: Exchange) -> None:
    """Notify the observers of the outcome; wires call this once for each exchange."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.exchanged(exchange)


def recorded_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that belong in a record, names in lower case."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: value
        for name, value in named.items()
        if name in RECORDED_HEADERS or name.startswith(_RECORDED_PREFIXES)
    }


def sent_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that belong in a record, names in lower case."""
    named = {name.lower(): value for name, value in headers.items()}
    return {name: named[name] for name in sorted(SENT_HEADERS & named.keys())}


def read_json(body: bytes) -> Any:
    """Return a body's JSON; ValueError where it is none."""
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
