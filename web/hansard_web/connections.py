"""The HTTP connections of uvicorn, with bounds it does not set on what comes before a body.

Whatever was sent of a request's head is kept until the head is whole, before anyone has shown a
token: without bounds one connection can fill the memory, and silent ones use up the descriptors.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 128 * 1024

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
        super().on_headers_complete()

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
        """Answer as if no upgrade was asked for, as RFC 9110 §7.8 allows, and log nothing."""
