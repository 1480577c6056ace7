"""Structured facts: what the owner of an item declares that it states.

    {"subject": "staging", "attribute": "port", "value": 8080}

in the content or in the metadata. Subject and attribute are compared whole, but for case, spaces
and a leading article: a number or a name in them says which record is meant. So do further fields
of the content (`environment`, `tenant`, `valid_from`). A fact is certain only if it has an
attribute of which a thing has one and keeps it, and a subject that is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.canonical import canonical_json
from hansard_compiler.compile.items import CandidateItem
from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.lexicon import ARTICLES, UNITS
from hansard_compiler.conflicts.tokens import may_be_one, read

_OF_FACT: Final = frozenset({"subject", "attribute", "predicate", "value"})
_FLAGS: Final = frozenset({"true", "false", "yes", "no"})
_ALIKE = 6  # letters that two names begin with where they may be one name


@dataclass(frozen=True, slots=True)
class Fact:
    """A structured statement: whose, which attribute, which value."""

    item_id: str
    subject: str
    attribute: str  # empty: it does not say
    value: str
    others: str = ""  # further fields of the content, as JSON: which record it is
    is_named: bool = True  # False: `the patient` may be two

    @property
    def key(self) -> tuple[str, str, str]:
        return self.subject, self.attribute, self.others

    @property
    def is_certain(self) -> bool:
        """Whether its subject has one value of the attribute, whenever it is read."""
        noun = self.attribute.partition(" of ")[0].rpartition(" ")[2]
        is_setting = noun in words.CONFIGURED
        if not self.attribute or not (self.is_named or is_setting):
            return False
        return is_single(self.attribute, is_flag=self.value in _FLAGS)


def is_single(attribute: str, *, is_flag: bool = False) -> bool:
    """Return whether a thing has one of an attribute that its owner names, and keeps it.

    Of a flag a thing has one whatever it is of: a penicillin allergy, yes or no.
    """
    *before, noun = attribute.partition(" of ")[0].split()  # `interval of its flashes`
    pair = (before[-1] if before else "", noun)
    if pair in words.SETTING or pair in words.CONFIGURED_PAIRS or pair[0] in words.SINGLING:
        return True
    if is_flag:
        return noun not in words.MEASURED | words.TRANSIENT
    is_plural = noun.endswith("s") and not noun.endswith(("ss", "us", "is"))
    is_plural = is_plural or noun in words.PLURALS
    return not is_plural and noun not in words.SEVERAL | (words.MEASURED - words.DIMENSIONS)


def fact_of(item: CandidateItem) -> Fact | None:
    """Return the structured fact an item states, in its content or its metadata."""
    for holder in (item.content, item.metadata):
        if not isinstance(holder, Mapping) or "value" not in holder:
            continue
        subject = holder.get("subject", item.metadata.get("subject"))
        attribute = _attribute(holder) or _attribute(item.metadata)
        if isinstance(subject, str) and subject.strip():
            return Fact(
                item.id,
                plain(subject),
                attribute,
                _value(holder["value"]),
                _others(item.content),
                subject.split()[0].casefold() not in ARTICLES,
            )
    return None


def _others(content: object) -> str:
    """Return the fields of a content that stand beside a fact, as JSON; of a text none."""
    if not isinstance(content, Mapping):
        return ""
    found = {name: one for name, one in content.items() if name not in _OF_FACT}
    return canonical_json(found) if found else ""


def plain(text: str) -> str:
    """Return a name as it is compared: without case, needless spaces and a leading article."""
    words = text.casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ARTICLES else words)


def attribute_of(item: CandidateItem) -> str:
    """Return the attribute that an item's metadata names; empty where it names none."""
    return _attribute(item.metadata)


def _attribute(holder: Mapping[str, Any]) -> str:
    found = holder.get("attribute", holder.get("predicate", ""))
    return plain(found) if isinstance(found, str) else ""


def differ(a: Fact, b: Fact) -> bool | None:
    """Return whether two values differ: None where they may be one value in two forms of writing.

    `2/11/2015` and `2 November 2015`, `3/4 h` and `45 min`, `Postgres` and `PostgreSQL` may be.
    """
    if a.value == b.value:
        return False
    if _are_numbers(a.value, b.value):
        return float(a.value) != float(b.value)
    if a.value in UNITS and UNITS.get(a.value) == UNITS.get(b.value):
        return False  # `EUR` and `euro`
    if ("/" in a.value) is not ("/" in b.value):
        return None  # `CET` and `Europe/Berlin`
    one, other = read(a.value), read(b.value)
    if any(map(str.isdigit, a.value + b.value)):
        same_form = [token.type for token in one] == [token.type for token in other]
        if not same_form or "/" in a.value + b.value:
            return None
        pairs = [(x, y) for x, y in zip(one, other, strict=True) if x.value != y.value]
        return None if all(may_be_one(x, y) for x, y in pairs) else True
    first, second = ({str(token.value) for token in tokens} for tokens in (one, other))
    if first <= second or second <= first:
        return None
    begun = a.value.startswith(b.value[:_ALIKE]) and min(len(a.value), len(b.value)) >= _ALIKE
    return None if begun else True


def _are_numbers(*values: str) -> bool:
    return all(re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", value) for value in values)


def _value(value: Any) -> str:
    """Return a value as it is compared; amounts of one unit are one value."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return canonical_json(value)
    return " ".join(str(value).casefold().split())
