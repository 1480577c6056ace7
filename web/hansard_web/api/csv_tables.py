"""Lists as CSV, for spreadsheets: RFC 4180, UTF-8, a header line, one page of the list.

A cell that begins with `=`, `+`, `-`, `@`, a tab or a line break gets an apostrophe before it, so
that no spreadsheet runs recorded text as a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

FORMATS: Final = ("json", "csv")
_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV; lists are joined by a semicolon, what is absent is empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return out.getvalue()


def csv_answer(
    name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, cursor: str | None
) -> Response:
    """Return a page of a list as a file; the header `Next-Cursor` names the next page."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    if cursor:
        headers["Next-Cursor"] = cursor
    body = csv_text(columns, rows).encode("utf-8", "backslashreplace")
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = "; ".join(str(one) for one in value)
    if isinstance(value, str) and value.startswith(_FORMULAS):
        return f"'{value}"
    return value
