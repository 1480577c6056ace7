"""What the compiles of a run came to, digested: equal outcomes, equal digests.

A compile's own hash covers the moment it was made; two runs of one program never share it.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from operator import itemgetter

import apsw

_OUTCOMES = """
SELECT compilation.span, compilation.budget_tokens, compilation.budget_reserve,
  compilation.item_total, receipt.item_id, receipt.decision, receipt.reason, receipt.section,
  receipt.tokens_after, receipt.original_ref, receipt.final_ref, receipt.rule_ids
FROM compilation LEFT JOIN receipt ON receipt.span = compilation.span
WHERE compilation.run = :run
ORDER BY compilation.span, receipt.item_id
"""


def compile_outcomes(connection: apsw.Connection, run: int) -> dict[int, str]:
    """Return a digest of budget and decisions by span.id of the compile step."""
    rows = connection.execute(_OUTCOMES, {"run": run})
    found = {}
    for span, group in groupby(rows, key=itemgetter(0)):
        digest = hashlib.sha256()
        for row in group:
            digest.update(repr(row[1:]).encode("utf-8", "surrogatepass"))
        found[span] = digest.hexdigest()
    return found
