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

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from itertools import islice
from operator import itemgetter
from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.otlp import WITHOUT_TEXT, CleanPart, MessageCleaner, clean_items
from hansard_compiler.redaction.otlp import Removed as Counts
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.redaction.streams import clean_chunks, line_of
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.ingest.redactions import RemovedSecret

_SMALL_BYTES = 64 * 1024  # of a request: waking a thread takes as long as looking through these

Removed = dict[int, tuple[RemovedSecret, ...]]


class RetentionPolicy:
    """What the collector keeps. Belongs to the pipeline thread: it remembers attribute names."""

    def __init__(self, mode: RetentionMode | str, redactor: Redactor) -> None:
        self.mode = RetentionMode(mode)
        self._redactor = redactor
        self._cleaner = MessageCleaner(redactor)

    def twin(self) -> RetentionPolicy:
        """Return the same policy, to be used by another thread."""
        return RetentionPolicy(self.mode, self._redactor)

    def begin_scan(self, message: Message, helpers: Executor) -> Future[bool]:
        """Find out whether `apply` would certainly remove nothing; of a large request, a helper."""
        known: Future[bool] = Future()
        if self.mode is not RetentionMode.REDACTED_PAYLOADS:
            known.set_result(self.mode is RetentionMode.FULL_PAYLOADS)
            return known
        raw = message.SerializeToString()
        if len(raw) > _SMALL_BYTES:
            return helpers.submit(self._is_clean, raw)
        known.set_result(self._is_clean(raw))
        return known

    def _is_clean(self, raw: bytes) -> bool:
        return not self._redactor.scan_bytes(raw)

    def apply(self, signal: Signal, message: Message) -> Removed:
        """Remove from a request what the mode does not store; return what, by item.

        Items are spans, log records or metrics, counted from 0 over the whole request in the order
        they stand in it. What was removed from a resource or scope is reported with its first item.
        An item that lost nothing is absent: usually the answer is empty. Withheld strings are
        counted, not listed, since in that mode nearly every item has them.
        """
        if self.mode is RetentionMode.FULL_PAYLOADS:
            return {}
        if self.mode is RetentionMode.REDACTED_PAYLOADS:
            return _by_item(signal, message, self._redact)
        return _by_item(signal, message, self._cleaner.withhold)

    def _redact(self, part: Message, prefix: str) -> Counts:
        # First: of a secret that one chunk holds nearly whole, no end is to be left.
        is_item = isinstance(part, Span | LogRecord)
        found = _cut_split_secrets(part, self._redactor) if is_item else Counter()
        return found + self._cleaner.redact(part, prefix)


def _by_item(signal: Signal, message: Message, part: CleanPart) -> Removed:
    """Clean every item, and return what it lost, for those that lost anything."""
    return {
        index: tuple(RemovedSecret(rule, field, count) for (rule, field), count in found.items())
        for index, found in clean_items(message, CONTRACTS[signal].levels, part).items()
    }


# Secrets in a stream whose chunks are values of their own: none shows one, all of them do.
# Streams inside of one text are the redactor's (`hansard_compiler.redaction.streams`).

_OF_STREAMS = re.compile("chunk|delta", re.IGNORECASE)  # names of such events and attributes
_NUMBER = re.compile(r"[0-9]{1,9}")
_LAST_NUMBER = re.compile(r"(?<=[._\-\[/:])[0-9]{1,9}(?=\]?\Z)")
_MOST_NUMBERS = 4  # of a name that are tried as the number of a bit
_LONGEST_NAME = 500
# Name of a field, and number of the span or event that has it (0: all of them) -> its values in
# order, which are bits of one text
_Series = defaultdict[tuple[str, int], list[Any]]


def _cut_split_secrets(part: Any, redactor: Redactor) -> Counts:
    """Cut the secrets out of a span's or log record's chunks, in place.

    Returns how often each rule removed something, by rule and field.

    Chunks are events of a span, elements of an array, and attributes with a number in their names.
    """
    series: _Series = defaultdict(list)
    holders = [("attributes.", part.attributes)]
    for event in getattr(part, "events", ()):
        holders.append(("events.attributes.", event.attributes))
        if _OF_STREAMS.search(event.name):
            for pair in event.attributes:
                _add(series, f"events.attributes.{pair.key}", pair.value)
    for number, (prefix, pairs) in enumerate(holders):
        for pair in pairs:
            _add_elements(series, f"{prefix}{pair.key}", pair.value)
        _add_numbered(series, prefix, pairs, number)
    if isinstance(part, LogRecord):
        _add_elements(series, "body", part.body)
    found: Counts = Counter()
    for (field, _), values in series.items():
        for rule, count in _cut(values, redactor).items():
            found[rule, field] += count
    return found


def _add_elements(series: _Series, field: str, value: Any) -> None:
    name = f"{field}[]"
    for element in value.array_value.values:
        if element.WhichOneof("value") not in WITHOUT_TEXT:
            _add(series, name, element)


def _add_numbered(series: _Series, prefix: str, pairs: Any, holder: int) -> None:
    """Add the values of attributes whose names differ in one number, in its order."""
    found: defaultdict[str, list[tuple[int, Any]]] = defaultdict(list)
    for pair in pairs:
        key = pair.key
        for start, end in _numbers(key):
            found[f"{key[:start]}*{key[end:]}"].append((int(key[start:end]), pair.value))
    for name, values in found.items():
        for _, value in sorted(values, key=itemgetter(0)) if len(values) > 1 else ():
            _add(series, f"{prefix}{name}", value, holder)


def _numbers(key: str) -> list[tuple[int, int]]:
    """Return start and end of each number in a name that may be the number of a chunk.

    One at the end may be; one inside only of a name with `chunk` or `delta`, as otherwise
    `messages.0.content` and `messages.1.content` would be joined.
    """
    if len(key) > _LONGEST_NAME:
        return []
    if _OF_STREAMS.search(key):
        return [found.span() for found in islice(_NUMBER.finditer(key), _MOST_NUMBERS)]
    last = _LAST_NUMBER.search(key)
    return [last.span()] if last else []


def _add(series: _Series, field: str, value: Any, holder: int = 0) -> None:
    """Add the texts of a value: itself, or by their places in it."""
    waiting = [(field, value)]
    while waiting:
        at, one = waiting.pop()
        if one.string_value:
            series[at, holder].append(one)
        waiting += [(f"{at}.{pair.key}", pair.value) for pair in one.kvlist_value.values]
        waiting += [(f"{at}[{n}]", inner) for n, inner in enumerate(one.array_value.values)]


def _cut(values: Sequence[Any], redactor: Redactor) -> Counter[str]:
    """Clean what values form bit by bit, as JSON or as text; return how often each rule held."""
    rules: Counter[str] = Counter()

    def clean(texts: Sequence[str], /, *, is_trial: bool = False) -> list[str]:
        made, findings = redactor.redact_series(texts)
        for finding in () if is_trial else findings:
            rules[finding.rule] += finding.count
        return made

    lines = [line_of(value.string_value) for value in values]
    for number in clean_chunks([line.chunk for line in lines], clean):
        values[number].string_value = lines[number].start + lines[number].written()
    return rules
