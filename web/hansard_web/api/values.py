"""How the API says things: JSON bodies, times, durations, ids, values of attributes.

Commands say them the same way, and load no web framework for it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

import orjson

from hansard_store.runs.status import TokenSums
from hansard_store.times import time_text as time_text

SCHEMA_VERSION: Final = "1"
_NANO = 1_000_000_000
_MAX_DEPTH = 150  # orjson writes 254 levels, and Python's own recursion ends not far above

Body = dict[str, Any]


def dump(value: Any) -> bytes:
    """Return JSON as UTF-8.

    What senders put into JSON inside strings can hold lone surrogates and integers over 64 bits,
    which orjson refuses; they are written as escapes and digits.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def fields_of(record: object, *names: str) -> Body:
    """Return attributes of a record under their own names, as JSON can say them."""
    return {name: plain(getattr(record, name)) for name in names}


def ns_text(ns: int | None) -> str | None:
    """Return nanoseconds as a string: they exceed what a JSON number is exact for."""
    return None if ns is None else str(ns)


def milliseconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1_000_000


def tokens_body(tokens: TokenSums | None) -> Body | None:
    """Return the five figures, None when no call reported any."""
    if tokens is None:
        return None
    return fields_of(tokens, "input", "output", "cache_read", "cache_write", "reasoning")


def usd(nano: int | None) -> float | None:
    return None if nano is None else nano / _NANO


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
