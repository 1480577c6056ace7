"""Finished spans in memory: bounded in number and size, and never in the way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

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
class ExportBatch:
    """The spans that are sent in one request."""

    items: Sequence[Any]
    size_bytes: int = 0
    taken: int = 0  # how many items it was taken with


class PendingBatches:
    """Finished spans in their order. Callers hold the delivery's lock."""

    def __init__(self, *, max_items: int, batch_items: int) -> None:
        self._max_items = max_items
        self._batch_items = min(batch_items, max_items)
        self._items: deque[tuple[Any, int]] = deque()
        self._size_bytes = 0
        self._since_s = 0.0  # when the oldest of them came

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Any, size_bytes: int) -> Put:
        """Add an item, if there is room for it."""
        used, count = self._size_bytes, len(self._items)
        if count >= self._max_items or (used and used + size_bytes > MOST_BYTES):
            return Put.REFUSED
        was_urgent = self._is_urgent()
        if not count:
            self._since_s = time.monotonic()
        self._items.append((item, size_bytes))
        self._size_bytes += size_bytes
        return Put.NEWS if not count or self._is_urgent() is not was_urgent else Put.WAITS

    def put_back(self, batch: ExportBatch) -> None:
        """Return a batch to the front: it could not be sent. It may go over the bounds by that."""
        each = batch.size_bytes // max(len(batch.items), 1)
        self._items.extendleft((item, each) for item in reversed(batch.items))
        self._size_bytes += each * len(batch.items)

    def _is_urgent(self) -> bool:
        """Return whether a whole batch is there."""
        return len(self._items) >= self._batch_items or self._size_bytes >= BATCH_BYTES

    def due_s(self, delay_s: float) -> float | None:
        """Return when the next batch should go, on the monotonic clock; None: nothing waits."""
        if not self._items:
            return None
        return 0.0 if self._is_urgent() else self._since_s + delay_s

    def take(self) -> ExportBatch | None:
        """Return the oldest batch, None when nothing waits."""
        items: list[Any] = []
        size_bytes = 0
        while self._items and len(items) < self._batch_items:
            if items and size_bytes + self._items[0][1] > BATCH_BYTES:
                break
            item, item_bytes = self._items.popleft()
            items.append(item)
            size_bytes += item_bytes
        self._size_bytes -= size_bytes
        self._since_s = time.monotonic()
        return ExportBatch(items, size_bytes, len(items)) if items else None


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
