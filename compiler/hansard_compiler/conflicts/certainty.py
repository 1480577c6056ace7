"""Whether a statement is certain: a known subject that has one such value, whenever it is read.

What is read now and then (a temperature, a status), counted (seats, cats), or said of a thing that
is not named ("the invoice") may differ between two moments or two things, and is only marked.
"""

from __future__ import annotations

from collections.abc import Sequence

from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.sentences import VERBS, Sentence
from hansard_compiler.conflicts.tokens import TYPED, Token


def of_typed(found: Sentence, at: int) -> bool:
    """Return whether the subject has one amount, date, time or identifier here at a time."""
    tokens, token, verb_at = found.tokens, found.tokens[at], found.verb_at
    if found.is_hedged or found.is_about or not found.is_definite:
        return False
    before = [one.value for one in tokens[:at]]
    subject = tokens[: verb_at if verb_at is not None else at]
    if tokens[0].value in words.PARTS:  # of a document: it may name several
        return False
    if not is_subject(tokens, at, subject) or _is_reference(tokens, at):
        return False
    if is_past(tokens, verb_at):
        once = any(value in words.ONCE for value in before[len(subject) :])
        is_now = token.kind == "group"  # one after the other, several hold
        was = verb_at is not None and tokens[verb_at].value in ("is", "are", "was", "were")
        return has_identity(subject) and (once or was) and not is_now
    if token.kind in ("day", "date"):
        return _is_scheduled(found, at) and is_identified(found, range(at, at + 1))
    if token.kind == "id":
        return (
            is_copula(tokens, at - 1)
            and is_attribute(subject)
            and _is_known(found, at, subject, range(at, at + 1))
        )
    if {"limited", *words.LIMITS}.intersection(before[-2:]):
        return is_identified(found, range(at, at + 1)) or _is_plural(tokens)
    return _is_known(found, at, subject, range(at, at + 1))


def of_named(found: Sentence, begin: int, *, is_functional: bool) -> bool:
    """Return whether the subject has one value in words, which begins here, at a time."""
    tokens, verb_at = found.tokens, found.verb_at or 0
    subject, value = tokens[:verb_at], range(begin, len(tokens))
    if found.is_hedged or not found.is_definite or is_past(tokens, verb_at):
        return False
    if _are(tokens, verb_at) or not is_subject(tokens[:begin], begin, subject):
        return False
    if is_functional:
        return is_identified(found, value) or tokens[0].is_name
    if is_attribute(subject):
        return is_copula(tokens, verb_at) and _is_known(found, verb_at, subject, value)
    return found.corrects and all(tokens[at].is_name for at in value if is_content(tokens[at]))


def of_denial(found: Sentence, *, is_rule: bool) -> bool:
    """Return whether a sentence and its denial exclude each other."""
    tokens, verb_at = found.tokens, found.verb_at
    if found.is_hedged or not found.is_definite:
        return False
    if is_past(tokens, verb_at):
        return has_identity(tokens[:verb_at] if verb_at else tokens[:2])
    if is_rule:
        return True
    if is_state(tokens, verb_at) or any(one.value in ("has", "have") for one in tokens):
        return False
    return is_identified(found, range(0)) or _is_plural(tokens) or _are(tokens, verb_at)


def is_identified(found: Sentence, value: range) -> bool:
    """Return whether a name, a number, an identifier or the metadata names the subject."""
    if found.is_named:
        return True
    has_article = found.text.lower().startswith(tuple(f"{one} " for one in words.DEFINITE))
    for at, token in enumerate(found.tokens):
        if at in value or token.kind not in ("word", "id", "number"):
            continue
        if token.kind == "id" or (token.type == "number:" and token.text[:1].isdigit()):
            return True
        owns = token.text.endswith(("'s", "’s", "s'", "s’"))
        if token.kind == "word" and token.is_name and (at > 0 or has_article or owns):
            return True
    return False


def _is_plural(tokens: Sequence[Token]) -> bool:
    """Return whether a sentence begins with all things of a sort: `refunds are`, `every job is`."""
    first = str(tokens[0].value)
    return first.endswith("s") and not first.endswith("ss")


def _are(tokens: Sequence[Token], verb_at: int | None) -> bool:
    return verb_at is not None and tokens[verb_at].value in ("are", "were")


