"""Large requests that are sent again: their senders get the answer to the first one.

A sender waits some seconds for an answer and then sends the same bytes again. To work on them a
second time would take as long as the first, and end no sooner.
"""

from __future__ import annotations

import hashlib
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from hansard_collector.errors import StoreBusy
from hansard_collector.pipeline.submission import IngestRequest, IngestResult

_LEAST_BYTES: Final = 256 * 1024  # smaller ones are answered in time
_MOST_KNOWN: Final = 64
_KEPT_S: Final = 120.0  # after the answer: exporters that try again do so within a minute
# Receivers wait as long for an answer: half of the exporters' usual timeout.
LATE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Request:
    answer: Future[IngestResult]
    began_s: float
    ended_s: float | None = None


class RepeatedRequests:
    """Large requests by their content, until some time after they were answered late.

    One that was answered in time is worked on again, and its spans count as duplicates. Any thread
    may use it.
    """

    def __init__(self, late_s: float = LATE_S) -> None:
        self._late_s = late_s
        self._lock = threading.Lock()
        self._known: dict[bytes, _Request] = {}

    def key_of(self, request: IngestRequest) -> bytes | None:
        """Return what identifies a request; None for one that is not large."""
        if len(request.body) < _LEAST_BYTES:
            return None
        kind = f"{request.signal.value}/{request.encoding.value}/".encode()
        return hashlib.blake2b(kind + hashlib.blake2b(request.body).digest()).digest()

    def find(self, key: bytes) -> Future[IngestResult] | None:
        """Return the answer, or what will be it, of a request with the same content.

        None where there was none for some minutes, or it may be stored when it is tried again.
        """
        with self._lock:
            known = self._known.get(key)
        if known is None:
            return None
        if not known.answer.done():
            return known.answer
        if known.answer.cancelled() or isinstance(known.answer.exception(), StoreBusy):
            return None
        ended_s = known.ended_s or time.monotonic()
        is_late = ended_s - known.began_s >= self._late_s
        return known.answer if is_late and time.monotonic() - ended_s <= _KEPT_S else None

    def add(self, key: bytes, answer: Future[IngestResult]) -> None:
        """Remember a request that is worked on."""
        with self._lock:
            self._known.pop(key, None)
            self._known[key] = _Request(answer, time.monotonic())
            for oldest in list(self._known)[:-_MOST_KNOWN]:
                del self._known[oldest]
        answer.add_done_callback(partial(self._answered, key))

    def _answered(self, key: bytes, answer: Future[IngestResult]) -> None:
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.answer is answer:
                self._known[key] = replace(known, ended_s=time.monotonic())
