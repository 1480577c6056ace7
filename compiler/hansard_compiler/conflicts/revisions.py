"""Whether a statement revises an older one about the same named subject.

Of two items in one prompt a compile knows neither that they are about one thing nor which was said
later, so that it settles little. Two records of memory that name the same subject, one written
after the other, say more: where their sentences are the same but for one value behind the verb, or
but for a denial, the later one is a revision.

A revision is certain where the value is typed (an amount, a time, an identifier, a member of a
known group), or is a name that takes another's place, or where one denies what the other says. It
is doubtful where the subject may have several such values, where the value may be one of a day or
of an event, and for values in common words. No frame, no revision: everything else is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.certainty import is_past
from hansard_compiler.conflicts.sentences import Sentence, read_sentence
from hansard_compiler.conflicts.tokens import TYPED, Token, may_be_one
from hansard_compiler.words import stem, terms

_LONGEST_VALUE: Final = 4
_FEWEST: Final = 3  # tokens of a sentence that is denied as a whole
_PERMITS: Final = frozenset({"can", "may"})
_FORBIDS: Final = frozenset({"can", "may", "must", "should", "shall"})


@dataclass(frozen=True, slots=True)
class Revision:
    """How a newer statement revises an older one."""

    how: str  # "negation", "number", "value"
    is_certain: bool  # False: both may hold


def revision(older: str, newer: str) -> Revision | None:
    """Return how a statement revises an older one of the same subject; None where it does not.

    Both are single sentences; of longer texts nothing is known.
    """
    a, b = _read(older), _read(newer)
    if a is None or b is None or a.is_hedged or b.is_hedged:
        return None
    if _is_ended(newer) and not _is_ended(older):
        return None
    return _denial(a, b) or _other_value(a, b)


def _read(text: str) -> Sentence | None:
    plain = text.strip().rstrip(".")
    if any(mark in plain for mark in (". ", "; ", "\n", "? ", "! ")):
        return None
    return read_sentence(plain, corrects=True, is_named=True)


def _is_ended(text: str) -> bool:
    """Return whether a sentence is about how it was before: `was called Lark before`."""
    words_of_text = terms(text)
    return "formerly" in words_of_text or text.rstrip(".").endswith((" before", " then"))


# ---- one denies what the other says


def _denial(a: Sentence, b: Sentence) -> Revision | None:
    if a.is_denied is b.is_denied:
        return None
    stated, denied = (a, b) if b.is_denied else (b, a)
    words, denial = _plain(stated.tokens), _plain(denied.tokens)
    # Also where more is said: what is not retried is not retried three times.
    begins_alike = len(denial) >= _FEWEST and words[: len(denial)] == denial
    if len(denial) < _FEWEST - 1 or not (words == denial or begins_alike):
        return None
    modals = [_modals(one) for one in (stated, denied)]
    same = modals[0] == modals[1]
    forbidden = modals[0] <= _PERMITS and modals[1] <= _FORBIDS
    if not (same or forbidden):
        return None
    return Revision("negation", not (_is_past(a) or _is_past(b)))


def _modals(one: Sentence) -> frozenset[str]:
    return frozenset(str(token.value) for token in one.tokens if token.value in words.MODALS)


def _plain(tokens: Sequence[Token]) -> list[object]:
    """Return what two sentences are compared by: verbs and nouns by their stems, without modals."""
    return [
        stem(str(token.value)) if token.kind == "word" else token.value
        for token in tokens
        if token.value not in words.MODALS or token.value in ("has", "have", "had")
    ]


# ---- the same sentence with another value


def _other_value(a: Sentence, b: Sentence) -> Revision | None:
    if a.is_denied or b.is_denied:
        return None
    begin = _common(a.tokens, b.tokens)
    end = _common(a.tokens[begin:][::-1], b.tokens[begin:][::-1])
    old, new = (one.tokens[begin : len(one.tokens) - end] for one in (a, b))
    if not old or not new or max(len(old), len(new)) > _LONGEST_VALUE:
        return None
    if a.tokens[0].value == "there" or _may_be_same(old, new) or _are_two(old, new):
        return None
    if a.verb_at is None:
        is_sure = _of_group(old, new) is not None
        return Revision("value", is_sure) if begin > 1 and _is_one_typed(old, new) else None
    verb = str(a.tokens[a.verb_at].value)
    is_group = _of_group(old, new) is not None
    if begin <= a.verb_at or (verb in words.PLURAL and begin == a.verb_at + 1 and not is_group):
        return None  # another subject, another verb, or one of several things that it likes
    how = "number" if old[0].kind == "number" else "value"
    return Revision(how, is_group or _is_certain(a, b, old, new))


def _are_two(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Return whether more than one value differs: a place as well, or what an amount is of."""
    joins = [[token.value in words.PREPOSITIONS for token in one] for one in (old, new)]
    if any(any(one) for one in joins):
        return True
    return all(len(one) > 1 and any(token.kind == "number" for token in one) for one in (old, new))


def _is_one_typed(old: Sequence[Token], new: Sequence[Token]) -> bool:
    is_one = len(old) == len(new) == 1
    return is_one and old[0].kind in TYPED and old[0].type == new[0].type


def _is_certain(a: Sentence, b: Sentence, old: Sequence[Token], new: Sequence[Token]) -> bool:
    assert a.verb_at is not None
    verb = str(a.tokens[a.verb_at].value)
    if _is_past(a) or _is_past(b) or a.is_about or b.is_about:
        return False
    if _is_one_typed(old, new):
        if old[0].kind in ("day", "date"):  # a class meets on Mondays and on Fridays
            return verb == "is" and not old[0].text.endswith("days")
        return old[0].kind != "id" or verb not in words.PLURAL
    if verb in words.PLURAL or verb in ("are", "were", "includes", "has", "have"):
        return False
    names = [token for token in (*old, *new) if token.is_name or token.kind == "number"]
    behind = a.tokens[_common(a.tokens, b.tokens) - 1]
    return len(names) == len(old) + len(new) and not behind.is_name and behind.kind == "word"


def _of_group(old: Sequence[Token], new: Sequence[Token]) -> Revision | None:
    """Return the revision where both values are members of one known group, such as on and off."""
    if len(old) == len(new) == 1 and old[0].kind == new[0].kind == "group":
        return Revision("value", True) if old[0].unit == new[0].unit else None
    return None


def _may_be_same(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Return whether two values may be one: a part of the other, or another form of writing."""
    if len(old) == len(new) and all(map(may_be_one, old, new)):
        return True
    first, second = (
        {stem(str(token.value)) for token in one if token.value not in words.PREPOSITIONS}
        for one in (old, new)
    )
    return first <= second or second <= first


def _is_past(one: Sentence) -> bool:
    return is_past(one.tokens, one.verb_at)


def _common(a: Sequence[Token], b: Sequence[Token]) -> int:
    """Return how many tokens two sequences begin with alike."""
    count = 0
    for one, other in zip(a, b, strict=False):
        if one.kind != other.kind or _form(one) != _form(other):
            break
        count += 1
    return count


def _form(token: Token) -> object:
    return stem(str(token.value)) if token.kind == "word" else (token.value, token.unit)
