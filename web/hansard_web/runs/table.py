"""The list of runs as a file, in the order and with the filters of the list."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.database.cursors import Page
from hansard_store.runs.filters import NEWEST_FIRST, parse_sort
from hansard_store.runs.queries import list_runs
from hansard_web.api.bodies import RunBody, run_body
from hansard_web.api.queries import SEVERAL, run_filter_of
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages

_ONE: Final = (
    "q", "kind", "conversation", "group", "user", "receipts", "since", "until", "min_duration_ms",
    "min_cost", "sort",
)  # fmt: skip


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    several = {name: filters[name].split("\n") for name in SEVERAL if name in filters}
    wanted = run_filter_of({**filters, **several})
    sort = parse_sort(filters.get("sort") or NEWEST_FIRST.text)
    now_ns = time.time_ns()

    def page(cursor: str | None) -> Page[RunBody]:
        with source.readers.read() as connection:
            found = list_runs(
                connection, wanted, now_ns=now_ns, sort=sort, limit=AT_ONCE, cursor=cursor
            )
            return Page([run_body(item) for item in found.items], found.next_cursor)

    return all_pages(page)


TABLE: Final = Table(
    name="runs",
    columns=(
        "run_id", "name", "kind", "status", "agent", "models", "service_names", "user_id",
        "conversation_id", "started_at", "ended_at", "duration_ms", "step_count", "model_calls",
        "tool_calls", "error_count", "tokens.input", "tokens.output", "tokens.cache_read",
        "tokens.reasoning", "cost_usd", "tags", "scores", "pending_approvals",
        "rejected_approvals", "has_receipts", "first_input", "last_output",
    ),
    filters=(*_ONE, *SEVERAL),
    rows=_rows,
)  # fmt: skip
