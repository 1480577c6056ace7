"""Reading request bodies: counted as they come, never more in memory than is allowed."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from hansard_collector.errors import RequestTooLarge, StoreBusy

_DRAIN_WAIT_S = 30.0  # a sender that still sends after so long will not read the answer


class SenderStalled(Exception):
    """No part of the body came for too long."""


class BodyBudget:
    """Bytes of all bodies in the making, compressed and inflated.

    The lock guards the count: the event loop's thread takes what it reads, threads that inflate
    take what comes out.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._lock = threading.Lock()

    def take(self, count_bytes: int) -> None:
        """Raises StoreBusy when many large requests come at once; memory is what ran out."""
        with self._lock:
            if self._used_bytes + count_bytes > self._limit_bytes:
                raise StoreBusy(
                    f"requests of {self._used_bytes:,} bytes are being read; send it again"
                )
            self._used_bytes += count_bytes

    def give_back(self, count_bytes: int) -> None:
        with self._lock:
            self._used_bytes -= count_bytes


class Body:
    """The body of one request, readable once; what is held of it uses the budget until `free`."""

    def __init__(
        self, receive: Receive, *, budget: BodyBudget, chunk_wait_s: float, whole_wait_s: float
    ) -> None:
        self._receive = receive
        self._budget = budget
        self._chunk_wait_s = chunk_wait_s
        self._whole_wait_s = whole_wait_s
        self._held_bytes = 0
        self.read_bytes = 0
        self.is_complete = False

    async def read(self, limit_bytes: int) -> bytes:
        """Return the whole body. Raises RequestTooLarge, StoreBusy or SenderStalled."""
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self._whole_wait_s):
                while not self.is_complete:
                    chunk = await self._next_chunk()
                    if self.read_bytes > limit_bytes:
                        raise RequestTooLarge(limit_bytes)
                    if chunk:
                        self.hold(len(chunk))
                        chunks.append(chunk)
        except TimeoutError:
            raise SenderStalled from None
        if len(chunks) == 1:
            return chunks[0]
        whole_bytes = sum(map(len, chunks))
        self.hold(whole_bytes)  # joining copies
        joined = b"".join(chunks)
        chunks.clear()
        self.let_go(whole_bytes)
        return joined

    def hold(self, count_bytes: int) -> None:
        """Take from the budget, in any thread, before memory is used; raises StoreBusy."""
        self._budget.take(count_bytes)
        self._held_bytes += count_bytes

    def let_go(self, count_bytes: int) -> None:
        """Give back a part of what is held."""
        self._held_bytes -= count_bytes
        self._budget.give_back(count_bytes)

    async def drain(self, limit_bytes: int) -> None:
        """Read and drop what is left, up to a limit, so that the sender gets to read the answer.

        Closing while it still sends would reset the connection, and a reset is retried.
        """
        stop_bytes = self.read_bytes + limit_bytes
        with contextlib.suppress(TimeoutError, SenderStalled):
            async with asyncio.timeout(_DRAIN_WAIT_S):
                while not self.is_complete and self.read_bytes <= stop_bytes:
                    await self._next_chunk()

    def free(self) -> None:
        self._budget.give_back(self._held_bytes)
        self._held_bytes = 0

    async def _next_chunk(self) -> bytes:
        try:
            async with asyncio.timeout(self._chunk_wait_s):
                message = await self._receive()
        except TimeoutError:
            raise SenderStalled from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self.read_bytes += len(chunk)
        self.is_complete = not message.get("more_body", False)
        return chunk
