"""The labelled claims, both halves, against the bars that are published."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.evaluation import HALVES, SETS, figures_of, judged, labelled


@pytest.mark.covers("EL-13")
@pytest.mark.parametrize("half", SETS)
def test_claims_are_rarely_contradicted_wrongly_and_confirmed_rightly(half: str) -> None:
    pairs = Counter((one["verdict"], judged(one)) for one in labelled(half))

    missed = [one.what for one in figures_of(half, pairs) if one.is_met is False]

    assert missed == []
    assert pairs.total() >= 150


def test_both_halves_hold_five_domains_and_other_languages() -> None:
    every = [one for half in HALVES for one in labelled(half)]

    assert len(every) >= 300
    assert len({one["id"] for one in every}) == len(every)
    assert len({one["domain"] for one in every}) == 5
    assert len({one["lang"] for one in every}) > 10
