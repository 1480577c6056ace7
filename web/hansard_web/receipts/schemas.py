"""What lists of receipts answer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from hansard_store.bodies import Body, Page

_Pass = TypedDict("_Pass", {"pass": str | None})


class ReceiptBody(Body, _Pass):
    """What a compile did with one item; scores are exact decimal numbers in text."""

    item_id: str
    kind: str | None
    decision: Annotated[str, Field(description="include, exclude, compress, redact")]
    reason: str
    reason_text: Annotated[
        str | None, Field(description="in words; null for a code of a later version")
    ]
    source: str | None
    section: Annotated[str | None, Field(description="null: nothing of it was sent")]
    tokens_before: int | None
    tokens_after: int | None
    score: str | None
    missed_by_tokens: int | None
    missed_by_score: str | None
    related_item_id: str | None
    rule_ids: list[str]
    original_ref: str | None
    final_ref: str | None


class FoundReceiptBody(ReceiptBody):
    """A receipt and the compile it is of; `step_id` is the compile step."""

    compilation_id: str
    step_id: str
    run_id: str
    run_name: str
    started_at: str | None
    model: str | None


class ReceiptList(Page):
    items: list[FoundReceiptBody]


class WholeReceipt(ReceiptBody):
    """With what only the stored result tells; null where that is not here.

    Of a term, `value` is in millionths, `weight` in thousandths, `points` in billionths.
    """

    score_breakdown: dict[str, Any] | None
    notes: str | None
    removed: list[Any] | None
