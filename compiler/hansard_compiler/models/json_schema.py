"""What published schemas state beside types: grammars of texts, and fields that go together.

A request that obeys its schema is not refused for its form. So whatever a parser or a validator
refuses is stated here as JSON Schema (2020-12), and where that has no word for it, by a `format`
of FORMATS, which the OpenAPI document explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator

Schema = dict[str, Any]

FORMATS: Final[Mapping[str, str]] = {
    "cursor": "`next_cursor` of the page before, as it was answered",
    "printable": "Unicode without control characters, formatting and line breaks; not blank",
    "rule-set": "a rule set as docs/policy.md has it, or `shipped:NAME`; else 422 `invalid_policy`",
    "run-filters": "parameters of `GET /v1/runs` as in an address: `status=error&agent=mender`",
    "search": 'words, `"a phrase"`, `prefix*` of three letters or more, `-word` beside them',
    "tag": "1 to 64 letters, digits and . : / + - _, the first a letter or digit",
    "sql": "one SELECT over the views of docs/columns.md",
}

# A day of 1971 to 2261 is within 64 bits of nanoseconds in every time zone.
_YEAR: Final = r"(197[1-9]|19[89][0-9]|2[01][0-9]{2}|22[0-5][0-9]|226[01])"
_DAY: Final = _YEAR + r"-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
_OFFSET: Final = r"([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"

DATE_TIME: Final[Schema] = {
    "type": "string", "format": "date-time", "pattern": f"^{_DAY}[Tt]{_CLOCK}{_OFFSET}$",
}  # fmt: skip
# RFC 3339, a day, or nanoseconds since 1970 as digits.
TIME: Final[Schema] = {
    "anyOf": [
        DATE_TIME,
        {"type": "string", "format": "date", "pattern": f"^{_DAY}$"},
        {"type": "string", "pattern": "^[0-9]{1,18}$"},
    ]
}
# The same, or how long ago: 24h, 7d.
TIME_OR_AGE: Final[Schema] = {
    "anyOf": [
        DATE_TIME,
        {"type": "string", "format": "date", "pattern": f"^{_DAY}$"},
        {"type": "string", "pattern": "^[0-9]{1,18}$"},
        {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|min|h|d|w)$"},
    ]
}
NOT_BLANK: Final = r"[^\s\x1c-\x1f\x85]"
# Nanoseconds of so many milliseconds, and nano-dollars of so many dollars, are within 64 bits.
AMOUNT: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 4_600_000_000}


def _refuse_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is expected, not true or false")
    return value


# Stands last of what a number of a body is annotated with: JSON's true is no integer and no number,
# and pydantic takes it for 1.
A_NUMBER: Final = BeforeValidator(_refuse_boolean)
Whole: TypeAlias = Annotated[int, A_NUMBER]
Real: TypeAlias = Annotated[float, A_NUMBER]


def having(*names: str, **kinds: Schema) -> Schema:
    """Return a schema of objects that have these fields, and none of them null."""
    stated = {name: {"not": {"type": "null"}} for name in names} | kinds
    return {"required": list(stated), "properties": stated}


def left_out(*names: str) -> Schema:
    """Return a schema of objects in which these fields are null or absent."""
    return {"properties": {name: {"type": "null"} for name in names}}


def both(*parts: Schema) -> Schema:
    """Return one schema of objects out of several that `having` and `left_out` made."""
    required = [name for part in parts for name in part.get("required", ())]
    properties = {name: kind for part in parts for name, kind in part["properties"].items()}
    return {"required": required, "properties": properties}


def any_of(*branches: Schema) -> Schema:
    """Return what a model adds to its own schema: one of the branches must hold."""
    return {"anyOf": list(branches)}


def exactly_one(*names: str) -> list[Schema]:
    """Return the branches of objects that have one of these fields and not the others."""
    return [
        both(having(name), left_out(*(other for other in names if other != name))) for name in names
    ]
