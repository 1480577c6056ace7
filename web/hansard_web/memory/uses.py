"""Where memory was used: the compiles that had it among their candidates."""

from __future__ import annotations

import apsw

from hansard_compiler.calls import Json
from hansard_store.compilations.receipts import FoundReceipt, ReceiptFilter, list_receipts
from hansard_web.api.values import time_text


def uses_of(connection: apsw.Connection, memory_id: str, *, limit: int = 50) -> list[FoundReceipt]:
    """Return what compiles did with a record, the newest first."""
    wanted = ReceiptFilter(item=memory_id)
    return list(list_receipts(connection, wanted, limit=limit).items)


def uses_in_run(
    connection: apsw.Connection, run_id: str, *, limit: int = 200
) -> list[FoundReceipt]:
    """Return what the compiles of a run did with memory, the newest first."""
    wanted = ReceiptFilter(kind="memory", run=run_id)
    return list(list_receipts(connection, wanted, limit=limit).items)


def use_json(found: FoundReceipt) -> Json:
    """Return one use."""
    one = found.receipt
    return {
        "compilation_id": found.compilation_id,
        "run_id": found.run_id,
        "step_id": found.step_id,
        "at": time_text(found.started_ns),
        "decision": one.decision,
        "reason": one.reason,
        "tokens_before": one.tokens_before,
        "tokens_after": one.tokens_after,
    }
