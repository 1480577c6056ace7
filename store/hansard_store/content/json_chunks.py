"""Cutting large JSON texts at the elements of their main array, without losing a byte.

An agent sends its whole conversation again in every call. Cut at element boundaries, each piece is
stored once and a later text shares all pieces of the earlier one but the last few. Pieces are
slices of the original text, so joining them gives it back exactly, whatever its white space.

The main array is the text itself when it is an array, else the largest array among an object's
members, down to `_MAX_DEPTH` levels: `{"messages": […]}`, `[[…]]`, `{"request": {"input": […]}}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_MAX_DEPTH = 3
# The rows of one item are written in one transaction, for which others wait: so they are bounded.
MOST_CONTAINERS: Final = 49_152  # braces in texts count too: a megabyte of code has thousands
MOST_ELEMENTS: Final = 2**19  # a second's work, and as entries of an object 128 MiB when read
MOST_PIECES: Final = 8_192  # of a value; as many messages take 0.2 s to write, and 0.1 to commit
MOST_PIECES_OF_ITEM: Final = 2 * MOST_PIECES
_SPACE = " \t\n\r"
_TEXT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_raw_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Cut:
    """A text as pieces that join to it: `head + elements…`, each with its separator, and a tail."""

    pieces: tuple[str, ...]  # the first one begins with everything before the array's first element
    tail: str  # everything after the last element
    whole: bool  # the text is the array and nothing else, so the pieces are its elements


def is_crowded(text: str) -> bool:
    """Return whether a JSON text may hold more lists, objects or elements than are read at once."""
    if len(text) <= 2 * MOST_CONTAINERS or text.lstrip(_SPACE)[:1] not in ("[", "{"):
        return False
    if text.count("{") + text.count("[") > MOST_CONTAINERS:
        return True
    return text.count(",") > MOST_ELEMENTS and _TEXT.sub("", text).count(",") > MOST_ELEMENTS


def cut(text: str) -> Cut | None:
    """Return the pieces of a JSON text, or None where it has no array to cut.

    Linear in the text. Texts that are not JSON, are cut off in the middle, nest too deeply for
    the decoder, or have too many elements are not cut: they are one content.
    """
    if is_crowded(text):
        return None
    try:
        begin = _main_array(text, _skip_space(text, 0), depth=0)
        if begin is None:
            return None
        return _cut_from(text, 0, begin + 1, whole=not text[:begin].strip(_SPACE))
    except (ValueError, IndexError, RecursionError):
        return None


def cut_after(text: str, known: Sequence[str]) -> tuple[int, Cut] | None:
    """Return how many of the known pieces the text begins with, and the cut of what follows.

    None when it does not begin with the first one: then there is nothing to reuse. Comparing is
    comparing bytes; lengths or ids alone would not do.
    """
    position = shared = 0
    for piece in known:
        if not text.startswith(piece, position):
            break
        position += len(piece)
        shared += 1
    if not shared:
        return None
    try:
        # The last shared piece may have been followed by more of the same element: 1 and 12.
        if not _ends_element(text, position):
            return None
        return shared, _cut_from(text, position, position, whole=False)
    except (ValueError, IndexError, RecursionError):
        return None


def element_of(piece: str, *, first: bool) -> str:
    """Return the element in a piece of a whole array, without its bracket or separator."""
    mark = "[" if first else ","
    return piece.lstrip(_SPACE).removeprefix(mark).lstrip(_SPACE)


def _ends_element(text: str, position: int) -> bool:
    return text[_skip_space(text, position)] in ",]"


def _cut_from(text: str, begin: int, position: int, *, whole: bool) -> Cut:
    """Cut elements from `position` on; the first piece starts at `begin`."""
    pieces = []
    position = _skip_space(text, position)
    while text[position] != "]":
        if text[position] == ",":
            position = _skip_space(text, position + 1)
        _, end = _raw_decode(text, position)
        pieces.append(text[begin:end])
        if len(pieces) > MOST_PIECES:
            raise ValueError("too many elements")
        begin = end
        position = _skip_space(text, end)
        if text[position] not in ",]":
            raise ValueError("not an array")
    tail = text[begin:]
    return Cut(tuple(pieces), tail, whole and tail.strip(_SPACE) == "]")


def _main_array(text: str, position: int, *, depth: int) -> int | None:
    """Return where the main array's bracket is, looking into objects and arrays of one array."""
    if depth > _MAX_DEPTH:
        return None
    if text[position] == "[":
        inner = _skip_space(text, position + 1)
        if text[inner] == "[":
            _, end = _raw_decode(text, inner)
            if text[_skip_space(text, end)] == "]":
                return _main_array(text, inner, depth=depth + 1)
        return position
    if text[position] == "{":
        return _largest_member_array(text, position, depth=depth)
    return None


def _largest_member_array(text: str, position: int, *, depth: int) -> int | None:
    largest: tuple[int, int] | None = None
    position = _skip_space(text, position + 1)
    while text[position] != "}":
        _, end = _raw_decode(text, position)
        position = _skip_space(text, end)
        if text[position] != ":":
            raise ValueError("not an object")
        begin = _skip_space(text, position + 1)
        _, end = _raw_decode(text, begin)
        if text[begin] in "[{" and (largest is None or end - begin > largest[0]):
            largest = (end - begin, begin)
        position = _skip_space(text, end)
        if text[position] == ",":
            position = _skip_space(text, position + 1)
    return None if largest is None else _main_array(text, largest[1], depth=depth + 1)


def _skip_space(text: str, position: int) -> int:
    while text[position] in _SPACE:
        position += 1
    return position
