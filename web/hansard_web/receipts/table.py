"""The list of receipts as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hansard_store.compilations.receipts import FoundReceipt, list_receipts
from hansard_store.database.cursors import Page
from hansard_web.exports.table import AT_ONCE, Row, Source, Table, all_pages
from hansard_web.receipts.bodies import found_body, receipt_filter


def _rows(source: Source, filters: Mapping[str, str]) -> Iterator[Row]:
    renamed = {"pass_" if name == "pass" else name: text for name, text in filters.items()}
    chosen = receipt_filter(**renamed)

    def page(cursor: str | None) -> Page[FoundReceipt]:
        with source.readers.read() as connection:
            return list_receipts(connection, chosen, limit=AT_ONCE, cursor=cursor)

    return map(found_body, all_pages(page))


TABLE: Final = Table(
    name="receipts",
    columns=(
        "run_id", "run_name", "step_id", "started_at", "model", "item_id", "kind", "source",
        "decision", "pass", "reason", "reason_text", "section", "tokens_before", "tokens_after",
        "score", "missed_by_tokens", "missed_by_score", "rule_ids", "related_item_id",
        "compilation_id",
    ),
    filters=("item", "source", "reason", "rule", "pass", "decision", "kind", "run", "since",
             "until"),
    rows=_rows,
)  # fmt: skip
