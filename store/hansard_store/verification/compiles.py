"""Receipts, compiles and stored results against one another: three tellings of what was decided.

The result is a payload, held by its digest; the compile and its receipts are derived from a span.
Where a result is stored, its hashes are the compile's, and its decisions are the receipts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import get_payload, read_payload
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreError

Found = Iterator[tuple[str, str, str]]  # table, row, message

_AT_ONCE: Final = 50
_MOST_RESULT_BYTES: Final = 64 << 20
_COMPILES: Final = """
SELECT span, hash, stable_prefix_hash, volatile_suffix_hash, result_ref, receipt_count, included,
  excluded, compressed, redacted
FROM compilation WHERE span > ? ORDER BY span LIMIT ?
"""
_RECEIPTS: Final = """
SELECT ordinal, item_id, decision, reason, tokens_before, tokens_after FROM receipt
WHERE span = ? ORDER BY ordinal
"""
_COUNTS: Final = (
    ("include", "included"),
    ("exclude", "excluded"),
    ("compress", "compressed"),
    ("redact", "redacted"),
)
_HASHES: Final = ("compile_hash", "stable_prefix_hash", "volatile_suffix_hash")
# Of a receipt: its column, and what the decision of a result calls that.
_FACTS: Final = (
    ("decision", "decision"),
    ("reason", "reason_code"),
    ("tokens_before", "original_tokens"),
    ("tokens_after", "final_tokens"),
)


def check_compiles(connection: apsw.Connection, folder: DataFolder) -> Found:
    """Yield each compile and receipt that another telling of it contradicts."""
    after = 0
    while True:
        rows: list[Any] = connection.execute(_COMPILES, (after, _AT_ONCE)).fetchall()
        if not rows:
            return
        for span, *columns in rows:
            *hashes, ref, count = columns[:5]
            receipts: list[Any] = connection.execute(_RECEIPTS, (span,)).fetchall()
            yield from _check_counts(span, count, columns[5:], receipts)
            result = _result(connection, folder, ref)
            if result is not None:
                yield from _check_result(span, hashes, receipts, result)
        after = rows[-1][0]


def _check_counts(span: int, count: int, counts: list[int], receipts: list[Any]) -> Found:
    if count != len(receipts):
        return  # another check says so
    for (decision, column), number in zip(_COUNTS, counts, strict=True):
        found = sum(one[2] == decision for one in receipts)
        if found != number:
            message = f"tells of {number} {column}, and {found} of its receipts are"
            yield "compilation", str(span), message


def _check_result(
    span: int, hashes: list[Any], receipts: list[Any], result: Mapping[str, Any]
) -> Found:
    for name, value in zip(_HASHES, hashes, strict=True):
        if value is not None and result.get(name) not in (None, value):
            problem = f"has {name} {value}, and {result[name]} in its stored result"
            yield "compilation", str(span), problem
    decisions = result.get("decisions")
    if not isinstance(decisions, list) or len(decisions) != len(receipts):
        return
    for (ordinal, item, *facts), decided in zip(receipts, decisions, strict=True):
        if not isinstance(decided, dict) or decided.get("item_id") != item:
            continue  # its id was redacted in one of the two
        for (column, name), value in zip(_FACTS, facts, strict=True):
            if value is not None and decided.get(name) not in (None, value):
                problem = f"has {column} {value}, and {decided[name]} in the stored result"
                yield "receipt", f"{span},{ordinal}", problem


def _result(
    connection: apsw.Connection, folder: DataFolder, ref: str | None
) -> Mapping[str, Any] | None:
    """Return a stored result; None where there is none to be read, which other checks tell of."""
    try:
        payload = get_payload(connection, bytes.fromhex((ref or "").partition(":")[2]))
        if payload.size > _MOST_RESULT_BYTES:
            return None
        result = json.loads(read_payload(folder, payload))
    except (ValueError, NotFoundError, StoreError, OSError):
        return None
    return result if isinstance(result, dict) else None
