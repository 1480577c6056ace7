"""JSON over HTTP to Hansard's own routes: reused connections, and every failure is a typed error.

The standard library's client: a gate must work where nothing else is installed, and without what
sends telemetry.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

from hansard._config.setting import GRPC
from hansard._gate.arguments import Json
from hansard.errors import GateUnavailable

if TYPE_CHECKING:
    from hansard._config.settings import Settings

_MOST_BYTES: Final = 64 << 20
_MOST_IDLE: Final = 8
_CERTIFICATE: Final = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
_LOST: Final = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class BackendResponse:
    """A status and the JSON that came with it."""

    status: int
    body: Json

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    data: bytes | None
    timeout_s: float
    headers: Mapping[str, str]
    is_repeatable: bool
    own: bool = True  # with the headers of the settings, the token among them


class HttpClient:
    """One server. Threads may share it: each takes a connection of its own for each exchange."""

    def __init__(self, base: str, *, headers: Mapping[str, str], timeout_s: float) -> None:
        parts = urlsplit(base)
        self.base = base
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {**headers, "accept": "application/json"}
        self._anonymous = {
            name: value for name, value in self._headers.items() if name.lower() != "authorization"
        }
        self._timeout_s = timeout_s
        self._idle: list[http.client.HTTPConnection] = []  # single operations, so no lock
        self._pid = os.getpid()
        self._most_idle = _MOST_IDLE

    @classmethod
    def of(cls, settings: Settings) -> HttpClient:
        """Return the client for the server that telemetry goes to. Raises GateUnavailable."""
        base = settings.http_endpoint
        if base is None and settings.protocol == GRPC:
            raise GateUnavailable(
                "a gate speaks HTTP, and only a gRPC endpoint is set: set http_endpoint too"
            )
        return cls(
            base or settings.endpoint, headers=settings.headers, timeout_s=settings.timeout_s
        )

    def get(
        self, path: str, *, wait_s: float = 0, headers: Mapping[str, str] | None = None
    ) -> BackendResponse:
        """Ask for something."""
        timeout_s = self._timeout_s + wait_s
        return self._send(_Request("GET", path, None, timeout_s, headers or {}, is_repeatable=True))

    def post(
        self,
        path: str,
        body: Json,
        *,
        is_repeatable: bool = False,
        headers: Mapping[str, str] | None = None,
        own: bool = True,
    ) -> BackendResponse:
        """Send something, once; again only if that changes nothing.

        With `own` False the token of the settings is left out: it is never one to decide with.
        """
        try:
            data = json.dumps(body, allow_nan=False).encode()
        except ValueError as error:
            raise GateUnavailable(f"this cannot be said in JSON: {error}") from None
        sent = {"content-type": "application/json", **(headers or {})}
        return self._send(
            _Request(
                "POST", path, data, self._timeout_s, sent, is_repeatable=is_repeatable, own=own
            )
        )

    def close(self) -> None:
        """Close the idle connections, and keep none open from here on."""
        self._most_idle = 0
        while self._idle:
            self._idle.pop().close()

    def _send(self, request: _Request) -> BackendResponse:
        # What watches the program's HTTP calls must not see this one.
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            return self._exchanged(request)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = f"{type(error).__name__}: {error}".rstrip(": ")
            raise GateUnavailable(f"no decision can be had from {self.base}: {problem}") from error
        finally:
            detach(token)

    def _exchanged(self, request: _Request) -> BackendResponse:
        address = self._prefix + request.path
        headers = {**(self._headers if request.own else self._anonymous), **request.headers}
        connection, is_reused = self._connection(request.timeout_s)
        with ExitStack() as broken:
            broken.callback(connection.close)
            try:
                connection.request(request.method, address, body=request.data, headers=headers)
                response = connection.getresponse()
            except _LOST:
                if not is_reused or not request.is_repeatable:
                    raise
                return self._exchanged(request)  # the server just closed the idle connection
            read = _read(response)
            broken.pop_all()
        if connection.sock is None or len(self._idle) >= self._most_idle:
            connection.close()
        else:
            self._idle.append(connection)
        return read

    def _connection(self, timeout_s: float) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection to use alone, and whether it was used before."""
        if self._pid != os.getpid():  # after a fork: the parent's connections are the parent's
            self._idle, self._pid = [], os.getpid()
        while self._idle:
            try:
                idle = self._idle.pop()
            except IndexError:
                break
            if idle.sock is not None and _is_alive(idle.sock):
                idle.sock.settimeout(timeout_s)
                return idle, True
            idle.close()
        made: http.client.HTTPConnection
        if self._is_tls:
            made = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=self._tls
            )
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        return made, False

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        roots = next((os.environ[name] for name in _CERTIFICATE if os.environ.get(name)), None)
        return ssl.create_default_context(cafile=roots)


def _read(response: http.client.HTTPResponse) -> BackendResponse:
    raw = response.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError(f"an answer of over {_MOST_BYTES >> 20} MiB")
    body = json.loads(raw) if raw else {}
    if not isinstance(body, dict):
        raise ValueError("an answer that is no JSON object")
    return BackendResponse(response.status, body)


def _is_alive(sock: socket.socket) -> bool:
    """Whether an idle connection is still open: where it can be read, the other side closed it."""
    try:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False


def credential(token: str | None) -> dict[str, str]:
    """Return the header of a decision: its own token, and no other."""
    return {"authorization": f"Bearer {token}"} if token else {}


def error_of(response: BackendResponse) -> tuple[str, str, dict[str, Any]]:
    """Return code, message and details of an error response."""
    error = response.body.get("error")
    if not isinstance(error, Mapping):
        return f"http_{response.status}", f"it answered {response.status}", {}
    details = error.get("details")
    return (
        str(error.get("code") or f"http_{response.status}"),
        str(error.get("message") or f"it answered {response.status}"),
        dict(details) if isinstance(details, Mapping) else {},
    )
