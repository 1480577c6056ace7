"""The list of groups of errors as a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.database.cursors import Page
from hansard_store.error_groups.json import ErrorGroupBody, error_json
from hansard_store.error_groups.queries import SHOWN, SORTS, Wanted, list_errors
from hansard_web.api.queries import read_word, run_filter_of
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages

_ONE: Final = (
    "q", "kind", "conversation", "group", "user", "error", "since", "until", "min_duration_ms",
    "min_cost",
)  # fmt: skip
_SEVERAL: Final = ("status", "agent", "model", "tool", "service", "tag", "score", "attribute")


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    state = read_word("state", filters.get("state"), SHOWN) or "open"
    sort = read_word("sort", filters.get("sort"), SORTS) or "-count"
    of_runs = {name: [text] if name in _SEVERAL else text for name, text in filters.items()}
    wanted = Wanted.of(run_filter_of(of_runs), shown=state, sort=sort)
    now_ns = time.time_ns()

    def page(cursor: str | None) -> Page[ErrorGroupBody]:
        with source.readers.read() as connection:
            found, _ = list_errors(connection, wanted, now_ns=now_ns, limit=AT_ONCE, cursor=cursor)
            return Page([error_json(one) for one in found.items], found.next_cursor)

    return all_pages(page)


TABLE: Final = Table(
    name="errors",
    columns=(
        "error_id", "state", "watched", "subject.kind", "subject.name", "error_type", "message",
        "count", "run_count", "first_at", "last_at", "agents", "models", "closed_at", "reopened_at",
        "note_count",
    ),
    filters=(*_ONE, *_SEVERAL, "state", "sort"),
    rows=_rows,
)  # fmt: skip
