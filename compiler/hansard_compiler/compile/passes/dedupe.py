"""Pass 3: keep one of several copies of the same content, the most trusted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from hansard_compiler.compile.config import FIRST_VERSION, SENSITIVITIES
from hansard_compiler.compile.items import CONVERSATION, CandidateItem
from hansard_compiler.compile.reasons import ReasonCode
from hansard_compiler.compile.state import CompileState, Ruling


def run(state: CompileState) -> CompileState:
    """Drop exact copies; what depends on a dropped one depends on the remaining one from here on.

    The copy left is as sensitive as the most sensitive one, and required when one of them is. It
    names where the others come from, as `Paid.` of two invoices is said of each.
    """
    is_first = state.request.compile_config.compiler_version == FIRST_VERSION
    copies = _copies(state.live)
    if not copies:
        return state.after("dedupe", Ruling("include", ReasonCode.UNIQUE))
    rulings, aliases = {}, {}
    required, merged = dict(state.required), {}
    for group in copies:
        best = min(group, key=lambda item: (-item.trust, -item.fresh_us, item.position))
        merged[best.id] = _merged(best, group)
        if not is_first:
            merged[best.id] = merged[best.id]._replace(also=_elsewhere(best, group))
        for item in group:
            if item is best:
                continue
            rulings[item.id] = Ruling("exclude", ReasonCode.DUPLICATE, related=best.id)
            aliases[item.id] = best.id
            reason = required.pop(item.id, None)
            if reason is not None:
                required.setdefault(best.id, reason)
    live = tuple(merged.get(item.id, item) for item in state.live)
    usual = Ruling("include", ReasonCode.UNIQUE)
    return state.after("dedupe", usual, rulings, live=live, aliases=aliases, required=required)


def _copies(items: Sequence[CandidateItem]) -> list[list[CandidateItem]]:
    """Return the items that are there more than once, copies together."""
    times = Counter([item.stable_hash for item in items])
    if len(times) == len(items):
        return []
    copies: dict[object, list[CandidateItem]] = defaultdict(list)
    for item in items:
        if times[item.stable_hash] > 1:
            copies[_identity(item)].append(item)
    return [group for group in copies.values() if len(group) > 1]


def _identity(item: CandidateItem) -> object:
    if item.kind in CONVERSATION:  # copies of a message must be of the same moment too
        return item.stable_hash, item.created_us, item.answers
    return item.stable_hash


def _merged(best: CandidateItem, group: list[CandidateItem]) -> CandidateItem:
    strictest = max((item.sensitivity for item in group), key=SENSITIVITIES.index)
    tags = frozenset().union(*(item.tags for item in group))
    return best._replace(sensitivity=strictest, tags=tags)


def _elsewhere(best: CandidateItem, group: list[CandidateItem]) -> tuple[str, ...]:
    """Return the sources of the other copies, each once, in the request's order."""
    places = dict.fromkeys(item.where for item in group if item.where)
    return tuple(one for one in places if one != best.where)
