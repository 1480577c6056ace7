"""A response over HTTP that ends in time, however slowly it arrives."""

from __future__ import annotations

import io
import socket
import time
from http.client import HTTPResponse
from typing import Any


class TimedResponse(HTTPResponse):
    """A response that must be whole within the timeout of its socket, head and body.

    A socket's own timeout begins anew with each byte that comes.
    """

    def __init__(self, sock: socket.socket, *args: Any, **named: Any) -> None:
        super().__init__(sock, *args, **named)
        self.fp = io.BufferedReader(_Until(sock, self.fp.detach()))


class _Until(io.RawIOBase):
    """Reads a socket until a time."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw
        self._deadline = time.monotonic() + (sock.gettimeout() or 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
