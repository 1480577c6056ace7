"""A span as it is handed to the store, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hansard_store.ingest.otlp_records import LargeValue
from hansard_store.steps.flags import SpanFlag


class ReceivedSpan(NamedTuple):
    """A span as it came in, after redaction, with what identifies it."""

    trace_id: bytes
    span_id: bytes
    side: int  # 1 = SERVER: may share its id with a CLIENT span
    parent_span_id: bytes | None
    name: str
    kind: int
    start_ns: int | None
    end_ns: int | None  # None while open
    sort_ns: int
    status: int
    flags: int
    mac: bytes  # of the span as received, before redaction
    received_ns: int
    resource: int
    scope: int
    attribute_count: int
    message: Span
    large: Sequence[LargeValue]
    links: Sequence[tuple[bytes, bytes]] = ()
    notes: Sequence[str] = ()
    synthetic: bool = False

    @property
    def is_open(self) -> bool:
        return self.end_ns is None and not self.flags & SpanFlag.TIME_HUGE

    @property
    def richness(self) -> tuple[bool, bool, int, int]:
        """Of two reports of one span the richer is shown: ended, later end, more attributes.

        One that says nothing does not take the place of one that does, however late it ends.
        """
        return not self.is_open, self.attribute_count > 0, self.end_ns or 0, self.attribute_count


class SpanOutcome(Enum):
    """What became of a received span: its column of the ledger."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    OPENED = "opened"  # it replaced the start record of the same span
    DELETED = "deleted"


class Placed(NamedTuple):
    """Where a received span went."""

    outcome: SpanOutcome
    span: int  # span.id; 0 when its run was deleted
    is_shown: bool  # False: another report of the same span is, or none
