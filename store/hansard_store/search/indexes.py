"""The two full-text indexes, written once at the end of a transaction.

FTS5 writes what it has gathered to disk at every statement savepoint, and every insert into a table
with constraints opens one. Interleaved with other statements, an insert into `span` took 62 µs;
with the index rows held back until the end, 6 µs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from hansard_store.database.stored_json import as_json

_JSON_CHARS = 4_000_000  # of texts handed over at once

# A commit never waits for one huge merge, and merging keeps up with ingest
# (ingest-measurements §5: worst commit 68 ms at 250,000 texts; other settings up to 1.1 s).
_SETTINGS = (("automerge", 16), ("crisismerge", 64))

# The next transaction's items are prepared while these run.
_ADD_TEXTS = """
INSERT INTO text_fts (rowid, body) SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""
_ADD_ATTRIBUTES = """
INSERT INTO attribute_fts (rowid, tokens) SELECT value ->> 0, value ->> 1 FROM json_each(?)
"""
_DROP_ATTRIBUTES = "DELETE FROM attribute_fts WHERE rowid = ?"


def configure(connection: apsw.Connection) -> None:
    """Set how the indexes merge; kept in the database, so once is enough."""
    for table in ("text_fts", "attribute_fts"):
        for name, value in _SETTINGS:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", (name, value))


class IndexWriter:
    """Index rows of the transaction that runs; used by one thread."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._texts: list[tuple[int, str]] = []
        self._attributes: dict[int, str] = {}
        self._dropped: list[tuple[int]] = []

    def add_text(self, text: int, words: str) -> None:
        """Make a text findable under its id."""
        self._texts.append((text, words))

    def add_attributes(self, span: int, tokens: str) -> None:
        """Make a span findable by its attributes."""
        self._attributes[span] = tokens

    def drop_attributes(self, span: int) -> None:
        """Forget a span's attributes, from before or from this transaction."""
        if self._attributes.pop(span, None) is None:
            self._dropped.append((span,))

    def flush(self) -> None:
        """Write all rows, removals first."""
        self._connection.executemany(_DROP_ATTRIBUTES, self._dropped)
        for sql, rows in (
            (_ADD_ATTRIBUTES, list(self._attributes.items())),
            (_ADD_TEXTS, self._texts),
        ):
            for part in _in_parts(rows):
                self._connection.execute(sql, (as_json(part),))
        self.forget()

    def forget(self) -> None:
        """Drop what was gathered: it is written, or its transaction was rolled back."""
        self._texts.clear()
        self._attributes.clear()
        self._dropped.clear()


def _in_parts(rows: Sequence[tuple[int, str]]) -> Iterator[Sequence[tuple[int, str]]]:
    """Cut rows so that what is copied to hand them over stays small beside the texts."""
    start = chars = 0
    for at, (_, text) in enumerate(rows):
        chars += len(text)
        if chars > _JSON_CHARS:
            yield rows[start : at + 1]
            start, chars = at + 1, 0
    if start < len(rows):
        yield rows[start:]
