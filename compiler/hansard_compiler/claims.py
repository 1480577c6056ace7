"""What a short text claims: enough to see that two texts cannot both hold.

A claim has a subject, the words of its statement without numbers and negations, its numbers, and
whether it is negated. Structured facts (`{"subject": …, "attribute": …, "value": …}`) are claims as
they stand. No grammar is parsed: what two claims share decides whether they are compared at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hansard_compiler.canonical import canonical_json
from hansard_compiler.items import Item
from hansard_compiler.words import terms

CLAIMING = frozenset(
    {"memory", "summary", "retrieval_doc", "constraint", "handoff", "artifact", "other", "policy"}
)
_MOST_SENTENCES = 40
_LONGEST_CHARACTERS = 300

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_NUMBER = re.compile(
    r"(?<![\w.])\$?(\d+(?:[.,]\d+)*)\s?(%|[a-zA-Z]{1,12}\b)?(?:\s+per\s+\w+)?", re.ASCII
)
_NEGATION = re.compile(
    r"\b(?:not|never|no longer|cannot|can't|won't|don't|doesn't|isn't|aren't|wasn't|mustn't|"
    r"shouldn't|without|no)\b",
    re.IGNORECASE,
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
_OPPOSITE = re.compile(r"\b(?:" + "|".join(_OPPOSITES) + r")\b", re.IGNORECASE)
_IS = re.compile(
    r"^(?P<subject>.{3,100}?)\s*(?:\b(?:is now|are now|is|are|was|were|uses|use|equals|means|"
    r"lives in|live in|runs on|run on|defaults to|must be|should be|goes to|go to|ends on|"
    r"starts on|belongs to|prefers|requires)\b|=|:(?!/))\s*(?P<value>.{1,80}?)[.!;]?$",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:correction|update|erratum)\b|\b(?:actually|no longer|instead of|rather than|"
    r"has moved|was moved|moved to|changed (?:from|to)|renamed to|replaced by|superseded|"
    r"correct(?:ed|s) (?:the|an?) earlier|not .{1,30} but)\b",
    re.IGNORECASE,
)
_SPELLED = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
            "seven": "7", "eight": "8", "nine": "9", "ten": "10", "twelve": "12", "thirty": "30",
            "sixty": "60"}  # fmt: skip
_SPELLED_OUT = re.compile(r"\b(?:" + "|".join(_SPELLED) + r")\b", re.IGNORECASE)
_UNITS = {
    "s": ("s", 1), "sec": ("s", 1), "second": ("s", 1), "seconds": ("s", 1),
    "ms": ("s", 0.001), "milliseconds": ("s", 0.001),
    "min": ("s", 60), "minute": ("s", 60), "minutes": ("s", 60),
    "h": ("s", 3600), "hour": ("s", 3600), "hours": ("s", 3600),
    "day": ("s", 86_400), "days": ("s", 86_400), "week": ("s", 604_800), "weeks": ("s", 604_800),
    "kb": ("b", 1e3), "mb": ("b", 1e6), "gb": ("b", 1e9), "kib": ("b", 1024),
    "mib": ("b", 1024**2), "gib": ("b", 1024**3),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an item, taken apart for comparing."""

    item_id: str
    words: frozenset[str]  # without numbers, negations and stop words
    numbers: frozenset[tuple[float, str]]  # (value, unit), units brought to one
    negated: bool
    corrects: bool
    subject: frozenset[str] = frozenset()  # of "subject is value"; empty when not of that form
    value: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fact:
    """A structured claim: one key, one value."""

    item_id: str
    key: tuple[str, str]
    value: str


def fact_of(item: Item) -> Fact | None:
    """Return the structured fact an item states, in its content or its metadata."""
    for holder in (item.content, item.metadata):
        if not isinstance(holder, Mapping) or "value" not in holder:
            continue
        subject = holder.get("subject", item.metadata.get("subject"))
        attribute = holder.get("attribute", holder.get("predicate", ""))
        if isinstance(subject, str) and isinstance(attribute, str):
            key = (_plain(subject), _plain(attribute))
            return Fact(item.id, key, _value_text(holder["value"]))
    return None


def claims_of(item: Item, text: str) -> Iterator[Claim]:
    """Return what the sentences of an item claim, the first forty."""
    tagged = "correction" in item.tags
    for number, sentence in enumerate(_SENTENCE.split(text[:20_000], _MOST_SENTENCES)):
        if number >= _MOST_SENTENCES:
            return
        if 8 <= len(sentence) <= _LONGEST_CHARACTERS:
            claim = _claim(item.id, sentence.strip(" -*•\t"), tagged=tagged)
            if len(claim.words) >= 2:
                yield claim


def _claim(item_id: str, sentence: str, *, tagged: bool) -> Claim:
    corrects = tagged or _CORRECTION.search(sentence) is not None
    negations = len(_NEGATION.findall(sentence)) + len(_OPPOSITE.findall(sentence))
    said = _NEGATION.sub(" ", sentence)
    said = _OPPOSITE.sub(lambda found: _OPPOSITES[found[0].lower()], said)
    said = _SPELLED_OUT.sub(lambda found: _SPELLED[found[0].lower()], said)
    numbers = frozenset(_numbers(said))
    words = frozenset(terms(_NUMBER.sub(_unit_only, said)))
    form = _IS.match(said)
    subject = frozenset(terms(form["subject"])) if form else frozenset()
    value = frozenset(terms(form["value"])) if form else frozenset()
    return Claim(item_id, words, numbers, negations % 2 == 1, corrects, subject, value)


def _numbers(text: str) -> Iterator[tuple[float, str]]:
    for digits, unit in _NUMBER.findall(text):
        amount = _amount(digits)
        name, factor = _UNITS.get(unit.lower(), (unit if unit == "%" else "", 1))
        if amount is not None:
            yield round(amount * factor, 6), name


def _amount(digits: str) -> float | None:
    plain = digits.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+", digits) else digits
    try:
        return float(plain.replace(",", "."))
    except ValueError:
        return None  # a version, a date: compared as a word


def _unit_only(found: re.Match[str]) -> str:
    """Return what stays a word where a number stood: `3.11.2`, or the noun that it counted."""
    if _amount(found[1]) is None:
        return found[0]
    unit = found[2] or ""
    return " " if unit.lower() in _UNITS or unit == "%" else f" {unit} "


def _plain(text: str) -> str:
    return " ".join(terms(text)) or text.strip().lower()


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.lower().split())
    return canonical_json(value)
