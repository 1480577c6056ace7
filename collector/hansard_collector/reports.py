"""Status reports: what is in one, who it waits for, and how it is written and sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import apsw

from hansard_collector.trends.model import Trend, distinct, trend_text, trends_of
from hansard_collector.webhooks import TIMEOUT_S, WebhookFailed, post_json
from hansard_compiler.errors import HansardError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.terminal import printable
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import HOUR_NS, span_of_time, title_of
from hansard_store.heartbeat import PhaseRecord, last_phase
from hansard_store.ids import short_id
from hansard_store.principals.model import is_same
from hansard_store.reports.files import Report, Reports
from hansard_store.reports.state import ErrorKind, SystemState, read_state, says
from hansard_store.tasks.rows import Task

MOST_LINES: Final = 60
_MOST_LINE_CHARS: Final = 240
_NAME_CHARS, _WORDS_CHARS, _CORRECTION_CHARS = 60, 110, 150
_STEP_ID: Final = re.compile("([0-9a-f]{8})[0-9a-f]{24}-([0-9a-f]{8})[0-9a-f]{8}")
_NS: Final = 10**9
# Items of each section: the sum with headings, blank lines and "n more" stays below MOST_LINES.
_MOST_WAITING, _MOST_ERRORS, _MOST_TRENDS = 7, 8, 5
_MOST_CORRECTIONS, _MOST_DECISIONS, _MOST_PHASES = 3, 2, 12

Clean = Callable[[str], str]  # removes secrets


@dataclass(frozen=True, slots=True)
class Briefing:
    """The contents of a report beside the state: trends, and its recipients."""

    trends: Sequence[Trend] = ()
    recipients: Sequence[str] = ()
    escalate_ns: int = 0
    unread: Sequence[PendingWork] = ()  # older reports


def render(state: SystemState, briefing: Briefing, *, clean: Clean) -> str:
    """Return the report: valid Markdown of at most MOST_LINES lines, each ended."""
    words = _Words(clean)
    lines = [
        f"# Status report, {_time(state.now_ns)} UTC",
        "",
        _headline(state),
        "",
        _addressed(state, briefing, words),
    ]
    for title, found, most in (
        ("Waits for a person", _waiting(state, briefing, words), _MOST_WAITING),
        (f"Errors, last {span_of_time(state.window_ns)}", _errors(state, words), _MOST_ERRORS),
        ("Trends", _trends(briefing, words), _MOST_TRENDS),
        ("Claims and corrections", _corrections(state, words), _MOST_CORRECTIONS + 1),
        ("Decisions", _decisions(state, words), _MOST_DECISIONS + 1),
        ("Heartbeat", _phases(state), _MOST_PHASES),
        ("Memory", [_memory(state)], 1),
    ):
        lines += ["", f"## {title}", *_cut(found, most)]
    assert len(lines) <= MOST_LINES, len(lines)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Words:
    """Recorded words as a report may show them."""

    clean: Clean

    def code(self, text: str, most: int = _NAME_CHARS) -> str:
        """Return words as one code span; nothing in them is Markdown or drives a terminal."""
        line = printable(" ".join(self.clean(text[: 20 * most]).split())).replace("`", "'")
        if len(line) > most:
            line = line[: most - 1].rstrip() + "…"
        return f"`{line}`" if line.strip() else "`(no name)`"


def _cut(found: Sequence[str], most: int) -> list[str]:
    """Return the first items, and how many more there are; a line with it replaces the last."""
    lines = [f"- {_short(one)}" for one in found]
    if len(lines) <= most:
        return lines or ["- none"]
    return [*lines[: most - 1], f"- {len(lines) - most + 1:,} more"]


def _short(line: str) -> str:
    if len(line) <= _MOST_LINE_CHARS:
        return line
    cut = line[: _MOST_LINE_CHARS - 2].rstrip()
    return f"{cut}…`" if cut.count("`") % 2 else f"{cut}…"


def _headline(state: SystemState) -> str:
    waits = _joined(
        (
            (state.blocked_count, "review"),
            (state.approvals_awaiting, "approval"),
            (state.memory.in_review, "memory record"),
        )
    )
    contradicted, within = state.verdicts.get("contradicted", 0), span_of_time(state.window_ns)
    clauses = [
        f"{waits} wait{'' if ' and ' in waits or not waits.startswith('1 ') else 's'} for a person"
        if waits
        else "Nothing waits for a person",
        f"{_plural(state.error_count, 'call')} failed in the last {within}"
        if state.error_count
        else f"nothing failed in the last {within}",
    ]
    if contradicted:
        clauses.append(f"evaluation contradicted {_plural(contradicted, 'claim')}")
    return "; ".join(clauses) + "."


def _addressed(state: SystemState, briefing: Briefing, words: _Words) -> str:
    how = "Acknowledge it with `hansard report --latest`."
    if not briefing.recipients:
        return f"For the operator of this store. {how}"
    first, *others = (words.code(one) for one in briefing.recipients)
    if not others:
        return f"For {first}. {how}"
    until = _time(state.now_ns + briefing.escalate_ns)
    return f"For {first} until {until} UTC, then {others[0]}. {how}"


def _waiting(state: SystemState, briefing: Briefing, words: _Words) -> list[str]:
    lines = []
    passed = [one for one in briefing.unread if one.passed_over]
    if passed:
        oldest, who = passed[-1], words.code(passed[-1].recipient)
        lines.append(
            f"{_plural(len(passed), 'report')} passed to the next recipient, now {who}; the oldest "
            f"is of {_time(oldest.report.written_ns)} UTC"
        )
    elif briefing.unread:
        lines.append(f"{_plural(len(briefing.unread), 'older report')} not acknowledged")
    if state.approvals_awaiting:
        lines.append(f"{_plural(state.approvals_awaiting, 'approval')}: `hansard approvals list`")
    if state.memory.in_review:
        lines.append(
            f"{_plural(state.memory.in_review, 'memory record')} that contradict what is trusted "
            "more: the page Memory"
        )
    lines += [
        f"review: {_title(task, words)}, {_plural(task.count, 'time')}, last "
        f"{_recent(task.last_ns, state.now_ns)}: `hansard tasks show {short_id(task.task_id)}`"
        for task in state.blocked
    ]
    return [*lines, *[""] * (state.blocked_count - len(state.blocked))]


def _title(task: Task, words: _Words) -> str:
    """Return a task's title: a sentence of Hansard's own with a recorded name in it."""
    is_name = task.subject_kind in ("tool", "model", "step")
    subject = words.code(task.subject) if is_name else task.subject
    return title_of(task.rule, task.subject_kind, subject) or words.code(task.title, _WORDS_CHARS)


def _errors(state: SystemState, words: _Words) -> list[str]:
    return [_error(one, state.now_ns, words) for one in state.errors]


def _error(one: ErrorKind, now_ns: int, words: _Words) -> str:
    message = words.code(one.message or "(no message)", _WORDS_CHARS)
    return (
        f"{one.subject_kind} {words.code(one.subject)}, {_plural(one.count, 'time')}, last "
        f"{_recent(one.last_ns, now_ns)}: {message} ({_step(one.step_id)})"
    )


def _trends(briefing: Briefing, words: _Words) -> list[str]:
    return [
        trend_text(
            one,
            words.code(one.subject),
            since=_time(one.since_ns)[:10] if one.since_ns is not None else "",
        )
        + (f" ({_step(one.step_id)})" if one.step_id else "")
        for one in briefing.trends
    ]


def _corrections(state: SystemState, words: _Words) -> list[str]:
    verdicts = state.verdicts
    judged = ", ".join(f"{count:,} {label}" for label, count in verdicts.items() if count)
    lines = [f"claims: {judged}" if judged else "no claim was judged"]
    for one in state.corrections:
        claim = f", corrects memory {short_id(one.claim_id)}" if one.claim_id else ""
        proof = f", {_step(one.evidence[0])}" if one.evidence else ""
        says = _STEP_ID.sub(r"\1-\2", one.says.removeprefix("Correction: "))
        lines.append(
            f"correction of {words.code(one.subject)}: {words.code(says, _CORRECTION_CHARS)} "
            f"(memory {short_id(one.memory_id)}{claim}{proof})"
        )
    return [*lines, *[""] * (state.correction_count - len(state.corrections))]


def _decisions(state: SystemState, words: _Words) -> list[str]:
    decided = ", ".join(
        f"{count:,} {label}"
        for label, count in (
            ("approved", state.decided["approved"]),
            ("rejected", state.decided["rejected"]),
            ("ran out of time", state.decided["expired"]),
        )
        if count
    )
    lines = [f"approvals: {decided or 'none decided'}; reviews decided: {state.decided['tasks']:,}"]
    lines += [
        f"{words.code(one.subject)}: {words.code(says(one), _WORDS_CHARS)} "
        f"(memory {short_id(one.memory_id)})"
        for one in state.decisions
    ]
    return [*lines, *[""] * (state.decision_count - len(state.decisions))]


def _phases(state: SystemState) -> list[str]:
    return [_phase(one, state.now_ns) for one in state.phases]


def _phase(one: PhaseRecord, now_ns: int) -> str:
    age = _age(max(now_ns - one.ended_ns, 0))
    status = one.status.upper() if one.status == "failed" else one.status
    return f"{one.name}: {status} {age} ago: {_plain(one.summary)}"


def _plain(sentence: str) -> str:
    """Return a sentence of Hansard's own, which may quote an error of the system."""
    return printable(" ".join(sentence.split())).replace("`", "'").replace("<", "(")[:_WORDS_CHARS]


