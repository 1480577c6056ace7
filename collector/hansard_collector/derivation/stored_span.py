"""One stored span, read back with all that can be derived from it.

Only the record is stored of a span's meaning beyond its rows: it is normalised again when
it is read, so a dialect that improves improves old spans at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from hansard_collector.derivation.rederivation import StoredSpan, read_span, stored_span
from hansard_collector.dialects.content.messages import MessageCache
from hansard_collector.dialects.engine.item_views import SpanView
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_collector.dialects.engine.normalisation import normalise
from hansard_collector.dialects.engine.references import READ_BYTES, with_contents
from hansard_collector.otlp.stored_records import Envelopes
from hansard_store.ingest.stored_spans import get_span_row


@dataclass(frozen=True, slots=True)
class StepReading:
    """A span as it is stored, as a dialect reads it, and what it means."""

    stored: StoredSpan
    view: SpanView
    normal: Normalised


def read_step(connection: apsw.Connection, span: int) -> StepReading:
    """Return a stored span by its number, whole; raises StoreCorruptError when a part is missing.

    Costs the span's size: some ms for a prompt of a thousand messages.
    """
    return reading_of(connection, read_span(connection, span))


class StepReader:
    """Reads steps of one snapshot; their resources and scopes are read once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._envelopes = Envelopes(connection)

    def read(self, span: int, *, has_logs: bool) -> StepReading:
        """Return a stored span, as `read_step` does; log records are read where it has some."""
        row = get_span_row(self._connection, span)
        stored = stored_span(
            self._connection, row, self._envelopes, logged=None if has_logs else ()
        )
        return reading_of(self._connection, stored)


def reading_of(connection: apsw.Connection, stored: StoredSpan) -> StepReading:
    """Return what a stored span means."""
    view = stored.view()
    meant = with_contents(connection, view, most_bytes=READ_BYTES)
    return StepReading(stored, view, _meaning(meant))


def _meaning(view: SpanView) -> Normalised:
    # As on ingest (prepare.project): a dialect that fails must not hide the record from people.
    try:
        return normalise(view, MessageCache())
    except Exception as error:
        note = f"a dialect could not read this span ({type(error).__name__}): shown as it came"
        return Normalised(notes=(note,))
