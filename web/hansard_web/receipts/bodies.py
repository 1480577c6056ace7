"""The filter of receipts, and receipts as bodies of the API."""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

from hansard_compiler.compile.passes.score import decimal_text
from hansard_compiler.compile.reasons import ReasonCode
from hansard_store.bodies import Body, Description, Page, body_of
from hansard_store.compilations.receipts import FoundReceipt, ReceiptFilter, StoredReceipt
from hansard_store.content.payloads import payload_ref
from hansard_web.api.queries import read_times

_MEANINGS = {code.value: code.meaning for code in ReasonCode}


_Pass = TypedDict("_Pass", {"pass": str | None})


class ItemOutcome(Body, _Pass):
    """What became of an item, without its scores."""

    kind: str | None
    reason: str
    source: str | None
    tokens_before: int | None
    tokens_after: int | None
    missed_by_tokens: int | None
    related_item_id: str | None
    rule_ids: list[str]
    original_ref: str | None
    final_ref: str | None


class ReceiptBody(ItemOutcome):
    """What a compile did with one item; scores are exact decimal numbers in text."""

    item_id: str
    decision: Annotated[str, Description("include, exclude, compress, redact")]
    reason_text: Annotated[str | None, Description("in words; null for a code of a later version")]
    section: Annotated[str | None, Description("null: nothing of it was sent")]
    score: str | None
    missed_by_score: str | None


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


def receipt_filter(
    *,
    since: str | None = None,
    until: str | None = None,
    pass_: str | None = None,
    **fields: str | None,
) -> ReceiptFilter:
    """Return the filter of a list of receipts; an empty value is no filter."""
    since_ns, until_ns = read_times(since, until)
    return ReceiptFilter(
        pass_name=pass_ or None,
        since_ns=since_ns,
        until_ns=until_ns,
        **{name: value or None for name, value in fields.items()},
    )


def found_body(found: FoundReceipt) -> FoundReceiptBody:
    """Return a receipt with the compile it is of."""
    return body_of(FoundReceiptBody, found, **receipt_body(found.receipt))


def receipt_body(receipt: StoredReceipt) -> ReceiptBody:
    """Return what a compile did with one item."""
    return body_of(
        ReceiptBody,
        receipt,
        **{"pass": receipt.pass_name},
        reason_text=reason_text(receipt.reason),
        source=source_line(receipt),
        score=points(receipt.score_nano),
        missed_by_tokens=receipt.missed_tokens,
        missed_by_score=points(receipt.missed_score_nano),
        related_item_id=receipt.related,
        rule_ids=list(receipt.rules),
        original_ref=_ref(receipt.original),
        final_ref=_ref(receipt.final),
    )


def reason_text(code: str) -> str | None:
    """Return a reason code in words; None for one of a later version."""
    return _MEANINGS.get(code)


def source_line(receipt: StoredReceipt) -> str | None:
    """Return type and place of where an item came from, in one line."""
    return " ".join(part for part in (receipt.source_type, receipt.source) if part) or None


def points(nano: int | None) -> str | None:
    """Return a score exactly, as a decimal number in text."""
    return None if nano is None else decimal_text(nano)


def _ref(digest: bytes | None) -> str | None:
    return None if digest is None else payload_ref(digest)
