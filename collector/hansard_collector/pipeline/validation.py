"""What is refused, and what is repaired: item by item, so that one bad span costs only itself.

The decisions are those of reference/otlp.md §9 and §12, row by row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_compiler.redaction.otlp import WITHOUT_TEXT
from hansard_store.steps.flags import SpanFlag

_ZERO_TRACE = bytes(16)
_ZERO_SPAN = bytes(8)
_SIGNED_LIMIT_NS = 1 << 63
_YEAR_2000_NS = 946_684_800 * 1_000_000_000
_DAY_NS = 86_400 * 1_000_000_000
_PARENT_EMPTIED = "a parent id was invalid and emptied"
_LINKS_DROPPED = " links with invalid ids were dropped"
_PARENT_IS_REMOTE = 0x200  # flags bit 9, meaningful when bit 8 is set too
_REMOTE_IS_KNOWN = 0x100


# Values inside of values, for each attribute that may be sent: the receipts of a compile are lists
# of many thousand texts and numbers. An entry of a map costs eight times an element of a list.
_VALUES_PER_ATTRIBUTE = 64
_ENTRY_WEIGHT = 8
_MOST_PER_BYTE = _ENTRY_WEIGHT // 2  # an entry has two bytes or more


MOST_NAME_BYTES: Final = 65_536  # of names and keys: indexes, facets and lists hold them whole
# What the texts of one item may take: 128 MiB of ASCII, a quarter of it with one emoji in each.
MOST_TEXT_BYTES: Final = 128 * 2**20
_NAMES: Final = (
    "name", "version", "schema_url", "trace_state", "event_name", "severity_text", "unit",
    "description",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ItemLimits:
    """How large a span, log record or data point may be by count; by bytes its request is."""

    attributes: int = 16_384  # of its own; it may have as many events, and as many links

    @property
    def values(self) -> int:
        """Elements of lists that an item may hold, or an eighth of it in pairs of key and value."""
        return self.attributes * _VALUES_PER_ATTRIBUTE


USUAL_LIMITS: Final = ItemLimits()
# What a setting may say: the default of OpenTelemetry's SDKs, and some seconds of work on one span.
LEAST_ATTRIBUTES: Final = 128
MOST_ATTRIBUTES: Final = 262_144


def over_limits(item: Any, limits: ItemLimits, *, size_bytes: int) -> str | None:
    """Return why an item is too large to be worked on beside others, or None.

    `item` is a Span, LogRecord, data point, Resource or Scope; `size_bytes` is its length in
    protobuf, if its values are to be counted.
    """
    for name in ("attributes", "events", "links", "metadata"):
        if len(getattr(item, name, ())) > limits.attributes:
            return f"more than {limits.attributes:,} {name}"
    if size_bytes > MOST_NAME_BYTES and (reason := _over_by_text(item, size_bytes)):
        return reason
    if size_bytes * _MOST_PER_BYTE <= limits.values:
        return None
    left = limits.values
    for count in _values_of(item):
        left -= count
        if left < 0:
            return f"more than {limits.values:,} values in lists, or an eighth of that in maps"
    return None


def _over_by_text(item: Any, size_bytes: int) -> str | None:
    for holder in _holders(item):
        for name in _NAMES:
            if len(getattr(holder, name, "").encode()) > MOST_NAME_BYTES:
                return f"a {name.replace('_', ' ')} of more than {MOST_NAME_BYTES:,} bytes"
        for pair in getattr(holder, "attributes", ()):
            if len(pair.key.encode()) > MOST_NAME_BYTES:
                return f"a key of more than {MOST_NAME_BYTES:,} bytes"
    # A character takes up to four times as many bytes in a Python text as in UTF-8.
    if size_bytes * 4 > MOST_TEXT_BYTES and _text_bytes(item) > MOST_TEXT_BYTES:
        return f"texts that take more than {MOST_TEXT_BYTES:,} bytes of memory"
    return None


def _holders(item: Any) -> list[Any]:
    return [item, *getattr(item, "events", ()), *getattr(item, "links", ())]


def _text_bytes(item: Any) -> int:
    pending = [
        pair.value for holder in _holders(item) for pair in getattr(holder, "attributes", ())
    ]
    if isinstance(item, LogRecord):
        pending.append(item.body)
    taken = sys.getsizeof(item.status.message) if isinstance(item, Span) else 0
    while pending:
        value = pending.pop()
        kind = value.WhichOneof("value")
        if kind == "string_value":
            taken += sys.getsizeof(value.string_value)
        elif kind == "array_value":
            pending.extend(value.array_value.values)
        elif kind == "kvlist_value":
            for entry in value.kvlist_value.values:
                taken += sys.getsizeof(entry.key)
                pending.append(entry.value)
    return taken


def _values_of(item: Any) -> Iterator[int]:
    """Yield what the values of each list or map weigh, before they are walked."""
    holders = _holders(item)
    pending = [pair.value for holder in holders for pair in getattr(holder, "attributes", ())]
    yield len(pending) * _ENTRY_WEIGHT
    if isinstance(item, LogRecord):
        pending.append(item.body)
    while pending:
        value = pending.pop()
        kind = value.WhichOneof("value")
        if kind == "array_value":
            inner = value.array_value.values
            yield len(inner)
            pending.extend(one for one in inner if one.WhichOneof("value") not in WITHOUT_TEXT)
        elif kind == "kvlist_value":
            entries = value.kvlist_value.values
            yield len(entries) * _ENTRY_WEIGHT
            pending.extend(entry.value for entry in entries)


@dataclass(frozen=True, slots=True)
class Times:
    """A span's times as columns: None where SQLite cannot hold them or none was sent."""

    start_ns: int | None
    end_ns: int | None
    sort_ns: int
    flags: int


