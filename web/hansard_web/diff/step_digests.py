"""What steps that are no calls were given and what came of them, as digests to compare."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_collector.derivation.rederivation import StoredSpan, iter_stored
from hansard_collector.derivation.stored_span import StepReading, reading_of
from hansard_compiler.canonical import canonical_bytes

_NOTHING = b""


class Told(NamedTuple):
    """Digests across dialects; empty where nothing is told."""

    input: bytes
    output: bytes


class Understanding:
    """Reads steps of runs that are compared.

    Two runs of one agent mostly do the same things, so what steps of one resource tell in the same
    bytes is understood once: that takes three times as long as reading it.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[bytes, Told] = {}

    def of(self, trace_id: bytes, spans: Sequence[int]) -> dict[int, Told]:
        """Return what steps of a run tell, by span.id; without those that cannot be read."""
        found = iter_stored(self._connection, trace_id, spans)
        return {span: self._told(stored) for span, stored in found if stored is not None}

    def _told(self, stored: StoredSpan) -> Told:
        if stored.logs or stored.contents:  # say what the span itself does not
            return told_of(reading_of(self._connection, stored))
        key = _said(stored)
        told = self._known.get(key)
        if told is None:
            told = self._known[key] = told_of(reading_of(self._connection, stored))
        return told


def _said(stored: StoredSpan) -> bytes:
    """Return a digest of all that a span says but for its ids and times."""
    said, message = Span(), stored.message
    said.CopyFrom(message)
    said.trace_id = said.span_id = said.parent_span_id = b""
    said.start_time_unix_nano = said.end_time_unix_nano = 0
    stands = (
        stored.resource_id,
        stored.scope_id,
        bool(message.parent_span_id),
        bool(message.end_time_unix_nano),
    )
    return hashlib.sha256(repr(stands).encode() + said.SerializeToString()).digest()


def told_of(reading: StepReading) -> Told:
    """Return what a step that is no call tells."""
    return Told(_input_digest(reading), _output_digest(reading))


def summary_told(summary: str | None) -> Told:
    """Return what is known of a step that is not read."""
    return Told(_NOTHING, _digest([summary]))


def _input_digest(reading: StepReading) -> bytes:
    normal = reading.normal
    arguments = None if normal.tool is None else normal.tool.arguments
    return _digest([arguments if arguments is not None else normal.input, normal.query])


def _output_digest(reading: StepReading) -> bytes:
    normal = reading.normal
    result = None if normal.tool is None else normal.tool.result
    error = None if normal.error is None else [normal.error.type, normal.error.message]
    documents = [[one.id, one.content] for one in normal.documents]
    return _digest([result if result is not None else normal.output, documents, error])


def _digest(values: Sequence[Any]) -> bytes:
    if not any(_is_told(values)):
        return _NOTHING
    try:
        return hashlib.sha256(canonical_bytes(values)).digest()
    except (TypeError, RecursionError):
        return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).digest()


def _is_told(values: Iterable[Any]) -> Iterable[bool]:
    return (value not in (None, [], ()) for value in values)
