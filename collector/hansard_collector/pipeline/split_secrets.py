"""Secrets in a stream whose chunks are values of their own: none shows one, all of them do.

Streams inside of one text are the redactor's (`hansard_compiler.redaction.streams`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_compiler.redaction.otlp import WITHOUT_TEXT, Removed
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.redaction.streams import clean_chunks, line_of

_OF_STREAMS = re.compile("chunk|delta", re.IGNORECASE)  # names of such events and attributes
_NUMBER = re.compile(r"[0-9]{1,9}")
_LAST_NUMBER = re.compile(r"(?<=[._\-\[/:])[0-9]{1,9}(?=\]?\Z)")
_MOST_NUMBERS = 4  # of a name that are tried as the number of a bit
_LONGEST_NAME = 500
# Name of a field, and number of the span or event that has it (0: all of them) -> its values in
# order, which are bits of one text
_Series = defaultdict[tuple[str, int], list[Any]]


def cut_split_secrets(part: Any, redactor: Redactor) -> Removed:
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
    found: Removed = Counter()
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
    """Clean what values say bit by bit, as JSON or as text; return how often each rule held."""
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
