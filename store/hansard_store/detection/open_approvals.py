"""Approvals that do not do their work: nobody decides in time, or nobody knows how it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import apsw

from hansard_store.detection.rules import Finding, Occurrence, Rule, in_order

# `held` is what the index holds: SQLite wants it told word for word. Newest first, and read no
# further back than the window: the log's numbers rise with time, but for what was written late.
_EVENTS: Final = """
SELECT seq, time_ns, late, action, approval_id FROM event INDEXED BY event_type
WHERE type = '{type}' AND type NOT IN ('tool.called', 'tool.returned')
  AND approval_id IS NOT NULL{more}
ORDER BY seq DESC
"""
_EXPIRED: Final = _EVENTS.format(type="action.expired", more="")
_UNKNOWN: Final = _EVENTS.format(
    type="action.unknown",
    more="""
  AND EXISTS (SELECT 1 FROM approval_claim AS claim
    WHERE claim.approval_id = event.approval_id AND claim.state = 'unknown')""",
)


def expired_approvals(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the tools whose calls ran out of time undecided, as often as the rule says."""
    for tool, occurrences in _by_tool(connection.execute(_EXPIRED), rule, now_ns=now_ns):
        yield Finding(rule, "tool", tool, "", occurrences)


def unknown_outcomes(connection: apsw.Connection, rule: Rule, *, now_ns: int) -> Iterator[Finding]:
    """Yield the tools of which approved calls began, and nobody knows yet how they ended."""
    for tool, occurrences in _by_tool(connection.execute(_UNKNOWN), rule, now_ns=now_ns):
        yield Finding(rule, "tool", tool, "", occurrences)


def _by_tool(
    rows: Iterable[Any], rule: Rule, *, now_ns: int
) -> Iterator[tuple[str, list[Occurrence]]]:
    found: dict[str, list[Occurrence]] = defaultdict(list)
    since_ns = now_ns - rule.window_ns
    for seq, time_ns, late, tool, approval_id in rows:
        if since_ns < time_ns <= now_ns:
            found[tool].append(Occurrence(seq, time_ns, "approval", approval_id.hex()))
        elif time_ns <= since_ns and not late:
            break
    for tool, occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield tool, in_order(occurrences)
