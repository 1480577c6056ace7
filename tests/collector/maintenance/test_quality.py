"""The measured quality of maintenance, on the half of the labelled sets that nobody tuned on."""

from __future__ import annotations

import json

import pytest

from bench.quality.supersession import FIXTURES, of_corrections, of_pairs
from hansard_collector.judges.embedders import HashedPieces, WordVectors


def test_the_sets_are_as_large_as_promised() -> None:
    pairs = (FIXTURES / "contradictions.jsonl").read_text(encoding="utf-8").splitlines()
    groups = (FIXTURES / "corrections.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(pairs) >= 300
    assert len({json.loads(one)["domain"] for one in pairs}) >= 8
    assert sum(len(json.loads(one)["corrections"]) for one in groups) >= 100


@pytest.mark.covers("MM-04", "MM-11")
def test_hardly_any_pair_that_agrees_is_superseded() -> None:
    found = of_pairs("held out")

    assert found.wrong_pct < 1
    assert found.precision_pct >= 97
    assert found.recall_pct >= 50
    assert found.wrongly_asked <= 0.12 * found.others


@pytest.mark.covers("MM-06", "MM-11")
@pytest.mark.parametrize("embedder", [HashedPieces(), WordVectors()], ids=lambda one: one.name)
def test_links_of_corrections_are_right(embedder: HashedPieces | WordVectors) -> None:
    found = of_corrections("held out", embedder)

    assert found.precision_pct >= 95
    assert found.recall_pct >= 55
