"""The whole of each span, beside its skeleton: rows that nobody asks for while they are added."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from hansard_store.database.compression import pack_all
from hansard_store.database.stored_json import as_json, joined
from hansard_store.ingest.span_input import ReceivedSpan

_ADD = """
INSERT INTO span_record (span, mac, received_ns, attribute_count, notes, record)
SELECT value ->> 0, substr(:bytes, value ->> 1, value ->> 2), value ->> 3, value ->> 4,
  value ->> 5, substr(:records, value ->> 6, value ->> 7)
FROM json_each(:rows)
"""


class _Row(NamedTuple):
    span: int
    mac: bytes
    received_ns: int
    attribute_count: int
    notes: str | None
    record: bytes  # not packed


class SpanRecordWriter:
    """Gathers the records of a transaction; `write_held` writes them all at once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._held: list[_Row] = []

    def add(self, number: int, span: ReceivedSpan, record: bytes) -> None:
        """Keep a span's record, not packed yet, until it is written."""
        notes = "\n".join(span.notes) or None
        row = _Row(number, span.mac, span.received_ns, span.attribute_count, notes, record)
        self._held.append(row)

    def write_held(self) -> None:
        """Write the rows that wait, in one statement that holds no lock of Python's."""
        if not self._held:
            return
        packed = pack_all([row.record for row in self._held])
        records, at = joined(packed)
        macs, mac_at = joined([row.mac for row in self._held])
        rows = [
            (
                row.span, begin, len(row.mac), row.received_ns, row.attribute_count, row.notes,
                start, size,
            )
            for row, begin, start, size in zip(
                self._held, mac_at, at, map(len, packed), strict=False
            )
        ]  # fmt: skip
        self._execute(_ADD, {"bytes": macs, "records": records, "rows": as_json(rows)})
        self._held.clear()

    def forget(self) -> None:
        """Drop what waits: its transaction was rolled back."""
        self._held.clear()
