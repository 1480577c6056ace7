"""Compiles of the store as sides of a comparison, and compiling their requests again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import apsw

from hansard_collector.derivation.compile_results import read_result
from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_collector.payloads.named import standing_of
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.models import CompilationRequest
from hansard_compiler.compile.ports import Ports
from hansard_compiler.compile.record import recorded_request
from hansard_compiler.diff import (
    CompileDiff,
    CompileSide,
    ItemSide,
    compile_diff,
    explain,
    side_of_context,
)
from hansard_compiler.errors import HansardError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from hansard_store.compilations.queries import Compilation
from hansard_store.compilations.receipts import Receipt, receipts_of
from hansard_store.content.payloads import folder_of, read_payload
from hansard_store.errors import StoreCorruptError
from hansard_web.run_page.picture_cache import Recent

# Trying goes on for some three seconds: a compile takes a quarter of a millisecond an item.
_ITEMS_TRIED: Final = 12_000
_FEWEST_COMPILES: Final = 8
_MOST_COMPILES: Final = 64
_RECENT: Final[Recent[CompileDiff]] = Recent(8)


@dataclass(frozen=True, slots=True)
class StoredCompile:
    """A compile of the store, with what is missing of it."""

    compilation: Compilation
    side: CompileSide
    notes: tuple[str, ...]


def read_compile(connection: apsw.Connection, compilation: Compilation) -> StoredCompile:
    """Read a compile for a comparison: its result, else its receipts; its request if it is here."""
    notes = []
    request, trouble = _request(connection, compilation)
    if trouble:
        notes.append(trouble)
    result, trouble = _result(connection, compilation.row.result_ref)
    if trouble:
        notes.append(trouble)
    if result is not None:
        side = side_of_context(result, request=request)
    else:
        side = _from_receipts(connection, compilation, request)
    return StoredCompile(compilation, side, tuple(notes))


def compare_compiles(
    connection: apsw.Connection, left: StoredCompile, right: StoredCompile
) -> CompileDiff:
    """Compare two compiles with the cause of every flip; takes some seconds at most, once."""
    key = folder_of(connection).key()
    make = partial(_compared, left.side, right.side, key)
    if left.notes or right.notes:
        return make()
    # Both are whole, and nothing changes under one digest.
    rows = (left.compilation.row, right.compilation.row)
    return _RECENT.get((key, *((row.request_ref, row.result_ref) for row in rows)), make)


def _compared(left: CompileSide, right: CompileSide, key: bytes) -> CompileDiff:
    diff = compile_diff(left, right)
    most = _ITEMS_TRIED // max(len(diff.items), 1)
    return explain(
        diff,
        left,
        right,
        compile_again=partial(_compiled, redactor=Redactor(key)),
        most_compiles=min(max(most, _FEWEST_COMPILES), _MOST_COMPILES),
    )


def _compiled(request: CompilationRequest, *, redactor: Redactor) -> CompileResult:
    counter = estimator_for(request.provider, request.model)
    return compile_context(request, Ports(counter=counter, redactor=redactor))


def _request(
    connection: apsw.Connection, compilation: Compilation
) -> tuple[CompilationRequest | None, str]:
    """Return the request of a compile, or why it is not here.

    One without its secrets serves as well: a cause counts as verified only where compiling it
    again comes to what was recorded.
    """
    ref = compilation.row.request_ref
    if ref is None:
        return None, "the sender stored no request of this compile"
    standing, payload = standing_of(connection, ref)
    if payload is None:
        return None, f"the request of this compile is {standing.value}"
    if payload.size > READ_BYTES:
        return None, "the request of this compile is too large to be compiled again here"
    try:
        data = read_payload(folder_of(connection), payload)
        return recorded_request(data), ""
    except (HansardError, ValueError) as error:
        return None, f"the request of this compile cannot be read: {error}"


def _result(connection: apsw.Connection, ref: str | None) -> tuple[Mapping[str, Any] | None, str]:
    try:
        found = read_result(connection, ref) if ref else None
    except StoreCorruptError as error:
        return None, str(error)
    return found, "" if found else "the result is not here: compared by receipts, without terms"


def _from_receipts(
    connection: apsw.Connection, compilation: Compilation, request: CompilationRequest | None
) -> CompileSide:
    row = compilation.row
    items = tuple(map(_item, receipts_of(connection, compilation.span)))
    tokens, used = row.budget_tokens, row.budget_used
    available = None if tokens is None else tokens - (row.budget_reserve or 0)
    sections: dict[str, int] = {}
    for item in items:
        if item.section is not None:
            sections[item.section] = sections.get(item.section, 0) + (item.tokens_after or 0)
    return CompileSide(
        hash=row.hash,
        provider=row.provider,
        model=row.model,
        items=items,
        budget={
            "budget": tokens,
            "reserve": row.budget_reserve,
            "available": available,
            "used": used,
            "free": None if available is None or used is None else available - used,
        },
        by_section=sections,
        request=request,
    )


def _item(one: Receipt) -> ItemSide:
    where = " ".join(part for part in (one.source_type, one.source) if part)
    return ItemSide(
        item_id=one.item_id,
        kind=one.kind,
        decision=one.decision,
        reason=one.reason,
        pass_name=one.pass_name,
        tokens_before=one.tokens_before,
        tokens_after=one.tokens_after,
        score=one.score_nano,
        section=one.section,
        source=where or None,
        rule_ids=one.rules,
        related=one.related,
        missed_tokens=one.missed_tokens,
        missed_score=one.missed_score_nano,
        original_ref=_ref(one.original),
        final_ref=_ref(one.final),
    )


def _ref(digest: bytes | None) -> str | None:
    return None if digest is None else f"sha256:{digest.hex()}"
