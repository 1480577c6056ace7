"""What the pane of one step needs beside its record: what was redacted, when it last came."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

_REDACTIONS = """
SELECT rule, field, count FROM redaction WHERE signal = 'traces' AND item = :span ORDER BY id
"""
_LOSERS = "SELECT count(*) FROM span_loser WHERE span = :span"


@dataclass(frozen=True, slots=True)
class Redaction:
    """What one rule removed from one field before anything was stored."""

    rule: str
    field: str
    count: int


def list_redactions(connection: apsw.Connection, span: int) -> list[Redaction]:
    """Return what was removed from a span."""
    return [Redaction(*row) for row in connection.execute(_REDACTIONS, {"span": span})]


def count_losers(connection: apsw.Connection, span: int) -> int:
    """Return how many poorer reports of the same span are kept beside it."""
    return int(connection.execute(_LOSERS, {"span": span}).get)
