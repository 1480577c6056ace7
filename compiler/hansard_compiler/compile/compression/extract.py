"""Shortening without a model: whole sentences and lines, chosen and kept in their order."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hansard_compiler.compile.items import MICRO
from hansard_compiler.compile.ports import RelevancePort, TokenCounter
from hansard_compiler.relevance import Pieces

_OPENING = MICRO // 4  # what a text's first piece rates beside its relevance: it names the subject
_MOST_ROUNDS = 8
_FILLED_PCT = 90  # of its tokens that an extract uses, where there is more to say
_FEWEST_WORDS = 2  # of a sentence that is cut
_MOST_SWAPPED = 64  # pieces that may give way to a longer one


@dataclass(frozen=True, slots=True)
class Extract:
    """The built-in compressor: keeps the pieces that match the query best."""

    rate: RelevancePort = field(default_factory=Pieces)

    def __call__(
        self, text: str, *, query: str, target_tokens: int, counter: TokenCounter
    ) -> str | None:
        """Return an extract of at most `target_tokens`, or None when not one piece fits.

        Uses nine tenths of them at least wherever there is more to say: whole sentences first, and
        where no choice of whole ones fills the room, the beginning of one that is cut at a word.
        """
        pieces = pieces_of(text)
        values = self.rate(query, pieces)
        ranked = sorted(
            (at for at in range(len(pieces)) if pieces[at].strip()),
            key=lambda at: (-values[at] - (_OPENING if at == 0 else 0), at),
        )
        selection = _Selection(pieces, target_tokens, counter)
        selection.fill(ranked)
        if selection.is_short:
            selection.swap(ranked)
        if selection.is_short and not selection.cut(ranked):
            selection.give_way(ranked)
        return selection.text()


class _Selection:
    """The pieces chosen so far, charged with the gap marks that are really written."""

    def __init__(self, pieces: Sequence[str], target: int, counter: TokenCounter) -> None:
        self._pieces = pieces
        self._target = target
        self._counter = counter
        self._ends = _ends(pieces)
        self._costs = [counter.count(piece) for piece in pieces]
        self._selected: list[int] = []  # in the order of the text
        self._marks: dict[int, int] = {}  # what a gap mark costs, by its digits
        self._begun: dict[int, str] = {}  # the one piece that is cut, and what remains of it

    @property
    def is_short(self) -> bool:
        """Whether more could be said and too little is."""
        if len(self._selected) == len(self._pieces):
            return False
        return 100 * self._used() < _FILLED_PCT * self._target

    def fill(self, ranked: Sequence[int]) -> None:
        """Take what fits, best first, until nothing more does."""
        for _ in range(_MOST_ROUNDS):
            before, left = len(self._selected), self._target - self._used()
            for at in ranked:
                cost = None if self._has(at) else self._added(at)
                if cost is not None and cost <= left:
                    self._keep(at)
                    left -= cost
            while self._selected and self._used() > self._target:
                # Joined pieces may count for more than their sum: give up the least of them.
                self._drop(next(at for at in reversed(ranked) if self._has(at)))
                before = len(self._selected)
            if len(self._selected) == before:
                return

    def swap(self, ranked: Sequence[int]) -> None:
        """Let the least of the chosen pieces give way to longer ones that fill the room better."""
        others = sorted((self._costs[at], at) for at in ranked if not self._has(at))
        for at in [one for one in reversed(ranked) if self._has(one)][:_MOST_SWAPPED]:
            room = self._target - self._used() + self._costs[at]
            nearest = bisect_left(others, (room + 1, 0)) - 1
            if nearest < 0 or others[nearest][0] <= self._costs[at]:
                continue
            _, other = others[nearest]
            self._drop(at)
            self._keep(other)
            if self._used() > self._target:
                self._drop(other)
                self._keep(at)
                continue
            others.pop(nearest)
            if not self.is_short:
                return

    def give_way(self, ranked: Sequence[int]) -> None:
        """Drop the least of the chosen pieces for one that is cut, where that fills the room.

        One of them at first, and then more and more of them.
        """
        least = [one for one in reversed(ranked) if self._has(one)][:_MOST_SWAPPED]
        for at in least:
            self._drop(at)
            if self.cut(ranked):
                return
            self._keep(at)
        before = list(self._selected)
        for at in least:
            self._selected = [one for one in before if one != at]
            self.fill([one for one in ranked if one != at])
            if not self.is_short or self.cut(ranked):
                return
        self._selected = before

    def cut(self, ranked: Sequence[int]) -> bool:
        """Begin the best piece that is left, as far as there is room, at the end of a word.

        One that follows a chosen piece needs no mark of its own in front, and comes first. Returns
        whether that fills the room; else nothing is cut.
        """
        left = [one for one in ranked if not self._has(one)]
        left.sort(key=lambda at: not self._has(at - 1))
        for at in left[:_MOST_SWAPPED]:
            words = words_of(self._pieces[at])
            self._keep(at)
            low, high = 0, len(words) - 1
            while low < high:
                middle = (low + high + 1) // 2
                self._begun = {at: "".join(words[:middle])}
                low, high = (middle, high) if self._used() <= self._target else (low, middle - 1)
            self._begun = {at: "".join(words[:low])} if low >= _FEWEST_WORDS else {}
            if self._begun and not self.is_short:
                return True
            self._begun = {}
            self._drop(at)
        return False

    def text(self) -> str | None:
        return joined(self._pieces, self._selected, self._begun) if self._selected else None

    def _used(self) -> int:
        made = self.text()
        return 0 if made is None else self._counter.count(made)

    def _has(self, at: int) -> bool:
        index = bisect_left(self._selected, at)
        return index < len(self._selected) and self._selected[index] == at

    def _keep(self, at: int) -> None:
        self._selected.insert(bisect_left(self._selected, at), at)

    def _drop(self, at: int) -> None:
        self._selected.pop(bisect_left(self._selected, at))

    def _added(self, at: int) -> int:
        """Return what a piece costs more: itself, and how the marks beside it change."""
        index = bisect_left(self._selected, at)
        begin = self._selected[index - 1] + 1 if index else 0
        end = self._selected[index] if index < len(self._selected) else len(self._pieces)
        before = self._gap(begin, end) if self._selected else 0
        return self._costs[at] + self._gap(begin, at) + self._gap(at + 1, end) - before

    def _gap(self, begin: int, end: int) -> int:
        """Return what a gap's mark costs; marks of as many digits cost the same, or nearly."""
        length = self._ends[end] - self._ends[begin]
        if not length:
            return 0
        digits = len(str(length))
        known = self._marks.get(digits)
        if known is None:
            known = self._marks[digits] = self._counter.count(mark(length))
        return known


