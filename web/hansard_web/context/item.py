"""One message of a comparison, looked at closely."""

from __future__ import annotations

from dataclasses import dataclass

from hansard_collector.derived_context.context import DerivedContext, said
from hansard_collector.derived_context.provenance import Change, Row
from hansard_compiler.calls import Message
from hansard_web.diff.page.words import Piece, word_diff
from hansard_web.ui.format import count


@dataclass(frozen=True, slots=True)
class Inspected:
    """The message that is looked at closely."""

    title: str
    change: str
    place: str
    say: str
    pieces: tuple[Piece, ...]
    hint: str


def inspected(derived: DerivedContext, row: Row, *, title: str, place: str) -> Inspected:
    """Look closely at one row: its text, and what changed in it."""
    old = "" if row.previous is None else _text(derived.previous[row.previous])
    new = "" if row.current is None else _text(derived.current[row.current])
    return Inspected(
        title=title,
        change=row.change.value,
        place=place,
        say=_say(row),
        pieces=word_diff(old, new) if row.previous is not None and row.current is not None
        else word_diff(new or old, new or old),
        hint=_hint(old, new) if row.change is Change.REWRITTEN else "",
    )  # fmt: skip


def _say(row: Row) -> str:
    if row.change is Change.KEPT and row.same_bytes:
        return "The same text as in the previous call."
    if row.change is Change.KEPT:
        return "The same words in another form (ids, reasoning, space): another text to a cache."
    if row.change is Change.REORDERED:
        return "The same text, at another place of the prompt."
    if row.change is Change.ADDED:
        return "Not part of the previous call."
    if row.change is Change.DROPPED:
        return "Part of the previous call, not of this one. Why is not known."
    if row.cut is not None:
        return f"{count(row.cut.characters)} characters of its {row.cut.kept} remain."
    return "Another version of the same message."


def _text(message: Message | None) -> str:
    return "" if message is None else said(message)


def _hint(old: str, new: str) -> str:
    """Point at what most often breaks a cache: a clock in a text that is otherwise the same."""
    changed = [piece.text for piece in word_diff(old, new) if piece.kind in ("del", "ins")]
    digits = sum(letter.isdigit() for text in changed for letter in text)
    letters = sum(letter.isalpha() for text in changed for letter in text)
    if digits and len(changed) <= 12 and letters <= 12 and len(new) > 200:
        return (
            "Only numbers changed, as with a clock or a counter. Put what changes into the last "
            "message and the rest can stay cached."
        )
    return ""
