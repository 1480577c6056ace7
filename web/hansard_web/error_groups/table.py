"""The list of groups of errors as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from hansard_store.error_groups.queries import ErrorGroup
from hansard_store.times import time_text

CSV: Final = "text/csv; charset=utf-8"
MOST_ROWS: Final = 1_000
_COLUMNS: Final = (
    "error_id", "state", "watched", "kind", "name", "error_type", "message", "errors", "runs",
    "first_seen", "last_seen", "agents", "models",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins so


def csv_of(groups: Sequence[ErrorGroup]) -> str:
    """Return a line of names and a line for each group; a cell is never a formula."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(_COLUMNS)
    for one in groups:
        row = (
            one.error_id, one.state, "yes" if one.watched else "no", one.subject_kind, one.subject,
            one.error_type or "", one.message or "", one.count, one.run_count,
            time_text(one.first_ns), time_text(one.last_ns), "; ".join(one.agents),
            "; ".join(one.models),
        )  # fmt: skip
        writer.writerow([_plain(cell) for cell in row])
    return out.getvalue()


def _plain(cell: str | int | None) -> str:
    text = "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text
