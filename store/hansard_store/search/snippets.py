"""A few words of a text around what was looked for, with the places to highlight."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from hansard_store.search.match_query import MatchQuery, Term, pattern_of

_SEARCHED_CHARS = 200_000  # of very long texts only the beginning is looked through
_BEFORE_CHARS = 60
_SNIPPET_CHARS = 200
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One line of text; highlights are (start, end) offsets into it, in characters."""

    text: str
    highlights: tuple[tuple[int, int], ...]


def snippet(text: str, query: MatchQuery) -> Snippet:
    """Return what stands around the first place where a term of the query is found.

    A text in which none is found (cut off, or folded in another way) gives its beginning.
    """
    text = text[:_SEARCHED_CHARS]
    pattern = pattern_of([_folded(term) for term in query.wanted])
    found = pattern.search(fold(text))
    start = max(0, found.start() - _BEFORE_CHARS) if found else 0
    if start:
        # Begin at a word, unless the words there are as long as the window.
        space = text.find(" ", start, start + _BEFORE_CHARS // 2)
        start = space + 1 if space >= 0 else start
    line = _SPACE.sub(" ", text[start : start + 2 * _SNIPPET_CHARS]).strip()
    line = ("…" if start else "") + line
    if len(line) > _SNIPPET_CHARS:
        line = line[:_SNIPPET_CHARS].rstrip() + "…"
    return Snippet(line, tuple(match.span() for match in pattern.finditer(fold(line))))


def fold(text: str) -> str:
    """Return the text without diacritics, as long as before: as unicode61 compares words."""
    if text.isascii():
        return text
    return "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    return character if character.isascii() else unicodedata.normalize("NFD", character)[0]


def _folded(term: Term) -> Term:
    return Term(tuple(map(fold, term.words)), is_prefix=term.is_prefix)
