"""The retention stage: applies the mode to a decoded request, in place, before anything is stored.

In `redacted_payloads`, the default, one scan of the serialised request usually proves that there
is nothing to do. Where it does not, resources, scopes and items are scanned one by one, and only
those that fire are walked, field by field (`hansard_compiler.redaction.otlp`).

What is scanned is our own serialisation, not the sender's bytes, for three reasons: JSON requests
have no other, fields sent in another order would hide a sensitive attribute name from the scan
(`hansard_compiler.redaction.prefilter`), and fields unknown to our protobuf classes, which would be
stored with the record, are part of it.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Executor, Future

from google.protobuf.message import Message
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.pipeline.split_secrets import cut_split_secrets
from hansard_collector.pipeline.submission import Signal
from hansard_compiler.redaction.otlp import (
    LOG_LEVELS,
    METRIC_LEVELS,
    SPAN_LEVELS,
    CleanPart,
    MessageCleaner,
    clean_items,
)
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode
from hansard_store.ingest.redactions import RemovedSecret

_SMALL_BYTES = 64 * 1024  # of a request: waking a thread takes as long as looking through these

Removed = dict[int, tuple[RemovedSecret, ...]]

_LEVELS = {
    Signal.TRACES: SPAN_LEVELS,
    Signal.LOGS: LOG_LEVELS,
    Signal.METRICS: METRIC_LEVELS,
}


class RetentionPolicy:
    """What the collector keeps. Belongs to the pipeline thread: it remembers attribute names."""

    def __init__(self, mode: RetentionMode | str, redactor: Redactor) -> None:
        self._mode = RetentionMode(mode)
        self._redactor = redactor
        self._cleaner = MessageCleaner(redactor)

    def twin(self) -> RetentionPolicy:
        """Return the same policy, to be used by another thread."""
        return RetentionPolicy(self._mode, self._redactor)

    @property
    def mode(self) -> RetentionMode:
        return self._mode

    def begin_scan(self, message: Message, helpers: Executor) -> Future[bool]:
        """Find out whether `apply` would certainly remove nothing; of a large request, a helper."""
        known: Future[bool] = Future()
        if self._mode is not RetentionMode.REDACTED_PAYLOADS:
            known.set_result(self._mode is RetentionMode.FULL_PAYLOADS)
            return known
        raw = message.SerializeToString()
        if len(raw) > _SMALL_BYTES:
            return helpers.submit(self._is_clean, raw)
        known.set_result(self._is_clean(raw))
        return known

    def _is_clean(self, raw: bytes) -> bool:
        return not self._redactor.scan_bytes(raw)

    def apply(self, signal: Signal, message: Message) -> Removed:
        """Remove from a request what the mode does not keep; say what, by item.

        Items are spans, log records or metrics, counted from 0 over the whole request in the order
        they stand in it. What was removed from a resource or scope is told with its first item.
        An item that lost nothing is absent: usually the answer is empty. Withheld strings are
        counted, not listed, since in that mode nearly every item has them.
        """
        if self._mode is RetentionMode.FULL_PAYLOADS:
            return {}
        if self._mode is RetentionMode.REDACTED_PAYLOADS:
            return _by_item(signal, message, self._redact)
        return _by_item(signal, message, self._cleaner.withhold)

    def _redact(self, part: Message, prefix: str) -> Counter[tuple[str, str]]:
        # First: of a secret that one chunk holds nearly whole, no end is to be left.
        is_item = isinstance(part, Span | LogRecord)
        found = cut_split_secrets(part, self._redactor) if is_item else Counter()
        return found + self._cleaner.redact(part, prefix)


def _by_item(signal: Signal, message: Message, part: CleanPart) -> Removed:
    """Clean every item, and say what it lost, for those that lost anything."""
    return {
        index: tuple(RemovedSecret(rule, field, count) for (rule, field), count in found.items())
        for index, found in clean_items(message, _LEVELS[signal], part).items()
    }
