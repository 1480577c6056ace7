"""The status report: a new one when it is due, or sooner when something new waits for a person."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from hansard_collector.heartbeat.errors import PhaseSkipped
from hansard_collector.heartbeat.phase import DAY_NS, CycleContext, PhaseResult
from hansard_collector.reports import (
    ReportNotSent,
    ReportSettings,
    Written,
    send_report,
    write_report,
)
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import HOUR_NS, span_of_time
from hansard_store.reports.files import Reports
from hansard_store.tasks.rows import list_tasks


def run(context: CycleContext) -> PhaseResult:
    """Write a report, unless the last one is new enough and nothing has come up since.

    Raises PhaseSkipped, ReportsUnusable.
    """
    options = context.settings.options
    every_ns = int(options.get("report_every", DAY_NS))
    _need_news(context, every_ns)
    settings = ReportSettings(
        window_ns=context.settings.window_ns,
        recipients=tuple(options.get("recipients", ())),
        escalate_ns=int(options.get("report_escalation", DAY_NS)),
    )
    written = write_report(context.folder, settings, now_ns=context.now_ns)
    if written.escalated:
        context.log.write(
            "heartbeat.report",
            "warning",
            f"{written.escalated} reports were not acknowledged in time and passed to the next "
            "recipient",
            signature="escalated",
            step_id=context.step_id,
        )
    figures: dict[str, Any] = {
        "report": written.report.name,
        "lines": written.text.count("\n"),
        "unread": written.unread,
        "escalated": written.escalated,
        "errors": written.state.error_count,
        "waiting": written.state.blocked_count + written.state.approvals_awaiting,
    }
    summary = f"wrote {written.report.name}, {figures['lines']} lines"
    if options.get("report_webhook"):
        figures["sent"] = _send(context, written, settings)
        summary += ", sent" if figures["sent"] else ", not sent"
    return PhaseResult(summary, figures)


def _send(context: CycleContext, written: Written, settings: ReportSettings) -> bool:
    """Send a report to the address of the settings; what goes wrong is a diagnostic."""
    try:
        send_report(
            context.settings.options["report_webhook"],
            name=written.report.name,
            text=written.text,
            recipients=settings.recipients,
        )
    except ReportNotSent as error:
        context.log.write(
            "heartbeat.report",
            "warning",
            f"{written.report.name} was not sent: {error}",
            signature="not_sent",
            step_id=context.step_id,
        )
        return False
    return True


def _need_news(context: CycleContext, every_ns: int) -> None:
    """Raise PhaseSkipped where the last report says it all; at most one an hour is written."""
    newest = Reports(context.folder).list(limit=1)
    if not newest:
        return
    age_ns = context.now_ns - newest[0].written_ns
    if age_ns >= every_ns:
        return
    if age_ns >= min(HOUR_NS, every_ns):
        with closing(open_reader(context.folder)) as connection:
            opened = list_tasks(connection, state="blocked", limit=1).items
        if opened and opened[0].created_ns > newest[0].written_ns:
            return
    raise PhaseSkipped(
        f"the last report is newer than {span_of_time(every_ns)}, and no review was opened since"
    )
