"""How the API says things: pages of lists, values of attributes, JSON as bytes.

Commands say them the same way, and load no web framework for it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import orjson

from hansard_compiler.calls import Json
from hansard_store.database.cursors import Page

SCHEMA_VERSION: Final = "1"
_MAX_DEPTH = 150  # orjson writes 254 levels, and Python's own recursion ends not far above

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


def page_body(page: Page[_Item], body: Callable[[_Item], Any]) -> Json:
    """Return one page of a list."""
    return {"items": [body(one) for one in page.items], "next_cursor": page.next_cursor}


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
