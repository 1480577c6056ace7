"""Receipts of one compile, worked out by hand from the formulas of docs/compiler.md.

Nothing here is computed by the compiler: every number stands as it would on paper. A token is four
characters (`Quarter`), so that tokens can be counted by hand as well.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

import pytest

from hansard_compiler.compile.engine import CompileResult
from hansard_compiler.compile.passes.score import TERMS
from hansard_compiler.compile.state import Receipt
from tests.compiler.compiling import compiled, item

TWO_DAYS_AGO = "2026-03-02T12:00:00Z"
TIDES = "tides " * 59 + "tide"  # 358 characters


@pytest.fixture(scope="module")
def result() -> CompileResult:
    return compiled(
        [
            item("rules", "system", "You are a clerk."),
            item("ask", "user_msg", "refund order"),
            item("order", "file", "order seven refund", trust_score=0.9),
            item("pin", "memory", "Answer briefly.", tags=["pinned"]),
            item("limit", "memory", "The refund limit is 50 euros.", trust_score=0.9,
                 metadata={"subject": "refunds"}),
            item("old-limit", "memory", "The refund limit is 30 euros.", trust_score=0.4,
                 metadata={"subject": "refunds"}),
            item("history", "file", TIDES, trust_score=0.8, importance_score=0.25,
                 created_at=TWO_DAYS_AGO, sensitivity="restricted"),
            item("cats", "file", "cats sleep", trust_score=0.1, importance_score=0.0,
                 created_at=TWO_DAYS_AGO),
        ],
        budget=150,
        response_reserve=20,
        compile_config={"min_score": 0.2, "relevance": {"scorer": "bm25"}},
    )  # fmt: skip


def receipt(result: CompileResult, item_id: str) -> Receipt:
    return next(one for one in result.receipts if one.item_id == item_id)


def scored(one: Receipt) -> tuple[dict[str, Decimal], Decimal]:
    """Return the terms that are not 0, and the score, as decimal numbers."""
    assert one.score is not None
    terms = zip(TERMS, one.score.terms, strict=True)
    return {name: Decimal(value).scaleb(-6) for name, value in terms if value}, Decimal(
        one.score.total
    ).scaleb(-9)


def millionths(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.000001"), ROUND_FLOOR)


def test_an_item_that_went_in(result: CompileResult) -> None:
    """`limit`: 1.0 relevance + 0.25 freshness + 0.3 trust + 0.4 importance."""
    # Six texts are rated, each with the name of its source and a line break: rules 30 characters,
    # order 32, pin 27, limit 43, history 374, cats 23. `refund` is in two of them, `order` in one.
    texts, characters, half = 6, 30 + 32 + 27 + 43 + 374 + 23, Decimal("0.5")
    refund = millionths((1 + (6 - 2 + half) / (2 + half)).ln())
    order = millionths((1 + (6 - 1 + half) / (1 + half)).ln())

    def rated(rarity: Decimal, times: int, length: int) -> Decimal:
        """BM25 with k1 = 1.2 and b = 0.75, of a word said so often in a text of that length."""
        share = Decimal("0.75") * length * texts / characters
        norm = (Decimal("1.2") * (Decimal("0.25") + share)).quantize(Decimal("0.001"), ROUND_FLOOR)
        return millionths(rarity * times * Decimal("2.2") / (times + norm))

    best = rated(order, 2, 32) + rated(refund, 1, 32)  # `order`, whose path says it once more
    relevance = millionths(rated(refund, 1, 43) / best)

    one = receipt(result, "limit")
    terms, score = scored(one)
    assert (one.decision, one.reason) == ("include", "within_budget")
    assert terms == {
        "relevance": relevance,
        "freshness": Decimal(1),  # new
        "trust": Decimal("0.9"),
        "importance": Decimal("0.5"),  # not said
    }
    assert score == (
        relevance
        + Decimal("0.25")
        + Decimal("0.9") * Decimal("0.3")
        + Decimal("0.5") * Decimal("0.4")
    )
    # 29 characters are 8 tokens, `[memory: docs/limit.md]` 23 / 3 = 7, the frame 4.
    assert (one.original_tokens, one.final_tokens) == (8 + 7 + 4, 19)


def test_an_item_that_the_budget_left_out(result: CompileResult) -> None:
    """`history`: old, restricted, and longer than what was left."""
    one = receipt(result, "history")
    terms, score = scored(one)

    assert (one.decision, one.reason) == ("exclude", "over_budget")
    assert terms == {
        "freshness": Decimal("0.333333"),  # 1 day / (1 day + 2 days)
        "trust": Decimal("0.8"),
        "importance": Decimal("0.25"),
        "risk": Decimal("0.3"),  # restricted
    }
    assert score == (
        Decimal("0.333333") * Decimal("0.25")
        + Decimal("0.8") * Decimal("0.3")
        + Decimal("0.25") * Decimal("0.4")
        - Decimal("0.3") * Decimal("0.6")
    )
    # 358 characters are 90 tokens, `[file: docs/history.md]` 23 / 3 = 7, the frame 4.
    assert one.original_tokens == 90 + 7 + 4
    # rules 4+7+4 and ask 3+4 are never dropped; then memory: pin 4+7+4, limit 19; then order 5+7+4.
    left = (150 - 20) - (15 + 7) - (15 + 19) - 16
    assert one.missed_by_tokens == 101 - left == 43
    # The last of its class that went in is `order`: as relevant as can be, new, trust 0.9.
    order = 1 + Decimal("0.25") + Decimal("0.9") * Decimal("0.3") + Decimal("0.5") * Decimal("0.4")
    assert Decimal(one.missed_by_score or 0).scaleb(-9) == order - score == Decimal("1.476666750")


def test_an_item_that_its_score_left_out(result: CompileResult) -> None:
    """`cats`: says nothing of refunds, and nobody vouches for it."""
    one = receipt(result, "cats")
    terms, score = scored(one)

    assert (one.decision, one.reason) == ("exclude", "below_floor")
    assert terms == {"freshness": Decimal("0.333333"), "trust": Decimal("0.1")}
    assert score == Decimal("0.333333") * Decimal("0.25") + Decimal("0.1") * Decimal("0.3")
    assert Decimal(one.missed_by_score or 0).scaleb(-9) == Decimal("0.2") - score
    assert one.missed_by_tokens is None
    # 10 characters are 3 tokens, `[file: docs/cats.md]` 20 / 3 = 6, the frame 4.
    assert one.original_tokens == 3 + 6 + 4


def test_an_item_that_another_one_contradicts(result: CompileResult) -> None:
    """`old-limit`: a number differs from a trusted one; it left before scores."""
    one = receipt(result, "old-limit")

    assert (one.decision, one.reason, one.pass_name) == ("exclude", "conflict_lost", "conflicts")
    assert one.related_item_id == "limit"  # trust 0.9 against 0.4
    assert (one.score, one.missed_by_tokens, one.missed_by_score) == (None, None, None)


def test_what_is_left_is_what_was_not_given_out(result: CompileResult) -> None:
    told = result.token_allocation

    assert (told["available"], told["used"], told["free"]) == (130, 72, 58)
    assert told["used"] == 15 + 7 + 15 + 19 + 16
