"""A text as a reader further in sees it: JSON escapes undone, base64 runs decoded.

A view remembers where its bytes came from, so that what a rule finds in it can be cut out of the
text it was made from. Everything here is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import re2

from hansard_compiler.redaction.checks import latin1

# JSON's escapes and the two of Python and JavaScript that matter inside quotes. Anything else
# after a backslash (a regular expression, a Windows path) stays as it is, backslash included.
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|[\\/\"'nrtbf])")
_SHORT = {
    **{b"\\" + char: char for char in (b"\\", b"/", b'"', b"'")},
    **{b"\\n": b"\n", b"\\r": b"\r", b"\\t": b"\t", b"\\b": b"\b", b"\\f": b"\f"},
}
_UNICODE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_ASCII = {
    b"\\u" + digits: bytes((code,))
    for code in range(128)
    for digits in (b"%04x" % code, b"%04X" % code)
}
_LONGEST_ESCAPE = 6
_BLOCK_BYTES = 4096  # finding a byte of the data in the source reads one block again
_NEVER_IN_UTF8 = b"\xff"

# A run may be cut into lines, as mail and `base64` do; lines under 40 characters are not joined.
_BASE64_RUN = re2.compile(
    rb"(?:[A-Za-z0-9+/_\-]{40,}\r?\n[ \t]*)+[A-Za-z0-9+/_\-]+={0,2}"
    rb"|[A-Za-z0-9+/_\-]{12,}={0,2}",  # the shortest secret, `://:pwd@`, takes 12 characters
    options=latin1(),
)
_WIDE_RUN = re2.compile(rb"(?:[\t\n\r\x20-\x7e]\x00){11,}", options=latin1())
_WIDE_RUN_ORDERS = ("utf-16-le", "utf-16-be")
_NOT_BASE64 = b" \t\r\n="
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


@dataclass(frozen=True, slots=True)
class Unescaped:
    """A text with one level of JSON escapes undone."""

    source: bytes
    data: bytes
    # Where each block begins, in the source and in the data; one more pair than there are blocks.
    source_starts: list[int]
    data_starts: list[int]

    def to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the stretch of the source that was read as data[start:end] (not empty)."""
        return self._character(start)[0], self._character(end - 1)[1]

    def _character(self, position: int) -> tuple[int, int]:
        block = bisect_right(self.data_starts, position, hi=len(self.data_starts) - 1) - 1
        read = self.source_starts[block]
        written = self.data_starts[block]
        for found in _ESCAPE.finditer(self.source, read, self.source_starts[block + 1]):
            plain = found.start() - read
            if position < written + plain:
                break
            written += plain + len(_undone(found))
            read = found.end()
            if position < written:
                return found.start(), found.end()
        at = read + position - written
        return at, at + 1


def unescaped(source: bytes) -> Unescaped | None:
    """Undo one level of JSON escapes; None when there is none to undo."""
    if b"\\" not in source:
        return None
    source_starts = [0, *_block_ends(source)]
    blocks = [_undo(source[a:b]) for a, b in pairwise(source_starts)]
    data_starts = [0]
    for block in blocks:
        data_starts.append(data_starts[-1] + len(block))
    data = b"".join(blocks)
    if len(data) == len(source):
        return None
    return Unescaped(source, data, source_starts, data_starts)


def _undo(block: bytes) -> bytes:
    """Undo the escapes of a block that begins and ends between escapes.

    Whole-block replacements are forty times as fast as a callback for each escape, which decides
    how long a hostile text of nothing else takes.
    """
    if _NEVER_IN_UTF8 in block:
        return _ESCAPE.sub(_undone, block)
    # Pairs first: of what is left, every backslash begins an escape.
    block = block.replace(b"\\\\", _NEVER_IN_UTF8)
    for escape, plain in _SHORT.items():
        block = block.replace(escape, plain)
    if b"\\u" in block:
        block = _UNICODE.sub(_undone, block)
    return block.replace(_NEVER_IN_UTF8, b"\\")


def _undone(found: re.Match[bytes]) -> bytes:
    plain = _ASCII.get(found[0]) or _SHORT.get(found[0])
    if plain is not None:
        return plain
    # A surrogate half stays one: rules are about ASCII, and nothing is written back from here.
    return chr(int(found[1], 16)).encode("utf-8", "surrogatepass")


def _block_ends(source: bytes) -> Iterator[int]:
    start = 0
    while start + _BLOCK_BYTES < len(source):
        start = _between_escapes(source, start, start + _BLOCK_BYTES)
        yield start
    yield len(source)


def _between_escapes(source: bytes, start: int, end: int) -> int:
    """Return the last place at or before `end` that no escape stretches across.

    `start` must be such a place. Of a row of backslashes, every second one is escaped.
    """
    last = source.rfind(b"\\", max(start, end - _LONGEST_ESCAPE), end)
    if last < 0:
        return end
    head = source[start : last + 1]
    row = len(head) - len(head.rstrip(b"\\"))
    return last if row % 2 else end


@dataclass(frozen=True, slots=True)
class Base64Run:
    """A stretch of text that may be base64, and its characters without line breaks."""

    start: int
    end: int
    characters: bytes

    def decodings(self) -> Iterator[bytes]:
        """Return what the run holds if it begins at its first, second, third or fourth character.

        Letters that merely stand before it (`path/c2st…`) belong to the same alphabet.
        """
        standard = self.characters.translate(_URL_SAFE)
        for skipped in range(4):
            whole = standard[skipped:]
            if len(whole) % 4 == 1:
                whole = whole[:-1]
            try:
                yield base64.b64decode(whole + b"=" * (-len(whole) % 4))
            except binascii.Error:
                continue


def wide_charsets(data: bytes) -> list[str]:
    """Return the kinds of UTF-16 that may be in these bytes, by where their NUL bytes are."""
    found = {_WIDE_RUN_ORDERS[run.start() % 2] for run in _WIDE_RUN.finditer(data)}
    return sorted(found, reverse=True)


def base64_runs(text: bytes) -> Iterator[Base64Run]:
    """Return the stretches long enough to hold a secret, in order."""
    for found in _BASE64_RUN.finditer(text):
        characters = found[0].translate(None, delete=_NOT_BASE64)
        yield Base64Run(found.start(), found.end(), characters)
