"""The signature of an error: what its message shares with every other report of the same error."""

from __future__ import annotations

import re
from typing import Final

# What reports of one error have in common: their words, without what varies from one to the next.
#
# `open /tmp/a1.txt: no such file (request 4f2e9a01)` and `open /srv/b: no such file (request 77)`
# are the same error. Ids, numbers, times, paths, addresses and quoted texts give way to what they
# are.

MOST_CHARS: Final = 2_000  # of a message: what tells errors apart stands at its beginning

# Tried from the left in this order, so that what holds other parts comes before them. Quotes may
# make it quadratic in the length of a message, which is bounded; everything else is linear.
_VARIABLE: Final = re.compile(
    r"""
      (?P<plain>[^\W\d_]+(?=\s|\Z))             # most words, at once
    | (?P<hidden>‹[a-z]+:[^‹›\s]*›)                # a marker of redaction
    | (?P<text>"(?:[^"\\]|\\.)*" | `[^`]*` | “[^”]*” | «[^»]*»
      | (?<!\w)'(?:[^'\\]|\\.)*'(?!\w))            # within a word it is an apostrophe
    | (?P<mail>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<url>(?<!\w)[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'`]+)
    | (?P<time>(?<![\w.:-])\d{4}-\d\d-\d\d
        (?:[T\ ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?(?:Z|\ ?[+-]\d\d:?\d\d)?(?![\w:-])
      | (?<![\w.:-])\d\d?:\d\d:\d\d(?:[.,]\d+)?(?![\w:-]))
    | (?P<address>(?<![\w:.])(?=[a-fA-F:]{0,40}\d)               # of hardware, of IPv6
        (?:[0-9a-fA-F]{1,4}:|:){2,7}:?[0-9a-fA-F]{0,4}(?![\w:.]))
    | (?P<path>(?<!\w)[A-Za-z]:\\[^\s:;,"'`<>|()]*               # of Windows
      | (?<![\w./~-])(?:~|\.\.?)?/[^\s:;,"'`<>|()\[\]]+          # from the root, or from here
      | (?<![\w./-])[\w.-]+(?:/[\w.-]+)*/[\w-]+\.\w[\w.]*        # with the name of a file
      | (?<![\w./-])[\w.-]+(?:/[\w.-]+){2,})
    | (?P<number>(?<![\w.])\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?(?![\w-]))
    | (?P<word>[^\W_](?:[\w-]*[^\W_])?)
    """,
    re.VERBOSE,
)
_NUMBER: Final = "<#>"  # the same for numbers and ids: an id in hex may have no letter in it
_NUMBERS: Final = re.compile(rf"(?:(?<![\w>+-])[+-]+)?{_NUMBER}(?:[.,]{_NUMBER})*")
_DIGITS: Final = re.compile(r"\d+")
_FEWEST_LETTERS: Final = 8  # from which a word is an id though no digit is among its hex digits
_ID: Final = re.compile(
    r"[0-9a-fA-F]{8,}|0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
# A part of a word in which the digits count or name something: v2, 5ms, 404.
_PLAIN_PART: Final = re.compile(r"[^\W\d_]*\d*|\d+[^\W\d_]{1,3}")
_MAY_VARY: Final = re.compile(r"[\d\"'`“«‹/\\]")
_BREAKS: Final = re.compile(r"[-_]+")


def signature_of(message: str) -> str:
    """Return what a message shares with every other report of the same error; "" for none.

    Asked of its own answer it answers the same. It keeps what it cannot know to vary: an id
    without a digit is a word.
    """
    text, before = _without_variables(message), message
    # What stood around a part may be seen to vary once that part is gone.
    while text != before and _MAY_VARY.search(text):
        before, text = text, _without_variables(text)
    return text


def _without_variables(text: str) -> str:
    plain = " ".join(text[:MOST_CHARS].split())
    return _NUMBERS.sub(_NUMBER, _VARIABLE.sub(_placeholder, plain))[:MOST_CHARS].strip()


def _placeholder(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind in ("plain", "word"):
        return _word(found[0])
    return _NUMBER if kind in ("number", "address") else f"<{kind}>"


def _word(word: str) -> str:
    """Return a word without its numbers, and nothing of one that is made up, as ids are."""
    has_digits = _DIGITS.search(word) is not None
    if (has_digits or len(word) >= _FEWEST_LETTERS) and _ID.fullmatch(word):
        return _NUMBER
    if not has_digits:
        return word
    parts = _BREAKS.split(word)
    # `order-7` and `v2` are words with a number; `call_a1b2` and `req-4fa` are ids.
    is_plain = all(map(_PLAIN_PART.fullmatch, parts)) and (
        len(parts) == 1 or all(part.isalpha() or part.isdecimal() for part in parts)
    )
    return _DIGITS.sub(_NUMBER, word) if is_plain else _NUMBER
