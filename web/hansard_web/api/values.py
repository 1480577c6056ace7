"""How the API says things: JSON bodies, times, durations, ids, values of attributes.

Commands say them the same way, and load no web framework for it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar

import orjson

from hansard_store.database.cursors import Page
from hansard_store.times import time_text as time_text

SCHEMA_VERSION: Final = "1"
_NANO = 1_000_000_000
_MAX_DEPTH = 150  # orjson writes 254 levels, and Python's own recursion ends not far above

Body = dict[str, Any]
_Item = TypeVar("_Item")


def dump(value: Any) -> bytes:
    """Return JSON as UTF-8.

    What senders put into JSON inside strings can hold lone surrogates and integers over 64 bits,
    which orjson refuses; they are written as escapes and digits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def page_body(page: Page[_Item], body: Callable[[_Item], Any]) -> Body:
    """Return one page of a list."""
    return {"items": [body(one) for one in page.items], "next_cursor": page.next_cursor}


def ns_text(ns: int | None) -> str | None:
    """Return nanoseconds as a string: they exceed what a JSON number is exact for."""
    return None if ns is None else str(ns)


def milliseconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


def usd(nano: int | None) -> float | None:
    return None if nano is None else nano / _NANO


# What the ending of a field says of it: the ending of the store's own field, and how it is written.
_ENDINGS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "_at": ("_ns", time_text),
    "_ns": ("_ns", ns_text),
    "_ms": ("_ns", milliseconds),
    "_usd": ("_usd_nano", usd),
}


def stored_fields(row: object, names: str) -> Body:
    """Return the named fields of a row of the store, as the API says them.

    `started_at`, `started_ns` and `duration_ms` are read from fields in nanoseconds, `cost_usd`
    from one in billionths; every other is the row's own.
    """
    return {name: read(row) for name, read in _readers(names)}


@cache
def _readers(names: str) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple((name, _reader(name)) for name in names.split())


def _reader(name: str) -> Callable[[Any], Any]:
    for ending, (stored, write) in _ENDINGS.items():
        if name.endswith(ending):
            get = attrgetter(name.removesuffix(ending) + stored)
            return lambda row: write(get(row))
    return attrgetter(name)


def plain(value: Any, *, depth: int = 0) -> Any:
    """Return an attribute's value as JSON can say it.

    Bytes become `{"$bytes": "<base64>"}`, NaN and infinities `{"$float": "nan"}`: the same tags as
    in canonical JSON. Below _MAX_DEPTH levels only a hint is left; `raw` has all of it.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if depth == _MAX_DEPTH:
        return {"$deeper": f"more than {_MAX_DEPTH} levels: see raw"}
    if isinstance(value, Mapping):
        return {str(key): plain(child, depth=depth + 1) for key, child in value.items()}
    return [plain(child, depth=depth + 1) for child in value]