def bad_trace_id(trace_id: bytes) -> str | None:
    """Return why a trace id cannot be used, or None when it can."""
    if len(trace_id) != 16:
        return f"a trace id has 16 bytes, not {len(trace_id)}"
    return "a trace id is all zero" if trace_id == _ZERO_TRACE else None


def bad_span_id(span_id: bytes) -> str | None:
    """Return why a span id cannot be used, or None when it can."""
    if len(span_id) != 8:
        return f"a span id has 8 bytes, not {len(span_id)}"
    return "a span id is all zero" if span_id == _ZERO_SPAN else None


def refuse_span(span: Span) -> str | None:
    """Return why a span cannot be stored, or None."""
    return bad_trace_id(span.trace_id) or bad_span_id(span.span_id)


def repair_span(span: Span) -> tuple[int, list[str]]:
    """Empty an invalid parent and drop invalid links, in place; add notes."""
    flags, notes = 0, []
    parent = span.parent_span_id
    if parent and bad_span_id(parent):
        span.parent_span_id = b""
        if parent != _ZERO_SPAN:  # all zero is a way to write "no parent"
            flags |= SpanFlag.PARENT_REPAIRED
            notes.append(_PARENT_EMPTIED)
    if span.links and (dropped := _drop_bad_links(span)):
        flags |= SpanFlag.LINK_DROPPED
        notes.append(f"{dropped}{_LINKS_DROPPED}")
    if span.dropped_attributes_count or any(e.dropped_attributes_count for e in span.events):
        flags |= SpanFlag.ATTRIBUTES_DROPPED
        if not span.dropped_attributes_count:  # else the step's dialect says how many
            notes.append("the sender's SDK dropped attributes of events: the last ones are missing")
    if span.flags & _REMOTE_IS_KNOWN and span.flags & _PARENT_IS_REMOTE:
        flags |= SpanFlag.PARENT_REMOTE
    return flags, notes


def repaired_flags(notes: Iterable[str]) -> int:
    """Return the flags of what `repair_span` did to a span, from its notes."""
    flags = 0
    for note in notes:
        if note == _PARENT_EMPTIED:
            flags |= SpanFlag.PARENT_REPAIRED
        elif note.endswith(_LINKS_DROPPED):
            flags |= SpanFlag.LINK_DROPPED
    return flags


def _drop_bad_links(span: Span) -> int:
    good = [link for link in span.links if not _bad_link(link)]
    dropped = len(span.links) - len(good)
    if dropped:
        encoded = [link.SerializeToString() for link in good]
        del span.links[:]
        for link in encoded:
            span.links.add().MergeFromString(link)
    return dropped


def _bad_link(link: Span.Link) -> bool:
    return bool(bad_trace_id(link.trace_id) or bad_span_id(link.span_id))


def span_times(span: Span, *, received_ns: int) -> Times:
    """Return the times of a span as they can be stored and ordered."""
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    flags = 0
    if start >= _SIGNED_LIMIT_NS or end >= _SIGNED_LIMIT_NS:
        flags |= SpanFlag.TIME_HUGE | SpanFlag.TIME_ODD
    if not start or (end and end < start) or _is_odd(start, received_ns):
        flags |= SpanFlag.TIME_ODD
    start_ns = start if 0 < start < _SIGNED_LIMIT_NS else None
    end_ns = end if 0 < end < _SIGNED_LIMIT_NS else None
    return Times(start_ns, end_ns, start_ns or end_ns or received_ns, flags)


def _is_odd(time_ns: int, received_ns: int) -> bool:
    return time_ns < _YEAR_2000_NS or time_ns > received_ns + _DAY_NS