def _ends(pieces: Sequence[str]) -> list[int]:
    """Return where each piece begins, in characters, and where the last one ends."""
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    return ends


def joined(
    pieces: Sequence[str], selected: Collection[int], begun: Mapping[int, str] | None = None
) -> str:
    """Join the chosen pieces; each gap states how many characters are left out.

    Of a piece in `begun` only that beginning is used.
    """
    chosen = set(selected)
    out: list[str] = []
    gap = 0
    for at, piece in enumerate(pieces):
        if at not in chosen:
            gap += len(piece)
            continue
        shown = begun.get(at, piece) if begun else piece
        out += [mark(gap), shown] if gap else [shown]
        gap = len(piece) - len(shown)
    if gap:
        out.append(mark(gap))
    return "".join(out).strip()


def mark(characters: int) -> str:
    return f"[… {characters} characters left out]\n"


# A text taken apart for shortening: sentences and lines, and of very long ones their clauses.
#
# Sentences end as they do in Latin, Chinese, Japanese, Arabic and Indian scripts. What has no end
# in sight (a transcript without full stops, Thai, one line of JSON) is divided at commas, then at
# spaces, and in scripts without spaces anywhere. Joined, the pieces are the text again.

_PIECE = re.compile(
    r"[^\n]*?(?:[.!?](?=\s)|[。！？｡؟۔।॥]+[」』”’）】》]*)\s*"
    r"|[^\n]+\n*|\n+"
)
_CLAUSE = re.compile(r"[^,;:，；：、،؛]*[,;:，；：、،؛]+\s*|[^,;:，；：、،؛]+")
# Scripts without spaces; a sign that stands on another one stays with it.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef"
)
_SIGNS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u3099\u309a\ufe00-\ufe0f"
_WORD = re.compile(rf"[{_DENSE}][{_SIGNS}]*\s*|[^\s{_DENSE}]+\s*|\s+")
_MOST_PIECES = 5_000
_LONG, _PART = 400, 200  # characters of a sentence that is divided, and of its parts


def pieces_of(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    return in_stretches([part for piece in _PIECE.findall(text) for part in _parts(piece)])


def in_stretches(pieces: list[str]) -> list[str]:
    """Return pieces of a text, of very many as many stretches of equal length."""
    if len(pieces) <= _MOST_PIECES:
        return pieces
    step = -(-len(pieces) // _MOST_PIECES)
    return ["".join(pieces[at : at + step]) for at in range(0, len(pieces), step)]


def words_of(text: str) -> list[str]:
    """Return the words of a text with the spaces behind them; of dense scripts the characters."""
    return _WORD.findall(text)


def _parts(piece: str) -> Iterator[str]:
    """Yield a piece, or the parts of one that is too long to be taken or left as a whole."""
    if len(piece) <= _LONG:
        yield piece
        return
    units = (
        unit
        for clause in _CLAUSE.findall(piece)
        for unit in ([clause] if len(clause) <= _PART else words_of(clause))
    )
    part = ""
    for unit in units:
        if part and len(part) + len(unit) > _PART:
            yield part
            part = ""
        part += unit
    if part:
        yield part
