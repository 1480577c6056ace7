"""Reading JSON that came over a network: anything may stand anywhere in it.

The readers take what has the type it should have and leave out the rest; none of them raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

Body = Mapping[str, Any]

_INT64: Final = 1 << 63
_ABSENT: Final[Body] = {}


def parsed(data: bytes | str) -> Any:
    """Return the JSON value of some bytes; None where they are none, however deep or hostile."""
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Body:
    return value if isinstance(value, Mapping) else _ABSENT


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Body]:
    return [item for item in sequence(value) if isinstance(item, Mapping)]


def text(value: object) -> str | None:
    """Return a text that can be encoded; None for anything else and for an empty one."""
    if not isinstance(value, str) or not value:
        return None
    return value.encode("utf-8", "replace").decode()  # a lone surrogate would break the export


def integer(value: object) -> int | None:
    """Return an integer of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INT64 <= value < _INT64 else None


def number(value: object) -> int | float | None:
    return value if isinstance(value, float) else integer(value)


def texts(value: object) -> list[str] | None:
    if isinstance(value, str):
        value = [value]
    found = [item for item in map(text, sequence(value)) if item is not None]
    return found or None


def within(body: object, *path: str) -> Any:
    """Return what stands at a path of keys; None where a step is missing."""
    for key in path:
        body = mapping(body).get(key)
    return body


def append(into: dict[str, Any], key: str, said: object) -> None:
    """Put a piece of a text behind those that came before it."""
    before = into.get(key)
    if isinstance(said, str):
        into[key] = (before if isinstance(before, str) else "") + said
