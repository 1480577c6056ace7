"""What a person types into a search box, as an FTS5 expression that cannot fail.

Words must all be there, `"a phrase"` as it stands, `inv*` any word that begins so (three letters
at least), `-word` must not be there. All else is a word: FTS5's own operators are not reachable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hansard_store.errors import InvalidQueryError

_MAX_CHARS = 1000
_MAX_TERMS = 32
_MIN_PREFIX_LETTERS = 3  # `a*` walks most of the index: 15 to 80 ms against 2
_TERM = re.compile(r'(?P<minus>-?)(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_WORDS = re.compile(r"[^\W_]+")  # as unicode61 cuts a text


class InvalidSearchError(InvalidQueryError):
    """A search that cannot be meant."""

    code = "invalid_search"

    def __init__(self, message: str) -> None:
        super().__init__("q", message)


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """One thing to look for: its words in a row, the last one perhaps only begun."""

    words: tuple[str, ...]
    is_prefix: bool = False
    is_excluded: bool = False

    @property
    def expression(self) -> str:
        return f'"{" ".join(self.words)}"' + ("*" if self.is_prefix else "")


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """A parsed search; `expression` is what follows MATCH."""

    terms: tuple[SearchTerm, ...]

    @property
    def required(self) -> list[SearchTerm]:
        return [term for term in self.terms if not term.is_excluded]

    @property
    def expression(self) -> str:
        found = " AND ".join(term.expression for term in self.required)
        excluded = [term.expression for term in self.terms if term.is_excluded]
        return f"({found}) NOT ({' OR '.join(excluded)})" if excluded else found


def parse_match(text: str) -> MatchQuery:
    """Return a search as typed; raises InvalidSearchError, with the sentence to show."""
    if len(text) > _MAX_CHARS:
        raise InvalidSearchError(
            f"a search has at most {_MAX_CHARS} characters, this has {len(text)}"
        )
    if text.count('"') % 2:
        raise InvalidSearchError('a quotation mark (") is open; close it')
    terms = [term for found in _TERM.finditer(text) if (term := _term(found)).words]
    if not any(not term.is_excluded for term in terms):
        raise InvalidSearchError("name at least one word to look for")
    if len(terms) > _MAX_TERMS:
        raise InvalidSearchError(f"a search has at most {_MAX_TERMS} words, this has {len(terms)}")
    return MatchQuery(tuple(terms))


def _term(found: re.Match[str]) -> SearchTerm:
    excluded = bool(found["minus"])
    if found["phrase"] is not None:
        return SearchTerm(_words(found["phrase"]), is_excluded=excluded)
    word = found["word"]
    words = _words(word)
    is_prefix = word.endswith("*") and bool(words)
    if is_prefix and len(words[-1]) < _MIN_PREFIX_LETTERS:
        raise InvalidSearchError(
            f"{word!r} begins too many words; give at least {_MIN_PREFIX_LETTERS} letters before *"
        )
    return SearchTerm(words, is_prefix=is_prefix, is_excluded=excluded)


def _words(text: str) -> tuple[str, ...]:
    clean = text.encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate is in no stored text
    return tuple(_WORDS.findall(clean))


def pattern_of(terms: Sequence[SearchTerm]) -> re.Pattern[str]:
    """Return a pattern that finds the terms in a folded text (see `snippets.fold`)."""
    alternatives = []
    for term in sorted(terms, key=lambda term: -len(term.words)):
        words = r"[\W_]+".join(re.escape(word) for word in term.words)
        alternatives.append(words + (r"[^\W_]*" if term.is_prefix else r"(?![^\W_])"))
    return re.compile(r"(?<![^\W_])(?:" + "|".join(alternatives) + ")", re.IGNORECASE)
