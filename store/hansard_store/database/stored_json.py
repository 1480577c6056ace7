"""JSON as it stands in a row."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NoReturn

import orjson

from hansard_compiler.errors import HansardError


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
    values = list(rows)
    try:
        return orjson.dumps(values).decode("utf-8")
    except TypeError:  # a lone surrogate, from an escape in somebody's JSON
        return orjson.dumps([[_plain(value) for value in row] for row in values]).decode("utf-8")


def joined(values: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """Return values as one, and where each begins, as `substr` counts; JSON holds no bytes."""
    return b"".join(values), list(accumulate(map(len, values), initial=1))


def _plain(value: int | str | None) -> int | str | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


# JSON of a row, read-only at every depth: changing it is an error where it is changed.
#
# A row is shared by all its readers. A program that changes one in place finds the fault far
# away, in another reader; here it raises at once. `dict(row.metadata)` and `list(...)` are
# copies to change.

_WHY: Final = "rows of the store are read-only; change a copy: dict(…), list(…) or copy.deepcopy(…)"


class ReadOnlyRowError(HansardError, TypeError):
    """A program tried to change a row of the store."""

    code = "read_only_row"

    def __init__(self) -> None:
        super().__init__(_WHY)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnlyRowError


class ReadOnlyDict(dict[str, Any]):
    """A JSON object that cannot be changed. It is a dict, so that every encoder takes it."""

    __slots__ = ()
    __setitem__ = __delitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {name: copy.deepcopy(value, memo) for name, value in self.items()}

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A JSON array that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __iadd__ = __imul__ = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]

    def __reduce__(self) -> Any:
        return list, (list(self),)


def read_only(value: Any) -> Any:
    """Return JSON that cannot be changed at any depth; texts and numbers cannot be anyway."""
    if isinstance(value, dict):
        return ReadOnlyDict({name: read_only(one) for name, one in value.items()})
    if isinstance(value, list):
        return ReadOnlyList(map(read_only, value))
    return value


def own_copy(value: Any) -> Any:
    """Return JSON as a copy of the caller's own, made of plain dicts and lists at every depth."""
    if isinstance(value, dict):
        return {name: own_copy(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [own_copy(one) for one in value]
    return value
