"""Records in a text: a JSON object, or lines of `key: value`.

Some fields say which record it is (`id`, `order`, `date`, `line`; without any the first field
does), the others are attributes of it. Two records are about one thing only if they say the same
of all such fields. A difference in one attribute of which a thing has one at a time is a
contradiction; two records that differ in more are rows of one thing, and that is not certain.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansard_compiler.canonical import canonical_json
from hansard_compiler.conflicts import lexicon as words
from hansard_compiler.conflicts.certainty import is_lasting
from hansard_compiler.conflicts.facts import Fact, differ

_MOST_CHARACTERS, _MOST_FIELDS = 600, 24
_MOST_OF_VALUE: Final = 4
_LINE: Final = re.compile(
    r"[ \t]*(?:[-*•] )?([^\s:=][^:=\n]{0,39}?)[ \t]*[:=][ \t]*(\S[^\n]*?)[ \t]*"
)
_WORDS: Final = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+|[^\W_]+")
_NONE: Final = frozenset({"", "-", "–", "n/a", "na", "none", "null", "unknown", "tbd", "?"})


@dataclass(frozen=True, slots=True)
class TextRecord:
    """What a text states of one thing."""

    item_id: str
    identity: frozenset[tuple[str, str]]  # which record it is: names of fields and their values
    is_definite: bool  # the identity is one of a record, and not only of its sort
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two records of one thing that differ."""

    first: str
    second: str
    is_certain: bool


def record_of(item_id: str, text: str) -> TextRecord | None:
    """Return the record that a text is, or None for a text of another form."""
    if len(text) > _MOST_CHARACTERS:
        return None
    fields = _of_json(text) if text.lstrip()[:1] == "{" else _of_lines(text)
    if not 2 <= len(fields) <= _MOST_FIELDS:
        return None
    names = {name for name in fields if name in words.WHICH or _is_reference(name)}
    is_definite = any(_is_reference(name) and not _points_to(name) for name in names)
    if not any(map(_is_reference, names)):
        first = next(iter(fields))
        names.add(first)
        is_definite = _is_name(first, fields[first])
    identity = frozenset((name, fields[name]) for name in names)
    others = {name: value for name, value in fields.items() if name not in names}
    return TextRecord(item_id, identity, is_definite, others)


def differences(records: Sequence[TextRecord]) -> Iterator[_Difference]:
    """Yield records of one thing that differ; of more than two values none, as it is a list.

    Linear in the number of records: those of one identity and attribute are compared.
    """
    stated: dict[Hashable, dict[str, list[TextRecord]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        for name, value in one.fields.items():
            stated[one.identity, name][value].append(one)
    for of_value in stated.values():
        if len(of_value) != 2:
            continue
        some, others = (found[:_MOST_OF_VALUE] for found in of_value.values())
        for a in some:
            yield from filter(None, (_difference(a, b) for b in others if a.item_id != b.item_id))


def _difference(a: TextRecord, b: TextRecord) -> _Difference | None:
    found = {name: how for name in a.fields if (how := _differ(a, b, name)) is not False}
    if not found:
        return None
    name, how = next(iter(found.items()))
    sure = a.is_definite and b.is_definite and len(found) == 1 and how is True
    return _Difference(a.item_id, b.item_id, sure and _is_single(name, a.fields[name]))


def _differ(a: TextRecord, b: TextRecord, name: str) -> bool | None:
    if name not in b.fields:
        return False
    values = [one.fields[name].casefold() for one in (a, b)]
    return differ(*(Fact("", "", name, value) for value in values))


# --- reading ----------------------------------------------------------------------------------


def _of_json(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        plain: value
        for name, raw in found.items()
        if (plain := _plain(name)) and (value := _value(raw)).casefold() not in _NONE
    }


def _of_lines(text: str) -> dict[str, str]:
    """Return the fields of a text all of whose lines are `key: value`, each key once."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        name = _plain(found[1]) if found else ""
        if found is None or not name or name in fields or len(name.split()) > 4:
            return {}
        if found[2].casefold() not in _NONE:
            fields[name] = found[2]
    return fields


def _value(value: Any) -> str:
    return value.strip() if isinstance(value, str) else canonical_json(value)


def _plain(name: str) -> str:
    """Return the name of a field as words: `dueDate`, `due_date` and `Due date` are one."""
    return " ".join(_WORDS.findall(name)).casefold()


# --- what a field is --------------------------------------------------------------------------


def _is_reference(name: str) -> bool:
    """Return whether a field names one record: `id`, `order`, `customer number`."""
    return name in words.REFERENCES or name.rpartition(" ")[2] in words.IDENTIFYING


def _points_to(name: str) -> bool:
    """Return whether a field is the id of something that many rows are about: `user id`."""
    noun, _, last = name.rpartition(" ")
    return bool(noun) and last in words.IDENTIFYING and noun.split()[-1] in words.POINTED_TO


def _is_name(name: str, value: str) -> bool:
    """Return whether a first field names a thing, and is not one of its attributes."""
    noun = name.rpartition(" ")[2]
    if noun in words.MEASURED | words.QUALITIES or value[:1] in '{["':
        return False
    has_letter = any(map(str.isalpha, value))
    if noun in words.ATTRIBUTES:
        return has_letter and any(map(str.isdigit, value))
    return has_letter and value.casefold() not in ("true", "false")


def _is_single(name: str, value: str) -> bool:
    """Return whether a thing has one value of an attribute, whenever it is read."""
    *before, noun = name.split()
    if value in ("true", "false"):
        is_quality = noun.endswith(("able", "ible")) and noun not in words.TRANSIENT
        return is_quality or noun in words.FLAGS
    if value[:1] in "{[" or "," in value.strip(","):
        return False  # several values, or an amount and a place: nothing that excludes another
    pair = (before[-1] if before else "", noun)
    if pair in words.SETTING or pair in words.CONFIGURED_PAIRS or name in words.RECORDED:
        return True
    return is_lasting(noun) and noun not in words.VARIED
