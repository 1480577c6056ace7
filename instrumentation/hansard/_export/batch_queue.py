"""Finished spans and log records in memory: bounded in number and size, and never in the way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

from hansard._export.spool import Kind

MOST_BYTES: Final = 64 << 20  # of everything that waits
BATCH_BYTES: Final = 3 << 20  # of one request: other collectors stop at 4 MiB
_SPAN_BYTES: Final = 300  # ids, times, name and framing of a span with nothing in it
_PAIR_BYTES: Final = 40  # of an attribute: its key and framing, or a number with them
_NUMBERS: Final = (int, bool, float)


class Put(Enum):
    """The outcome of an item that was to wait."""

    REFUSED = "there is no room"
    WAITS = "it waits"
    NEWS = "it waits, and changes when the next batch is due"


@dataclass(slots=True)
class Batch:
    """What is sent in one request."""

    kind: Kind
    items: Sequence[Any]  # ReadableSpan, or ReadableLogRecord
    size_bytes: int = 0
    taken: int = 0  # how many items it was taken with


@dataclass(slots=True)
class _Lane:
    items: deque[tuple[Any, int]] = field(default_factory=deque)
    size_bytes: int = 0
    since_s: float = 0.0  # when the oldest of them came


class Waiting:
    """Two lanes, spans and log records. Callers hold the delivery's lock."""

    def __init__(self, *, max_items: int, batch_items: int, max_bytes: int = MOST_BYTES) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._batch_items = min(batch_items, max_items)
        self._lanes = {Kind.TRACES: _Lane(), Kind.LOGS: _Lane()}
        self._size_bytes = 0  # of all of them

    def __len__(self) -> int:
        return sum(len(lane.items) for lane in self._lanes.values())

    def put(self, kind: Kind, item: Any, size_bytes: int) -> Put:
        """Add an item, if there is room for it."""
        lane = self._lanes[kind]
        used, count = self._size_bytes, len(lane.items)
        if count >= self._max_items or (used and used + size_bytes > self._max_bytes):
            return Put.REFUSED
        was_urgent = self._is_urgent(lane)
        if not count:
            lane.since_s = time.monotonic()
        lane.items.append((item, size_bytes))
        lane.size_bytes += size_bytes
        self._size_bytes += size_bytes
        return Put.NEWS if not count or self._is_urgent(lane) is not was_urgent else Put.WAITS

    def put_back(self, batch: Batch) -> None:
        """Return a batch to the front: it could not be sent. It may go over the bounds by that."""
        lane = self._lanes[batch.kind]
        each = batch.size_bytes // max(len(batch.items), 1)
        lane.items.extendleft((item, each) for item in reversed(batch.items))
        lane.size_bytes += each * len(batch.items)
        self._size_bytes += each * len(batch.items)

    def _is_urgent(self, lane: _Lane) -> bool:
        """Return whether a whole batch is there."""
        return len(lane.items) >= self._batch_items or lane.size_bytes >= BATCH_BYTES

    def due_s(self, delay_s: float) -> float | None:
        """Return when the next batch should go, on the monotonic clock; None: nothing waits."""
        times = [
            0.0 if self._is_urgent(lane) else lane.since_s + delay_s
            for lane in self._lanes.values()
            if lane.items
        ]
        return min(times, default=None)

    def take(self) -> Batch | None:
        """Return the batch that has waited longest, None when nothing waits."""
        kinds = [kind for kind, lane in self._lanes.items() if lane.items]
        if not kinds:
            return None
        kind = min(kinds, key=lambda one: self._lanes[one].since_s)
        lane = self._lanes[kind]
        items: list[Any] = []
        size_bytes = 0
        while lane.items and len(items) < self._batch_items:
            if items and size_bytes + lane.items[0][1] > BATCH_BYTES:
                break
            item, item_bytes = lane.items.popleft()
            items.append(item)
            size_bytes += item_bytes
        lane.size_bytes -= size_bytes
        self._size_bytes -= size_bytes
        lane.since_s = time.monotonic()
        return Batch(kind, items, size_bytes, len(items))


def span_bytes(span: ReadableSpan) -> int:
    """Return about how large a span is, in about a microsecond."""
    size_bytes = _SPAN_BYTES + _size_of(span.attributes)
    for event in span.events:
        size_bytes += _PAIR_BYTES + _size_of(event.attributes)
    return size_bytes


def _size_of(attributes: Any) -> int:
    pairs = items_of(attributes)
    size_bytes = _PAIR_BYTES * len(pairs)
    for _, value in pairs:
        kind = type(value)
        if kind is str or kind is bytes:
            size_bytes += len(value)
        elif kind not in _NUMBERS and isinstance(value, Sequence):
            size_bytes += sum(len(one) if isinstance(one, str) else 8 for one in value)
    return size_bytes


def items_of(attributes: Any) -> Collection[tuple[str, Any]]:
    """Return attributes as pairs: of the SDK's own mapping, a third of the time of its `items`."""
    if not attributes:
        return ()
    copy = getattr(attributes, "copy", None)
    pairs: Collection[tuple[str, Any]] = (attributes if copy is None else copy()).items()
    return pairs
