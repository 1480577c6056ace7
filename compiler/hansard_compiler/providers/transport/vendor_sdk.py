"""Sends requests with the official `openai` and `anthropic` packages, byte for byte as rendered.

The packages bring retrying, authentication and connection handling; they are imported when the
first request is sent. Neither traces: the caller records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

from hansard_compiler.calls import Json
from hansard_compiler.providers.base import OnEvent
from hansard_compiler.providers.formats.sse import events_of
from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.exchange import Exchange, note_exchange, note_sending
from hansard_compiler.providers.transport.failure_mapping import failure_in_stream, failure_of, made
from hansard_compiler.providers.transport.failures import KeyMissing, PackageMissing

_HEADERS = {"Content-Type": "application/json"}
# Plain bytes on the wire, so that what is recorded can be read without knowing how it travelled.
_ALWAYS = {"Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a provider. None takes the provider's default.

    `api_key` wins over the environment. A timeout covers each wait of an attempt; a retried attempt
    may be billed as well as the first, and every one is recorded.
    """

    api_key: str | None = None
    base_url: str | None = None
    timeout_s: float = 600.0
    max_retries: int = 2
    most_retry_wait_s: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict)


class OfficialWire:
    """Posts through one of the packages' clients. Safe to share between threads."""

    def __init__(self, provider: str, make: Callable[[Any], Any], package: str) -> None:
        self.provider = provider
        self._make = make
        self._package = package
        self._client: Any = None
        self._lock = Lock()  # makes the client once, whichever thread is first

    def post(
        self, path: str, body: bytes, *, stream: bool, on_event: OnEvent | None = None
    ) -> Exchange:
        """Send bytes as they are and return the exchange; a CallFailed holds it too."""
        package, client = self._ready()
        from hansard_compiler.providers.transport.http_recording import recording

        note_sending(path, body)
        with recording() as record:
            problem: Exception | None = None
            try:
                self._send(package, client, path, body, stream=stream, on_event=on_event)
            except (package.APIError, import_module("httpx2").HTTPError, _Unreadable) as error:
                problem = error
                if record.attempts and record.attempts[-1].status is None:
                    record.lose(error)
            finally:  # also when what `on_event` raised goes through to the caller
                exchange = Exchange(self.provider, path, body, stream, tuple(record.attempts))
                note_exchange(exchange)
        self._judge(exchange, problem)
        return exchange

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ready(self) -> tuple[Any, Any]:
        try:
            package = import_module(self._package)
        except ImportError:
            raise PackageMissing(self._package, self._package) from None
        with self._lock:
            if self._client is None:
                self._client = self._make(package)
            return package, self._client

    def _send(
        self,
        package: Any,
        client: Any,
        path: str,
        body: bytes,
        *,
        stream: bool,
        on_event: OnEvent | None,
    ) -> None:
        options = {"headers": _HEADERS}
        if not stream:
            raw = import_module("httpx2").Response
            client.post(path, cast_to=raw, content=body, options=options)
            return
        kind = package.Stream[object]
        events = client.post(
            path, cast_to=object, content=body, options=options, stream=True, stream_cls=kind
        )
        with events:
            for event in _readable(events):
                if on_event is not None and isinstance(event, dict):
                    on_event(event)

    def _judge(self, exchange: Exchange, problem: Exception | None) -> None:
        """Raise the failure an exchange amounts to; return when there is none."""
        attempt = exchange.last
        if attempt is None:
            raise made(failures.ConnectionFailed, _problem_text(problem), exchange)
        if attempt.status is not None and attempt.status >= 400:
            raise failure_of(exchange)
        if attempt.error is None and attempt.status is not None:
            error = _stream_error(exchange) if exchange.is_stream else None
            if error is not None:
                raise failure_in_stream(error, exchange)
            if problem is not None:
                raise made(failures.InvalidResponse, _problem_text(problem), exchange)
            return
        if attempt.error is not None and "Timeout" in attempt.error:
            raise made(failures.TimedOut, f"no answer in time ({attempt.error})", exchange)
        is_cut = attempt.status is not None and exchange.is_stream
        kind = failures.StreamBroken if is_cut else failures.ConnectionFailed
        raise made(kind, f"the connection broke ({attempt.error})", exchange)


class _Unreadable(Exception):
    """An event of a stream that is not JSON, as the package reads it."""


def _readable(events: Iterable[Any]) -> Iterator[Any]:
    """Yield a stream's events; separate what cannot be read from what a caller raises."""
    reading = iter(events)
    while True:
        try:
            event = next(reading)
        except StopIteration:
            return
        except (ValueError, RecursionError) as error:
            raise _Unreadable(f"an event is not JSON: {error}") from error
        yield event


def _stream_error(exchange: Exchange) -> Json | None:
    """Return the error that a stream's events report, None where there is none."""
    assert exchange.last is not None
    try:
        events = events_of(exchange.last.body)
    except ValueError as error:
        raise made(failures.InvalidResponse, f"the stream is not JSON: {error}", exchange) from None
    for event in events:
        if event.get("type") == "response.failed":
            return dict((event.get("response") or {}).get("error") or {"code": "server_error"})
        if event.get("type") == "error" or (event.get("error") and "choices" not in event):
            found = event.get("error")
            return dict(found) if isinstance(found, dict) else {**event, "type": None}
    return None


def _problem_text(problem: Exception | None) -> str:
    return f"{type(problem).__name__.lstrip('_')}: {problem}" if problem else "no answer"


# --- the two packages -------------------------------------------------------------------------


def openai_wire(
    connection: Connection,
    *,
    provider: str = "openai",
    needs_key: bool = True,
    environment: Mapping[str, str] = os.environ,
) -> OfficialWire:
    """Return a wire by the package `openai`; a server on one's own machine needs no key."""

    def make(package: Any) -> Any:
        key = connection.api_key or environment.get("OPENAI_API_KEY")
        if not key and needs_key:
            raise KeyMissing(provider, "OPENAI_API_KEY")
        return package.OpenAI(api_key=key or "none", **_client_options(connection))

    return OfficialWire(provider, make, "openai")


def anthropic_wire(
    connection: Connection, *, environment: Mapping[str, str] = os.environ
) -> OfficialWire:
    """Return a wire by the package `anthropic`, with its own tracing off.

    The key is always passed explicitly: without one the package would look for a profile on disk.
    """

    def make(package: Any) -> Any:
        key = connection.api_key or environment.get("ANTHROPIC_API_KEY")
        if not key:
            raise KeyMissing("anthropic", "ANTHROPIC_API_KEY")
        return package.Anthropic(api_key=key, open_telemetry=False, **_client_options(connection))

    return OfficialWire("anthropic", make, "anthropic")


def _client_options(connection: Connection) -> Json:
    """Return what both clients take; their HTTP client is as they would make it, with our hooks."""
    import httpx2

    from hansard_compiler.providers.transport.http_recording import event_hooks

    return {
        "base_url": connection.base_url,
        "timeout": connection.timeout_s,
        "max_retries": connection.max_retries,
        "default_headers": {**_ALWAYS, **connection.headers},
        "http_client": httpx2.Client(
            event_hooks=event_hooks(connection.most_retry_wait_s),
            timeout=connection.timeout_s,
            follow_redirects=True,
            verify=_certificates(),
        ),
    }


@lru_cache(maxsize=1)
def _certificates() -> Any:
    import httpx2

    return httpx2.create_ssl_context()  # reading them takes 20 ms; one for all clients
