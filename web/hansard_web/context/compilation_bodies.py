"""A compile as bodies of the API: what was weighed, what went in, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import apsw

from hansard_collector.derivation.compilations import read_result
from hansard_collector.payloads import PayloadStanding, standing_of
from hansard_store.bodies import Answer, Body, Description, body_of
from hansard_store.compilations.queries import (
    Compilation,
    compilations_with_id,
    spans_naming_compilation,
)
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.errors import StoreCorruptError
from hansard_store.steps.queries import steps_by_number
from hansard_web.api.values import plain
from hansard_web.receipts.bodies import WholeReceipt, receipt_body


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
    recorded_schema_version: Annotated[str, Description("of hansard.*, as the sender wrote it")]
    counter: Annotated[str | None, Description("how tokens were counted")]
    ports: Annotated[list[str], Description("what shaped the compile beside its request")]
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


class SectionBody(Body):
    name: str
    hash: str | None
    tokens: int | None
    item_ids: list[str]


class WholeCompilation(CompilationSummary):
    """A compile, whole."""

    run_name: str
    parent_step_id: str | None
    calls: Annotated[list[str], Description("steps that sent what was compiled")]
    request: CompilePayload | None
    result: CompilePayload | None
    sections: list[SectionBody]
    token_allocation: dict[str, Any] | None
    passes: list[Any] | None
    receipts: list[WholeReceipt]
    notes: list[str]


class CompilationBody(WholeCompilation, Answer):
    """A compile, whole."""

    same_compile: Annotated[list[str], Description("other steps that made the very same compile")]


def compilation_body(
    connection: apsw.Connection, compilation_id: str, *, now_ns: int
) -> CompilationBody:
    """Return everything about a compile, as the API and the command line say it."""
    found, *others = compilations_with_id(connection, compilation_id)
    whole = whole_body(connection, found, now_ns=now_ns)
    return body_of(CompilationBody, **whole, same_compile=[one.step_id for one in others])


def whole_body(connection: apsw.Connection, found: Compilation, *, now_ns: int) -> WholeCompilation:
    """Return a compile with everything that is stored of it."""
    receipts = receipts_of(connection, found.span)
    result, trouble = _result(connection, found.row.result_ref)
    return {
        **summary_body(found),
        "run_name": found.run_name,
        "parent_step_id": _parent(found),
        "calls": _calls(connection, found, now_ns=now_ns),
        "request": _payload(connection, found.row.request_ref),
        "result": _payload(connection, found.row.result_ref),
        "sections": _sections(found, receipts, result),
        "token_allocation": plain(_only(result.get("token_allocation"), dict)),
        "passes": plain(_only(result.get("passes"), list)),
        "receipts": _receipts(receipts, result),
        "notes": [*notes_of(found), *trouble],
    }


def summary_body(compilation: Compilation) -> CompilationSummary:
    """Return a compile in numbers."""
    row = compilation.row
    return body_of(
        CompilationSummary,
        row,
        compilation_id=row.id,
        step_id=compilation.step_id,
        run_id=compilation.run_id,
        recorded_schema_version=row.schema_version or "1",
        ports=row.ports.split(",") if row.ports else [],
        budget=_budget(row.budget_tokens, row.budget_reserve, row.budget_used),
        items=body_of(ItemCounts, row, total=row.item_total, receipts=row.receipt_count),
        url=f"/v1/compilations/{row.id}",
    )


def notes_of(compilation: Compilation) -> list[str]:
    """Return what was missing, malformed or left out of what the span tells."""
    return compilation.row.notes.split("\n") if compilation.row.notes else []


def _budget(tokens: int | None, reserve: int | None, used: int | None) -> Budget:
    available = None if tokens is None else tokens - (reserve or 0)
    free = None if available is None or used is None else available - used
    return {
        "tokens": tokens,
        "reserve": reserve,
        "available": available,
        "used": used,
        "free": free,
    }


def _parent(compilation: Compilation) -> str | None:
    parent = compilation.parent_span_id
    return None if parent is None else f"{compilation.run_id}-{parent}"


def _calls(connection: apsw.Connection, compilation: Compilation, *, now_ns: int) -> list[str]:
    """Return the steps that say they sent what was compiled."""
    numbers = spans_naming_compilation(connection, compilation.row.id)
    steps = steps_by_number(connection, numbers, now_ns=now_ns)
    found = (steps[number] for number in reversed(numbers) if number in steps)
    return [step.step_id for step in found if step.role != "compile"]


def _payload(connection: apsw.Connection, ref: str | None) -> CompilePayload | None:
    if ref is None:
        return None
    standing, payload = standing_of(connection, ref)
    here = standing in (PayloadStanding.STORED, PayloadStanding.REDACTED)
    return {
        "ref": ref,
        "state": standing.value,
        "size": None if payload is None else payload.size,
        "url": f"/v1/payloads/{ref}" if here else None,
    }


# ---- from the stored result: JSON that anybody may have sent under its digest


def _result(connection: apsw.Connection, ref: str | None) -> tuple[Mapping[str, Any], list[str]]:
    try:
        return (read_result(connection, ref) if ref else None) or {}, []
    except StoreCorruptError as error:
        return {}, [str(error)]


def _only(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else None


def _sections(
    compilation: Compilation, receipts: Sequence[StoredReceipt], result: Mapping[str, Any]
) -> list[SectionBody]:
    """Return the parts of the prompt; without the result, as the receipts have them."""
    layout = _only(result.get("layout"), list)
    if layout is not None:
        return [
            {
                "name": str(one.get("name")),
                "hash": _only(one.get("hash"), str),
                "tokens": _only(one.get("tokens"), int),
                "item_ids": [str(item_id) for item_id in _only(one.get("item_ids"), list) or ()],
            }
            for one in layout
            if isinstance(one, dict)
        ]
    hashes = {
        "stable_prefix": compilation.row.stable_prefix_hash,
        "volatile_suffix": compilation.row.volatile_suffix_hash,
    }
    within: dict[str, list[StoredReceipt]] = {}
    for receipt in receipts:
        if receipt.section is not None:
            within.setdefault(receipt.section, []).append(receipt)
    return [
        {
            "name": name,
            "hash": hashes.get(name),
            "tokens": sum(one.tokens_after or 0 for one in found),
            "item_ids": [one.item_id for one in found],
        }
        for name, found in within.items()
    ]


def _receipts(receipts: Sequence[StoredReceipt], result: Mapping[str, Any]) -> list[WholeReceipt]:
    decisions = {
        one["item_id"]: one
        for one in _only(result.get("decisions"), list) or ()
        if isinstance(one, dict) and isinstance(one.get("item_id"), str)
    }
    return [_receipt(receipt, decisions.get(receipt.item_id, {})) for receipt in receipts]


def _receipt(receipt: StoredReceipt, decision: Mapping[str, Any]) -> WholeReceipt:
    return {
        **receipt_body(receipt),
        "score_breakdown": plain(_only(decision.get("score_breakdown"), dict)),
        "notes": _only(decision.get("notes"), str),
        "removed": plain(_only(decision.get("removed"), list)),
    }
