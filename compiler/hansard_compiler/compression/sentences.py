"""A text taken apart for shortening: sentences and lines, and of very long ones their clauses.

Sentences end as they do in Latin, Chinese, Japanese, Arabic and Indian scripts. What has no end in
sight (a transcript without full stops, Thai, one line of JSON) is divided at commas, then at
spaces, and in scripts without spaces anywhere. Joined, the pieces are the
text again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """Return the sentences and lines of a text, of very many as many stretches of equal length."""
    found = [part for piece in _PIECE.findall(text) for part in _parts(piece)]
    if len(found) <= _MOST_PIECES:
        return found
    step = -(-len(found) // _MOST_PIECES)
    return ["".join(found[at : at + step]) for at in range(0, len(found), step)]


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
