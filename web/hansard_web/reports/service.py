"""Reports as the API, the page and the command use them: whom they wait for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hansard_collector.reports import PendingWork, waiting_for
from hansard_store.principals.authority import Authority
from hansard_store.principals.model import person_text
from hansard_store.reports.files import Report, Reports, StatusReport, report_json


@dataclass(frozen=True, slots=True)
class ReportService:
    """Reports as the principal of a request uses them."""

    reports: Reports
    authority: Authority
    recipients: Sequence[str]
    escalate_ns: int

    @property
    def reader(self) -> str:
        """The name under which this reader acknowledges; "" nobody is signed in."""
        return self.authority.principal.name

    def listed(self, *, only_pending: bool) -> Sequence[Report]:
        """Return the reports, the newest first: all of them, or those that wait for somebody."""
        found = self.reports.list()
        return [one for one in found if not only_pending or self.waiting(one) is not None]

    def waiting(self, one: Report) -> PendingWork | None:
        """Return who a report waits for now; None: for nobody."""
        return waiting_for(
            one, self.recipients, escalate_ns=self.escalate_ns, now_ns=time.time_ns()
        )

    def is_read(self, one: Report) -> bool:
        """Whether this reader has acknowledged a report."""
        return one.is_acknowledged_by(self.reader)

    def acknowledge(self, name: str, *, by: str = "") -> Report:
        """Acknowledge a report; a second time changes nothing.

        Raises NotFoundError, InvalidAcknowledgement, CredentialsRequired.
        """
        return self.reports.acknowledge(name, self.authority.decider(by), now_ns=time.time_ns())

    def json(self, one: Report, *, with_text: bool = False) -> StatusReport:
        """Return a report as programs get it."""
        text = self.reports.text(one.name) if with_text else None
        waiting = self.waiting(one)
        if waiting is None:
            return report_json(one, waits_for=None, text=text)
        return report_json(
            one,
            waits_for=waiting.recipient,
            passed_over=waiting.passed_over,
            passes_ns=waiting.passes_ns,
            text=text,
        )


def readers_text(one: Report) -> str:
    """Return who has read a report."""
    known = [person_text(ack.who, ack.method) for ack in one.acks]
    return ", ".join([*known, *(f"{ack.who} (not recorded)" for ack in one.unrecorded)])
