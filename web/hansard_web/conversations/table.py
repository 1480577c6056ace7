"""The list of conversations as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.database.cursors import Page
from hansard_store.runs.conversations import (
    ConversationFilter,
    ConversationItem,
    list_conversations,
)
from hansard_web.api.queries import read_times
from hansard_web.conversations.bodies import conversation_body
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    times = read_times(filters.get("since"), filters.get("until"))
    chosen = ConversationFilter(filters.get("user"), filters.get("agent"), *times)
    sort = filters.get("sort", "-last_run")

    def page(cursor: str | None) -> Page[ConversationItem]:
        with source.readers.read() as connection:
            return list_conversations(connection, chosen, sort=sort, limit=AT_ONCE, cursor=cursor)

    return map(conversation_body, all_pages(page))


TABLE: Final = Table(
    name="conversations",
    columns=(
        "conversation_id", "first_input", "last_output", "user_id", "agents", "runs",
        "failed_runs", "model_calls", "tool_calls", "error_count", "tokens.input", "tokens.output",
        "cost_usd", "started_at", "ended_at", "duration_ms", "last_run_id",
    ),
    filters=("user", "agent", "since", "until", "sort"),
    rows=_rows,
)  # fmt: skip
