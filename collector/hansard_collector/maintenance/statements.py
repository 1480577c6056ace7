"""A record as a sentence, for a classifier or an embedder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from hansard_compiler.conflicts.sentences import VERBS
from hansard_compiler.words import terms
from hansard_store.memory.records import Memory

_FEW_WORDS: Final = 5  # fewer are a value, and no sentence


def statement_of(one: Memory) -> str:
    """Return what a record says as one statement: a bare value with what it is the value of."""
    text = _text(one.content)
    words = text.split()
    if len(words) >= _FEW_WORDS or not words or not one.subject:
        return text
    if words[0].casefold() in VERBS:
        return f"{one.subject} {text}"
    if _says_of_what(text, one.subject):
        return text
    if one.attribute:
        return f"the {one.attribute} of {one.subject} is {text}"
    return f"{one.subject} is {text}"


def _says_of_what(text: str, subject: str) -> bool:
    """Say whether a short text is more than a value: it names its subject, or has a verb."""
    said, about = set(terms(text)), set(terms(subject))
    has_verb = any(word.casefold() in VERBS for word in text.split())
    return bool(said & about) or has_verb or ":" in text or "=" in text


def words_of(one: Memory) -> str:
    """Return the words by which a record is near others: subject, attribute and content."""
    text = _text(one.content)
    said = text.casefold()
    about = [part for part in (one.subject, one.attribute) if part.casefold() not in said]
    return ". ".join((*about, text))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping) and "value" in content:
        value = content["value"]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(content, ensure_ascii=False)


def are_apart(subject: str, other: str) -> bool:
    """Say whether two subjects are of two things: each has a word that the other lacks.

    `customer 17` and `customer 23` are, `staging` and `the staging database` are not.
    """
    mine, its = (frozenset(re.findall(r"\w+", one.casefold())) for one in (subject, other))
    return bool(mine - its) and bool(its - mine)
