"""Refusals that wait: a wrong token is answered late, by gRPC as by HTTP.

Each holds one of the workers, so the limiter says how long one waits and how many do at once; what
is over is answered at once. A wait ends early when its caller leaves, or the receiver stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import grpc

# Takes an address without its port; counts the failure, gives the seconds to wait, and keeps a
# place among those that wait until it is left.
Limiter = Callable[[str], AbstractContextManager[float]]
MOST_HELD: Final = 16  # the limiter gives no more; the workers that may be held beside the others


@contextmanager
def unlimited(_address: str) -> Iterator[float]:
    """The limiter of a receiver that has no token to guess."""
    yield 0.0


class HeldBack:
    """The refusals that wait now. The lock guards them and whether it ended; workers touch both."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._is_ended = False

    def wait(self, address: str, context: grpc.ServicerContext) -> None:
        """Count a failure of an address, and wait as long as the limiter says."""
        over = threading.Event()
        with self._limiter(_host(address)) as wait_s:
            if not wait_s or not context.add_callback(over.set):
                return
            with self._lock:
                if self._is_ended:
                    return
                self._waiting.add(over)
            over.wait(wait_s)
            with self._lock:
                self._waiting.discard(over)

    def end(self) -> None:
        """Let everything that waits go on, and nothing wait any more."""
        with self._lock:
            self._is_ended = True
            for over in self._waiting:
                over.set()


def _host(address: str) -> str:
    """Return the address of a sender without its port, as HTTP knows it."""
    host, has_port, _ = address.rpartition(":")
    return host.strip("[]") if has_port else address
