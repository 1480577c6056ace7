"""Verdicts on labelled claims, by verdict: precision and recall, and claims wrongly contradicted.

`tests/fixtures/heartbeat/README.md` says how the claims were written. One half was worked on; the
other was written before the rules and not looked at while they were tuned.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.figures import Figure, at_least, below
from hansard.adapters.claims import load_sets
from hansard_collector.evaluation.claims import Claim, claims_of, tools_of
from hansard_collector.evaluation.outcomes import ToolExecution
from hansard_collector.evaluation.topics import Lexicon, lexicon_of
from hansard_collector.evaluation.verdicts import judge_claim
from hansard_store.evaluation.verdicts import VERDICTS

FIXTURES: Final = Path(__file__).parent.parent / "tests" / "fixtures" / "heartbeat"
HALVES: Final = {"worked on": "claims.jsonl", "held out": "claims-held-out.jsonl"}
# By an author who had read neither rules nor claims; looked at after it was measured once.
SETS: Final = {**HALVES, "another author": "claims-by-another.jsonl"}
_MOST_WRONG_PCT: Final = 2
_PRECISION_PCT: Final = 95


def run() -> list[Figure]:
    """Print precision and recall of each verdict, for each set."""
    figures: list[Figure] = []
    for half in SETS:
        pairs = Counter((one["verdict"], judged(one)) for one in labelled(half))
        figures += figures_of(half, pairs)
    return figures


def figures_of(half: str, pairs: Counter[tuple[str, str]]) -> list[Figure]:
    """Return the figures of (label, verdict) pairs."""
    every = pairs.total()
    wrong = sum(n for (label, said), n in pairs.items() if said == "contradicted" != label)
    figures = [
        below(f"{half}: wrongly contradicted", 100 * wrong / every, "%", bar=_MOST_WRONG_PCT,
              note=f"{wrong} of {every} claims")
    ]  # fmt: skip
    for verdict in VERDICTS:
        right = pairs[verdict, verdict]
        said = sum(n for (_, one), n in pairs.items() if one == verdict)
        labels = sum(n for (one, _), n in pairs.items() if one == verdict)
        note = f"{right} of {said}"
        precision = 100 * right / max(1, said)
        name = f"{half}: precision of {verdict}"
        if verdict == "confirmed":
            figures.append(at_least(name, precision, "%", bar=_PRECISION_PCT, note=note))
        else:
            figures.append(Figure(name, precision, "%", note=note))
        recall = 100 * right / max(1, labels)
        note = f"{right} of {labels}"
        figures.append(Figure(f"{half}: recall of {verdict}", recall, "%", note=note))
    return figures


def labelled(half: str) -> Iterator[dict[str, Any]]:
    """Yield the labelled claims of a set."""
    with (FIXTURES / SETS[half]).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def lexicon() -> Lexicon:
    """Return the shipped topics."""
    return lexicon_of(load_sets())


_LEXICON: Final = lexicon()


def found_in(one: dict[str, Any]) -> list[Claim]:
    """Return the claims found in a labelled text."""
    names = {tool for tool, *_ in (*one["ran"], *one.get("after", ()))}
    return claims_of(one["text"], _LEXICON, tools_of(names, _LEXICON))


def judged(one: dict[str, Any]) -> str:
    """Return the verdict on a labelled text; of several claims the worst, *unknown* of none."""
    before = executions_of(one["ran"])
    verdicts = {judge_claim(claim, reversed(before)).verdict for claim in found_in(one)}
    order = ("contradicted", "confirmed", "claimed", "unknown")
    return next((verdict for verdict in order if verdict in verdicts), "unknown")


def executions_of(rows: list[Any]) -> list[ToolExecution]:
    """Return labelled executions in their order."""
    found = []
    for at, (tool, arguments, status, result) in enumerate(rows, start=1):
        ended = None if status == "open" else at * 10
        found.append(
            ToolExecution(f"step-{at}", tool, status, at * 10 - 5, ended, arguments, result)
        )
    return found
