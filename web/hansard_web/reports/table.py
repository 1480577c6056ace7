"""The list of status reports as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.reports.files import Reports, report_json
from hansard_web.exports.table import Row, Source, Table


def _rows(source: Source, _: Mapping[str, str]) -> Iterator[Row]:
    reports = Reports(source.folder, source="api")
    for one in reports.list():
        yield report_json(one, waits_for=None, text=reports.text(one.name))


TABLE: Final = Table(
    name="reports",
    columns=("name", "written_at", "record", "acks", "unrecorded_acks", "text"),
    filters=(),
    rows=_rows,
)
