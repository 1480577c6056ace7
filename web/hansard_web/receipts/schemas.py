"""Compiles and receipts as OpenAPI describes them; see `models.py`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hansard_web.api.schemas import Answer, Body, Page


class Receipt(Body):
    """What a compile did with one item; scores are exact decimal numbers in text."""

    item_id: str
    kind: str | None
    decision: str = Field(description="include, exclude, compress, redact")
    pass_name: str | None = Field(alias="pass")
    reason: str
    reason_text: str | None = Field(description="in words; null for a code of a later version")
    source: str | None
    section: str | None = Field(description="null: nothing of it was sent")
    tokens_before: int | None
    tokens_after: int | None
    score: str | None
    missed_by_tokens: int | None
    missed_by_score: str | None
    related_item_id: str | None
    rule_ids: list[str]
    original_ref: str | None
    final_ref: str | None


class FoundReceipt(Receipt):
    """A receipt and the compile it is of; `step_id` is the compile step."""

    compilation_id: str
    step_id: str
    run_id: str
    run_name: str
    started_at: str | None
    model: str | None


class ReceiptList(Page):
    items: list[FoundReceipt]


class WholeReceipt(Receipt):
    """With what only the stored result tells; null where that is not here.

    Of a term, `value` is in millionths, `weight` in thousandths, `points` in billionths.
    """

    score_breakdown: dict[str, Any] | None
    notes: str | None
    removed: list[Any] | None


class Budget(Body):
    """In tokens; `available` is what the reserve for the answer leaves."""

    tokens: int | None
    reserve: int | None
    available: int | None
    used: int | None
    free: int | None


class ItemCounts(Body):
    """`total` as sent; the others of the receipts that are stored."""

    total: int
    receipts: int
    included: int
    excluded: int
    compressed: int
    redacted: int


class CompilationSummary(Body):
    compilation_id: str
    step_id: str
    run_id: str
    started_at: str | None
    provider: str | None
    model: str | None
    hash: str | None
    stable_prefix_hash: str | None
    volatile_suffix_hash: str | None
    recorded_schema_version: str = Field(description="of hansard.*, as the sender wrote it")
    counter: str | None = Field(description="how tokens were counted")
    ports: list[str] = Field(description="what shaped the compile beside its request")
    budget: Budget
    items: ItemCounts
    request_ref: str | None
    result_ref: str | None
    url: str


class CompilePayload(Body):
    ref: str
    state: Literal["stored", "redacted", "missing", "withheld"]
    size: int | None
    url: str | None


class Section(Body):
    name: str
    hash: str | None
    tokens: int | None
    item_ids: list[str]


class Compilation(CompilationSummary, Answer):
    """A compile, whole."""

    run_name: str
    parent_step_id: str | None
    calls: list[str] = Field(description="steps that sent what was compiled")
    same_compile: list[str] = Field(description="other steps that made the very same compile")
    request: CompilePayload | None
    result: CompilePayload | None
    sections: list[Section]
    token_allocation: dict[str, Any] | None
    passes: list[Any] | None
    receipts: list[WholeReceipt]
    notes: list[str]
