"""Which items contradict each other, as 0.1 found it: for compiles that 0.1 made.

Candidates for a contradiction share a structure (the same key, or most of their words); only then
is it asked whether they differ in a number, a negation or the value. It takes a number that says
which record is meant for a difference, so nothing new is compiled with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil

from hansard_compiler.compile.items import Item
from hansard_compiler.compile.version1.claims import CLAIMING, Claim, claims_of, fact_of
from hansard_compiler.conflicts.resolution import Contradiction, belief

_ALIKE_PCT = 70  # of all words of two claims, how many both must have
_SUBJECT_PCT = 75
_RIVAL_VALUES = 3
_COMMON = 32  # a word in more claims than this does not suggest that two of them are alike
_MOST_COMPARED = 8  # claims with one word in common, the latest


def contradictions(items: Sequence[Item], texts: Mapping[str, str]) -> list[Contradiction]:
    """Return every contradiction found among items that make claims, in a fixed order."""
    claiming = [item for item in items if item.kind in CLAIMING]
    found: dict[tuple[str, str], Contradiction] = {}
    for one in (*_of_facts(claiming), *_of_claims(claiming, texts)):
        found.setdefault((one.first, one.second), one)
    return list(found.values())


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
        for value, item in sorted(stated, key=lambda one: belief(one[1], False)):
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
