"""Claims of the window against what happened: verdicts, corrections, evaluation results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hansard_collector.evaluation.engine import Evaluated, Evaluation, contradictions
from hansard_collector.evaluation.settings import load_rules
from hansard_collector.evaluation.words import evidence_words, normal_words, verdict_words
from hansard_collector.heartbeat.phase import CycleContext, EvaluationResult, PhaseResult
from hansard_store.evaluation.verdicts import VerdictRow
from hansard_store.heartbeat.diagnostics import Line

NAME: Final = "claim"  # of the evaluation results


def run(context: CycleContext) -> PhaseResult:
    """Judge what is new since the last cycle; write corrections and diagnostics.

    Raises ConfigError for a file of evidence that cannot be read.
    """
    path = context.settings.options.get("evidence")
    rules = load_rules(None if path is None else Path(path))
    found = Evaluation(context.folder, rules, context.mode).run(
        now_ns=context.now_ns, since_ns=context.since_ns, step_id=context.step_id
    )
    context.log.write_all(_line(one) for one in contradictions(found.new))
    return PhaseResult(summary_of(found), found.figures, results_of(found.new))


def _line(one: VerdictRow) -> Line:
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
    told = ", ".join(f"{count:,} {verdict}" for verdict, count in new.items() if count)
    written = f"; {found.corrections:,} corrections written" if found.corrections else ""
    return f"{sum(new.values()):,} claims judged{f': {told}' if told else ''}{written}"


def results_of(rows: Sequence[VerdictRow]) -> list[EvaluationResult]:
    """Return the verdicts that are known as results of the steps that they judge."""
    return [
        EvaluationResult(
            step_id=one.step_id,
            name=NAME,
            label=one.verdict,
            explanation=verdict_words(one),
        )
        for one in rows
        if one.step_id is not None and one.verdict != "unknown"
    ]
