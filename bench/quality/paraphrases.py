"""Questions in other words than their answers: which document each scorer puts first.

`tests/fixtures/paraphrases/` says how they were made: each question has one document that answers
it, among others that share its words and do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.figures import Figure
from bench.quality.conflicts import HALVES, Half, of_half
from hansard_compiler.compile.config import BM25, EMBEDDINGS, PIECES
from hansard_compiler.compile.errors import ScorerUnavailable
from hansard_compiler.compile.ports import RelevancePort
from hansard_compiler.relevance import scorer_named

SCORERS: Final = (BM25, PIECES, EMBEDDINGS)


@dataclass(frozen=True, slots=True)
class Found:
    """How often the document that answers came first, or among the first three."""

    first: int
    of_three: int
    questions: int


def run() -> list[Figure]:
    """Print top-1 and top-3 of every scorer; one whose extra is missing says so."""
    return [figure for name in SCORERS for figure in _figures(name)]


def _figures(name: str) -> list[Figure]:
    try:
        rate = scorer_named(name)
    except ScorerUnavailable as why:
        return [Figure(f"paraphrases, {name}", 0, "%", note=str(why))]
    figures = []
    for half in HALVES:
        found = answers_found(rate, half)
        for what, hits in (("first", found.first), ("of the first three", found.of_three)):
            share = 100 * hits / found.questions
            note = f"{hits} of {found.questions}"
            figures.append(Figure(f"paraphrases {half}, {name}: {what}", share, "%", note=note))
    return figures


def answers_found(rate: RelevancePort, half: Half) -> Found:
    """Rate the documents of every question of a half; what rates 0 is not found."""
    first = three = questions = 0
    for one in of_half("paraphrases/questions.jsonl", half):
        rated = rate(one["question"], one["documents"])
        ranked = sorted(range(len(rated)), key=lambda at, of=rated: (-of[at], at))
        answer = one["answer_index"]
        questions += 1
        first += ranked[0] == answer and rated[answer] > 0
        three += answer in ranked[:3] and rated[answer] > 0
    return Found(first, three, questions)
