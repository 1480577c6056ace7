"""A score in whole numbers: it equals the sum of its terms to the last digit, on every machine.

A term's value is a whole number of millionths, a weight one of thousandths; their product is in
billionths of a point and is exact, and so is the sum:

    score = relevance + freshness + trust + importance + dependency + pin + policy_priority
            - staleness - risk          (each: value x weight)

Freshness is half_life / (half_life + age): 1 when new, a half after one half-life; a hyperbola,
because it needs no power function, which machines round differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul
from typing import Any

from hansard_compiler.compile.config import CompileConfig, Weights
from hansard_compiler.compile.items import MICRO, Item, micro
from hansard_compiler.compile.state import Score

TERMS = Score._fields[:-1]
SUBTRACTED = frozenset({"staleness", "risk"})
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores items under one configuration, as of one moment."""

    weights: tuple[int, ...]  # thousandths, negative for what is subtracted
    now_us: int
    half_life_us: int
    stale_after_us: int
    risk: Mapping[str, int]
    pinned: frozenset[str]

    def score(self, item: Item, *, relevance: int, pressure: int, priority: int) -> Score:
        """Return an item's terms and their weighted sum; the three are millionths."""
        age = self.now_us - item.fresh_us
        if age < 0:
            age = 0
        risk = self.risk[item.sensitivity]
        if item.metadata:
            risk = max(risk, _own_risk(item))
        terms = (
            relevance,
            MICRO * self.half_life_us // (self.half_life_us + age),
            item.trust,
            item.importance,
            pressure,
            MICRO if "pinned" in item.tags or item.id in self.pinned else 0,
            priority,
            self._staleness(item, age),
            risk,
        )
        return Score(*terms, sum(map(mul, terms, self.weights)))

    def _staleness(self, item: Item, age: int) -> int:
        """Return the share of its time to live that is spent, or how far it is past being new."""
        if item.expires_us is not None and item.expires_us > item.fresh_us:
            return min(MICRO, MICRO * age // (item.expires_us - item.fresh_us))
        over = age - self.stale_after_us
        return MICRO * over // (over + self.stale_after_us) if over > 0 else 0


def scorer(config: CompileConfig, *, now_us: int) -> Scorer:
    """Return the scorer of a configuration."""
    return Scorer(
        weights=weights_milli(config.weights),
        now_us=now_us,
        half_life_us=config.freshness_half_life_s * MICRO,
        stale_after_us=config.stale_after_s * MICRO,
        risk={name: micro(share) for name, share in config.risk},
        pinned=frozenset(config.pinned),
    )


def weights_milli(weights: Weights) -> tuple[int, ...]:
    """Return the weights in thousandths, in the order of TERMS, signed as they count."""
    return tuple(
        (-1 if term in SUBTRACTED else 1) * round(getattr(weights, term) * 1000) for term in TERMS
    )


def pressure(dependents: int, *, needed_by_required: bool) -> int:
    """Return the dependency term: 1 when something required needs it, else n / (n + 1)."""
    return MICRO if needed_by_required else MICRO * dependents // (dependents + 1)


def breakdown(score: Score | None, weights: tuple[int, ...], *, scorer: str) -> dict[str, Any]:
    """Return every term with value, weight and points, and the score they add up to.

    Of relevance also the `scorer` that rated it, with its version. `value` is in millionths,
    `weight` in thousandths, `points` and `score` in billionths.
    Empty for an item that left before scores were given.
    """
    if score is None:
        return {}
    terms: dict[str, dict[str, Any]] = {
        term: {"value": value, "weight": weight, "points": value * weight}
        for term, value, weight in zip(TERMS, score.terms, weights, strict=True)
    }
    terms["relevance"]["scorer"] = scorer
    return {**terms, "score": score.total}


def decimal_text(points: int) -> str:
    """Return billionths of a point as a decimal number without superfluous zeros."""
    sign = "-" if points < 0 else ""
    whole, rest = divmod(abs(points), NANO)
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".")


def _own_risk(item: Item) -> int:
    """Return the risk its owner gave it in `metadata.risk`, 0 to 1."""
    found = item.metadata.get("risk")
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found <= 1:
        return 0
    return micro(found)
