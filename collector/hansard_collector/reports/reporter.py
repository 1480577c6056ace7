"""Writes a status report: reads the state, renders it, and adds the file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import apsw

from hansard_collector.reports.markdown import Briefing, render
from hansard_collector.reports.recipients import pending
from hansard_collector.trends.model import Trend, distinct, trends_of
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import HOUR_NS
from hansard_store.heartbeat.cycles import last_phase
from hansard_store.reports.files import Report, Reports
from hansard_store.reports.state import SystemState, read_state

TREND_PHASES: Final = {"log_review": 2 * HOUR_NS, "longitudinal": 8 * 24 * HOUR_NS}  # still news


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Who reads reports, and how long each of them has before the next one is named."""

    window_ns: int = 24 * HOUR_NS
    recipients: Sequence[str] = ()
    escalate_ns: int = 24 * HOUR_NS


@dataclass(frozen=True, slots=True)
class Written:
    """A report that was written, and the state that it tells."""

    report: Report
    text: str
    state: SystemState
    unread: int  # older reports that wait for somebody
    escalated: int  # of these, the ones that passed to a later recipient


def write_report(folder: DataFolder, settings: ReportSettings, *, now_ns: int) -> Written:
    """Write a report on the state of a store. Raises ReportsUnusable, StoreError."""
    reports = Reports(folder)
    unread = pending(
        reports.list(), settings.recipients, escalate_ns=settings.escalate_ns, now_ns=now_ns
    )
    with closing(open_reader(folder)) as connection:
        state = read_state(connection, now_ns=now_ns, window_ns=settings.window_ns)
        trends = recorded_trends(connection, now_ns=now_ns)
    briefing = Briefing(trends, settings.recipients, settings.escalate_ns, unread)
    redactor = Redactor(folder.key())
    text = render(state, briefing, clean=lambda words: redactor.redact_text(words).text)
    report = reports.add(text, now_ns=now_ns)
    return Written(report, text, state, len(unread), sum(bool(one.passed_over) for one in unread))


def recorded_trends(connection: apsw.Connection, *, now_ns: int) -> list[Trend]:
    """Return what the phases of log review and of comparison found last, as far as it is news."""
    found: list[Trend] = []
    for name, age_ns in TREND_PHASES.items():
        phase = last_phase(connection, name)
        if phase is not None and phase.started_ns > now_ns - age_ns:
            found += trends_of(phase.figures)
    return sorted(distinct(found), key=lambda one: not one.is_worse)
