"""A sentence as it is compared: its tokens, its verb, and what makes it true only at times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.tokens import TYPED, Token, read

_LONGEST_TOKENS: Final = 32
VERBS: Final = (words.COPULAS | words.STATIVE | words.MODALS | words.NAMING) - {"one"}
_LEAD: Final = re.compile(
    r"^\W*(?:correction|update|updated|erratum|note|reminder|fyi)\b\s*[:,–-]\s*", re.IGNORECASE
)
_CORRECTING: Final = re.compile(
    r"^\W*(?:correction|update|updated|erratum)\b\s*[:,–-]|\bno longer\b|\b(?:has|have|was|were|is)"
    r"(?: been| now)? (?:moved|changed|renamed|raised|lowered|increased|reduced|updated|extended|"
    r"postponed|switched|rescheduled)\b|\bis now\b|\bare now\b|\binstead of\b|\brather than\b",
    re.IGNORECASE,
)
# `has moved to`, `was changed from a to b`, `is now`: what it is from then on.
_BECAME: Final = re.compile(
    r"\b(?:has|have|was|were|is|are)(?: been| now)? (?:moved|changed|renamed|raised|lowered|"
    r"increased|reduced|updated|extended|postponed|switched|rescheduled)(?: from .{1,40}?)? to\b",
    re.IGNORECASE,
)
_ANY_MORE: Final = re.compile(r"\bany ?more\b", re.IGNORECASE)
_INSTEAD: Final = re.compile(r"[,;]|\b(?:but|instead|rather)\b", re.IGNORECASE)
_NO_LONGER: Final = re.compile(r"\bno longer\b", re.IGNORECASE)
_CONTRACTED: Final = re.compile(r"\b(\w+)n['’]t\b", re.IGNORECASE)
_WHOLE: Final = {"ca": "can", "wo": "will", "sha": "shall"}


_LEFT_OUT: Final = words.ARTICLES | words.FILLERS | words.APPROXIMATE | words.AUXILIARIES


class Sentence(NamedTuple):
    """A sentence, token by token, without its articles and fillers."""

    tokens: Sequence[Token]
    verb_at: int | None
    is_denied: bool
    is_hedged: bool
    is_about: bool  # an amount is only approximate
    is_definite: bool
    corrects: bool
    text: str
    is_named: bool = False  # its subject stands beside it, in the metadata


@lru_cache(maxsize=512)  # a record is held against several others, one after the other
def read_sentence(sentence: str, *, corrects: bool, is_named: bool = False) -> Sentence | None:
    """Return a sentence to be compared, or None for one of which nothing can be said."""
    corrects = corrects or _CORRECTING.search(sentence) is not None
    plain = _CONTRACTED.sub(_uncontracted, _LEAD.sub("", sentence))
    plain = _NO_LONGER.sub("not", _BECAME.sub("is", plain)) if corrects else plain
    tokens = read(plain)
    if not 2 < len(tokens) <= _LONGEST_TOKENS or any(one.value in ("?", '"') for one in tokens):
        return None
    first = tokens[0].value
    if first in words.INDEFINITE:
        return None
    words_of_text = {one.value for one in tokens if one.kind == "word"}
    framed, is_denied = _framed(tokens)
    return Sentence(
        framed,
        _verb_at(framed),
        is_denied,
        bool(words_of_text & words.HEDGES) or first in words.UNRESOLVED,
        bool(words_of_text & words.APPROXIMATE),
        _is_definite(tokens),
        corrects,
        sentence,
        is_named,
    )


def is_denial(text: str) -> bool:
    """Return whether a text of one sentence only denies something, and puts nothing in its place.

    `Ada no longer uses dark mode.`, but not `The port is not 80, it is 8080.`
    """
    plain = _ANY_MORE.sub("", text).strip().rstrip(".")
    if _INSTEAD.search(plain):
        return False
    found = read_sentence(plain, corrects=True, is_named=True)
    return found is not None and found.is_denied and not found.is_hedged


def _uncontracted(found: re.Match[str]) -> str:
    start = found[1].lower()
    return f"{_WHOLE.get(start, found[1])} not"


def _framed(tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """Return the tokens that a frame is made of, and whether they are denied.

    An opposite is the word itself, denied; `does not run` is `run`, denied.
    """
    framed: list[Token] = []
    is_denied = False
    for token in tokens:
        value = token.value
        if token.kind == "word":
            if value in words.NEGATIONS:
                is_denied = not is_denied
                continue
            if value in _LEFT_OUT:
                continue
            opposite = words.OPPOSITES.get(str(value))
            if opposite is not None and framed:
                is_denied ^= value not in words.AFFIRMED
                token = token._replace(value=opposite)
        framed.append(token)
    return framed, is_denied


def _verb_at(tokens: Sequence[Token]) -> int | None:
    """Return the place of the verb: the first copula of the main clause, else the first verb."""
    first = None
    for at, token in enumerate(tokens):
        if not at or token.kind not in ("word", "mark"):
            continue
        if token.value in words.COPULAS or token.value in words.MODALS:
            return at
        if first is not None and token.value in words.LINKS:
            return first
        if first is None and token.value in VERBS:
            first = at
    return first


def _is_definite(tokens: Sequence[Token]) -> bool:
    """Return whether a sentence begins with one certain thing, or with all of its sort."""
    first = tokens[0]
    return (
        first.value in words.DEFINITE
        or first.value in ("the", "there")
        or first.kind in TYPED
        or str(first.value).endswith(("s", "'s"))
        or first.is_name
    )
