"""Reports as programs get them: one JSON for the API and the commands."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_store.reports.audit_events import Ack
from hansard_store.reports.files import Report
from hansard_store.times import time_text


def report_json(
    report: Report,
    *,
    waits_for: str | None,
    passed_over: tuple[str, ...] = (),
    passes_ns: int | None = None,
    text: str | None = None,
) -> Json:
    """Return a report; `waits_for` is "" where it waits and no recipient is configured."""
    told: Json = {
        "name": report.name,
        "written_at": time_text(report.written_ns),
        "written_ns": str(report.written_ns),
        "is_pending": waits_for is not None,
        "next_recipient": waits_for or None,
        "escalated_past": list(passed_over),
        "escalates_at": None if passes_ns is None else time_text(passes_ns),
        "record": report.state,
        "acks": [ack_json(one) for one in report.acks],
        "unrecorded_acks": [ack_json(one) for one in report.unrecorded],
    }
    return told if text is None else {**told, "text": text}


def ack_json(one: Ack) -> Json:
    """Return who acknowledged a report, when, and how the name is known."""
    return {
        "who": one.who,
        "method": one.method,
        "at": time_text(one.at_ns),
        "ns": str(one.at_ns),
    }
