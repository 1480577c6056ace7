"""Spans that have not ended: which of them to send the collector, and that this process lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hansard import semconv
from hansard._export.otlp.spans import MadeSpan, remade

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_MOST_OPEN: Final = 10_000  # spans followed at once; the others are seen when they end
_MOST_TRACES: Final = 256  # named by one keepalive


@dataclass(slots=True)
class _Open:
    span: ReadableSpan
    started_s: float
    is_reported: bool = False


class OpenSpans:
    """The spans of this process that have not ended.

    The lock guards the table: any thread of the program starts and ends spans, one reads.
    """

    def __init__(self, *, delay_s: float, interval_s: float) -> None:
        self._delay_s = delay_s
        self.interval_s = interval_s
        self._lock = threading.Lock()
        self._open: dict[tuple[int, int], _Open] = {}
        self._sent_keepalive_s: float | None = None  # when the last keepalive was made
        self._look_s = 0.0  # until then the worker looks again, on the monotonic clock

    def start(self, span: ReadableSpan) -> bool:
        """Follow a span; return whether the worker must be woken to look at `next_due_s`."""
        context = span.get_span_context()
        if context is None:
            return False
        now_s = time.monotonic()
        with self._lock:
            if len(self._open) < _MOST_OPEN:
                self._open[context.trace_id, context.span_id] = _Open(span, now_s)
            if self._look_s > now_s:
                return False  # most spans are short: waking a thread for each costs more than it
            self._look_s = now_s + self._delay_s
            return True

    def end(self, span: ReadableSpan) -> None:
        """The span ended."""
        context = span.get_span_context()
        if context is not None:
            with self._lock:
                self._open.pop((context.trace_id, context.span_id), None)

    def next_due_s(self) -> float | None:
        """Return when to look again, on the monotonic clock; past: there is something to report."""
        now_s = time.monotonic()
        with self._lock:
            waiting = [
                one.started_s + self._delay_s for one in self._open.values() if not one.is_reported
            ]
            if self._look_s > now_s:
                waiting.append(self._look_s)
            if self._open and self._sent_keepalive_s is not None:
                waiting.append(self._sent_keepalive_s + self.interval_s)
            return min(waiting, default=None)

    def take_due(self) -> list[MadeSpan]:
        """Return pictures of the spans that have been open for the export delay, each once."""
        now_s = time.monotonic()
        with self._lock:
            due = [
                one
                for one in self._open.values()
                if not one.is_reported and now_s - one.started_s >= self._delay_s
            ]
            for one in due:
                one.is_reported = True
        return [made for one in due if (made := _picture(one.span)) is not None]

    def untell(self, spans: Sequence[ReadableSpan]) -> None:
        """These start records could not be sent or stored: they are due again."""
        with self._lock:
            for span in spans:
                context = span.get_span_context()
                one = self._open.get((context.trace_id, context.span_id)) if context else None
                if one is not None:
                    one.is_reported = False

    def take_keepalives(self, *, at_once: bool = False) -> list[dict[str, Any]]:
        """Return the attributes of the keepalives that are due: one, or several for many traces."""
        now_s = time.monotonic()
        with self._lock:
            if (
                self._sent_keepalive_s is not None
                and not at_once
                and now_s - self._sent_keepalive_s < self.interval_s
            ):
                return []
            traces = self._reported()
            if not traces:
                self._sent_keepalive_s = None
                return []
            self._sent_keepalive_s = now_s
        return keepalives(traces, interval_s=self.interval_s)

    def last_words(self) -> list[dict[str, Any]]:
        """Return the attributes of the records of spans that are open when this process ends."""
        with self._lock:
            traces = self._reported()
            self._open.clear()
        return keepalives(traces, interval_s=self.interval_s, is_last=True)

    def _reported(self) -> set[int]:
        return {trace_id for (trace_id, _), one in self._open.items() if one.is_reported}


def keepalives(
    traces: set[int], *, interval_s: float, is_last: bool = False
) -> list[dict[str, Any]]:
    """Return the attributes of keepalives that name these traces."""
    names = [f"{trace_id:032x}" for trace_id in sorted(traces)]
    return [
        {
            semconv.KEEPALIVE_TRACES: tuple(names[at : at + _MOST_TRACES]),
            semconv.KEEPALIVE_INTERVAL_MS: round(interval_s * 1000),
            semconv.KEEPALIVE_LAST: is_last,
        }
        for at in range(0, len(names), _MOST_TRACES)
    ]


def _picture(span: ReadableSpan) -> MadeSpan | None:
    """Return the span as it is now; None when it ended meanwhile, or changes too fast."""
    for _ in range(3):
        try:
            return None if span.end_time is not None else remade(span, end_time=None)
        except RuntimeError:  # an attribute was added while they were read
            continue
    return None
