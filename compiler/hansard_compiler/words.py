"""Words of a text as search sees them: identifiers taken apart, endings cut, no stop words.

`toCents`, `to_cents` and "to cents" share their terms; Chinese, Japanese and Korean runs become
pairs of characters, since they have no spaces.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORD = re.compile(r"\w+")

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_DENSE = re.compile("[\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]{2,}")
_STOP = frozenset(
    WORD.findall(
        """a about after all also an and any are as at be because been before but by can
        could did do does for from had has have he her him his how i if in into is it its
        me more most my no not of on or our out over please she should so some such than
        that the their them then there these they this those to too under until up us was
        we were what when where which while who why will with would you your"""
    )
)
# Longest first; a word keeps at least three letters.
_ENDINGS = ("ations", "ation", "ingly", "ments", "ment", "ings", "ing", "edly", "ers", "ed", "es",
            "er", "ly", "s", "e")  # fmt: skip
_SHORTEST = 3


@lru_cache(maxsize=65_536)
def terms_of(word: str) -> tuple[str, ...]:
    """Return the search terms of one word as `WORD` finds it; none for a stop word."""
    dense = _DENSE.findall(word)
    if dense:
        return tuple(run[at : at + 2] for run in dense for at in range(len(run) - 1))
    if word.isalpha() and (word.islower() or word[1:].islower()):
        return _plain(word.lower())
    parts = [part.lower() for part in _CAMEL.findall(word)]
    found = [term for part in parts for term in _plain(part)]
    if len(parts) > 1:
        found.append("".join(parts))
    return tuple(dict.fromkeys(found))


def terms(text: str) -> list[str]:
    """Return the search terms of a text, in order, repeated as they are."""
    return [term for word in WORD.findall(text) for term in terms_of(word)]


def is_dense(term: str) -> bool:
    """Return whether a term is a pair of characters of a script without spaces."""
    return _DENSE.fullmatch(term) is not None


def _plain(word: str) -> tuple[str, ...]:
    if word in _STOP or (len(word) == 1 and word.isalpha()):
        return ()
    return (stem(word),)


def stem(word: str) -> str:
    """Cut a usual English ending: `rounding`, `rounded` and `rounds` are one word."""
    if len(word) > _SHORTEST + 1 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            if ending == "s" and word.endswith("ss"):
                return word
            return _undoubled(word[: -len(ending)])
    return word


def _undoubled(word: str) -> str:
    doubled = len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled else word
