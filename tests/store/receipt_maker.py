"""Stored compiles with receipts that are easy to tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hansard_store.compilations.receipts import FACET_KEYS
from hansard_store.ingest.derived_rows import CompilationProjection, CompilationRow, SpanProjection
from hansard_store.search.attributes import tokens_of
from tests.store.maker import NOW, SECOND, StoreMaker


def row(made_id: str, *, started_ns: int, **more: Any) -> CompilationRow:
    fields: dict[str, Any] = dict.fromkeys(CompilationRow._fields)
    counts = ("item_total", "receipt_count", "included", "excluded", "compressed", "redacted")
    fields |= dict.fromkeys(counts, 0)
    return CompilationRow(**fields | {"id": made_id, "started_ns": started_ns} | more)


def receipt(
    item: str,
    decision: str = "exclude",
    reason: str = "over_budget",
    *,
    at_pass: str = "budget",
    kind: str = "file",
    source: str = "",
    source_type: str = "file",
    rules: str | None = None,
) -> dict[str, Any]:
    return {
        "item": item, "decision": decision, "reason": reason, "pass": at_pass, "kind": kind,
        "source_type": source_type, "source": source or f"src/{item}.py", "rules": rules,
    }  # fmt: skip


def compile_step(
    store: StoreMaker,
    name: str,
    receipts: Sequence[dict[str, Any]],
    *,
    run: str = "run",
    start_s: float = 0,
    made_id: str = "",
    parent: str | None = None,
) -> int:
    """Store a compile span; returns its span.id."""
    columns = {key: [one[key] for one in receipts] for key in (receipts[0] if receipts else {})}
    count = len(receipts)
    nothing: list[Any] = [None] * count
    told = {**columns, "rule": columns.get("rules", ())}
    said = {
        key: [one for text in told.get(facet, ()) if text for one in text.split(",")]
        for facet, key in FACET_KEYS.items()
    }
    started_ns = NOW - 3600 * SECOND + round(start_s * SECOND)
    made = CompilationProjection(
        row(made_id or f"{name}-{run}", started_ns=started_ns, item_total=count,
            receipt_count=count),
        (
            range(count),
            *(columns.get(key, ()) for key in ("item", "kind", "decision", "pass", "reason")),
            *(columns.get(key, ()) for key in ("source_type", "source")),
            *[nothing] * 7,
            columns.get("rules", ()),
            *[nothing] * 2,
        ),
    )  # fmt: skip
    sent = {
        "hansard.compilation.id": made.row.id,
        "hansard.item.ids": [one["item"] for one in receipts],
        "hansard.item.sources": [f"{one['source_type']} {one['source']}" for one in receipts],
        **said,
    }
    projection = SpanProjection(
        role="compile", dialect="hansard", compilation=made, attribute_tokens=tokens_of(sent)
    )
    return store.span(name, parent, run=run, start_s=start_s, projection=projection)
