"""The whole of a compile whose span holds only its first 4,000 receipts: the stored result.

Whichever of span and payload comes first, the receipts are written again when both are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import apsw
import orjson

from hansard_collector.derivation.compilations import found_by, with_receipts
from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import folder_of, get_payload, parse_payload_ref, read_payload
from hansard_store.errors import BadQueryError, StoreCorruptError
from hansard_store.ingest.derived_rows import CompilationProjection, SpanProjection
from hansard_store.search.attributes import tokens_of

# A result of 50,000 receipts; reading one takes the ingest thread 5 ms a MiB.
MOST_BYTES = 64 * 1024 * 1024

Json = Mapping[str, Any]


class ResultUnreadableError(StoreCorruptError):
    """Bytes are stored as the result of a compile and are none."""

    code = "result_unreadable"


def with_result(connection: apsw.Connection, made: SpanProjection) -> SpanProjection:
    """Return the rows of a compile span with all receipts; as it is where nothing is to be had."""
    compilation = made.compilation
    if compilation is None or not compilation.is_cut or compilation.row.result_ref is None:
        return made
    try:
        result = read_result(connection, compilation.row.result_ref)
        whole = None if result is None else _completed(compilation, result)
    except StoreCorruptError as error:
        return _noted(made, compilation, str(error))
    if whole is None:
        return made
    named = (*made.payloads, *_named(whole))
    return made._replace(
        compilation=whole,
        payloads=tuple(dict.fromkeys(named)),
        attribute_tokens=f"{made.attribute_tokens} {tokens_of(found_by(whole))}",
    )


def read_result(connection: apsw.Connection, ref: str) -> Json | None:
    """Return the stored result of a compile; None when it is not here.

    Raises StoreCorruptError when its file is gone, ResultUnreadableError when it is no result.
    """
    try:
        payload = get_payload(connection, parse_payload_ref(ref))
    except (NotFoundError, BadQueryError):
        return None
    if payload.size > MOST_BYTES:
        raise ResultUnreadableError(f"the stored result is too large to read: {payload.size:,} B")
    try:
        result = orjson.loads(read_payload(folder_of(connection), payload))
    except orjson.JSONDecodeError:
        raise ResultUnreadableError("the stored result is no JSON") from None
    if not isinstance(result, dict) or not isinstance(result.get("decisions"), list):
        raise ResultUnreadableError("the stored result holds no decisions")
    return result


def _completed(told: CompilationProjection, result: Json) -> CompilationProjection:
    if result.get("id") != told.row.id:
        raise ResultUnreadableError("the stored result is of another compilation")
    decisions = [one for one in result["decisions"] if isinstance(one, dict)]
    columns = {name: [one.get(key) for one in decisions] for name, key in _KEYS.items()}
    columns["scores"] = [_score(one) for one in decisions]
    columns["rule_ids"] = [_joined(one.get("rule_ids")) for one in decisions]
    columns["final_refs"] = [_other_final(one) for one in decisions]
    notes = told.row.notes.split("\n") if told.row.notes else ()
    return with_receipts(told.row, columns, total=told.row.item_total, notes=notes)


_KEYS = {
    "ids": "item_id",
    "kinds": "kind",
    "decisions": "decision",
    "passes": "pass_name",
    "reasons": "reason_code",
    "sources": "source",
    "sections": "section",
    "tokens_before": "original_tokens",
    "tokens_after": "final_tokens",
    "missed_tokens": "missed_by_tokens",
    "missed_scores": "missed_by_score",
    "related": "related_item_id",
    "payload_refs": "original_ref",
}


def _score(decision: Json) -> Any:
    breakdown = decision.get("score_breakdown")
    return breakdown.get("score") if isinstance(breakdown, dict) else None


def _joined(rules: Any) -> str | None:
    if not isinstance(rules, list):
        return None
    return ",".join(rule for rule in rules if isinstance(rule, str))


def _other_final(decision: Json) -> Any:
    final = decision.get("final_ref")
    return None if final == decision.get("original_ref") else final


def _named(compilation: CompilationProjection) -> Iterator[bytes]:
    """Yield what the receipts refer to: gc keeps what a run names."""
    for column in compilation.receipts[-2:]:
        yield from (digest for digest in column if digest is not None)


def _noted(made: SpanProjection, told: CompilationProjection, note: str) -> SpanProjection:
    notes = "\n".join((*((told.row.notes,) if told.row.notes else ()), note))
    row = told.row._replace(notes=notes)
    return made._replace(compilation=told._replace(row=row), notes=(*made.notes, note))
