"""What a sentence states: subject, attribute and value, read conservatively.

A statement is a *frame* and a value: the frame holds every word of the sentence but the value and
the words that only join others, so two statements of one frame have the same subject and the same
attribute, in whichever order they are written. Whatever separates records (numbers, names, dates
beside the value) is part of the frame, in its order: where it differs, nothing is compared. Two
equal frames with two values contradict each other only where the subject has one such value at a
time; where that is not sure, the statement is not `is_certain` and a difference is marked, never
settled.

No grammar is parsed: a sentence of another shape states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hansard_compiler.conflicts import certainty
from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.sentences import VERBS, Sentence
from hansard_compiler.conflicts.tokens import TYPED, Token, read
from hansard_compiler.words import stem

_LONGEST_VALUE: Final = 4
_FEWEST_WORDS: Final = 3  # content words of a sentence that is sure to be denied by another one
_MOST_VALUES: Final = 3  # typed values behind a verb, each of which may be the one that differs


class Frame(NamedTuple):
    """A sentence without its value."""

    sort: str  # what the value is: `number:second`, `words`, `polar`
    words: frozenset[Hashable]
    identity: tuple[Hashable, ...]  # numbers, dates, identifiers and names, in their order
    first: Hashable  # the word that the frame begins with, mostly of its subject; not compared

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self[:3] == other[:3]

    def __hash__(self) -> int:
        return hash(self[:3])


class Statement(NamedTuple):
    """One frame and its value, of one sentence of one item."""

    item_id: str
    frame: Frame
    value: Hashable
    how: str  # what a difference of it is: "number", "value", "negation"
    is_certain: bool  # the subject has one such value at a time
    corrects: bool
    sentence: str
    token: Token | None = None  # the value, where it is typed
    is_plain: bool = False  # of one definite thing, without a hedge: a correction replaces it


def statements_of(item_id: str, found: Sentence) -> Iterator[Statement]:
    """Yield what a sentence states; nothing where its subject is open or it only holds at times."""
    yield from _polar(item_id, found)
    if found.is_denied:
        return
    typed = _typed(item_id, found)
    yield from typed
    if not typed:
        yield from _named(item_id, found)


def identity_of(text: str) -> frozenset[str]:
    """Return what in a text names its record: numbers, dates, identifiers, names.

    Of a heading, a sentence without a verb, that is every word.
    """
    found: set[str] = set()
    for sentence in re.split(r"[.!?;\n](?:\s|$)", text):
        tokens = read(sentence)
        has_verb = any(token.value in VERBS for token in tokens)
        for at, token in enumerate(tokens):
            if token.kind == "mark" or token.value in words.ARTICLES:
                continue
            named = token.is_name and at > 0 and token.value != "i"
            spelled = token.kind == "number" and token.text.isalpha()
            if spelled and has_verb and tokens[at - 1].value not in words.REFERENCES:
                continue  # `from three points`, but not `chapter one`
            if token.kind in TYPED or named or not has_verb:
                found.add(str(token.value))
    return frozenset(found)


# --- typed values: amounts, dates, days, times, identifiers, members of a group ---------------


def _typed(item_id: str, found: Sentence) -> list[Statement]:
    """Return a statement for each typed value behind the verb, all the others in its frame."""
    tokens, begin = found.tokens, found.verb_at
    if begin is None:
        begin = _before_amount(tokens)
        if begin is None:
            return []
    slots = [at for at in range(begin + 1, len(tokens)) if tokens[at].kind in TYPED]
    if not slots or len(slots) > _MOST_VALUES:
        return []
    return [
        Statement(
            item_id,
            _frame(tokens, at, at + 1, tokens[at].type),
            tokens[at].value,
            "number" if tokens[at].kind == "number" else "value",
            certainty.of_typed(found, at),
            found.corrects,
            found.text,
            tokens[at],
            _is_plain(found),
        )
        for at in slots
    ]


def _is_plain(found: Sentence) -> bool:
    return found.is_definite and not (found.is_hedged or found.is_about)


def _before_amount(tokens: Sequence[Token]) -> int | None:
    """Return the place in front of what a sentence without a known verb states the amount of."""
    for at, token in enumerate(tokens):
        if at > 1 and token.value in words.LIMITS:
            return at
        if at > 2 and token.kind == "number" and token.unit and tokens[at - 1].value == "of":
            return at - 1
    return None


# --- values in words --------------------------------------------------------------------------


def _named(item_id: str, found: Sentence) -> Iterator[Statement]:
    """Yield `the default branch is main` and `Ana lives in Oslo`: a short value at the end."""
    at = found.verb_at
    if at is None:
        return
    tokens = found.tokens
    yield from _named_first(item_id, found, at)
    pair = tuple(str(one.value) for one in tokens[at : at + 2])
    later = tuple(str(one.value) for one in tokens[at + 1 : at + 3])
    if later in words.FUNCTIONAL or pair in words.FUNCTIONAL:
        begin = at + (3 if later in words.FUNCTIONAL else 2)
        is_attribute = True
    elif tokens[at].value in words.COPULAS or tokens[at].value in words.NAMING:
        begin, is_attribute = at + 1, certainty.is_attribute(tokens[:at])
    else:
        return
    value = tokens[begin:]
    if not 0 < len(value) <= _LONGEST_VALUE or _is_description(value, found.text):
        return
    is_functional = later in words.FUNCTIONAL or pair in words.FUNCTIONAL
    is_placed = later in words.PLACED or pair in words.PLACED
    sure = not is_placed and certainty.of_named(found, begin, is_functional=is_functional)
    if not sure and not is_attribute:
        return
    name = tuple(str(one.value) for one in value)
    frame = _frame(tokens, begin, len(tokens), "words")
    yield Statement(
        item_id,
        frame,
        name,
        "value",
        sure,
        found.corrects,
        found.text,
        is_plain=_is_plain(found),
    )


def _named_first(item_id: str, found: Sentence, at: int) -> Iterator[Statement]:
    """Yield `Ana Berg is the surgeon of …`: the name is the value, the office is its frame."""
    tokens, subject = found.tokens, found.tokens[:at]
    rest = tokens[at + 1 :]
    if tokens[at].value != "is" or found.is_hedged or len(subject) > _LONGEST_VALUE:
        return
    if not re.search(r"\bis the\b", found.text) or not all(one.is_name for one in subject):
        return
    link = next((n for n, one in enumerate(rest) if one.value in ("of", "for")), None)
    if (
        not link
        or rest[link - 1].value not in words.ATTRIBUTES
        or certainty.has_identity(subject[:1])
    ):
        return
    name = tuple(str(one.value) for one in subject)
    frame = _frame(tokens, 0, at, "words")
    sure = certainty.is_identified(found, range(at))
    yield Statement(item_id, frame, name, "value", sure, found.corrects, found.text)


def _is_description(value: Sequence[Token], text: str) -> bool:
    """Return whether a value describes instead of naming: of descriptions several may hold."""
    first = str(value[0].value)
    if f" {first}" not in text.lower() or re.search(rf"\b(?:a|an)\s+{re.escape(first)}\b", text):
        return True
    if any(one.value in words.LINKS or one.value in words.PREPOSITIONS for one in value):
        return True
    return first.endswith(words.ADJECTIVE_ENDINGS) and not value[0].is_name


# --- said and denied --------------------------------------------------------------------------


def _polar(item_id: str, found: Sentence) -> Iterator[Statement]:
    """Yield a whole sentence without its denial, and whether it was denied."""
    tokens = found.tokens
    content = [one for one in tokens if certainty.is_content(one)]
    if len(content) < 2:
        return
    # Two who speak of the same thing may differ: `the food is good`, `I like it`.
    is_rule = any(one.value in words.OBLIGING for one in tokens)
    is_view = len(content) + is_rule < _FEWEST_WORDS or any(
        one.value == ":" or one.value in words.FIRST_PERSON for one in tokens
    )
    sure = not is_view and certainty.of_denial(found, is_rule=is_rule)
    frame = _frame(tokens, len(tokens), len(tokens), "polar")
    denied = found.is_denied
    yield Statement(item_id, frame, denied, "negation", sure, found.corrects, found.text)


def _frame(tokens: Sequence[Token], begin: int, end: int, sort: str) -> Frame:
    terms: set[Hashable] = set()
    first: Hashable = None
    identity: list[Hashable] = []
    for at, token in enumerate(tokens):
        if begin <= at < end or token.kind == "mark":
            continue
        if token.kind in TYPED:
            identity.append((token.kind, token.value, token.unit))
            continue
        value = str(token.value)
        if value in words.OBLIGING:
            terms.add("must")
        elif value not in words.JOINING:
            terms.add(base(value))
            first = first or base(value)
            if (token.is_name and at > 0) or value in words.ORDINALS:
                identity.append(base(value))
    return Frame(sort, frozenset(terms), tuple(identity), first)


@lru_cache(maxsize=32_768)
def base(word: str) -> str:
    """Return the stem of a word: `deliver`, `delivers` and `delivery` are one."""
    word = words.IRREGULAR.get(word, word)
    for ending in ("ership", "ship", "ery", "ity", "ance", "ence", "al", "ion", "or"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return stem(word[: -len(ending)])
    cut = stem(word)
    return cut[:-1] if cut.endswith(("y", "i")) and len(cut) > 3 else cut
