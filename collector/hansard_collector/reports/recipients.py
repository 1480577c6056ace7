"""Who a report waits for: the first recipient, then the next one after each time without answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hansard_store.principals.model import is_same
from hansard_store.reports.files import Report


@dataclass(frozen=True, slots=True)
class Waiting:
    """An unacknowledged report, and who it waits for now."""

    report: Report
    recipient: str  # "" where none is configured
    passed_over: tuple[str, ...]  # recipients whose time ran out
    passes_ns: int | None  # when it passes to the next one; None: this is the last one


def waiting_for(
    report: Report, recipients: Sequence[str], *, escalate_ns: int, now_ns: int
) -> Waiting | None:
    """Return who a report waits for; None once anybody of those it waited for acknowledged it.

    Where recipients are configured, an acknowledgement by somebody else does not count.
    """
    if not recipients:
        return None if report.read_by else Waiting(report, "", (), None)
    turns = max(now_ns - report.written_ns, 0) // escalate_ns
    at = min(turns, len(recipients) - 1)
    reached = recipients[: at + 1]
    if any(is_same(ack.who, one) for ack in report.read_by for one in reached):
        return None
    is_last = at == len(recipients) - 1
    passes_ns = None if is_last else report.written_ns + (at + 1) * escalate_ns
    return Waiting(report, recipients[at], tuple(recipients[:at]), passes_ns)


def pending(
    reports: Sequence[Report], recipients: Sequence[str], *, escalate_ns: int, now_ns: int
) -> list[Waiting]:
    """Return the reports that wait for somebody, in the order in which they are given."""
    found = (
        waiting_for(one, recipients, escalate_ns=escalate_ns, now_ns=now_ns) for one in reports
    )
    return [one for one in found if one is not None]
