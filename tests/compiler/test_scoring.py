"""Scores: eight terms and policy priority, weighted, adding up to the last digit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.compile.config import Weights
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.compile.models import parse
from hansard_compiler.compile.passes.score import SUBTRACTED, TERMS, decimal_text
from hansard_compiler.compile.ports import PolicyVerdict, Subject
from tests.compiler.compiling import compiled, item, ports, request

_NONE = dict.fromkeys(TERMS, 0.0)
_EARLIER = "2026-03-01T12:00:00Z"
_DAY_S = 86_400


def _with(weights: dict[str, float], items: list[Any], **more: Any) -> CompileResult:
    return compiled(items, compile_config={"weights": {**_NONE, **weights}, **more})


def _scores(result: CompileResult) -> dict[str, int]:
    return {one.item_id: one.score.total for one in result.receipts if one.score}


def _term(result: CompileResult, item_id: str, term: str) -> int:
    receipt = next(one for one in result.receipts if one.item_id == item_id)
    assert receipt.score
    return receipt.score.terms[TERMS.index(term)]


@pytest.mark.covers("CP-10", "CP-25", "TS-04")
def test_the_score_is_the_sum_of_the_terms_shown() -> None:
    items = [
        item("a", content="rounding of totals", trust_score=0.3333333, created_at=_EARLIER),
        item("b", content="cats", importance_score=0.7, dependencies=["a"], tags=["pinned"]),
        item("u", "user_msg", "how are totals rounded?"),
    ]

    context = compiled(items).context()

    for decision in context.decisions:
        terms = dict(decision.score_breakdown)
        score = terms.pop("score")
        assert set(terms) == set(TERMS)
        assert score == sum(term["points"] for term in terms.values())
        for term in terms.values():
            assert term["points"] == term["value"] * term["weight"]
    weights = {name: one["weight"] for name, one in context.decisions[0].score_breakdown.items()
               if name != "score"}  # fmt: skip
    assert weights == {
        "relevance": 1000, "freshness": 250, "trust": 300, "importance": 400, "dependency": 350,
        "pin": 1500, "policy_priority": 0, "staleness": -300, "risk": -600,
    }  # fmt: skip


@pytest.mark.covers("CP-25")
@given(
    weights=st.fixed_dictionaries(
        {term: st.integers(0, 5_000).map(lambda milli: milli / 1000) for term in TERMS}
    ),
    trust=st.floats(0, 1),
    importance=st.floats(0, 1),
    age_s=st.integers(0, 10_000_000),
)
def test_scores_add_up_under_any_weights(
    weights: dict[str, float], trust: float, importance: float, age_s: int
) -> None:
    config = {"weights": weights, "freshness_half_life_s": age_s + 1}
    made = item("a", trust_score=trust, importance_score=importance, created_at=_EARLIER)

    decision = compiled([made], compile_config=config).context().decisions[0]

    points = {name: one for name, one in decision.score_breakdown.items() if name != "score"}
    assert decision.score_breakdown["score"] == sum(one["points"] for one in points.values())
    for name, one in points.items():
        assert one["weight"] == round(weights[name] * 1000) * (-1 if name in SUBTRACTED else 1)


@pytest.mark.covers("CP-17", "TS-04")
def test_relevance_alone_ranks_by_relevance() -> None:
    items = [
        item("some", content="the rounding rule for invoices and other papers of the office"),
        item("none", content="cats sleep all day"),
        item("most", content="rounding totals: the rounding of totals is half even"),
    ]

    config = {"weights": {**_NONE, "relevance": 1}}
    scores = _scores(compiled(items, task_summary="rounding of totals", compile_config=config))

    assert scores["most"] > scores["some"] > scores["none"] == 0


@pytest.mark.covers("CP-18", "CP-23", "TS-04")
def test_freshness_halves_with_each_half_life_and_staleness_takes_away() -> None:
    items = [
        item("new"),
        item("day", created_at="2026-03-03T12:00:00Z"),
        item("three", created_at=_EARLIER),
        item("month", created_at="2026-02-02T12:00:00Z"),
    ]

    fresh = _with({"freshness": 1}, items, freshness_half_life_s=_DAY_S)
    stale = _with({"staleness": 1}, items, stale_after_s=15 * _DAY_S)

    assert [_term(fresh, one, "freshness") for one in ("new", "day", "three")] == [
        1_000_000, 500_000, 250_000,
    ]  # fmt: skip
    assert _scores(fresh)["new"] > _scores(fresh)["day"] > _scores(fresh)["month"]
    assert _scores(stale) == {"new": 0, "day": 0, "three": 0, "month": -500_000_000}


@pytest.mark.covers("CP-23")
def test_an_item_grows_stale_as_its_time_to_live_is_spent() -> None:
    spent = item("a", created_at="2026-03-04T11:00:00Z", ttl_seconds=14_400)

    assert _scores(_with({"staleness": 1}, [spent])) == {"a": -250_000_000}


@pytest.mark.covers("CP-19", "CP-20", "TS-04")
@pytest.mark.parametrize(
    ("term", "field"), [("trust", "trust_score"), ("importance", "importance_score")]
)
def test_trust_and_importance_rank_by_themselves(term: str, field: str) -> None:
    low: Any = {field: 0.1}
    high: Any = {field: 0.9}
    items = [item("low", **low), item("high", **high)]

    assert _scores(_with({term: 1}, items)) == {"low": 100_000_000, "high": 900_000_000}


@pytest.mark.covers("CP-21", "TS-04")
def test_what_others_need_scores_more_and_most_when_something_required_does() -> None:
    items = [
        item("a"),
        item("b", dependencies=["a"]),
        item("c", dependencies=["a"]),
        item("d"),
        item("u", "user_msg", "go on", dependencies=["d"]),
    ]

    scores = _scores(_with({"dependency": 1}, items))

    assert scores == {"a": 666_666_000, "b": 0, "c": 0, "d": 1_000_000_000, "u": 0}


@pytest.mark.covers("CP-22", "TS-04")
def test_a_pin_beats_an_equal_item_without_one() -> None:
    items = [item("plain"), item("tagged", tags=["pinned"]), item("named")]

    scores = _scores(_with({"pin": 1.5}, items, pinned=["named"]))

    assert scores == {"plain": 0, "tagged": 1_500_000_000, "named": 1_500_000_000}


@pytest.mark.covers("CP-24", "TS-04")
def test_risk_takes_away() -> None:
    items = [
        item("safe", sensitivity="public"),
        item("risky", sensitivity="restricted"),
        item("told", metadata={"risk": 0.8}),
    ]

    scores = _scores(_with({"risk": 1}, items))

    assert scores == {"safe": 0, "risky": -300_000_000, "told": -800_000_000}


class _Prefers:
    """A policy that gives one item priority."""

    def decide(self, subject: Subject) -> PolicyVerdict:
        return PolicyVerdict(priority_micro=400_000 if subject.item_id == "b" else 0)


@pytest.mark.covers("CP-10")
def test_policy_priority_counts_only_when_it_is_given_a_weight() -> None:
    items = [item("a"), item("b")]

    weighed = request(items, compile_config={"weights": {**_NONE, "policy_priority": 1}})
    plain = request(items, compile_config={"weights": _NONE})

    assert _scores(compile_context(weighed, ports(policy=_Prefers()))) == {"a": 0, "b": 400_000_000}
    assert _scores(compile_context(plain, ports(policy=_Prefers()))) == {"a": 0, "b": 0}


@pytest.mark.covers("CP-26")
def test_weights_come_from_the_configuration_which_is_stored_with_the_compile() -> None:
    plain = compiled([item("a", trust_score=1.0)])
    heavy = compiled([item("a", trust_score=1.0)], compile_config={"weights": {"trust": 0.9}})

    assert _scores(heavy)["a"] - _scores(plain)["a"] == 600_000_000
    assert heavy.request.compile_config.weights.trust == 0.9
    assert heavy.compile_hash != plain.compile_hash


def test_a_weight_finer_than_thousandths_is_refused() -> None:
    with pytest.raises(InvalidInput, match="three decimals"):
        parse(Weights, {"trust": 0.3333})


@pytest.mark.parametrize(
    ("points", "text"),
    [(0, "0"), (3_155_000_000, "3.155"), (-15_000_000, "-0.015"), (1, "0.000000001")],
)
def test_points_are_written_exactly(points: int, text: str) -> None:
    assert decimal_text(points) == text
