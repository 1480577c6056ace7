"""What a summary lost: constraints and requests of the folded part that it does not repeat.

No model is called, so this is a check of words. A sentence counts as held when one stretch of the
summary shares most of its terms, all its numbers and names, and its negation. What it cannot see:
a paraphrase without shared words is reported though it is there; a sentence that shares the words
and twists the sense is not; sentences are found by English words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hansard_compiler.calls import Json
from hansard_compiler.words import WORD, terms, terms_of

MOST_FOUND: Final = 100
_ENOUGH = 0.6  # of a sentence's terms
_SHORTEST, _LONGEST = 8, 600  # characters of a sentence that is looked at

_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_CONSTRAINT = re.compile(
    r"\b(?:must|never|only|always|shall|required?|mandatory|forbidden|prohibited|avoid|ensure|"
    r"make sure|at (?:most|least)|no (?:more|less|fewer) than|under no circumstances|"
    r"do not|don['’]t|dont|cannot|can['’]t|may not|should(?: not|n['’]t)?|without|"
    r"keep(?! going\b| on\b| it up\b)|stick to|limit(?:ed)? to|constraints?)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"^(?:please|can you|could you|would you|will you|i (?:want|need|would like|['’]d like)|"
    r"we (?:want|need)|let['’]s|also|then|now|next|finally)\b|\?$",
    re.IGNORECASE,
)
_IMPERATIVE = frozenset(
    """add build change check clean close convert copy create delete deploy describe disable
    document draft enable explain extract find finish fix format generate give implement install
    investigate list make merge migrate move open prepare publish refactor remove rename replace
    report reset review rewrite run send set show split start stop summarise summarize test
    translate try undo update upgrade use verify write""".split()  # noqa: SIM905
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|without|avoid|forbidden|prohibited|cannot|untouched|"
    r"unchanged|except)\b|n['’]t\b|\bdont\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])[$€£]?\d[\d.,:/%-]*\w*")
_NAME = re.compile(
    r"`[^`\n]{2,80}`|\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|https?://\S+|[\w.+-]+@[\w-]+\.\w+|"
    r"\b[\w-]*(?:[/_.]\w[\w-]*)+|\b[A-Z]\w*[A-Z0-9]\w*\b|(?<=[a-z,] )[A-Z][a-z]{2,}\b"
)
# What makes a sentence a rule is judged by itself, and what is left of "don't" is no word.
_RULE_WORDS = frozenset(
    """must never only always shall required mandatory forbidden prohibited avoid ensure don dont
    doesn isn not no without cannot please want need""".split()  # noqa: SIM905
)
_TRIM = '`"“”.,;:!?()'

Kind = Literal["constraint", "request"]


@dataclass(frozen=True, slots=True)
class Lost:
    """A sentence of the folded part that the summary does not keep, and what of it is missing."""

    kind: Kind
    position: int
    role: str
    sentence: str
    missing: tuple[str, ...]  # numbers, names and terms
    is_negation_lost: bool = False


@dataclass(frozen=True, slots=True)
class FoldCheck:
    """What was looked for, and what is not there."""

    sentences: int  # constraints and requests that were looked for
    lost: tuple[Lost, ...]
    is_cut: bool = False  # more than MOST_FOUND are lost

    @property
    def is_whole(self) -> bool:
        return not self.lost


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A sentence of the summary with its neighbour: what one sentence said, two may repeat."""

    terms: frozenset[str]
    is_negated: bool


def check_fold(messages: Iterable[tuple[int, Json]], summary: str) -> FoldCheck:
    """Look for people's requests and constraints, by position, in a summary.

    Constraints are looked for in what users and assistants said, requests in what users said;
    results of tools are evidence, and no one's will.
    """
    stretches = _stretches(summary)
    known = _folded(summary)
    looked, lost = 0, []
    seen: set[str] = set()
    for position, body in messages:
        for kind, sentence in _kept_parts(body):
            if sentence in seen:
                continue
            seen.add(sentence)
            looked += 1
            found = _lost(kind, position, body["role"], sentence, stretches, known)
            if found is not None:
                lost.append(found)
    return FoldCheck(looked, tuple(lost[:MOST_FOUND]), is_cut=len(lost) > MOST_FOUND)


def _kept_parts(body: Json) -> Iterator[tuple[Kind, str]]:
    if body["role"] == "tool":
        return
    for part in body["parts"]:
        if part["type"] != "text":
            continue
        for sentence in _sentences(part["text"]):
            if _CONSTRAINT.search(sentence):
                yield "constraint", sentence
            elif body["role"] == "user" and _is_request(sentence):
                yield "request", sentence


def _is_request(sentence: str) -> bool:
    first = sentence.split(maxsplit=1)[0].strip(",:").lower()
    return first in _IMPERATIVE or _REQUEST.search(sentence) is not None


def _sentences(text: str) -> Iterator[str]:
    for sentence in _END.split(text):
        plain = sentence.strip(" \t-*•#>")
        if _SHORTEST <= len(plain) <= _LONGEST:
            yield plain


def _stretches(summary: str) -> list[_Stretch]:
    parts = [part for part in _END.split(summary) if part.strip()]
    return [
        _Stretch(_words(text), _NEGATION.search(text) is not None)
        for at in range(len(parts))
        for text in (parts[at], " ".join(parts[at : at + 2]))
    ]


def _lost(
    kind: Kind,
    position: int,
    role: str,
    sentence: str,
    stretches: Sequence[_Stretch],
    known: str,
) -> Lost | None:
    words = _words(sentence)
    if not words:
        return None
    best = max(stretches, key=lambda one: (len(words & one.terms), one.is_negated), default=None)
    shared = words & best.terms if best else frozenset()
    named = [one for one in _named(sentence) if _folded(one) not in known]
    is_held = len(shared) >= _ENOUGH * len(words)
    is_negated = _NEGATION.search(sentence) is not None
    is_turned = is_held and is_negated and best is not None and not best.is_negated
    if is_held and not named and not is_turned:
        return None
    absent = _spelled(sentence, words - shared) if not is_held else []
    missing = tuple(dict.fromkeys((*named, *absent)))
    return Lost(kind, position, role, sentence, missing, is_negation_lost=is_turned)


def _words(text: str) -> frozenset[str]:
    return frozenset(terms(text)) - _RULE_WORDS


def _spelled(sentence: str, absent: frozenset[str]) -> list[str]:
    return [word for word in WORD.findall(sentence) if absent.intersection(terms_of(word))]


def _named(sentence: str) -> list[str]:
    """Return the numbers and names of a sentence: what a paraphrase must repeat."""
    found = [one.strip(_TRIM) for one in (*_NUMBER.findall(sentence), *_NAME.findall(sentence))]
    return [one for one in dict.fromkeys(found) if one]


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
