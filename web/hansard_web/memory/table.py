"""The list of memory as a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidQueryError
from hansard_store.memory.queries import Sort, list_memories
from hansard_store.memory.records import Memory
from hansard_store.memory.rows import memory_json
from hansard_web.api.queries import read_word
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages
from hansard_web.memory.service import read_memory_filter


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    fields: dict[str, Any] = {**filters}
    by: Sort = read_word("sort", fields.pop("sort", None), get_args(Sort)) or "written"
    fields["text"] = fields.pop("q", "").strip()
    fields["memory_type"] = fields.pop("type", None)
    if "min_confidence" in fields:
        fields["min_confidence"] = _share("min_confidence", fields["min_confidence"])
    now_ns = time.time_ns()

    def page(cursor: str | None) -> Page[Memory]:
        with source.readers.read() as connection:
            chosen = read_memory_filter(connection, **fields)
            return list_memories(
                connection, chosen, now_ns=now_ns, sort=by, limit=AT_ONCE, cursor=cursor
            )

    return map(memory_json, all_pages(page))


def _share(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidQueryError(name, f"{name} is {text[:40]!r}; it is a number from 0 to 1")
    return share


TABLE: Final = Table(
    name="memory",
    columns=(
        "memory_id", "state", "memory_type", "layer", "subject", "attribute", "content", "version",
        "namespace", "scope", "confidence", "writer", "written_by", "tags", "reads", "created_at",
        "last_read_at", "freshness_at", "expires_at", "run_id", "slot",
    ),
    filters=(
        "q", "state", "layer", "type", "tag", "project", "user", "agent", "writer", "slot", "run",
        "approval", "min_confidence", "fresh_since", "unread_since", "sort",
    ),
    rows=_rows,
)  # fmt: skip
