"""The offline classifier and the embedders without a network: deterministic, and never a guess."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_collector.judges.embedders import HashedPieces, WordVectors, cosine
from hansard_collector.judges.offline import OfflineClassifier
from hansard_compiler.classifier import (
    AGREES,
    CONTRADICTS,
    UNRELATED,
    ClassifierQuestion,
    ClassifierVerdict,
)

LABELS = (CONTRADICTS, AGREES, UNRELATED)
_PRINT = """
from hansard_collector.judges.embedders import {kind}
print({kind}()(["Payments are retried five times.", "Zahlungen", "", "SQLite"]))
"""


def contradiction(older: str, newer: str, subject: str = "") -> ClassifierVerdict:
    return OfflineClassifier()(ClassifierQuestion("contradiction", older, LABELS, newer, subject))


def test_topics_are_judged_by_their_words() -> None:
    verdict = OfflineClassifier()(
        ClassifierQuestion(
            "topic", "Full-text search in PostgreSQL", ("SQLite full text search", "bread")
        )
    )

    assert (verdict.label, verdict.score) == ("SQLite full text search", 0.75)


@pytest.mark.covers("MM-14")
def test_contradictions_are_those_that_a_compile_finds() -> None:
    certain = contradiction(
        "The request timeout is 30 seconds.", "The request timeout is 45 seconds.", "timeout"
    )
    doubtful = contradiction("30 seconds", "45 seconds", "request timeout")
    same = contradiction("Totals are rounded once.", "Totals are rounded once.")
    other = contradiction("The office is in Paris.", "Refunds take four days.")

    assert certain.label == CONTRADICTS
    assert certain.score >= 0.85
    assert "certain" in certain.reason
    assert doubtful.label == CONTRADICTS
    assert 0.4 <= doubtful.score <= 0.7
    assert "doubtful" in doubtful.reason
    assert (same.label, same.score) == (AGREES, 1.0)
    assert (other.label, other.score) == (UNRELATED, 1.0)


def test_a_correction_denies_what_it_corrects() -> None:
    verdict = contradiction(
        "Invoices are sent on the first.", "Correction: invoices are not sent on the first."
    )

    assert verdict.label == CONTRADICTS


def test_a_label_that_was_not_given_is_no_answer() -> None:
    question = ClassifierQuestion(
        "contradiction", "Rates are 3.", (UNRELATED,), "Rates are 4.", "rates"
    )

    assert OfflineClassifier()(question).label in (None, UNRELATED)


@pytest.mark.parametrize("kind", [HashedPieces, WordVectors])
def test_vectors_have_length_one_and_words_in_common_bring_them_near(
    kind: type[HashedPieces] | type[WordVectors],
) -> None:
    embedder = kind()
    texts = ["retry of payments", "payments are retried", "sourdough bread", "", "…"]

    vectors = embedder(texts)

    assert [len(one) for one in vectors] == [embedder.dimensions] * len(texts)
    lengths = [math.sqrt(math.fsum(x * x for x in one)) for one in vectors]
    assert lengths == pytest.approx([1, 1, 1, 0, 0], abs=1e-6) or lengths[4] == pytest.approx(1)
    assert cosine(vectors[0], vectors[1]) > cosine(vectors[0], vectors[2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["HashedPieces", "WordVectors"])
def test_two_processes_have_the_same_vectors(kind: str) -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PRINT.format(kind=kind)],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip

    assert len(printed) == 1


@given(st.lists(st.text(max_size=60), max_size=5))
def test_a_vector_depends_on_its_text_alone(texts: list[str]) -> None:
    embedder = HashedPieces()

    assert list(embedder(texts)) == [embedder([one])[0] for one in texts]
