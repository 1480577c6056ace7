"""Receipts across runs: what compiles did with items, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from hansard_compiler.reasons import ReasonCode
from hansard_compiler.scoring import decimal_text
from hansard_store.payloads import payload_ref
from hansard_store.receipts import FoundReceipt, Receipt, ReceiptFilter, list_receipts
from hansard_web.api import receipt_models
from hansard_web.api.answers import Answer, Body, time_text
from hansard_web.api.params import read_limit, read_times
from hansard_web.site import SiteDep

router = APIRouter(tags=["receipts"])

_MEANINGS = {code.value: code.meaning for code in ReasonCode}


def read_receipt_filter(
    item: Annotated[str | None, Query(description="id of an item")] = None,
    reason: Annotated[str | None, Query(description="reason code: over_budget, …")] = None,
    rule: Annotated[str | None, Query(description="id of a policy rule")] = None,
    pass_: Annotated[
        str | None, Query(alias="pass", description="pass that decided: budget, …")
    ] = None,
    decision: Annotated[
        str | None, Query(description="include, exclude, compress or redact")
    ] = None,
    kind: Annotated[str | None, Query(description="kind of item: file, memory, …")] = None,
    source: Annotated[
        str | None, Query(description="where it came from: `file`, `docs/a.md`, `file docs/a.md`")
    ] = None,
    run: Annotated[str | None, Query(description="run, or a unique beginning of its id")] = None,
    since: Annotated[str | None, Query(description="compiled at or after: RFC 3339 or ns")] = None,
    until: Annotated[str | None, Query(description="compiled before: RFC 3339 or ns")] = None,
) -> ReceiptFilter:
    """Return the filter of a list of receipts; an empty value means that it was not given."""
    since_ns, until_ns = read_times(since, until)
    return ReceiptFilter(
        item=item or None,
        reason=reason or None,
        rule=rule or None,
        pass_name=pass_ or None,
        decision=decision or None,
        kind=kind or None,
        source=source or None,
        run=run or None,
        since_ns=since_ns,
        until_ns=until_ns,
    )


@router.get(
    "/v1/receipts", response_class=Answer, responses={200: {"model": receipt_models.ReceiptList}}
)
def receipts(
    site: SiteDep,
    limit: Annotated[int, Depends(read_limit)],
    wanted: Annotated[ReceiptFilter, Depends(read_receipt_filter)],
    cursor: str | None = None,
) -> Answer:
    """List what compiles did with items, newest compile first: `?source=a.py&reason=over_budget`.

    All filters must be met. Within a compile the order is that of its candidates.
    """
    with site.readers.read() as connection:
        page = list_receipts(connection, wanted, limit=limit, cursor=cursor)
    return Answer(
        {"items": [found_body(one) for one in page.items], "next_cursor": page.next_cursor}
    )


def found_body(found: FoundReceipt) -> Body:
    """Return a receipt with the compile it is of."""
    return {
        "compilation_id": found.compilation_id,
        "step_id": found.step_id,
        "run_id": found.run_id,
        "run_name": found.run_name,
        "started_at": time_text(found.started_ns),
        "model": found.model,
        **receipt_body(found.receipt),
    }


def receipt_body(receipt: Receipt) -> Body:
    """Return what a compile did with one item."""
    return {
        "item_id": receipt.item_id,
        "kind": receipt.kind,
        "decision": receipt.decision,
        "pass": receipt.pass_name,
        "reason": receipt.reason,
        "reason_text": reason_text(receipt.reason),
        "source": source_line(receipt),
        "section": receipt.section,
        "tokens_before": receipt.tokens_before,
        "tokens_after": receipt.tokens_after,
        "score": points(receipt.score_nano),
        "missed_by_tokens": receipt.missed_tokens,
        "missed_by_score": points(receipt.missed_score_nano),
        "related_item_id": receipt.related,
        "rule_ids": list(receipt.rules),
        "original_ref": _ref(receipt.original),
        "final_ref": _ref(receipt.final),
    }


def reason_text(code: str) -> str | None:
    """Return a reason code in words; None for one of a later version."""
    return _MEANINGS.get(code)


def source_line(receipt: Receipt) -> str | None:
    """Return type and place of where an item came from, in one line."""
    return " ".join(part for part in (receipt.source_type, receipt.source) if part) or None


def points(nano: int | None) -> str | None:
    """Return a score exactly, as a decimal number in text."""
    return None if nano is None else decimal_text(nano)


def _ref(digest: bytes | None) -> str | None:
    return None if digest is None else payload_ref(digest)
