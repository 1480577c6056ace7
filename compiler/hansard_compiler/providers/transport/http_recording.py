"""Keeps the exact bytes of every attempt of a call, below the official clients' retrying.

What was sent, what came back, when the first piece came: seen through the event hooks of the HTTP
client, so that everything else about it (proxies, certificates) stays as it would be. Import this
only where `httpx2` is installed; the official packages bring it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from hansard_compiler.providers.transport.exchange import Attempt, recorded_headers, sent_headers
from hansard_compiler.providers.transport.failure_mapping import retry_after_s

_current: ContextVar[_Recording | None] = ContextVar("hansard_recording", default=None)


@dataclass(slots=True)
class _Recording:
    """The attempts of one call so far."""

    attempts: list[Attempt] = field(default_factory=list)
    started_ns: int = 0  # of the last attempt, on the monotonic clock

    def begin(self, request: httpx2.Request) -> None:
        self.started_ns = time.monotonic_ns()
        address = str(request.url.copy_with(username=None, password=None, query=None))
        headers = sent_headers(request.headers)
        self.attempts.append(Attempt(request.read(), address=address, sent_headers=headers))

    def change(self, index: int, **fields: Any) -> None:
        self.attempts[index] = replace(self.attempts[index], **fields)

    def lose(self, error: BaseException) -> None:
        """Note that an attempt got no response at all, and why."""
        name = type(_http_error(error)).__name__
        self.change(-1, error=name, duration_ms=_ms_since(self.started_ns))


@contextmanager
def recording() -> Iterator[_Recording]:
    """Collect the attempts made in this block, in this thread."""
    made = _Recording()
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)


def event_hooks(most_wait_s: float) -> dict[str, list[Callable[..., Any]]]:
    """Return the hooks for an HTTP client whose calls are to be recorded.

    A provider's delay longer than `most_wait_s` ends the official client's own
    retrying: the caller gets the failure, with the wait in it, and decides.
    """

    def on_response(response: httpx2.Response) -> None:
        made = _current.get()
        if made is not None:
            _keep_response(made, response)
        if (retry_after_s(response.headers) or 0) > most_wait_s:
            response.headers["x-should-retry"] = "false"

    return {"request": [_on_request], "response": [on_response]}


def _on_request(request: httpx2.Request) -> None:
    made = _current.get()
    if made is not None:
        made.begin(request)


def _keep_response(made: _Recording, response: httpx2.Response) -> None:
    headers = recorded_headers(dict(response.headers))
    made.change(-1, status=response.status_code, headers=headers)
    assert isinstance(response.stream, httpx2.SyncByteStream)
    index = len(made.attempts) - 1
    response.stream = _RecordedStream(response.stream, made, index, made.started_ns)


def _http_error(error: BaseException) -> BaseException:
    """Return the HTTP client's error behind a package's own."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, httpx2.HTTPError):
        behind = behind.__cause__
    return behind or error


class _RecordedStream(httpx2.SyncByteStream):
    """A response's body that is recorded while it is read, however the reading ends."""

    def __init__(
        self, inner: httpx2.SyncByteStream, made: _Recording, index: int, started_ns: int
    ) -> None:
        self._inner = inner
        self._made = made
        self._index = index
        self._started_ns = started_ns
        self._chunks: list[bytes] = []
        self._first_ms: float | None = None
        self._is_recorded = False

    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._inner:
                if self._first_ms is None:
                    self._first_ms = _ms_since(self._started_ns)
                self._chunks.append(chunk)
                yield chunk
        except Exception as error:
            self._keep(error)
            raise
        self._keep(None)

    def close(self) -> None:
        # A reader that stops early closes; its generator may live on until nobody holds it.
        self._keep(None)
        self._inner.close()

    def _keep(self, error: BaseException | None) -> None:
        if self._is_recorded:
            return
        self._is_recorded = True
        self._made.change(
            self._index,
            response=b"".join(self._chunks),
            first_chunk_ms=self._first_ms,
            duration_ms=_ms_since(self._started_ns),
            error=type(error).__name__ if error else None,
        )


def _ms_since(started_ns: int) -> float:
    return (time.monotonic_ns() - started_ns) / 1e6
