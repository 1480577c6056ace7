"""JSON as it stands in a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
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


# Many small rows in one statement, handed over as JSON.
#
# It costs what one statement a row costs, but no Python runs between the rows: other threads do.


def as_json(rows: Iterable[Sequence[int | str | None]]) -> str:
    """Return rows for `SELECT value ->> 0, value ->> 1, … FROM json_each(?)`."""
    given = list(rows)
    try:
        return orjson.dumps(given).decode("utf-8")
    except TypeError:  # a lone surrogate, from an escape in somebody's JSON
        return orjson.dumps([[_plain(value) for value in row] for row in given]).decode("utf-8")


def joined(values: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """Return values as one, and where each begins, as `substr` counts; JSON holds no bytes."""
    return b"".join(values), list(accumulate(map(len, values), initial=1))


def _plain(value: int | str | None) -> int | str | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value
