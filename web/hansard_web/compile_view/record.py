"""One compile as stored, read for a page: its row, receipts, result, the calls it was for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import apsw

from hansard_collector.dialects.engine.references import READ_BYTES
from hansard_compiler.errors import NotFoundError
from hansard_store.compilations.queries import Compilation, spans_naming_compilation
from hansard_store.compilations.receipts import StoredReceipt, receipts_of
from hansard_store.content.payloads import (
    Payload,
    blob_path,
    folder_of,
    get_payload,
    parse_payload_ref,
    read_payload,
)
from hansard_store.errors import InvalidQueryError, PayloadAlteredError, StoreCorruptError
from hansard_store.steps.queries import StepSkeleton, steps_by_number
from hansard_web.compile_view.bar import BudgetBar
from hansard_web.compile_view.result import NO_RESULT, CompileResultView, read_result
from hansard_web.ui.format import file_size

_CALL_ROLES = ("llm", "embedding")


@dataclass(frozen=True, slots=True)
class CompileRecord:
    """A compile with everything a page says of it."""

    compilation: Compilation
    receipts: list[StoredReceipt]
    result: CompileResultView
    result_trouble: str  # why the stored result is not shown; "" where it is
    step: StepSkeleton
    calls: tuple[StepSkeleton, ...]  # the model calls it was for, in order

    @property
    def budget(self) -> BudgetBar:
        row = self.compilation.row
        used = row.budget_used
        if used is None:
            used = sum(one.tokens_after or 0 for one in self.receipts)
        return BudgetBar(row.budget_tokens, row.budget_reserve, used)

    def sent(self) -> list[StoredReceipt]:
        """Return what was sent, in the order of the prompt where that is known."""
        found = [one for one in self.receipts if one.decision != "exclude"]
        positions = prompt_places(self.result)
        last = len(positions)
        found.sort(key=lambda one: (positions.get(one.item_id, last), one.ordinal))
        return found

    def find(self, item_id: str) -> StoredReceipt | None:
        return next((one for one in self.receipts if one.item_id == item_id), None)


def prompt_places(result: CompileResultView) -> dict[str, int]:
    """Return where each item stands in the prompt."""
    ids = (one for section in result.sections for one in section.item_ids)
    return {item_id: at for at, item_id in enumerate(ids)}


def read_record(
    connection: apsw.Connection, compilation: Compilation, *, now_ns: int
) -> CompileRecord:
    """Read a compile whole; what is missing of it is named, never raised."""
    result, trouble = _result(connection, compilation.row.result_ref)
    numbers = [compilation.span, *spans_naming_compilation(connection, compilation.row.id)]
    steps = steps_by_number(connection, numbers, now_ns=now_ns)
    calls = [
        step
        for step in steps.values()
        if step.role in _CALL_ROLES and step.run_id == compilation.run_id
    ]
    calls.sort(key=lambda step: (step.sort_ns, step.id))
    return CompileRecord(
        compilation=compilation,
        receipts=receipts_of(connection, compilation.span),
        result=result,
        result_trouble=trouble,
        step=steps[compilation.span],
        calls=tuple(calls),
    )


def stored_payload(connection: apsw.Connection, ref: str | None) -> Payload | None:
    """Return a payload whose bytes are here; None for anything else that a reference may be."""
    if not ref:
        return None
    try:
        payload = get_payload(connection, parse_payload_ref(ref))
    except (NotFoundError, InvalidQueryError):
        return None
    if payload.inline is None and not blob_path(folder_of(connection), payload.digest).exists():
        return None
    return payload


def _result(connection: apsw.Connection, ref: str | None) -> tuple[CompileResultView, str]:
    if not ref:
        return NO_RESULT, "No result of this compile was recorded."
    payload = stored_payload(connection, ref)
    if payload is None:
        return NO_RESULT, "The result of this compile is not here: withheld, lost, or on its way."
    if payload.size > READ_BYTES:
        return NO_RESULT, f"The result is too large to be read here ({file_size(payload.size)})."
    try:
        found = _parsed(read_payload(folder_of(connection), payload), payload.ref)
    except PayloadAlteredError:
        return NO_RESULT, "The stored bytes of the result were altered; they are not shown."
    except StoreCorruptError:
        return NO_RESULT, "The bytes of the result are gone."
    if found is None:
        return NO_RESULT, "What is stored as the result of this compile is none."
    return found, ""


# A page of a large compile is turned many times; its result never changes under one digest.
@lru_cache(maxsize=4)
def _parsed(data: bytes, ref: str) -> CompileResultView | None:
    return read_result(data, ref)
