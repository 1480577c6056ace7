"""The list of approvals as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.approvals.json import approval_json
from hansard_store.approvals.records import EXECUTION_STATES, Approval, ApprovalFilter, Status
from hansard_store.approvals.rows import cursor_after, read_cursor
from hansard_store.database.cursors import Page
from hansard_web.api.queries import read_word, trace_id_of
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    words = filters.get("status", "").split(",")  # several, with commas between
    statuses = (read_word("status", one.strip(), list(Status)) for one in words)
    chosen = ApprovalFilter(
        status=tuple(str(one) for one in statuses if one),
        channel=filters.get("channel"),
        run_id=trace_id_of(filters["run"], source.readers.read).hex() if "run" in filters else None,
        agent=filters.get("agent"),
        tool=filters.get("tool"),
        batch_id=filters.get("batch"),
        execution=read_word("execution", filters.get("execution"), EXECUTION_STATES),
    )

    def page(cursor: str | None) -> Page[Approval]:
        before = read_cursor(cursor)
        found = source.approvals.approvals(chosen, before=before, limit=AT_ONCE)
        return Page(found, cursor_after(found, limit=AT_ONCE))

    return map(approval_json, all_pages(page))


TABLE: Final = Table(
    name="approvals",
    columns=(
        "approval_id", "status", "tool", "arguments", "effect", "description", "agent", "channel",
        "run_id", "step_id", "batch_id", "revision", "note", "reason", "created_at", "updated_at",
        "decided_at", "decided_by", "decided_method", "execution.state", "execution.finished_at",
        "execution.error",
    ),
    filters=("status", "channel", "run", "agent", "tool", "batch", "execution"),
    rows=_rows,
)  # fmt: skip