def _is_scheduled(found: Sentence, at: int) -> bool:
    """Return whether a day or a date is the one that there is of its subject."""
    tokens, token = found.tokens, found.tokens[at]
    lead = [one.value for one in tokens[:at] if one.value not in words.PREPOSITIONS]
    if not lead:
        return False
    if token.kind == "day":  # a class meets on Mondays and on Fridays
        return lead[-1] in ("is", "due", "scheduled", "planned", "set")
    return lead[-1] in words.SCHEDULED or tokens[at - 1].value in ("until", "by")


def _is_known(found: Sentence, at: int, subject: Sequence[Token], value: range) -> bool:
    """Return whether an attribute stays as it is, of a subject that is named.

    Settings need no name: `the request timeout`, `the default branch`.
    """
    places = [at + 1] if value.start == at else []  # `bears 3 percent interest`
    if len(subject) == at or is_copula(found.tokens, len(subject)):
        places.append(len(subject) - 1)  # `the port is 80`, but not `the room has 80 seats`
    places += [n - 1 for n, one in enumerate(subject) if one.value in ("of", "for", "on") and n]
    named = is_identified(found, value)
    return any(
        _names_lasting(found.tokens, index, is_named=named)
        for index in places
        if 0 <= index < len(found.tokens)
    )


def is_lasting(noun: str) -> bool:
    """Return whether a thing has one value of an attribute and keeps it."""
    return noun in words.ATTRIBUTES and noun not in words.MEASURED | words.SHARED


def _names_lasting(tokens: Sequence[Token], at: int, *, is_named: bool) -> bool:
    noun = str(tokens[at].value)
    pair = (str(tokens[at - 1].value) if at else "", noun)
    if noun in words.CONFIGURED or pair in words.CONFIGURED_PAIRS:
        return True
    return is_named and (
        is_lasting(noun) or pair in words.SETTING or noun in ("high", "long", "wide", "tall")
    )


def is_subject(tokens: Sequence[Token], at: int, subject: Sequence[Token]) -> bool:
    """Return whether a frame names its subject and its attribute in two words or more.

    A subject whose value only says which record it is (`the order number is …`) names none.
    """
    others = [one for number, one in enumerate(tokens) if number != at]
    content = [one for one in others if is_content(one)]
    head = next((one for one in reversed(subject) if is_content(one)), None)
    if head is None or len(content) < 2:
        return False
    return head.value not in words.IDENTIFYING or has_identity(subject)


def is_content(token: Token) -> bool:
    return token.kind in TYPED or (
        token.kind == "word"
        and token.value not in words.COPULAS
        and token.value not in words.PREPOSITIONS
        and token.value not in words.DEFINITE
        and token.value not in words.MODALS
    )


def has_identity(tokens: Sequence[Token]) -> bool:
    return any(
        token.kind in ("number", "id", "date") or (token.is_name and at > 0)
        for at, token in enumerate(tokens)
    )


def _is_reference(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a value points to a record, as in `section 4` or `Python 3.11`."""
    token, before = tokens[at], tokens[at - 1]
    if token.kind not in ("number", "id") or token.unit:
        return False
    if before.value in words.REFERENCES or (before.is_name and at > 1):
        return True
    joins = words.PREPOSITIONS | words.LIMITS | words.JOINING | VERBS | words.ATTRIBUTES
    return before.kind == "word" and before.value not in joins  # `worker 286`


def is_copula(tokens: Sequence[Token], at: int | None) -> bool:
    return at is not None and tokens[at].value in words.COPULAS


def is_past(tokens: Sequence[Token], verb_at: int | None) -> bool:
    """Return whether a sentence reports what happened, which may happen again."""
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


def is_attribute(subject: Sequence[Token]) -> bool:
    """Return whether a subject is an attribute: its head is one, or what stands before `of`."""
    for at, token in enumerate(subject):
        if token.value in ("of", "for") and at and subject[at - 1].value in words.ATTRIBUTES:
            return True
    return bool(subject) and subject[-1].value in words.ATTRIBUTES


def is_state(tokens: Sequence[Token], verb_at: int | None) -> bool:
    """Return whether a sentence is about how something is now: `is empty`, `is not running`."""
    if verb_at is None or not is_copula(tokens, verb_at):
        return False
    content = [one for one in tokens[verb_at + 1 :] if is_content(one)]
    if not content:
        return False
    first = str(content[0].value)
    is_progress = first.endswith("ed") and not _are(tokens, verb_at)  # `the form is not signed`
    return first in words.TRANSIENT or first.endswith("ing") or is_progress
