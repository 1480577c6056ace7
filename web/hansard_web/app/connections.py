"""The HTTP connections of uvicorn, with bounds it does not set on what comes before a body.

Whatever was sent of a request's head is held until the head is whole, before anyone has shown a
token: without bounds one connection can fill the memory, and silent ones use up the descriptors.
When those are used up all the same, the system closes new connections without a word: a watch says
so in the log and on `/health`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hansard_collector.background import Background

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

MAX_HEAD_BYTES = 128 * 1024
_OPEN_FILES: Final = "/proc/self/fd"
_LOOK_S: Final = 1.0
_LEFT: Final = 16  # descriptors that the store itself needs for a page and a commit

_log = logging.getLogger("hansard.connections")

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)


class BoundedConnection(HttpToolsProtocol):
    """A connection that is closed when a head is too long, or not whole in time."""

    head_wait_s = 30.0

    _in_head = False
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:
            return
        # Of a chunk that ends one request and begins another all is counted: it is small.
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        self._take_host_of_target()
        super().on_headers_complete()

    def _take_host_of_target(self) -> None:
        """Let the host of `GET http://host/path` stand in for the header's (RFC 9112 §3.2.2)."""
        if self.url.startswith((b"/", b"*")):
            return
        try:
            target = httptools.parse_url(self.url)
        except httptools.HttpParserInvalidURLError:
            return  # refused by what reads it next
        port = b":%d" % target.port if target.port else b""
        others = [pair for pair in self.headers if pair[0].lower() != b"host"]
        self.headers[:] = [*others, (b"host", (target.host or b"") + port)]

    def _expect_head(self) -> None:
        self._stop_waiting()
        self._deadline = self.loop.call_later(self.head_wait_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self.transport.abort()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer as if no upgrade was requested, as RFC 9110 §7.8 allows, and log nothing."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Files and connections that this process has open, and may have."""

    used: int
    limit: int
    times_used_up: int  # since the start

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.limit - _LEFT


def allow_many_descriptors() -> None:
    """Raise the limit of open files as far as the system lets this user."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard and hard != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class DescriptorWatch:
    """Notices that no connection can be taken any more, as nobody else would.

    `working` has a thread for it; the state is read by pages, from any thread.
    """

    def __init__(self, count: Callable[[], int] | None = None) -> None:
        self._count = count or _count_open
        self._times = 0
        self._was_used_up = False

    def working(self) -> AbstractContextManager[None]:
        """Look once a second for as long as a block lasts."""
        return Background(
            "hansard-descriptors",
            lambda _: self.look(),
            every_s=_LOOK_S,
            first_s=_LOOK_S,
            log=_log,
            put_off="descriptors are counted later",
        ).working()

    def look(self) -> None:
        """Say once that descriptors are used up, and once that they no longer are."""
        state = self.state()
        if state is None or state.is_used_up == self._was_used_up:
            return
        self._was_used_up = state.is_used_up
        if state.is_used_up:
            self._times += 1
            _log.error(
                "%d of %d descriptors are in use: new connections are closed by the system until"
                " others end; raise the limit of open files (ulimit -n, LimitNOFILE=)",
                state.used,
                state.limit,
            )
        else:
            _log.warning("descriptors are free again: connections are taken")

    def state(self) -> Descriptors | None:
        """Return what is open now; None where the system does not tell."""
        if resource is None:
            return None
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            used = self._count()
        except FileNotFoundError:
            return None
        except OSError:  # none is left to look with
            used = limit
        return Descriptors(used, limit, self._times)


def _count_open() -> int:
    return len(os.listdir(_OPEN_FILES))


DESCRIPTORS: Final = DescriptorWatch()  # a process has one set of them, whatever it serves
