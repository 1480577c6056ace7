"""What differs between two texts, word by word, losing nothing.

Texts of some megabytes are taken line by line first, and by word within the lines that changed; a
changed stretch that is still too long is one exchange. Putting together what is `same` and `del`
gives the left text to the letter, `same` and `ins` the right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hansard_compiler.diff.sequences import align, common_start

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_BY_WORD = 120_000  # characters of a stretch that is compared word by word
_MOST_LINES = 60_000  # of a stretch that is compared line by line
_LONGEST_WORD = 200  # characters looked back for the beginning of a word

OpKind = Literal["same", "del", "ins"]


@dataclass(frozen=True, slots=True)
class TextOp:
    """A stretch of text: in both, only in the left one, only in the right one."""

    kind: OpKind
    text: str


def text_diff(left: str, right: str) -> tuple[TextOp, ...]:
    """Return the stretches of both texts in order; () for two empty ones.

    Two texts of 20 MB take about a second. Two equal texts are one `same`.
    """
    if left == right:
        return (TextOp("same", left),) if left else ()
    head = _word_start(left, common_start(left, right))
    tail = _common_end(left[head:], right[head:])
    ops = [TextOp("same", left[:head])]
    ops += _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    ops.append(TextOp("same", left[len(left) - tail :] if tail else ""))
    return tuple(_joined(ops))


def _word_start(text: str, at: int) -> int:
    """Return the beginning of the word, or the white space, that `at` stands in or behind."""
    lowest = max(0, at - _LONGEST_WORD)
    last = None
    for found in _WORD.finditer(text, lowest, at):
        last = found
    return at if last is None else last.start()


def _common_end(left: str, right: str) -> int:
    low = common_start(left[::-1], right[::-1])
    # A common end may begin inside a word of one side: that word belongs to the change.
    for _ in range(_LONGEST_WORD):
        if not low or not _is_inside_word(left, right, low):
            break
        low -= 1
    return low


def _is_inside_word(left: str, right: str, tail: int) -> bool:
    first = left[len(left) - tail]
    return any(
        len(text) > tail and _WORD.fullmatch(text[len(text) - tail - 1] + first) is not None
        for text in (left, right)
    )


def _middle(left: str, right: str) -> list[TextOp]:
    if max(len(left), len(right)) <= _MOST_BY_WORD:
        return _by(_WORD, left, right, _exchange)
    if left.count("\n") + right.count("\n") > _MOST_LINES:
        return _exchange(left, right)
    return _by(_LINE, left, right, _within_lines)


def _within_lines(left: str, right: str) -> list[TextOp]:
    """Compare a changed stretch of lines word by word, where that is worth it."""
    if not left or not right or max(len(left), len(right)) > _MOST_BY_WORD:
        return _exchange(left, right)
    return _by(_WORD, left, right, _exchange)


def _by(
    part: re.Pattern[str], left: str, right: str, inside: Callable[[str, str], list[TextOp]]
) -> list[TextOp]:
    """Compare part by part; what differs between two equal parts goes to `inside`."""
    a, b = part.findall(left), part.findall(right)
    ops: list[TextOp] = []
    at = other = 0
    for one, two in [*align(a, b), (len(a), len(b))]:
        if at < one or other < two:
            ops += inside("".join(a[at:one]), "".join(b[other:two]))
        if one < len(a):
            ops.append(TextOp("same", a[one]))
        at, other = one + 1, two + 1
    return ops


def _exchange(left: str, right: str) -> list[TextOp]:
    return [TextOp("del", left), TextOp("ins", right)]


def _joined(ops: Sequence[TextOp]) -> Iterator[TextOp]:
    """Join neighbours of a kind; between two equal stretches what went stands before what came."""
    same: list[str] = []
    gone: list[str] = []
    come: list[str] = []
    for op in ops:
        if not op.text:
            continue
        if op.kind == "same":
            yield from _flushed(gone, come)
            same.append(op.text)
            continue
        if same:
            yield TextOp("same", "".join(same))
            same.clear()
        (gone if op.kind == "del" else come).append(op.text)
    yield from _flushed(gone, come)
    if same:
        yield TextOp("same", "".join(same))


def _flushed(gone: list[str], come: list[str]) -> Iterator[TextOp]:
    if gone:
        yield TextOp("del", "".join(gone))
    if come:
        yield TextOp("ins", "".join(come))
    gone.clear()
    come.clear()
