"""Which items contradict each other, as 0.1 found it: for compiles that 0.1 made.

Candidates for a contradiction share a structure (the same key, or most of their words); only then
is it asked whether they differ in a number, a negation or the value. It takes a number that says
which record is meant for a difference, so nothing new is compiled with it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple, TypeAlias

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.conflicts.resolution import Contradiction, belief, pair
from hansard_compiler.words import terms, terms_of

# What a short text claims: enough to see that two texts cannot both hold.
#
# A claim has the words of its statement without numbers and negations, its numbers, whether it is
# negated and, where it reads "subject is value", the two apart. Structured facts (`{"subject": …,
# "attribute": …, "value": …}`) are claims as they stand. No grammar is parsed: what two claims
# share decides whether they are compared at all.

CLAIMING = frozenset(
    {"memory", "summary", "retrieval_doc", "constraint", "handoff", "other", "policy"}
)
# Contradictions stand in notes and openings; whole documents would find more noise than sense.
_NOTES = frozenset({"memory", "constraint", "policy", "handoff", "other"})
_NOTE_CHARACTERS, _NOTE_SENTENCES = 600, 8
_OPENING_CHARACTERS, _OPENING_SENTENCES = 300, 2
_LONGEST_SUBJECT, _LONGEST_VALUE = 6, 4
_SHORTEST, _LONGEST = 8, 300

_ENDS = (". ", "! ", "? ", "; ")
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*%?|[^\W\d](?:[\w'’-]*\w)?|[=:]")
_DIGIT = re.compile(r"\d")
_DENIALS = (" not ", " no ", "never", "cannot", "without", "n't", "n’t")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CORRECTION = re.compile(
    r"^\W*(?:correction|update|erratum)\b|\b(?:actually|no longer|instead of|rather than|"
    r"has moved|was moved|moved to|changed (?:from|to)|renamed to|replaced by|superseded|"
    r"correct(?:ed|s) (?:the|an?) earlier|not .{1,30} but)\b",
    re.IGNORECASE | re.MULTILINE,
)
_LEAD = re.compile(r"^\W*(?:correction|update|erratum|actually|note)\b\W*", re.IGNORECASE)
_WAS = re.compile(r"\bfrom \S+(?: \S+)? to ", re.IGNORECASE)
_CORRECTING = frozenset(
    term
    for word in ("now", "changed", "moved", "renamed", "replaced", "longer", "instead", "actually")
    for term in terms_of(word)
)
# Looked for first: the expression takes fifty times as long.
_CORRECTION_HINTS = ("correct", "updat", "errat", "actual", "no longer", "instead", "rather",
                     "moved", "changed", "renamed", "replaced", "supersed", " but ")  # fmt: skip
_NEGATIONS = frozenset(
    """not never cannot can't won't don't doesn't isn't aren't wasn't weren't mustn't shouldn't
    without no neither nor""".split()  # noqa: SIM905  # a list of words reads best as words
)
# A word and its opposite are one word, said or denied.
_OPPOSITES = {
    "disabled": "enabled", "disable": "enable", "disables": "enables", "off": "on",
    "forbidden": "allowed", "forbids": "allows", "forbid": "allow", "denied": "allowed",
    "prohibited": "allowed", "optional": "required", "closed": "open", "private": "public",
    "inactive": "active", "unsupported": "supported", "false": "true", "synchronous":
    "asynchronous", "unsafe": "safe", "invalid": "valid", "unavailable": "available",
    "mutable": "immutable", "excludes": "includes", "excluded": "included", "lacks": "has",
    "rejects": "accepts", "fails": "passes", "decreased": "increased", "unpaid": "paid",
}  # fmt: skip
_VERBS = frozenset(
    """is are was were uses use equals means lives live runs run defaults goes ends starts belongs
    prefers requires = :""".split()  # noqa: SIM905
)
_SPELLED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
            "nine": 9, "ten": 10, "twelve": 12, "thirty": 30, "sixty": 60}  # fmt: skip
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("s", 1.0)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("s", 0.001)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("s", 60.0)),
    **dict.fromkeys(("h", "hour", "hours"), ("s", 3600.0)),
    **dict.fromkeys(("day", "days"), ("s", 86_400.0)),
    **dict.fromkeys(("week", "weeks"), ("s", 604_800.0)),
    "kb": ("b", 1e3), "mb": ("b", 1e6), "gb": ("b", 1e9),
    "kib": ("b", 1024.0), "mib": ("b", 1024.0**2), "gib": ("b", 1024.0**3),
}  # fmt: skip


class _Claim(NamedTuple):
    """One statement of an item, taken apart for comparing."""

    item_id: str
    words: frozenset[str]  # without numbers, negations and stop words
    numbers: frozenset[tuple[float, str]]  # (value, unit), units brought to one
    negated: bool
    corrects: bool
    subject: frozenset[str] = frozenset()  # of "subject is value"; empty when not of that form
    value: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether only a negation of it could contradict it."""
        return not (self.numbers or self.negated or self.subject)


