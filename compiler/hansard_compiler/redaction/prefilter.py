"""The scan that finds out, in one pass over raw bytes, that there is nothing to redact.

Soundness. Let T be a string inside the scanned bytes and V a *view* of it in which a rule matches:
T with its JSON escapes undone n times, or what a base64 run in such a text holds, with escapes
undone again. Then one of these holds, and each is a pattern of the guard:

1. No character of the match was escaped as ``\\u00XX`` on the way, but for quotes, ``& < >`` and
   the like. What remains are the short escapes (``\\n``, ``\\"``, ``\\/``), which every rule's own
   guard allows at every depth, as any number of backslashes.
2. Some character was escaped as ``\\u00XX`` that no ordinary encoder escapes (a letter, a digit,
   ``-_./:=+``, a space, a backslash). `HIDDEN` finds the innermost of those escapes: at every depth
   it reads ``\\u00XX`` after at least one backslash, unless a part of it is hidden again, which is
   an escape of the same kind one level further out.
3. The match came out of base64. Every match of a rule contains one of the rule's shapes (or an
   escape of case 2, whose ``\\u00`` is a shape too). A byte sequence has exactly three spellings in
   base64, by its offset modulo three, and `base64_spellings` gives a superset of each; a ``/`` in
   it may stand behind backslashes, a ``+`` that was escaped is case 2. Where the run is cut into
   lines, a spelling may be cut too: `WRAPPED` finds every such run.

4. The text is UTF-16, as bytes: `WIDE` finds every run of such Latin characters as secrets are
   made of. What is read of it is judged as a text of its own.

Only one layer of base64 is looked through, here and by the rules.

A sensitive name that is an attribute's key is case 0: in protobuf's canonical order the bytes
after a KeyValue's key are the tag of its value. That is why the collector scans what it serialised
itself, not what the sender did: fields in another order mean the same and would hide the name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import re2

from hansard_compiler.redaction.checks import KEYWORD, latin1
from hansard_compiler.redaction.rules import SecretRule, Shape

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_EVERY_BYTE = frozenset(range(256))
# More characters of a spelling would only make the automaton larger: this is 36 bits of evidence,
# and a false alarm costs a closer look.
_SPELLING_CHARS = 6

# Characters a rule may need, escaped although no encoder we know of escapes them (but .NET's `+`
# and Gson's `=`, which therefore cost their senders the closer look).
HIDDEN = rb"\\u00(?:0[9aAdD]|2[0bBcCdDeEfF]|3[0-9aAdD]|[45][0-9a-fA-F]|6[1-9a-fA-F]|7[0-9aAbBeE])"
# Eight characters on the next line: of the shortest secret cut at its worst, `:` | `//:pwd@`, six
# bytes are left, and a protobuf tag that reads as a line feed is rarely followed by as many.
_IN_BASE64 = rb"(?:[A-Za-z0-9+_\-]|\\*/)"
WRAPPED = _IN_BASE64 + rb"{40,}(?:(?:\\+[nr])+|[\r\n]+)(?:[ \t]|\\+t)*" + _IN_BASE64 + rb"{8}"
# A key, then KeyValue.value (tag 0x12, length), then a text, array, map or bytes.
_ATTRIBUTE_KEY = KEYWORD + rb"\x12[\x80-\xff]{0,4}[\x00-\x7f][\x0a\x2a\x32\x3a]"
# An element of a list, or of a map's value, and a text or key in the one that follows it.
_ELEMENT = KEYWORD + rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x0a"
# No secret is shorter than twelve characters with the name it stands under.
WIDE = rb"(?:[\t\n\r\x20-\x7e]\x00){11}[\t\n\r\x20-\x7e]"
_ESCAPE_SHAPE: Shape = tuple(frozenset((byte,)) for byte in b"\\u00")

_MAX_MEMORY_BYTES = 32 << 20  # of one automaton, which remembers the states it has been in


def pattern_set(patterns: Iterable[bytes]) -> Any:
    """Compile patterns into one automaton; `Match` returns their indices, or None."""
    options = latin1()
    options.max_mem = _MAX_MEMORY_BYTES
    compiled = re2.Set.SearchSet(options)
    for pattern in patterns:
        compiled.Add(pattern)
    compiled.Compile()
    return compiled


def base64_spellings(shape: Shape) -> list[bytes]:
    """Return patterns for how a shape looks inside base64, one for each offset modulo three.

    Both alphabets (``+/`` and ``-_``). Characters that depend on bytes outside the shape are left
    out where they could be anything.
    """
    spellings = []
    for offset in range(3):
        known = [_EVERY_BYTE] * offset + list(shape)
        known += [_EVERY_BYTE] * (-len(known) % 3)
        sextets: list[set[int]] = []
        for i in range(0, len(known), 3):
            sextets.extend(_sextets(known[i : i + 3]))
        spellings.append(b"".join(_class(sextet) for sextet in _most_distinctive(sextets)))
    return spellings


def _most_distinctive(sextets: list[set[int]]) -> list[set[int]]:
    """Return the stretch of at most six characters that the fewest texts have."""
    starts = range(max(1, len(sextets) - _SPELLING_CHARS + 1))
    stretches = [sextets[start : start + _SPELLING_CHARS] for start in starts]
    best = min(stretches, key=lambda stretch: math.prod(len(sextet) for sextet in stretch))
    while len(best[0]) == 64:
        del best[0]
    while len(best[-1]) == 64:
        del best[-1]
    return best


def _sextets(group: Sequence[frozenset[int]]) -> list[set[int]]:
    first, second, third = group
    low = {byte & 3 for byte in first}
    middle = {byte & 15 for byte in second}
    return [
        {byte >> 2 for byte in first},
        {a << 4 | b for a in low for b in {byte >> 4 for byte in second}},
        {b << 2 | c for b in middle for c in {byte >> 6 for byte in third}},
        {byte & 63 for byte in third},
    ]


def _class(values: set[int]) -> bytes:
    characters = b"".join(_spelled(value) for value in sorted(values))
    if 63 in values:
        return rb"(?:\\*/|[" + characters + rb"])"
    return b"[" + characters + b"]"


def _spelled(value: int) -> bytes:
    if value == 62:
        return rb"+\-"
    if value == 63:
        return b"/_"
    return _ALPHABET[value : value + 1]


@lru_cache(maxsize=8)
def guard_for(rules: tuple[SecretRule, ...]) -> Any:
    """Return the automaton that fires whenever a rule could, anywhere, in raw bytes.

    The order of its patterns is what `suggests_base64` relies on: those about base64 come last.
    """
    return pattern_set(
        (
            *(rule.guard for rule in rules),
            *(_ATTRIBUTE_KEY, _ELEMENT, WIDE, HIDDEN, WRAPPED, _spellings(rules)),
        )
    )


def suggests_base64(fired: Sequence[int], rules: tuple[SecretRule, ...]) -> bool:
    """Return whether patterns of the guard fired that only matter inside base64."""
    return max(fired) >= len(rules) + 4


def suggests_wide(fired: Sequence[int], rules: tuple[SecretRule, ...]) -> bool:
    """Return whether bytes may hold UTF-16, by the patterns of the guard that fired."""
    return len(rules) + 2 in fired


@lru_cache(maxsize=8)
def base64_guard_for(rules: tuple[SecretRule, ...]) -> Any:
    """Return the automaton that fires when a base64 run, without line breaks, may hold a secret."""
    return pattern_set([_spellings(rules)])


@lru_cache(maxsize=8)
def matchers_for(rules: tuple[SecretRule, ...]) -> Any:
    """Return the automaton of the rules themselves, which names those to run."""
    return pattern_set(rule.pattern for rule in rules)


@lru_cache(maxsize=8)
def _spellings(rules: tuple[SecretRule, ...]) -> bytes:
    shapes = {shape for rule in rules for shape in rule.shapes} | {_ESCAPE_SHAPE}
    spellings = {spelling for shape in shapes for spelling in base64_spellings(shape)}
    return b"|".join(sorted(spellings))
