"""JSON as it stands in a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson


def json_text(value: Any) -> str:
    """Return JSON as a row holds it.

    orjson refuses integers past 64 bits and lone surrogates: they become digits and escapes.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)


def json_of(text: str) -> Any:
    """Return what JSON says, exactly: orjson would make floats of large integers."""
    return json.loads(text)


def object_of(text: str) -> Mapping[str, Any]:
    """Return the object that a row holds; an empty one of a row that was altered to hold none."""
    try:
        found = json_of(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
