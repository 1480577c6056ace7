"""What a sentence states: subject, attribute and value, read conservatively.

A statement is a *frame* and a value: the frame holds every word of the sentence but the value and
the words that only join others, so two statements of one frame have the same subject and the same
attribute, in whichever order they are written. Whatever tells records apart (numbers, names, dates
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

from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.tokens import TYPED, Token, read
from hansard_compiler.words import stem

_LONGEST_TOKENS: Final = 32
_LONGEST_VALUE: Final = 4
_FEWEST_SAID: Final = 3  # content words of a sentence that is sure to be denied by another one
_MOST_VALUES: Final = 3  # typed values behind a verb, each of which may be the one that differs
_VERBS: Final = (words.COPULAS | words.STATIVE | words.MODALS | words.NAMING) - {"one"}
_LEAD: Final = re.compile(
    r"^\W*(?:correction|update|updated|erratum|note|reminder|fyi)\b\s*[:,–-]\s*", re.IGNORECASE
)
_CORRECTING: Final = re.compile(
    r"^\W*(?:correction|update|updated|erratum)\b\s*[:,–-]|\bno longer\b|\b(?:has|have|was|were|is)"
    r"(?: been| now)? (?:moved|changed|renamed|raised|lowered|increased|reduced|updated|extended|"
    r"postponed|switched|rescheduled)\b|\bis now\b|\bare now\b|\binstead of\b|\brather than\b",
    re.IGNORECASE,
)
# `has moved to`, `was changed from a to b`, `is now`: what it is from then on.
_BECAME: Final = re.compile(
    r"\b(?:has|have|was|were|is|are)(?: been| now)? (?:moved|changed|renamed|raised|lowered|"
    r"increased|reduced|updated|extended|postponed|switched|rescheduled)(?: from .{1,40}?)? to\b",
    re.IGNORECASE,
)
_NO_LONGER: Final = re.compile(r"\bno longer\b", re.IGNORECASE)
_CONTRACTED: Final = re.compile(r"\b(\w+)n['’]t\b", re.IGNORECASE)
_WHOLE: Final = {"ca": "can", "wo": "will", "sha": "shall"}


class Frame(NamedTuple):
    """A sentence without its value."""

    sort: str  # what the value is: `number:second`, `words`, `polar`
    words: frozenset[Hashable]
    identity: tuple[Hashable, ...]  # numbers, dates, identifiers and names, in their order
    first: Hashable  # the word that the frame begins with; another order is the same frame

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

    @property
    def words(self) -> frozenset[Hashable]:
        """The words of the frame, without what tells records apart."""
        return self.frame.words

    @property
    def first(self) -> Hashable:
        """The first word of the frame: mostly of its subject."""
        return self.frame.first

    @property
    def kind(self) -> Hashable:
        """What another statement must share to be compared at all: its sort and its identity."""
        return self.frame.sort, self.frame.identity


class _Sentence(NamedTuple):
    """A sentence, token by token, without its articles and fillers."""

    tokens: Sequence[Token]
    verb_at: int | None
    is_denied: bool
    is_hedged: bool
    is_about: bool  # an amount is only roughly given
    is_definite: bool
    corrects: bool
    text: str


def statements_of(item_id: str, sentence: str, *, corrects: bool) -> Iterator[Statement]:
    """Yield what a sentence states; nothing where its subject is open or it only holds at times."""
    found = _read(sentence, corrects=corrects)
    if found is None:
        return
    yield from _polar(item_id, found)
    if found.is_denied:
        return
    typed = _typed(item_id, found)
    yield from typed
    if not typed:
        yield from _named(item_id, found)


def identity_of(text: str) -> frozenset[str]:
    """Return what in a text says which record it is about: numbers, dates, identifiers, names.

    Of a heading, a sentence without a verb, that is every word.
    """
    found: set[str] = set()
    for sentence in re.split(r"[.!?;\n](?:\s|$)", text):
        tokens = read(sentence)
        has_verb = any(token.value in _VERBS for token in tokens)
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


# --- reading ----------------------------------------------------------------------------------


def _read(sentence: str, *, corrects: bool) -> _Sentence | None:
    """Return a sentence to be compared, or None for one of which nothing can be said."""
    corrects = corrects or _CORRECTING.search(sentence) is not None
    plain = _CONTRACTED.sub(_uncontracted, _LEAD.sub("", sentence))
    plain = _NO_LONGER.sub("not", _BECAME.sub("is", plain)) if corrects else plain
    tokens = read(plain)
    if not 2 < len(tokens) <= _LONGEST_TOKENS or any(one.value in ("?", '"') for one in tokens):
        return None
    first = tokens[0].value
    if first in words.INDEFINITE:
        return None
    said = {one.value for one in tokens if one.kind == "word"}
    kept, is_denied = _kept(tokens)
    return _Sentence(
        kept,
        _verb_at(kept),
        is_denied,
        bool(said & words.HEDGES) or first in words.UNRESOLVED,
        bool(said & words.APPROXIMATE),
        _is_definite(tokens),
        corrects,
        sentence,
    )


def _uncontracted(found: re.Match[str]) -> str:
    start = found[1].lower()
    return f"{_WHOLE.get(start, found[1])} not"


def _kept(tokens: Sequence[Token]) -> tuple[list[Token], bool]:
    """Return the tokens that a frame is made of, and whether they are denied.

    An opposite is the word itself, denied; `does not run` is `run`, denied.
    """
    kept: list[Token] = []
    is_denied = False
    for token in tokens:
        value = token.value
        if token.kind == "word":
            if value in words.NEGATIONS:
                is_denied = not is_denied
                continue
            if value in words.ARTICLES | words.FILLERS | words.APPROXIMATE | words.AUXILIARIES:
                continue
            opposite = words.OPPOSITES.get(str(value))
            if opposite is not None and kept:
                is_denied ^= value not in words.AFFIRMED
                token = token._replace(value=opposite)
        kept.append(token)
    return kept, is_denied


def _verb_at(tokens: Sequence[Token]) -> int | None:
    """Return the place of the verb: the first copula of the main clause, else the first verb."""
    first = None
    for at, token in enumerate(tokens):
        if not at or token.kind not in ("word", "mark"):
            continue
        if token.value in words.COPULAS or token.value in words.MODALS:
            return at
        if first is not None and token.value in words.LINKS:
            return first
        if first is None and token.value in _VERBS:
            first = at
    return first


def _is_definite(tokens: Sequence[Token]) -> bool:
    """Say whether a sentence begins with one certain thing, or with all of its sort."""
    first = tokens[0]
    return (
        first.value in words.DEFINITE
        or first.value in ("the", "there")
        or first.kind in TYPED
        or str(first.value).endswith(("s", "'s"))
        or first.is_name
    )


# --- typed values: amounts, dates, days, times, identifiers, members of a group ---------------


def _typed(item_id: str, found: _Sentence) -> list[Statement]:
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
            _is_certain(found, at),
            found.corrects,
            found.text,
            tokens[at],
        )
        for at in slots
    ]


def _before_amount(tokens: Sequence[Token]) -> int | None:
    """Return the place in front of what a sentence without a known verb tells the amount of."""
    for at, token in enumerate(tokens):
        if at > 1 and token.value in words.LIMITS:
            return at
        if at > 2 and token.kind == "number" and token.unit and tokens[at - 1].value == "of":
            return at - 1
    return None


def _is_certain(found: _Sentence, at: int) -> bool:
    """Say whether the subject has one value in this place at a time."""
    tokens, token, verb_at = found.tokens, found.tokens[at], found.verb_at
    if found.is_hedged or found.is_about or not found.is_definite:
        return False
    before = [one.value for one in tokens[:at]]
    subject = tokens[: verb_at if verb_at is not None else at]
    if not _is_subject(tokens, at, subject) or _is_reference(tokens, at):
        return False
    if _is_past(tokens, verb_at):
        once = any(value in words.ONCE for value in before[len(subject) :])
        is_state = token.kind == "group"  # one after the other, several hold
        named = once or _is_copula(tokens, verb_at)
        return _has_identity(subject) and named and not is_state
    lead = [value for value in before if value not in words.PREPOSITIONS]
    if token.kind in ("day", "date"):
        return bool(lead) and (lead[-1] in words.SCHEDULED or before[-1] in ("until", "by"))
    if token.kind == "id":
        return _is_copula(tokens, at - 1) and _is_attribute(subject)
    if token.kind == "number" and not token.unit and verb_at is not None:
        verb = tokens[verb_at].value
        return verb not in words.PLURAL or at == verb_at + 1
    return True


def _is_subject(tokens: Sequence[Token], at: int, subject: Sequence[Token]) -> bool:
    """Say whether a frame names its subject and its attribute in two words or more.

    A subject whose value only says which record it is (`the order number is …`) names none.
    """
    others = [one for number, one in enumerate(tokens) if number != at]
    content = [one for one in others if _is_content(one)]
    head = next((one for one in reversed(subject) if _is_content(one)), None)
    if head is None or len(content) < 2:
        return False
    return head.value not in words.IDENTIFYING or _has_identity(subject)


def _is_content(token: Token) -> bool:
    return token.kind in TYPED or (
        token.kind == "word"
        and token.value not in words.COPULAS
        and token.value not in words.PREPOSITIONS
        and token.value not in words.DEFINITE
        and token.value not in words.MODALS
    )


def _has_identity(tokens: Sequence[Token]) -> bool:
    return any(
        token.kind in ("number", "id", "date") or (token.is_name and at > 0)
        for at, token in enumerate(tokens)
    )


def _is_reference(tokens: Sequence[Token], at: int) -> bool:
    """Say whether a value points to a record, as in `section 4` or `Python 3.11`."""
    token, before = tokens[at], tokens[at - 1]
    if token.kind not in ("number", "id") or token.unit:
        return False
    if before.value in words.REFERENCES or (before.is_name and at > 1):
        return True
    joins = words.PREPOSITIONS | words.LIMITS | words.JOINING | _VERBS | words.ATTRIBUTES
    return before.kind == "word" and before.value not in joins  # `worker 286`


def _is_copula(tokens: Sequence[Token], at: int | None) -> bool:
    return at is not None and tokens[at].value in words.COPULAS


def _is_past(tokens: Sequence[Token], verb_at: int | None) -> bool:
    """Say whether a sentence tells what happened, which may happen again."""
    for at, token in enumerate(tokens):
        value = str(token.value)
        if value in words.PAST_COPULAS or value in ("had", "did"):
            return True
        if token.kind != "word" or at == 0:
            continue
        is_past = value in words.PAST or (value.endswith("ed") and len(value) > 4)
        auxiliary = str(tokens[at - 1].value)
        if is_past and any(one.value in (":", "=") for one in tokens[:at]):
            return True
        if is_past and auxiliary not in ("is", "are", "be", "=", ":", "must", "should"):
            return verb_at is None or at <= verb_at or auxiliary in ("been", "has", "have")
    return False


def _is_attribute(subject: Sequence[Token]) -> bool:
    """Say whether a subject is an attribute: its head is one, or what stands before `of`."""
    for at, token in enumerate(subject):
        if token.value in ("of", "for") and at and subject[at - 1].value in words.ATTRIBUTES:
            return True
    return bool(subject) and subject[-1].value in words.ATTRIBUTES


# --- values in words --------------------------------------------------------------------------


def _named(item_id: str, found: _Sentence) -> Iterator[Statement]:
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
        begin, is_attribute = at + 1, _is_attribute(tokens[:at])
    else:
        return
    value = tokens[begin:]
    if not 0 < len(value) <= _LONGEST_VALUE or _is_description(value, found.text):
        return
    subject = tokens[:at]
    are_names = all(one.is_name for one in value if _is_content(one))
    is_plural = tokens[at].value in ("are", "were")
    sure = (
        found.is_definite
        and not found.is_hedged
        and not is_plural
        and not _is_past(tokens, at)
        and (is_attribute or (are_names and found.corrects))
        and _is_subject(tokens[:begin], begin, subject)
    )
    if not sure and not is_attribute:
        return
    said = tuple(str(one.value) for one in value)
    frame = _frame(tokens, begin, len(tokens), "words")
    yield Statement(item_id, frame, said, "value", sure, found.corrects, found.text)


def _named_first(item_id: str, found: _Sentence, at: int) -> Iterator[Statement]:
    """Yield `Ana Berg is the surgeon of …`: the name is the value, the office is its frame."""
    tokens, subject = found.tokens, found.tokens[:at]
    rest = tokens[at + 1 :]
    if tokens[at].value != "is" or found.is_hedged or len(subject) > _LONGEST_VALUE:
        return
    if not re.search(r"\bis the\b", found.text) or not all(one.is_name for one in subject):
        return
    link = next((n for n, one in enumerate(rest) if one.value in ("of", "for")), None)
    if not link or rest[link - 1].value not in words.ATTRIBUTES or _has_identity(subject[:1]):
        return
    said = tuple(str(one.value) for one in subject)
    frame = _frame(tokens, 0, at, "words")
    yield Statement(item_id, frame, said, "value", True, found.corrects, found.text)


def _is_description(value: Sequence[Token], text: str) -> bool:
    """Say whether a value describes instead of naming: of descriptions several may hold."""
    first = str(value[0].value)
    if f" {first}" not in text.lower() or re.search(rf"\b(?:a|an)\s+{re.escape(first)}\b", text):
        return True
    if any(one.value in words.LINKS or one.value in words.PREPOSITIONS for one in value):
        return True
    return first.endswith(words.ADJECTIVE_ENDINGS) and not value[0].is_name


# --- said and denied --------------------------------------------------------------------------


def _polar(item_id: str, found: _Sentence) -> Iterator[Statement]:
    """Yield a whole sentence without its denial, and whether it was denied."""
    tokens = found.tokens
    content = [one for one in tokens if _is_content(one)]
    if len(content) < 2:
        return
    # Two who speak of the same thing may differ: `the food is good`, `I like it`.
    is_rule = any(one.value in words.OBLIGING for one in tokens)
    is_view = len(content) + is_rule < _FEWEST_SAID or any(
        one.value == ":" or one.value in words.FIRST_PERSON for one in tokens
    )
    sure = found.is_definite and not found.is_hedged and not is_view
    if sure and _is_past(tokens, found.verb_at):
        sure = _has_identity(tokens[: found.verb_at] if found.verb_at else tokens[:2])
    frame = _frame(tokens, len(tokens), len(tokens), "polar")
    denied = found.is_denied
    yield Statement(item_id, frame, denied, "negation", sure, found.corrects, found.text)


def _frame(tokens: Sequence[Token], begin: int, end: int, sort: str) -> Frame:
    kept: set[Hashable] = set()
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
            kept.add("must")
        elif value not in words.JOINING:
            kept.add(base(value))
            first = first or base(value)
            if (token.is_name and at > 0) or value in words.ORDINALS:
                identity.append(base(value))
    return Frame(sort, frozenset(kept), tuple(identity), first)


@lru_cache(maxsize=32_768)
def base(word: str) -> str:
    """Return what the forms of a word share: `deliver`, `delivers` and `delivery` are one."""
    word = words.IRREGULAR.get(word, word)
    for ending in ("ership", "ship", "ery", "ity", "ance", "ence", "al", "ion", "or"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return stem(word[: -len(ending)])
    cut = stem(word)
    return cut[:-1] if cut.endswith(("y", "i")) and len(cut) > 3 else cut
