"""Which items contradict each other, and which of them is believed.

Candidates for a contradiction share a structure (the same key, or most of their words); only then
is it asked whether they differ in a number, a negation or the value. Believed is what is required,
then what is more trusted, then what is fresher. A correction replaces what it corrects unless it
is much less trusted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from hansard_compiler.claims import CLAIMING, Claim, claims_of, fact_of
from hansard_compiler.items import Item

_ALIKE_PCT = 70  # of all words of two claims, how many both must have
_SUBJECT_PCT = 75
_RIVAL_VALUES = 3
_COMMON = 32  # a word in more claims than this does not suggest that two of them are alike
_MOST_COMPARED = 8  # claims with one word in common, the latest


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two items that cannot both hold, and how that shows."""

    first: str
    second: str
    how: str  # "value", "number", "negation"
    correction: str | None = None  # the id of the one that corrects the other


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of an item in a contradiction."""

    winner: str
    how: str
    superseded: bool = False
    open: bool = False  # neither may be dropped


def contradictions(items: Sequence[Item], texts: Mapping[str, str]) -> list[Contradiction]:
    """Return every contradiction found among items that make claims, in a fixed order."""
    claiming = [item for item in items if item.kind in CLAIMING]
    found: dict[tuple[str, str], Contradiction] = {}
    for one in (*_of_facts(claiming), *_of_claims(claiming, texts)):
        found.setdefault((one.first, one.second), one)
    return list(found.values())


def settle(
    items: Sequence[Item],
    found: Sequence[Contradiction],
    *,
    required: Iterable[str],
    trust_gap: int,
) -> dict[str, Settled]:
    """Decide every contradiction; items that lose, or that stay contradicted, are in the result.

    Goes from the most believed item down, so that a loser makes nothing else lose.
    """
    known = {item.id: item for item in items}
    safe = set(required)
    rivals: dict[str, list[tuple[str, Contradiction]]] = defaultdict(list)
    for one in found:
        rivals[one.first].append((one.second, one))
        rivals[one.second].append((one.first, one))
    replaced = _replaced(known, found, safe, trust_gap)
    settled = {loser: Settled(winner, how, True) for loser, (winner, how) in replaced.items()}
    kept: set[str] = set()
    for item_id in sorted(rivals, key=lambda one: _belief(known[one], one in safe)):
        if item_id in settled:
            continue
        over = [(other, one.how) for other, one in rivals[item_id] if other in kept]
        if over:
            best = min(over, key=lambda pair: _belief(known[pair[0]], pair[0] in safe))
            settled[item_id] = Settled(*best, open=item_id in safe)
        if not over or item_id in safe:
            kept.add(item_id)
    return settled


def _belief(item: Item, is_safe: bool) -> tuple[bool, int, int, int, int]:
    return not is_safe, -item.trust, -item.fresh_us, -item.importance, item.position


def _replaced(
    known: Mapping[str, Item], found: Sequence[Contradiction], safe: set[str], trust_gap: int
) -> dict[str, tuple[str, str]]:
    """Return what corrections replace; the latest correction first, so that it wins a chain."""
    replaced: dict[str, tuple[str, str]] = {}
    corrections = [one for one in found if one.correction]
    for one in sorted(corrections, key=lambda one: -known[str(one.correction)].fresh_us):
        by = str(one.correction)
        old = one.second if one.first == by else one.first
        trusted = known[by].trust >= known[old].trust - trust_gap
        later = known[by].fresh_us >= known[old].fresh_us
        if by not in replaced and old not in safe and trusted and later:
            replaced.setdefault(old, (by, one.how))
    return replaced


# --- finding ----------------------------------------------------------------------------------


def _of_facts(items: Sequence[Item]) -> Iterator[Contradiction]:
    """Return pairs of facts with one key and two values: each against the most believed values.

    Three values are enough to settle any but an odd case, and keep this linear.
    """
    of_key: dict[tuple[str, str], list[tuple[str, Item]]] = defaultdict(list)
    for item in items:
        fact = fact_of(item)
        if fact is not None:
            of_key[fact.key].append((fact.value, item))
    for stated in of_key.values():
        if len(stated) < 2:
            continue
        best: dict[str, Item] = {}
        for value, item in sorted(stated, key=lambda one: _belief(one[1], False)):
            yield from (
                _pair(rival, item, "value") for held, rival in best.items() if held != value
            )
            if len(best) < _RIVAL_VALUES:
                best.setdefault(value, item)


def _of_claims(items: Sequence[Item], texts: Mapping[str, str]) -> Iterator[Contradiction]:
    claims = [claim for item in items for claim in claims_of(item, texts[item.id])]
    known = {item.id: item for item in items}
    for first, second in _alike(claims):
        how = _differ(first, second)
        if how:
            by = _correcting(first, second)
            yield _pair(known[first.item_id], known[second.item_id], how, by)


def _pair(a: Item, b: Item, how: str, correction: str | None = None) -> Contradiction:
    first, second = sorted((a, b), key=lambda item: item.position)
    return Contradiction(first.id, second.id, how, correction)


def _correcting(a: Claim, b: Claim) -> str | None:
    if a.corrects == b.corrects:
        return None
    return a.item_id if a.corrects else b.item_id


def _alike(claims: Sequence[Claim]) -> Iterator[tuple[Claim, Claim]]:
    """Return pairs of claims of different items that may be about one thing.

    Two sets that share a given part of their words share one of their rarest few (the prefix
    filter of set-similarity joins), so only claims that have one of those in common are compared.
    A word of very many claims finds nothing in particular and is left out; claims that agree in all
    their words are found whatever those are. Linear in the number of claims.
    """
    claims = _comparable(claims)
    rank, common = _ranked(claims)
    holders: dict[Hashable, list[int]] = defaultdict(list)
    for number, claim in enumerate(claims):
        others: dict[int, None] = {}
        for bucket in _buckets(claim, rank, common):
            held = holders[bucket]
            if held:
                others.update(dict.fromkeys(held[-_MOST_COMPARED:]))
            held.append(number)
        for other in others:
            if claims[other].item_id != claim.item_id:
                yield claims[other], claim


def _comparable(claims: Sequence[Claim]) -> list[Claim]:
    """Leave out what nothing can contradict: plain claims without a negation of their words."""
    denied = {word for claim in claims if claim.negated for word in claim.words}
    return [
        claim
        for claim in claims
        if not claim.is_plain or 100 * len(claim.words & denied) >= _ALIKE_PCT * len(claim.words)
    ]


def _ranked(claims: Sequence[Claim]) -> tuple[dict[str, int], int]:
    """Return every word's place from the rarest, and from which place on words are common."""
    counts = Counter(word for claim in claims for word in claim.words)
    counts.update(word for claim in claims for word in claim.subject)
    ranked = sorted(counts, key=lambda word: (counts[word], word))
    rare = sum(1 for times in counts.values() if times <= _COMMON)
    return {word: place for place, word in enumerate(ranked)}, rare