def _memory(state: SystemState) -> str:
    memory = state.memory
    return (
        f"{_plural(memory.current, 'record')} current; {memory.written:,} written in the last "
        f"7 days, {memory.written_before:,} in the 7 days before"
    )


def _step(step_id: str) -> str:
    trace, _, span = step_id.partition("-")
    return f"step {trace[:8]}-{span[:8]}" if span else f"run {trace[:8]}"


def _joined(counts: Iterable[tuple[int, str]]) -> str:
    counted = [_plural(count, what) for count, what in counts if count]
    return f"{', '.join(counted[:-1])} and {counted[-1]}" if len(counted) > 1 else "".join(counted)


def _plural(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"


def _time(epoch_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch_ns // _NS, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, OSError, ValueError):
        return "an unknown time"


def _recent(epoch_ns: int, now_ns: int) -> str:
    """Return the time of day alone for what is of today."""
    moment, today = _time(epoch_ns), _time(now_ns)
    return moment[11:] if moment[:10] == today[:10] else moment


def _age(length_ns: int) -> str:
    minutes = length_ns // (60 * _NS)
    if minutes < 1:
        return "under 1 min"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"


# Who a report waits for: the first recipient, then the next one after each time without answer.


@dataclass(frozen=True, slots=True)
class PendingWork:
    """An unacknowledged report, and who it waits for now."""

    report: Report
    recipient: str  # "" where none is configured
    passed_over: tuple[str, ...]  # recipients whose time ran out
    passes_ns: int | None  # when it passes to the next one; None: this is the last one


def waiting_for(
    report: Report, recipients: Sequence[str], *, escalate_ns: int, now_ns: int
) -> PendingWork | None:
    """Return who a report waits for; None once one of those it waited for acknowledged it.

    Where recipients are configured, an acknowledgement by another person does not count.
    """
    if not recipients:
        return None if report.read_by else PendingWork(report, "", (), None)
    turns = max(now_ns - report.written_ns, 0) // escalate_ns
    at = min(turns, len(recipients) - 1)
    reached = recipients[: at + 1]
    if any(is_same(ack.who, one) for ack in report.read_by for one in reached):
        return None
    is_last = at == len(recipients) - 1
    passes_ns = None if is_last else report.written_ns + (at + 1) * escalate_ns
    return PendingWork(report, recipients[at], tuple(recipients[:at]), passes_ns)


def pending(
    reports: Sequence[Report], recipients: Sequence[str], *, escalate_ns: int, now_ns: int
) -> list[PendingWork]:
    """Return the reports that wait for a recipient, in the order of the input."""
    found = (
        waiting_for(one, recipients, escalate_ns=escalate_ns, now_ns=now_ns) for one in reports
    )
    return [one for one in found if one is not None]


# Writes a status report: reads the state, renders it, and adds the file.


TREND_PHASES: Final = {"log_review": 2 * HOUR_NS, "longitudinal": 8 * 24 * HOUR_NS}  # still news


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """Who reads reports, and how long each of them has before the next one is named."""

    window_ns: int = 24 * HOUR_NS
    recipients: Sequence[str] = ()
    escalate_ns: int = 24 * HOUR_NS


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report that was written, and the state that it shows."""

    report: Report
    text: str
    state: SystemState
    unread: int  # older reports that wait for a recipient
    escalated: int  # of these, the ones that passed to a later recipient


def write_report(folder: DataFolder, settings: ReportSettings, *, now_ns: int) -> WrittenReport:
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
    return WrittenReport(
        report, text, state, len(unread), sum(bool(one.passed_over) for one in unread)
    )


def recorded_trends(connection: apsw.Connection, *, now_ns: int) -> list[Trend]:
    """Return what the phases of log review and of comparison found last, as far as it is news."""
    found: list[Trend] = []
    for name, age_ns in TREND_PHASES.items():
        phase = last_phase(connection, name)
        if phase is not None and phase.started_ns > now_ns - age_ns:
            found += trends_of(phase.figures)
    return sorted(distinct(found), key=lambda one: not one.is_worse)


# A report sent to an address: one POST of JSON, which ends in time and is not repeated.


_MOST_CHARS: Final = 30_000  # chat programs refuse 40,000


class ReportNotSent(HansardError):
    """The address did not take a report. The message names its host alone: the rest is a secret."""

    code = "report_delivery_failed"


def send_report(
    address: str, *, name: str, text: str, recipients: Sequence[str], timeout_s: float = TIMEOUT_S
) -> None:
    """Send a report; `text` is what chat programs show of a message. Raises ReportNotSent.

    No redirect is followed: an address that is set permits no other.
    """
    body = {"text": text[:_MOST_CHARS], "report": name, "recipients": list(recipients)}
    try:
        post_json(address, json.dumps(body).encode(), timeout_s=timeout_s)
    except WebhookFailed as error:
        raise ReportNotSent(str(error)) from None
