"""Pass 6: rate what is left, as it may be shown, and count its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any

from hansard_compiler.compile.config import CompileConfig, Weights
from hansard_compiler.compile.items import MICRO, CandidateItem, counted_text, micro
from hansard_compiler.compile.passes.layout import frame_tokens, latest_user_request
from hansard_compiler.compile.ports import TokenCounter
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Guarded, ItemScore, Ruling
from hansard_compiler.compile.visibility import guard_all
from hansard_compiler.relevance import query_of, scorer_named

# A score in whole numbers: it equals the sum of its terms to the last digit, on every machine.
#
# A term's value is a whole number of millionths, a weight one of thousandths; their product is in
# billionths of a point and is exact, and so is the sum:
#
#     score = relevance + freshness + trust + importance + dependency + pin + policy_priority
#             - staleness - risk          (each: value x weight)
#
# Freshness is half_life / (half_life + age): 1 when new, a half after one half-life; a hyperbola,
# because it needs no power function, which machines round differently.

TERMS = ItemScore._fields[:-1]
SUBTRACTED = frozenset({"staleness", "risk"})
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Scores items under one configuration, as of one moment."""

    weights: tuple[int, ...]  # thousandths, negative for what is subtracted
    now_us: int
    half_life_us: int
    stale_after_us: int
    risk: Mapping[str, int]
    pinned: frozenset[str]

    def score(
        self, item: CandidateItem, *, relevance: int, pressure: int, priority: int
    ) -> ItemScore:
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
        return ItemScore(*terms, sum(map(mul, terms, self.weights)))

    def _staleness(self, item: CandidateItem, age: int) -> int:
        """Return the share of its time to live that is spent, or how far it is past being new."""
        if item.expires_us is not None and item.expires_us > item.fresh_us:
            return min(MICRO, MICRO * age // (item.expires_us - item.fresh_us))
        over = age - self.stale_after_us
        return MICRO * over // (over + self.stale_after_us) if over > 0 else 0


def scorer(config: CompileConfig, *, now_us: int) -> _Scorer:
    """Return the scorer of a configuration."""
    return _Scorer(
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


def breakdown(score: ItemScore | None, weights: tuple[int, ...], *, scorer: str) -> dict[str, Any]:
    """Return every term with value, weight and points, and the score they add up to.

    Of relevance also the `scorer` that rated it, with its version. `value` is in millionths,
    `weight` in thousandths, `points` and `score` in billionths.
    Empty for an item that left before the scores.
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


def _own_risk(item: CandidateItem) -> int:
    """Return the risk its owner gave it in `metadata.risk`, 0 to 1."""
    found = item.metadata.get("risk")
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found <= 1:
        return 0
    return micro(found)


_MEDIA_TOKENS = 1_000  # about one image; giving `token_estimate` is exact


def run(state: CompileState) -> CompileState:
    """Give every live item its nine terms, and find out what may be shown of it."""
    guarded = guard_all(state)
    scores = _scores(state, guarded)
    tokens = _tokens(state, guarded)
    usual = Ruling("include", ReasonCode.SCORED)
    return state.after("score", usual, guarded=guarded, scores=scores, tokens=tokens)


def _scores(state: CompileState, guarded: Mapping[str, Guarded]) -> dict[str, ItemScore]:
    config = state.request.compile_config
    rate = scorer(config, now_us=state.now_us)
    relevant = _relevance(state, guarded)
    pressures = _pressures(state)
    return {
        item.id: rate.score(
            item,
            relevance=relevant[item.id],
            pressure=pressures.get(item.id, 0),
            priority=guarded[item.id].priority,
        )
        for item in state.live
    }


def _pressures(state: CompileState) -> dict[str, int]:
    """Return the dependency term of what others need; few items are."""
    dependents = Counter(one for needs in state.needs.values() for one in needs)
    needed = {one for item_id in state.required for one in state.needs.get(item_id, ())}
    return {
        item_id: pressure(number, needed_by_required=item_id in needed)
        for item_id, number in dependents.items()
    }


def _relevance(state: CompileState, guarded: Mapping[str, Guarded]) -> dict[str, int]:
    """Return each item's relevance; the current request has the highest."""
    settings = state.request.compile_config.relevance
    rate = state.ports.relevance or scorer_named(settings.scorer, settings)
    latest = latest_user_request(state.live)
    rated = [item for item in state.live if item is not latest]
    texts = [_searched(item, guarded[item.id].text) for item in rated]
    values: Sequence[int] = rate(query_of(state, guarded), texts)
    found = {
        item.id: min(MICRO, max(0, int(value))) for item, value in zip(rated, values, strict=True)
    }
    return found if latest is None else {**found, latest.id: MICRO}


def _searched(item: CandidateItem, text: str) -> str:
    """Return a text with the name of its source, which often names its subject."""
    source = item.source
    name = (source.title or source.uri) if source else None
    return f"{name}\n{text}" if name else text


def _tokens(state: CompileState, guarded: Mapping[str, Guarded]) -> dict[str, int]:
    found = {}
    for item in state.live:
        shown = guarded[item.id]
        known = item.token_estimate if shown.content is item.content else None
        if known is None:
            known = _counted(state.ports.counter, shown)
        found[item.id] = known + frame_tokens(item)
    return found


def _counted(counter: TokenCounter, shown: Guarded) -> int:
    if isinstance(shown.content, str):
        return counter.count(shown.content) if shown.content else 0
    text, media = counted_text(shown.content)
    return counter.count(text) + media * _MEDIA_TOKENS
