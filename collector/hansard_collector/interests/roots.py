"""Roots of words, cut further than search cuts them: detection, detector and detect are one.

Names are taken whole, unlike in a search: SQLite is one word, and not three.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from hansard_compiler.words import WORD, is_dense, stem, terms_of

_ENDINGS: Final = ("ion", "or", "iv", "at")
_SHORTEST: Final = 5  # letters that stay


@lru_cache(maxsize=65_536)
def root(word: str) -> str:
    """Cut what makes a noun of a verb: `detector` is `detect`, and `retri`(ed) is `retry`."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return f"{word[:-1]}y" if word.endswith("i") and len(word) > _SHORTEST - 1 else word


def roots(text: str) -> list[str]:
    """Return the roots of a text's words, in order, without stop words."""
    return [one for word in WORD.findall(text) for one in _roots_of(word)]


@lru_cache(maxsize=65_536)
def _roots_of(word: str) -> tuple[str, ...]:
    found = terms_of(word)
    if len(found) > 1 and not is_dense(found[0]):
        found = (stem(found[-1]),)  # of an identifier: behind its parts, all of it
    return tuple(root(one) for one in found)
