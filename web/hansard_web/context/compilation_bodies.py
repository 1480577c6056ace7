"""A compile as bodies of the API: what was weighed, what went in, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from hansard_collector.derivation.compilations import read_result
from hansard_collector.payloads import PayloadStanding, standing_of
from hansard_store.compilations.queries import (
    Compilation,
    compilations_with_id,
    spans_naming_compilation,
)
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.errors import StoreCorruptError
from hansard_store.steps.queries import steps_by_number
from hansard_web.api.values import Body, fields_of, plain, time_text
from hansard_web.receipts.bodies import receipt_body

_OF_RESULT = {"score_breakdown": dict, "notes": str, "removed": list}


def compilation_body(connection: apsw.Connection, compilation_id: str, *, now_ns: int) -> Body:
    """Return everything about a compile, as the API and the command line say it."""
    found, *others = compilations_with_id(connection, compilation_id)
    same = [one.step_id for one in others]
    return {**whole_body(connection, found, now_ns=now_ns), "same_compile": same}


def whole_body(connection: apsw.Connection, found: Compilation, *, now_ns: int) -> Body:
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


def summary_body(compilation: Compilation) -> Body:
    """Return a compile in numbers."""
    row = compilation.row
    return {
        "compilation_id": row.id,
        "step_id": compilation.step_id,
        "run_id": compilation.run_id,
        "started_at": time_text(row.started_ns),
        **fields_of(row, "provider", "model", "hash", "stable_prefix_hash", "volatile_suffix_hash"),
        "recorded_schema_version": row.schema_version or "1",
        "counter": row.counter,
        "ports": row.ports.split(",") if row.ports else [],
        "budget": _budget(row.budget_tokens, row.budget_reserve, row.budget_used),
        "items": {
            "total": row.item_total,
            "receipts": row.receipt_count,
            **fields_of(row, "included", "excluded", "compressed", "redacted"),
        },
        **fields_of(row, "request_ref", "result_ref"),
        "url": f"/v1/compilations/{row.id}",
    }


def notes_of(compilation: Compilation) -> list[str]:
    """Return what was missing, malformed or left out of what the span tells."""
    return compilation.row.notes.split("\n") if compilation.row.notes else []


def _budget(tokens: int | None, reserve: int | None, used: int | None) -> Body:
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


def _payload(connection: apsw.Connection, ref: str | None) -> Body | None:
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
) -> list[Body]:
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


def _receipts(receipts: Sequence[StoredReceipt], result: Mapping[str, Any]) -> list[Body]:
    decisions = {
        one["item_id"]: one
        for one in _only(result.get("decisions"), list) or ()
        if isinstance(one, dict) and isinstance(one.get("item_id"), str)
    }
    return [
        {
            **receipt_body(receipt),
            **{
                name: plain(_only(decisions.get(receipt.item_id, {}).get(name), kind))
                for name, kind in _OF_RESULT.items()
            },
        }
        for receipt in receipts
    ]
