"""The list of users as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.database.cursors import Page
from hansard_store.runs.users import UserFilter, UserItem, list_users
from hansard_web.api.queries import window_of
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages
from hansard_web.users.bodies import user_body


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    window = window_of(filters.get("since"), filters.get("until"))
    chosen = UserFilter(window.since_ns, window.until_ns, filters.get("prefix", ""))
    sort = filters.get("sort", "-last_seen")

    def page(cursor: str | None) -> Page[UserItem]:
        with source.readers.read() as connection:
            return list_users(connection, chosen, sort=sort, limit=AT_ONCE, cursor=cursor)

    return map(user_body, all_pages(page))


TABLE: Final = Table(
    name="users",
    columns=(
        "user_id", "runs", "failed_runs", "error_rate", "model_calls", "tokens.input",
        "tokens.output", "cost_usd", "conversations", "score", "agents", "first_seen_at",
        "last_seen_at",
    ),
    filters=("prefix", "since", "until", "sort"),
    rows=_rows,
)  # fmt: skip
