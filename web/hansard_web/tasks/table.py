"""The list of tasks for review as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from hansard_store.database.cursors import Page
from hansard_store.detection.rules import LEVELS
from hansard_store.tasks.json import TaskBody, task_json
from hansard_store.tasks.rows import STATES, State, list_tasks
from hansard_web.api.queries import read_word
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages

_STATES: Final[tuple[State | Literal["open"], ...]] = (*STATES, "open")


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    state = read_word("state", filters.get("state"), _STATES)
    level = read_word("level", filters.get("level"), LEVELS)

    def page(cursor: str | None) -> Page[TaskBody]:
        with source.readers.read() as connection:
            found = list_tasks(connection, state=state, level=level, limit=AT_ONCE, cursor=cursor)
            return Page([task_json(connection, one) for one in found.items], found.next_cursor)

    return all_pages(page)


TABLE: Final = Table(
    name="tasks",
    columns=(
        "task_id", "state", "level", "rule", "subject.kind", "subject.name", "title", "description",
        "sample", "count", "first_at", "last_at", "threshold",
    ),
    filters=("state", "level"),
    rows=_rows,
)  # fmt: skip