@dataclass(frozen=True, slots=True)
class _Fact:
    """A structured claim: one key, one value."""

    item_id: str
    key: tuple[str, str]
    value: str


# What one token of a sentence is, beside the terms it stands for.
_TERM, _NEGATION, _VERB, _NUMBER, _UNIT = range(5)
_Token: TypeAlias = tuple[int, tuple[str, ...], tuple[float, str]]  # kind, terms, amount and unit
_NOTHING = (0.0, "")


def fact_of(item: CandidateItem) -> _Fact | None:
    """Return the structured fact an item states, in its content or its metadata."""
    for holder in (item.content, item.metadata):
        if not isinstance(holder, Mapping) or "value" not in holder:
            continue
        subject = holder.get("subject", item.metadata.get("subject"))
        attribute = holder.get("attribute", holder.get("predicate", ""))
        if isinstance(subject, str) and isinstance(attribute, str):
            key = (_plain(subject), _plain(attribute))
            return _Fact(item.id, key, _value_text(holder["value"]))
    return None


def claims_of(item: CandidateItem, text: str) -> Iterator[_Claim]:
    """Return what the sentences of a note claim, of a longer text those of its opening."""
    is_note = item.kind in _NOTES and len(text) <= _NOTE_CHARACTERS
    read = text if is_note else text[:_OPENING_CHARACTERS]
    most = _NOTE_SENTENCES if is_note else _OPENING_SENTENCES
    cut = read
    for end in _ENDS:
        cut = cut.replace(end, "\n")
    sentences = [
        sentence
        for sentence in cut.split("\n", most)[:most]
        if _SHORTEST <= len(sentence) <= _LONGEST and (is_note or _is_distinctive(sentence))
    ]
    if not sentences:
        return  # as of most documents: what may correct something is not looked for in them
    tagged = "correction" in item.tags
    may_correct = tagged or any(map(read.lower().__contains__, _CORRECTION_HINTS))
    for sentence in sentences:
        corrects = may_correct and (tagged or _CORRECTION.search(sentence) is not None)
        claim = _claim(item.id, sentence, corrects=corrects)
        if len(claim.words) >= 2:
            yield claim


class _Read(NamedTuple):
    """A sentence, token by token."""

    words: list[str]
    numbers: set[tuple[float, str]]
    negated: bool
    verb_at: int | None  # how many words stand before the verb


def _is_distinctive(sentence: str) -> bool:
    """Return whether a sentence has a number or denies something: the rest is not read."""
    return _DIGIT.search(sentence) is not None or any(map(sentence.__contains__, _DENIALS))


def _claim(item_id: str, sentence: str, *, corrects: bool) -> _Claim:
    if corrects:
        sentence = _WAS.sub("to ", _LEAD.sub("", sentence))
    words, numbers, negated, verb_at = _read(sentence)
    before, after = words[:verb_at], words[verb_at:] if verb_at is not None else []
    if corrects:
        before = [word for word in before if word not in _CORRECTING]
        after = [word for word in after if word not in _CORRECTING]
    subject, value = frozenset(before), frozenset(after)
    claim = subject | value, frozenset(numbers), negated, corrects
    has_form = verb_at is not None and 2 <= len(subject) <= _LONGEST_SUBJECT
    if not has_form or len(value) > _LONGEST_VALUE:
        return _Claim(item_id, *claim)
    return _Claim(item_id, *claim, subject, value)


def _read(sentence: str) -> _Read:
    words: list[str] = []
    numbers: set[tuple[float, str]] = set()
    negated = False
    verb_at: int | None = None
    amount: float | None = None  # a number that waits for its unit
    version: tuple[str, ...] = ()  # a decimal that is one unless a unit or a verb says otherwise
    for kind, found, (size, unit) in map(_classified, _TOKEN.findall(sentence)):
        if amount is not None:
            is_unit = kind == _UNIT
            if version and not is_unit and verb_at is None:
                words += version
            else:
                numbers.add((round(amount * size, 6), unit) if is_unit else (amount, ""))
            amount = None
            if is_unit:
                continue
        if kind == _NUMBER:
            amount, version = size, found
            continue
        words += found
        if kind == _NEGATION:
            negated = not negated
        elif kind == _VERB and verb_at is None and len(words) > len(found):
            verb_at = len(words) - len(found)
    if amount is not None:
        numbers.add((amount, ""))
    return _Read(words, numbers, negated, verb_at)


@lru_cache(maxsize=65_536)
def _classified(token: str) -> _Token:
    plain = token.lower().replace("’", "'")
    if plain in _NEGATIONS:
        return _NEGATION, (), _NOTHING
    if plain in _VERBS:
        return _VERB, () if plain in "=:" else terms_of(plain), _NOTHING
    if plain in _SPELLED:
        return _NUMBER, (), (float(_SPELLED[plain]), "")
    if token[0].isdigit():
        return _number(token)
    opposite = _OPPOSITES.get(plain)
    if opposite is not None:
        return _NEGATION, terms_of(opposite) or (opposite,), _NOTHING
    found = terms_of(token) if token.isalnum() else tuple(terms(token))
    if plain in _UNITS:
        name, factor = _UNITS[plain]
        return _UNIT, found, (factor, name)
    return _TERM, found or ((plain,) if plain == "on" else ()), _NOTHING


