"""How statements are made in four languages: success, failure, negation, doubt, intent, reports.

These are words of languages and of no domain: what tools are about comes from data sets. A text in
another language is not understood. The words themselves are in `languages.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

LANGUAGES: Final = ("en", "de", "fr", "es")
_NEITHER: Final = "other"
_KNOWN: Final[Mapping[str, Any]] = tomllib.loads(
    files(__package__).joinpath("languages.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language, by what they do in a statement."""

    name: str
    success: tuple[str, ...]
    weak_success: tuple[str, ...]
    failure: tuple[str, ...]
    weak_failure: tuple[str, ...]
    undeniable: frozenset[str]
    negations: tuple[str, ...]
    none: frozenset[str]
    doubts: tuple[str, ...]
    plans: tuple[str, ...]
    conditions: tuple[str, ...]
    subordinate: tuple[str, ...]
    reports: tuple[str, ...]
    other_times: tuple[str, ...]
    fillers: frozenset[str]
    be: frozenset[str]
    prepositions: frozenset[str]
    objects: frozenset[str]
    self: frozenset[str]
    passive: frozenset[str]
    unable: tuple[str, ...]


@cache
def language(name: str) -> Language:
    """Return the words of one of LANGUAGES."""
    found: dict[str, Any] = {
        kind: _phrases(texts[name]) for kind, texts in _KNOWN["phrases"].items()
    }
    found |= {kind: _words(texts[name]) for kind, texts in _KNOWN["words"].items()}
    return Language(name, **found)


def words_of(kind: str) -> frozenset[str]:
    """Return the words of a kind in all languages together."""
    return _words(_KNOWN["mixed"][kind])


def language_of(
    words: Sequence[str], *, usual: Callable[[], str | None] = lambda: None
) -> str | None:
    """Return the language of words, lower case; None for one that is not known.

    Function words tell it. Where none stands in it, it is that of the rest of the text (`usual`),
    or English if all of its letters are ASCII.
    """
    counts = dict.fromkeys(_FUNCTION, 0)
    for word in filter(_WORD_LANGUAGES.__contains__, words):
        for name in _WORD_LANGUAGES[word]:
            counts[name] += 1
    best = max(counts.values())
    if best:
        # Of equal ones the first: English, which short statements of programs are in.
        found = next(name for name, count in counts.items() if count == best)
        return None if found == _NEITHER else found
    if (other := usual()) is not None:
        return other
    return "en" if all(word.isascii() for word in words) else None


def is_of_plans(heading: str) -> bool:
    """Return whether what is under a heading is intended, shown or required, and not so."""
    return any(word in heading for word in _KNOWN["plan_headings"])


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase for one in text.split(";") if (phrase := " ".join(one.split())))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION: Final = {name: _words(text) for name, text in _KNOWN["function"].items()}
_WORD_LANGUAGES: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(name for name, known in _FUNCTION.items() if word in known)
    for words in _FUNCTION.values()
    for word in words
}
