"""One look at the record: every rule, at all three levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import apsw

from hansard_store.database.transactions import snapshot
from hansard_store.detection import components, hook_warnings, rules
from hansard_store.detection.failed_steps import repeated_errors
from hansard_store.detection.memory_conflicts import repeated_corrections, stale_contradictions
from hansard_store.detection.open_approvals import expired_approvals, unknown_outcomes
from hansard_store.detection.rules import RULES, Finding, Rule

MOST_FINDINGS: Final = 100  # of a rule: a sender that names a new tool each time opens no more


class _Look(Protocol):
    def __call__(
        self, connection: apsw.Connection, rule: Rule, *, now_ns: int
    ) -> Iterator[Finding]: ...


_LOOKS: Final[Mapping[str, _Look]] = {
    rules.REPEATED_ERRORS.name: repeated_errors,
    rules.EXPIRED_APPROVALS.name: expired_approvals,
    rules.UNKNOWN_OUTCOMES.name: unknown_outcomes,
    rules.EVALUATION_BLIND_SPOT.name: components.evaluation_blind_spot,
    rules.IDLE_MAINTENANCE.name: components.idle_maintenance,
    rules.FREQUENT_WARNINGS.name: hook_warnings.frequent_warnings,
    rules.RARE_WARNINGS.name: hook_warnings.rare_warnings,
    rules.UNREAD_REPORTS.name: components.unread_reports,
    rules.MEMORY_OUTGROWS_MAINTENANCE.name: components.memory_outgrows_maintenance,
    rules.REPEATED_CORRECTIONS.name: repeated_corrections,
    rules.STALE_CONTRADICTIONS.name: stale_contradictions,
}


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found at a moment, with the rules as they were applied."""

    rules: Sequence[Rule]
    findings: Sequence[Finding]  # rule by rule, the most frequent first
    left_off: int  # findings beyond the most of a rule


def scan(connection: apsw.Connection, wanted: Sequence[Rule] = RULES, *, now_ns: int) -> Scan:
    """Look for every pattern. Reads by index what failed or was corrected within the windows."""
    findings: list[Finding] = []
    left_off = 0
    with snapshot(connection):
        for rule in wanted:
            found = sorted(_LOOKS[rule.name](connection, rule, now_ns=now_ns), key=_by_weight)
            findings += found[:MOST_FINDINGS]
            left_off += max(len(found) - MOST_FINDINGS, 0)
    return Scan(wanted, findings, left_off)


def _by_weight(finding: Finding) -> tuple[int, str, str]:
    return -len(finding.occurrences), finding.subject, finding.signature
