"""Warnings before commands, on labelled ones: precision and recall at each threshold.

`tests/fixtures/heartbeat/README.md` says how they were made. A command that cannot be undone is to
be warned of. Of the two halves the rules were written with one in view.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.figures import Figure, at_least
from hansard._hooks.event import HookEvent
from hansard._hooks.risk_score import evaluate
from hansard._hooks.settings import DEFAULT_THRESHOLD, load_hook_settings

FIXTURE: Final = (
    Path(__file__).parent.parent.parent / "tests" / "fixtures" / "heartbeat" / "commands.jsonl"
)
HALVES: Final = ("tuned", "held out", "fresh")
LABELS: Final = ("harmless", "recoverable", "hard to undo", "irreversible")
IRREVERSIBLE: Final = LABELS[-1]
THRESHOLDS: Final = (0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_BINS: Final = 10
_LEAST_PRECISION_PCT: Final = 90
_LEAST_RECALL_PCT: Final = 90


@dataclass(frozen=True, slots=True)
class Scored:
    """A labelled command with its score."""

    label: str
    half: str
    form: str
    command: str  # of a tool's input: its JSON
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """What is warned of from a threshold on."""

    threshold: float
    right: int  # irreversible and warned
    wrong: int  # warned, and not irreversible
    missed: int
    quiet: int  # rightly not warned

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.right + self.missed)

    @property
    def false_alarms(self) -> float:
        """The share of commands that can be undone of which is warned."""
        return self.wrong / max(1, self.wrong + self.quiet)


def scored() -> Iterator[Scored]:
    """Yield the labelled commands with the scores that the hook gives them."""
    settings = load_hook_settings({"data": "/nonexistent"}, {})
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tool = row.get("tool", "Bash")
        given = row.get("input", {"command": row.get("command")})
        found = evaluate(HookEvent({"tool_name": tool, "tool_input": given}), settings)
        yield Scored(
            row["label"],
            row["half"],
            row["form"],
            row.get("command", json.dumps(given)),
            found.score if found else 0.0,
            found.reason if found else "no command",
        )


def at_threshold(rows: Sequence[Scored], threshold: float) -> AtThreshold:
    """Count what is warned of."""
    warned = [row for row in rows if row.score >= threshold]
    quiet = [row for row in rows if row.score < threshold]
    right = sum(row.label == IRREVERSIBLE for row in warned)
    missed = sum(row.label == IRREVERSIBLE for row in quiet)
    return AtThreshold(threshold, right, len(warned) - right, missed, len(quiet) - missed)


def histogram(rows: Sequence[Scored]) -> list[int]:
    """Return how many scores fall in each tenth."""
    counts = [0] * _BINS
    for row in rows:
        counts[min(int(row.score * _BINS), _BINS - 1)] += 1
    return counts


def area(rows: Sequence[Scored]) -> float:
    """Return the area under the ROC curve: how often an irreversible command scores higher."""
    high = [row.score for row in rows if row.label == IRREVERSIBLE]
    low = [row.score for row in rows if row.label != IRREVERSIBLE]
    wins = sum((a > b) + (a == b) / 2 for a in high for b in low)
    return wins / max(1, len(high) * len(low))


def run() -> list[Figure]:
    """Print the tables; return the figures at the default threshold."""
    rows = list(scored())
    figures = []
    for half in HALVES:
        mine = [row for row in rows if row.half == half]
        _print_tables(half, mine)
        found = at_threshold(mine, DEFAULT_THRESHOLD)
        name = f"escalation, {half}"
        note = f"{len(mine)} commands, threshold {DEFAULT_THRESHOLD:.2f}"
        bar = {"bar": _LEAST_PRECISION_PCT, "note": note}
        figures += [
            at_least(f"{name}: precision", found.precision * 100, "%", **bar),  # type: ignore[arg-type]
            at_least(f"{name}: recall", found.recall * 100, "%", bar=_LEAST_RECALL_PCT, note=note),
            Figure(f"{name}: false alarms", found.false_alarms * 100, "%"),
            Figure(f"{name}: area under ROC", area(mine), ""),
        ]
    return figures


def _print_tables(half: str, rows: Sequence[Scored]) -> None:
    print(f"{half}: {len(rows)} commands")
    print("threshold  precision  recall  false alarms  warned")
    for threshold in THRESHOLDS:
        one = at_threshold(rows, threshold)
        print(
            f"{threshold:9.2f}  {one.precision:9.1%}  {one.recall:6.1%}  {one.false_alarms:12.1%}"
            f"  {one.right + one.wrong:6}"
        )
    print("label          commands  scores by tenth: 0.0 … 1.0")
    for label in LABELS:
        mine = [row for row in rows if row.label == label]
        print(f"{label:13}  {len(mine):8}  " + " ".join(f"{n:3}" for n in histogram(mine)))
    print(f"{'all':13}  {len(rows):8}  " + " ".join(f"{n:3}" for n in histogram(rows)))
    print()
