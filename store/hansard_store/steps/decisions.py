"""What steps of a run decided and touched, a few words each: compiles, policy checks, memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

_COMPILES = """
SELECT compilation.span, item_total, receipt_count, excluded, budget_tokens, budget_used
FROM json_each(:spans) AS wanted CROSS JOIN compilation ON compilation.span = wanted.value
"""
_CHECKS = """
SELECT policy_check.span, effect, count(*), min(rule_id), count(DISTINCT rule_id), min(subject),
  count(DISTINCT subject)
FROM json_each(:spans) AS wanted
  CROSS JOIN policy_check INDEXED BY policy_check_span ON policy_check.span = wanted.value
GROUP BY policy_check.span, effect
"""
_TOUCHED = """
SELECT span_id, kind, count(*), count(memory) FROM memory_access INDEXED BY memory_access_run
WHERE trace_id = :trace AND span_id IS NOT NULL AND kind IN ('read', 'write', 'candidate')
GROUP BY span_id, kind
LIMIT :limit
"""
_MOST_TOUCHED = 5_000


@dataclass(frozen=True, slots=True)
class CompileOutcome:
    """How many candidates a compile had, and how many went in; None: not all are known."""

    total: int
    included: int | None
    budget: int | None
    used: int | None


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The checks of one step that came out the same way."""

    effect: str  # allow deny redact require_approval require_receipt
    count: int
    rule_id: str | None  # where one rule decided all of them
    subject: str | None  # where all are about one


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """How often a step read or wrote memory, and how many records that were."""

    kind: str  # read write candidate
    count: int
    records: int


def compile_outcomes(
    connection: apsw.Connection, spans: Sequence[int]
) -> dict[int, CompileOutcome]:
    """Return the outcomes of compiles by span.id."""
    rows: Any = connection.execute(_COMPILES, {"spans": json.dumps(list(spans))})
    return {
        span: CompileOutcome(total, total - excluded if receipts == total else None, budget, used)
        for span, total, receipts, excluded, budget, used in rows
    }


def check_outcomes(
    connection: apsw.Connection, spans: Sequence[int]
) -> dict[int, list[CheckOutcome]]:
    """Return what the policy checks of steps decided, by span.id."""
    found: dict[int, list[CheckOutcome]] = {}
    rows: Any = connection.execute(_CHECKS, {"spans": json.dumps(list(spans))})
    for span, effect, count, rule, rules, subject, subjects in rows:
        found.setdefault(span, []).append(
            CheckOutcome(
                effect, count, rule if rules == 1 else None, subject if subjects == 1 else None
            )
        )
    return found


def memory_uses(connection: apsw.Connection, run_id: str) -> dict[str, list[MemoryUse]]:
    """Return how steps of a run used memory, by span id in hex."""
    parameters = {"trace": bytes.fromhex(run_id), "limit": _MOST_TOUCHED}
    found: dict[str, list[MemoryUse]] = {}
    rows: Any = connection.execute(_TOUCHED, parameters)
    for span_id, kind, count, records in rows:
        found.setdefault(span_id.hex(), []).append(MemoryUse(kind, count, records))
    return found
