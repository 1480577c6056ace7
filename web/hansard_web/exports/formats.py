"""Rows as CSV (RFC 4180), JSON, Markdown or HTML, a piece at a time."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import chain, islice
from typing import Any, Final

from hansard_web.api.values import dump, plain

MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
FORMATS: Final = tuple(MEDIA_TYPES)
MOST_ROWS: Final = 100_000
_LONGEST: Final = 32_000  # characters of a cell; a spreadsheet takes 32,767
_SUFFIXES: Final = {"markdown": "md"}
_PIECE: Final = 64 * 1024  # characters in one piece of a file
# What makes a spreadsheet take a text for a formula (OWASP, CSV injection), full-width signs too.
_FORMULA: Final = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()<>#+!|~&])")


def file_name(table: str, format: str, *, now_ns: int | None = None) -> str:
    """Return a name with the time in UTC: `hansard-receipts-20261128T200501Z.csv`."""
    seconds = (time.time_ns() if now_ns is None else now_ns) // 1_000_000_000
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"hansard-{table}-{moment:%Y%m%dT%H%M%SZ}.{_SUFFIXES.get(format, format)}"


def write_rows(
    format: str,
    name: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    most: int = MOST_ROWS,
) -> Iterator[bytes]:
    """Return a file in pieces; `most` rows at most, and the file says when there are more.

    The first row is read before this returns, so that what refuses the list is raised here.
    """
    remaining = iter(rows)
    first = list(islice(remaining, 1))
    every = chain(first, remaining)
    cut = f"This file ends after {most:,} rows; narrow the list to get the others."
    notes = (cut for _ in islice(every, 1))  # read after the rows
    pieces = _WRITERS[format](name, columns, islice(every, most), notes)
    return _in_pieces(pieces)


def _in_pieces(pieces: Iterator[str]) -> Iterator[bytes]:
    waiting: list[str] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= _PIECE:
            yield "".join(waiting).encode("utf-8", "replace")
            waiting, length = [], 0
    yield "".join(waiting).encode("utf-8", "replace")


def cell_text(value: Any) -> str:
    """Return a value as the text of one cell, without control characters, cut with `…`."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case str():
            text = value
        case _:
            text = dump(plain(value)).decode()
    text = _UNSEEN.sub("\ufffd", text[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def csv_cell(value: Any) -> str:
    """Return a cell that no spreadsheet takes for a formula: such a text begins with `'`."""
    text = cell_text(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"'{text}" if not is_number and _FORMULA.match(text.lstrip(" \u00a0")) else text


def _csv(
    _: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterator[str]
) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line)  # CRLF, and quotes where they are needed
    for row in chain([columns], rows, ([note] for note in notes)):
        writer.writerow([csv_cell(value) for value in row])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _json(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterator[str]
) -> Iterator[str]:
    yield f'{{"schema_version":"1","table":{json.dumps(name)},"columns":{json.dumps([*columns])},'
    yield '"rows":['
    for number, row in enumerate(rows):
        body = {column: plain(value) for column, value in zip(columns, row, strict=True)}
        yield ("," if number else "") + dump(body).decode()
    is_complete = next(notes, None) is None
    yield f'],"is_complete":{json.dumps(is_complete)}}}\n'


def _markdown(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterator[str]
) -> Iterator[str]:
    yield f"| {' | '.join(map(_markdown_cell, columns))} |\n"
    yield f"|{' --- |' * len(columns)}\n"
    for row in rows:
        yield f"| {' | '.join(map(_markdown_cell, row))} |\n"
    for note in notes:
        yield f"\n{note}\n"


def _markdown_cell(value: Any) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(cell_text(value).split()))


_HTML_HEAD: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 13px/1.45 system-ui, sans-serif; margin: 1.5rem; }}
table {{ border-collapse: collapse; }}
th, td {{ border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  padding: .25rem .5rem; text-align: start; vertical-align: top;
  max-width: 40rem; overflow-wrap: anywhere; }}
td {{ font-variant-numeric: tabular-nums; }}
</style></head>
<body><h1>{name}</h1>
<table><thead><tr>"""


def _html(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterator[str]
) -> Iterator[str]:
    yield _HTML_HEAD.format(name=escape(name))
    yield "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield "</tr></thead><tbody>\n"
    for row in rows:
        cells = "".join(f'<td dir="auto">{escape(cell_text(value))}</td>' for value in row)
        yield f"<tr>{cells}</tr>\n"
    yield "</tbody></table>\n"
    for note in notes:
        yield f"<p>{escape(note)}</p>\n"
    yield "</body></html>\n"


_WRITERS: Final = {"csv": _csv, "json": _json, "markdown": _markdown, "html": _html}