def _buckets(claim: Claim, rank: Mapping[str, int], common: int) -> Iterator[Hashable]:
    yield claim.words
    words, subject = claim.words, claim.subject
    for at in sorted([rank[word] for word in words])[: _prefix(len(words), _ALIKE_PCT)]:
        if at < common:
            yield at
    for at in sorted([rank[word] for word in subject])[: _prefix(len(subject), _SUBJECT_PCT)]:
        if at < common:
            yield -1 - at


def _prefix(size: int, pct: int) -> int:
    return size - ceil(size * pct / 100) + 1 if size else 0


def _differ(a: Claim, b: Claim) -> str | None:
    """Say in what two claims contradict each other; None when they may both hold."""
    common = len(a.words & b.words)
    either = len(a.words) + len(b.words) - common
    if 100 * common >= _ALIKE_PCT * either and common >= 2:
        if a.negated != b.negated and a.numbers == b.numbers:
            return "negation"
        if not a.negated and not b.negated and _numbers_differ(a, b):
            return "number"
    if a.negated or b.negated or not _same_subject(a, b):
        return None
    if _numbers_differ(a, b) and a.value == b.value:
        return "number"
    return "value" if _values_differ(a, b) else None


def _numbers_differ(a: Claim, b: Claim) -> bool:
    """Say whether both give one number each, of one unit, and not the same."""
    if len(a.numbers) != 1 or len(b.numbers) != 1:
        return False
    (one, unit), (other, other_unit) = *a.numbers, *b.numbers
    return unit == other_unit and one != other


def _same_subject(a: Claim, b: Claim) -> bool:
    common = len(a.subject & b.subject)
    return common >= 2 and 100 * common >= _SUBJECT_PCT * len(a.subject | b.subject)


def _values_differ(a: Claim, b: Claim) -> bool:
    short = 0 < len(a.value) <= 4 and 0 < len(b.value) <= 4
    return short and not a.value & b.value and not (a.numbers or b.numbers)
