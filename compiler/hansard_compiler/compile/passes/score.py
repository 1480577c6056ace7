"""Pass 6: rate what is left, as it may be shown, and count its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hansard_compiler.compile.items import MICRO, Item, counted_text
from hansard_compiler.compile.passes.layout import frame_tokens, latest_user_request
from hansard_compiler.compile.ports import TokenCounter
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.scores import pressure, scorer
from hansard_compiler.compile.state import Guarded, Score, State, Told
from hansard_compiler.compile.visibility import guard_all
from hansard_compiler.relevance import scorer_named
from hansard_compiler.relevance.query import query_of

_MEDIA_TOKENS = 1_000  # about one image; giving `token_estimate` is exact


def run(state: State) -> State:
    """Give every live item its nine terms, and find out what may be shown of it."""
    guarded = guard_all(state)
    scores = _scores(state, guarded)
    tokens = _tokens(state, guarded)
    usual = Told("include", ReasonCode.SCORED)
    return state.after("score", usual, guarded=guarded, scores=scores, tokens=tokens)


def _scores(state: State, guarded: Mapping[str, Guarded]) -> dict[str, Score]:
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


def _pressures(state: State) -> dict[str, int]:
    """Return the dependency term of what others need; few items are."""
    dependents = Counter(one for needs in state.needs.values() for one in needs)
    needed = {one for item_id in state.required for one in state.needs.get(item_id, ())}
    return {
        item_id: pressure(number, needed_by_required=item_id in needed)
        for item_id, number in dependents.items()
    }


def _relevance(state: State, guarded: Mapping[str, Guarded]) -> dict[str, int]:
    """Return each item's relevance; what is asked now is as relevant as can be."""
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


def _searched(item: Item, text: str) -> str:
    """Return a text with the name of its source, which often says what it is about."""
    source = item.source
    name = (source.title or source.uri) if source else None
    return f"{name}\n{text}" if name else text


def _tokens(state: State, guarded: Mapping[str, Guarded]) -> dict[str, int]:
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
