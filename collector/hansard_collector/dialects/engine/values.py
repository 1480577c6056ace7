"""Single attribute values, whatever type the sender gave them.

Numbers and booleans may be strings, integers may be doubles, JSON may be cut off by an SDK's length
limit. Every function here answers None for a value it cannot use and never raises.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from hansard_store.content.json_chunks import MOST_PIECES, is_crowded

# Texts that stand where content was left out: they are not content (genai-dialects.md, rule 0.7).
_MARKERS = frozenset(
    {"", "<REDACTED>", "[REDACTED]", "__REDACTED__", "<replaced>", "<elided>", "<not serializable>"}
)
_WITHHELD = "‹withheld:"  # our own, left by the retention mode metadata_only

_LARGEST_INTEGER = 2**63 - 1  # what SQLite can hold
_LONGEST_INTEGER = 19  # digits of it
_DEEPEST = 200  # below the recursion limit with room for every walk over the value
_LONGEST_REPR = 16_384  # characters of a Python object that is written as Python prints it
_SURROGATE = re.compile("[\ud800-\udfff]")


def is_content(value: Any) -> bool:
    """Whether a value has content: not absent, not empty, not a redaction marker."""
    if isinstance(value, str):
        return value not in _MARKERS and not value.startswith(_WITHHELD)
    return value is not None


def text(value: Any) -> str | None:
    """Return a usable text; numbers become text, for ids are sent as integers too."""
    if isinstance(value, str):  # `is_content`, written out: this is the most frequent check
        return None if value in _MARKERS or value.startswith(_WITHHELD) else value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return None


def count(value: Any) -> int | None:
    """Return a whole number of at least 0 that the store can hold."""
    if type(value) is int:
        return value if 0 <= value <= _LARGEST_INTEGER else None
    if isinstance(value, str) and value.isdecimal() and len(value) <= _LONGEST_INTEGER:
        return count(int(value))
    number = real(value)
    if number is None or not 0 <= number <= _LARGEST_INTEGER or number != int(number):
        return None
    return min(int(number), _LARGEST_INTEGER)


def real(value: Any) -> float | None:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def reals(value: Mapping[str, Any]) -> dict[str, float]:
    """Return the members of a mapping that are finite numbers."""
    found = {name: real(number) for name, number in value.items()}
    return {name: number for name, number in found.items() if number is not None}


def flag(value: Any) -> bool | None:
    """Return a boolean; the words true and false count, in any case."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return None


def opened(value: Any) -> Any:
    """Return what a string of JSON holds; any other value, or broken JSON, as it is.

    Only objects, arrays and quoted strings are opened: the text `5` stays the text `5`. JSON
    nested too deep for a recursive walk stays text, and so does what holds too much to be read
    element by element (`hansard_store.content.json_chunks`).
    """
    if not isinstance(value, str) or not value:
        if isinstance(value, bytes) and (decoded := of_bytes(value)) is not value:
            return opened(decoded)
        return value
    if value[0] not in '{["' and value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    return parsed(value)


def of_bytes(value: Any) -> Any:
    """Return bytes that are text as text (LangSmith sends JSON so); any other value as it is."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def _opened_leniently(value: str) -> Any:
    """Python's own parser takes what orjson refuses: NaN, infinities, lone surrogates."""
    try:
        result = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if _is_deep(value, result) else without_surrogates(result)


def _is_deep(source: str, value: Any) -> bool:
    if source.count("[") + source.count("{") <= _DEEPEST:
        return False
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def without_surrogates(value: Any) -> Any:
    """Return the value with each lone surrogate as U+FFFD, which UTF-8 and SQLite can hold."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(child) for key, child in value.items()}
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping, from JSON text too; an empty one for anything else."""
    result = opened(value)
    return result if isinstance(result, dict) else {}


def printed(value: Any) -> Any:
    """Return what a Python object's printed form holds: plain values, of an object its fields.

    `{'a': 1, 'b': None}` and `Usage(a=1, b=None)` are both a mapping, and a member of an
    enumeration (`<Role.USER: 'user'>`) is its value. Nothing of it is run. A text that is none, or
    a long one, stays as it is.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_REPR:
        return value
    source = _LITERAL_OR_MEMBER.sub(_without_class, value) if "<" in value else value
    try:
        return _plain(ast.parse(source.strip(), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


# A text in quotes, which is left as it is, or a member of an enumeration around its value. One
# without an end goes to the end of all, so that none is looked through twice.
_QUOTED = r"""'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)"""
_LITERAL_OR_MEMBER = re.compile(rf"({_QUOTED})|<[A-Za-z_][\w.]*+: ({_QUOTED}|-?\d+)>", re.DOTALL)


def _without_class(found: re.Match[str]) -> str:
    return found[1] or found[2]


def _plain(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_plain(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {_plain(key): _plain(item) for key, item in pairs if key is not None}
        case ast.Call(keywords=fields):
            return {field.arg: _plain(field.value) for field in fields if field.arg}
        case _:
            raise ValueError("no plain value")


def sequence(value: Any) -> list[Any]:
    """Return a list, from JSON text too; an empty one for anything else."""
    result = opened(value)
    return result if isinstance(result, list) else []


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, of JSON text of one, or of a comma-separated string."""
    result = opened(value)
    if isinstance(result, str):
        result = result.split(",")
    if not isinstance(result, list):
        return ()
    found = (text(item) for item in result)
    return tuple(item.strip() for item in found if item is not None and item.strip())


def inside(value: Any, *path: str) -> Any:
    """Return the value at a path of keys inside a mapping or its JSON text, or None."""
    for key in path:
        value = mapping(value).get(key)
        if value is None:
            return None
    return value


def first(value: Any, keys: Sequence[str]) -> Any:
    """Return the first value that is present under one of the keys of a mapping."""
    for key in keys:
        found = value.get(key)
        if found is not None:
            return found
    return None


def unix_ns(value: Any) -> int | None:
    """Return an ISO 8601 time (JSON-quoted or not) as nanoseconds since 1970."""
    moment = opened(value)
    if not isinstance(moment, str):
        return None
    try:
        return round(datetime.fromisoformat(moment).timestamp() * 1_000_000) * 1_000
    except (ValueError, OverflowError, OSError):
        return None


def parsed(source: str) -> Any:
    """Return what a whole JSON text holds, scalars too; broken JSON as the text it is."""
    if is_crowded(source):
        return source
    try:
        result = orjson.loads(source)
    except ValueError:
        return _opened_leniently(source)
    is_long = isinstance(result, list) and len(result) > MOST_PIECES
    return source if is_long or _is_deep(source, result) else result