def _number(token: str) -> _Token:
    """Return a number, or a word for what only looks like one: a version, a date, a time."""
    digits, percent = token.rstrip("%"), token.endswith("%")
    if not _DIGITS.fullmatch(digits):
        return _TERM, (token,), _NOTHING
    amount = float(digits.replace(",", "" if _GROUPED.fullmatch(digits) else "."))
    version = (digits,) if "." in digits and not percent else ()
    return _NUMBER, version, (amount * (0.01 if percent else 1), "")


def _plain(text: str) -> str:
    return " ".join(terms(text)) or text.strip().lower()


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.lower().split())
    return canonical_json(value)


_ALIKE_PCT = 70  # of all words of two claims, how many both must have
_SUBJECT_PCT = 75
_RIVAL_VALUES = 3
_COMMON = 32  # a word in more claims than this does not suggest that two of them are alike
_MOST_COMPARED = 8  # claims with one word in common, the latest


def contradictions(items: Sequence[CandidateItem], texts: Mapping[str, str]) -> list[Contradiction]:
    """Return every contradiction found among items that make claims, in a fixed order."""
    claiming = [item for item in items if item.kind in CLAIMING]
    found: dict[tuple[str, str], Contradiction] = {}
    for one in (*_of_facts(claiming), *_of_claims(claiming, texts)):
        found.setdefault((one.first, one.second), one)
    return list(found.values())


# --- finding ----------------------------------------------------------------------------------


def _of_facts(items: Sequence[CandidateItem]) -> Iterator[Contradiction]:
    """Return pairs of facts with one key and two values: each against the most believed values.

    Three values are enough to settle any but an odd case, and keep this linear.
    """
    of_key: dict[tuple[str, str], list[tuple[str, CandidateItem]]] = defaultdict(list)
    for item in items:
        fact = fact_of(item)
        if fact is not None:
            of_key[fact.key].append((fact.value, item))
    for stated in of_key.values():
        if len(stated) < 2:
            continue
        best: dict[str, CandidateItem] = {}
        for value, item in sorted(stated, key=lambda one: belief(one[1], False)):
            yield from (pair(rival, item, "value") for held, rival in best.items() if held != value)
            if len(best) < _RIVAL_VALUES:
                best.setdefault(value, item)


def _of_claims(items: Sequence[CandidateItem], texts: Mapping[str, str]) -> Iterator[Contradiction]:
    claims = [claim for item in items for claim in claims_of(item, texts[item.id])]
    known = {item.id: item for item in items}
    for first, second in _alike(claims):
        how = _differ(first, second)
        if how:
            by = None
            if first.corrects != second.corrects:
                by = first.item_id if first.corrects else second.item_id
            yield pair(known[first.item_id], known[second.item_id], how, by)


def _alike(claims: Sequence[_Claim]) -> Iterator[tuple[_Claim, _Claim]]:
    """Return pairs of claims of different items that may be about one thing.

    Two sets that share a fixed part of their words share one of their rarest few (the prefix
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


def _comparable(claims: Sequence[_Claim]) -> list[_Claim]:
    """Leave out what nothing can contradict: plain claims without a negation of their words."""
    denied = {word for claim in claims if claim.negated for word in claim.words}
    return [
        claim
        for claim in claims
        if not claim.is_plain or 100 * len(claim.words & denied) >= _ALIKE_PCT * len(claim.words)
    ]


def _ranked(claims: Sequence[_Claim]) -> tuple[dict[str, int], int]:
    """Return every word's rank from the rarest, and from which rank on words are common."""
    counts = Counter(word for claim in claims for word in claim.words)
    counts.update(word for claim in claims for word in claim.subject)
    ranked = sorted(counts, key=lambda word: (counts[word], word))
    rare = sum(1 for times in counts.values() if times <= _COMMON)
    return {word: rank for rank, word in enumerate(ranked)}, rare


def _buckets(claim: _Claim, rank: Mapping[str, int], common: int) -> Iterator[Hashable]:
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


def _differ(a: _Claim, b: _Claim) -> str | None:
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


def _numbers_differ(a: _Claim, b: _Claim) -> bool:
    """Return whether both give one number each, of one unit, and not the same."""
    if len(a.numbers) != 1 or len(b.numbers) != 1:
        return False
    (one, unit), (other, other_unit) = *a.numbers, *b.numbers
    return unit == other_unit and one != other


def _same_subject(a: _Claim, b: _Claim) -> bool:
    common = len(a.subject & b.subject)
    return common >= 2 and 100 * common >= _SUBJECT_PCT * len(a.subject | b.subject)


def _values_differ(a: _Claim, b: _Claim) -> bool:
    short = 0 < len(a.value) <= 4 and 0 < len(b.value) <= 4
    return short and not a.value & b.value and not (a.numbers or b.numbers)
