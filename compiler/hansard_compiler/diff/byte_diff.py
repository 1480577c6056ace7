"""Two JSON texts as a unified diff: byte offsets in the headers, a few tokens to a line.

A request is one long line, so it is split behind `,`, `{` and `[` outside of strings. Joined, the
lines of one side are its text; a line break of the request itself is shown as `␊`. Long stretches
that are equal are replaced by their length in `[… equal …]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest
from typing import Final

from hansard_compiler.diff.sequences import common_start

_PIECE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",{\[])*[,{\[]?\s*', re.DOTALL)
_CONTEXT: Final = 2  # lines before and after
_LONGEST_CONTEXT: Final = 160  # characters of a line that did not change
_LONGEST_EQUAL: Final = 120  # characters shown on either side of what changed in a line
_MOST_ALIGNED: Final = 4_000  # lines laid side by side
_MOST: Final = 200_000  # characters of a diff


@dataclass(frozen=True, slots=True)
class ByteDiff:
    """A unified diff; "" where the two are equal. `is_cut`: there is more than is shown."""

    text: str
    is_cut: bool = False


def byte_diff(left: bytes, right: bytes) -> ByteDiff:
    """Compare two texts, byte by byte; sizes in headers are bytes."""
    if left == right:
        return ByteDiff("")
    before, after = _pieces(left), _pieces(right)
    starts = _starts(before), _starts(after)
    lines: list[str] = []
    size = 0
    for group in _groups(_changes(before, after), len(before)):
        for line in _hunk(group, before, after, *starts):
            size += len(line) + 1
            if size > _MOST:
                return ByteDiff("\n".join(lines), is_cut=True)
            lines.append(line)
    return ByteDiff("\n".join(lines))


_Change = tuple[int, int, int, int]  # lines of the left, and of the right, that differ


def _pieces(data: bytes) -> list[str]:
    text = data.decode(errors="backslashreplace")
    return [one for one in _PIECE.findall(text) if one] or [text]


def _starts(pieces: Sequence[str]) -> list[int]:
    """Return the byte offset of each line, and the whole size."""
    return [0, *accumulate(len(one.encode(errors="surrogatepass")) for one in pieces)]


def _changes(before: Sequence[str], after: Sequence[str]) -> list[_Change]:
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    left, right = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(left), len(right)) > _MOST_ALIGNED:
        return [(head, head + len(left), head, head + len(right))]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return [
        (head + one, head + two, head + three, head + four)
        for tag, one, two, three, four in matcher.get_opcodes()
        if tag != "equal"
    ]


def _groups(changes: Sequence[_Change], size: int) -> Iterator[list[_Change]]:
    """Yield changes whose context would overlap together."""
    group: list[_Change] = []
    for one in changes:
        if group and one[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _hunk(
    group: Sequence[_Change],
    before: Sequence[str],
    after: Sequence[str],
    left_starts: Sequence[int],
    right_starts: Sequence[int],
) -> Iterator[str]:
    first, last = group[0], group[-1]
    lead = min(_CONTEXT, first[0])
    trail = min(_CONTEXT, len(before) - last[1])
    spans = (
        (left_starts[first[0] - lead], left_starts[last[1] + trail]),
        (right_starts[first[2] - lead], right_starts[last[3] + trail]),
    )
    ranges = [f"{start},{end - start}" for start, end in spans]
    yield f"@@ bytes -{ranges[0]} +{ranges[1]} @@"
    at = first[0] - lead
    for left, left_end, right, right_end in group:
        yield from (f" {_context(one)}" for one in before[at:left])
        pairs = list(zip_longest(before[left:left_end], after[right:right_end]))
        yield from (f"-{_beside(old, new)}" for old, new in pairs if old is not None)
        yield from (f"+{_beside(new, old)}" for old, new in pairs if new is not None)
        at = left_end
    yield from (f" {_context(one)}" for one in before[at : at + trail])


def _shortened(text: str, end: int) -> str:
    """Return what is equal on both sides; of more than two ends of it, these."""
    middle = len(text) - 2 * end
    return text if middle <= 0 else f"{text[:end]}[… {middle:,} equal …]{text[-end:]}"


def _beside(line: str, other: str | None) -> str:
    """Return a changed line, without most of what it shares with the one in its place."""
    if other is None:
        return _shown(line)
    head = common_start(line, other)
    most = min(len(line), len(other)) - head
    tail = min(common_start(line[::-1], other[::-1]), most)
    start, end = line[:head], line[len(line) - tail :]
    changed = line[head : len(line) - tail]
    return _shown(_shortened(start, _LONGEST_EQUAL) + changed + _shortened(end, _LONGEST_EQUAL))


def _context(line: str) -> str:
    return _shown(_shortened(line, _LONGEST_CONTEXT // 2))


def _shown(text: str) -> str:
    return text.replace("\r", "␍").replace("\n", "␊")
