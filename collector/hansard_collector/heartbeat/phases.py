"""The phases of a cycle, in their order: one function each, and the one list of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from hansard._runtime.locks import hold_lock
from hansard_collector.evaluation.engine import Evaluated, Evaluation
from hansard_collector.evaluation.settings import load_rules
from hansard_collector.evaluation.words import evidence_words, normal_words
from hansard_collector.heartbeat.phase import (
    DAY_NS,
    CycleContext,
    Phase,
    PhaseResult,
    PhaseSkipped,
)
from hansard_collector.heartbeat.trace import results_of
from hansard_collector.interests.finder import InterestFinder
from hansard_collector.judges.errors import JudgeMissing
from hansard_collector.log_sessions.hook_spool import ingest_hook_spool_offline
from hansard_collector.maintenance import Maintainer, MaintenanceSettings, result_json
from hansard_collector.reports import (
    ReportNotSent,
    ReportSettings,
    WrittenReport,
    send_report,
    write_report,
)
from hansard_collector.scanning import (
    LIMIT,
    SOURCES,
    NoInterests,
    ScanIncomplete,
    Scanner,
    ScanRunning,
)
from hansard_collector.trends.model import distinct
from hansard_collector.trends.recent import PERIODS, review
from hansard_collector.trends.weekly import WEEK, compare_weeks, read_days, rolling
from hansard_store.database.readers import open_reader
from hansard_store.detection.rules import HOUR_NS, LEVELS, adjusted_rules, span_of_time
from hansard_store.detection.scan import scan
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.heartbeat import Line, hook_rates, phase_history
from hansard_store.memory.errors import MemoryNotRetained
from hansard_store.memory.maintenance.service import MaintenanceService
from hansard_store.memory.queries import facets
from hansard_store.reports.files import Reports
from hansard_store.stories.service import StoryService
from hansard_store.tasks.rows import count_tasks, list_tasks
from hansard_store.tasks.service import TaskService

# What hooks wrote down while no server answered, and how often hooks warned.


def run_hooks(context: CycleContext) -> PhaseResult:
    """Read the spool of hooks into the store, and count calls with a score within the window."""
    ingested = ingest_hook_spool_offline(context.folder.path, context.mode)
    with closing(open_reader(context.folder)) as connection:
        rates = hook_rates(connection, context.since_ns)
    summary = (
        f"{ingested.stored:,} records of hooks were read; "
        f"{rates.warned:,} of {rates.evaluated:,} calls were warned of"
    )
    figures = {
        "stored": ingested.stored,
        "refused": ingested.refused,
        "waiting": ingested.waiting,
        "evaluated": rates.evaluated,
        "warned": rates.warned,
    }
    return PhaseResult(summary, figures)


# What is in memory when the cycle begins, so that later phases and reports can compare.


def run_memories(context: CycleContext) -> PhaseResult:
    """Count memory by state, and what is current by type; changes nothing."""
    with closing(open_reader(context.folder)) as connection:
        found = facets(connection, now_ns=context.now_ns)
    current, review = (found.states.get(one, 0) for one in ("current", "review"))
    summary = f"{current:,} records are current, {review:,} wait for a review"
    return PhaseResult(summary, {"states": dict(found.states), "types": dict(found.types)})


# Tasks that are open: blocked until a person decides, or approved for a program that does them.


def run_tasks(context: CycleContext) -> PhaseResult:
    """Count tasks by state. The heartbeat does none of them: it is no orchestrator."""
    with closing(open_reader(context.folder)) as connection:
        counts = count_tasks(connection)
    summary = f"{counts['blocked']:,} wait for a person, {counts['approved']:,} are to be done"
    return PhaseResult(summary, counts)


# Claims of the window against what happened: verdicts, corrections, evaluation results.


def run_evaluation(context: CycleContext) -> PhaseResult:
    """Judge what is new since the last cycle; write corrections and diagnostics.

    Raises ConfigError for a file of evidence that cannot be read.
    """
    path = context.settings.options.get("evidence")
    rules = load_rules(None if path is None else Path(path))
    found = Evaluation(context.folder, rules, context.mode).run(
        now_ns=context.now_ns, since_ns=context.since_ns, step_id=context.step_id
    )
    context.log.write(
        *(_contradiction_line(one) for one in found.new if one.verdict == "contradicted")
    )
    return PhaseResult(summary_of(found), found.figures, results_of(found.new))


def _contradiction_line(one: VerdictRow) -> Line:
    return Line(
        "evaluation",
        "warning",
        f"a claim is contradicted: {normal_words(one)}; {evidence_words(one)}",
        signature=f"{one.subject} {one.polarity}",
        run_id=one.run_id,
        step_id=one.step_id,
    )


def summary_of(found: Evaluated) -> str:
    """Return what an evaluation found in one sentence."""
    new = found.figures["new"]
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in new.items() if count)
    written = f"; {found.corrections:,} corrections written" if found.corrections else ""
    return f"{sum(new.values()):,} claims judged{f': {counts}' if counts else ''}{written}"


# Maintenance of memory: contradicted records superseded, corrections linked, stale ones counted.


def run_maintenance(context: CycleContext) -> PhaseResult:
    """Run maintenance; parts without a classifier or embedder are skipped, with a reason."""
    settings = context.settings.options.get("maintenance") or MaintenanceSettings()
    with closing(
        MaintenanceService(
            context.folder,
            context.mode,
            by="heartbeat:maintenance",
            step_id=context.step_id,
            clock=lambda: context.now_ns,
        )
    ) as service:
        result = Maintainer(service, context.judges, settings).run()
    body = result_json(result)
    figures = {
        **result.figures,
        "skipped": body["skipped"],
        "stale": body["stale"],
        "contradictions": body["contradictions"],
        "corrections": body["corrections"],
    }
    return PhaseResult(result.summary, figures)


# Topics of recent memory become interests, each with the entries that support it.


_INTERESTS = "interests"


def run_interests(context: CycleContext) -> PhaseResult:
    """Extract topics, and write those that memory does not have.

    Skipped without an extractor, without entries, and where nothing was written or ended since the
    last extraction. A malformed answer of a model fails the phase; nothing is written then.
    """
    judges = context.judges
    try:
        extractor = judges.need_extractor()
        finder = InterestFinder(
            context.folder,
            context.mode,
            extractor,
            judges.embedder,
            clock=lambda: context.now_ns,
        )
        recent = finder.recent()
    except (JudgeMissing, MemoryNotRetained) as reason:
        raise PhaseSkipped(str(reason)) from None
    if not recent.count:
        raise PhaseSkipped("memory has no recent decision, note or correction")
    last = context.last(_INTERESTS)
    known = {} if last is None else last.figures
    if (known.get("digest"), known.get("extractor")) == (recent.digest, extractor.name):
        raise PhaseSkipped("no entry came or went since the last extraction")
    before = judges.usage
    result = finder.find(recent, step_id=context.step_id)
    figures = {**result.figures, **judges.usage.since(before).json()}
    summary = (
        f"{figures['topics']} topics of {figures['entries']:,} entries: {figures['written']} new, "
        f"{figures['known']} known, {figures['unsupported']} without support"
    )
    return PhaseResult(summary, figures)


# The daily scan: top stories of an outside source, held against the interests in memory.


_SOURCE = "hackernews"


def run_scan(context: CycleContext) -> PhaseResult:
    """Scan once, and store what is near an interest as unverified notes.

    Skipped, with no request to anybody, where `outbound` is off, without a classifier and without
    an interest. A source that is down fails the phase; the next cycle tries again.
    """
    if not context.settings.outbound:
        raise PhaseSkipped("`outbound` is off: no source outside is asked")
    source = SOURCES[_SOURCE](context.settings.options.get("scan_url"))
    before = context.judges.usage
    try:
        classifier = context.judges.for_task("topic")
        service = StoryService(context.folder, context.mode, clock=lambda: context.now_ns)
        with closing(service), hold_lock(context.folder.scanning, ScanRunning):
            result = Scanner(source, service, classifier).scan(limit=LIMIT)
    except (JudgeMissing, NoInterests, MemoryNotRetained) as reason:
        raise PhaseSkipped(str(reason)) from None
    if result.has_failed:
        raise ScanIncomplete(result.source)
    figures = {
        "source": result.source,
        "classifier": result.classifier,
        "interests": result.interests,
        **result.figures,
        **context.judges.usage.since(before).json(),
    }
    summary = (
        f"{figures['listed']} stories listed, {figures['fetched']} fetched: "
        f"{figures['accepted']} accepted, {figures['refused']} refused, {figures['failed']} failed"
    )
    return PhaseResult(summary, figures)


# The review of the log: what is worse in the last hour or day than in the week before.


def run_log_review(context: CycleContext) -> PhaseResult:
    """Compare errors, their kinds and latency with their own baseline; changes nothing."""
    with closing(open_reader(context.folder)) as connection:
        found = review(connection, now_ns=context.now_ns)
    figures = {
        "trends": [one.json() for one in found.trends],
        "left_off": found.left_off,
        "calls": found.calls,
        "errors": found.errors,
        "subjects": found.subjects,
    }
    counts = {period: sum(one.period == period for one in found.trends) for period in PERIODS}
    summary = (
        f"{counts['hour']} things are worse in the last hour, {counts['day']} in the last day; "
        f"{found.errors:,} of {found.calls:,} calls failed in the last day"
    )
    return PhaseResult(summary, figures)


# The comparison of weeks, reported weekly, and a rolling test for changes, each day.


_LONGITUDINAL: Final = "longitudinal"
_WEEKLY: Final = "weekly"  # the figure of a run_longitudinal that compared two weeks


def run_longitudinal(context: CycleContext) -> PhaseResult:
    """Test each share of errors for a rise; once a week compare the last one with the one before.

    Raises PhaseSkipped where nothing was recorded in the last four weeks.
    """
    with closing(open_reader(context.folder)) as connection:
        days = read_days(connection, now_ns=context.now_ns)
        if not days:
            raise PhaseSkipped("no call was recorded in the last 28 days")
        trends = rolling(days, now_ns=context.now_ns)
        figures: dict[str, Any] = {"subjects": len(days) - 1, "rises": len(trends)}
        runs = phase_history(
            connection, _LONGITUDINAL, since_ns=context.now_ns - WEEK * DAY_NS + DAY_NS // 2
        )
        if not any(_WEEKLY in one.figures for one in runs):
            weeks = compare_weeks(connection, days, now_ns=context.now_ns)
            trends = distinct([*trends, *weeks.trends])
            figures[_WEEKLY] = weeks.json()
    figures["trends"] = [one.json() for one in trends]
    compared = "; compared two weeks" if _WEEKLY in figures else ""
    summary = f"{figures['rises']} error rates have risen in the last 28 days{compared}"
    return PhaseResult(summary, figures)


# The detector: patterns of failure at three levels, each a blocked task for a person.


def run_detection(context: CycleContext) -> PhaseResult:
    """Look for every pattern, and open a task for each that has none. Raises InvalidQueryError."""
    rules = adjusted_rules(**detection_options(context.settings.options))
    with closing(open_reader(context.folder)) as connection:
        found = scan(connection, rules, now_ns=context.now_ns)
    with closing(
        TaskService(context.folder, context.mode, origin="cli", clock=lambda: context.now_ns)
    ) as service:
        recorded = service.record(found.findings)
    opened = sum(one.outcome == "opened" for one in recorded)
    levels = {level: sum(one.finding.rule.level == level for one in recorded) for level in LEVELS}
    figures = {
        "patterns": len(recorded),
        "opened": opened,
        "counted": sum(one.outcome == "counted" for one in recorded),
        "levels": levels,
        "rules": sorted({one.finding.rule.name for one in recorded}),
        "left_off": found.left_off,
    }
    return PhaseResult(f"{len(recorded)} patterns, {opened} new reviews opened", figures)


def detection_options(options: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    """Return the numbers of rules that are set: a mapping a kind, by the name of the rule."""
    return {
        "thresholds": dict(options.get("detect_threshold", {})),
        "windows_ns": dict(options.get("detect_window", {})),
        "leasts": dict(options.get("detect_min_cases", {})),
    }


# The status report: a new one when it is due, or sooner when something new waits for a person.


def run_report(context: CycleContext) -> PhaseResult:
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
        message = (
            f"{written.escalated} reports were not acknowledged in time and passed to the next "
            "recipient"
        )
        context.log.write(_report_warning(context, message, "escalated"))
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
        figures["sent"] = _send_report(context, written, settings)
        summary += ", sent" if figures["sent"] else ", not sent"
    return PhaseResult(summary, figures)


def _send_report(context: CycleContext, written: WrittenReport, settings: ReportSettings) -> bool:
    """Send a report to the address of the settings; what goes wrong is a diagnostic."""
    try:
        send_report(
            context.settings.options["report_webhook"],
            name=written.report.name,
            text=written.text,
            recipients=settings.recipients,
        )
    except ReportNotSent as error:
        message = f"{written.report.name} was not sent: {error}"
        context.log.write(_report_warning(context, message, "not_sent"))
        return False
    return True


def _report_warning(context: CycleContext, message: str, signature: str) -> Line:
    return Line("heartbeat.report", "warning", message, signature, step_id=context.step_id)


def _need_news(context: CycleContext, every_ns: int) -> None:
    """Raise PhaseSkipped where the last report is current; at most one an hour is written."""
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


PHASES: Final[tuple[Phase, ...]] = (
    Phase("hooks", run_hooks),
    Phase("memories", run_memories),
    Phase("tasks", run_tasks),
    Phase("evaluation", run_evaluation),
    Phase("maintenance", run_maintenance),
    Phase(_INTERESTS, run_interests),
    Phase("scan", run_scan, every_ns=DAY_NS),
    Phase("log_review", run_log_review),
    Phase(_LONGITUDINAL, run_longitudinal, every_ns=DAY_NS),
    Phase("detection", run_detection),
    Phase("report", run_report),
)
