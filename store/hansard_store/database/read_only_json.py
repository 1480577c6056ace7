"""JSON of a row, read-only at every depth: changing it is an error where it is changed.

A row is shared by whoever read it. A program that changes one in place finds the fault far away, in
another reader; here it is told at once. `dict(row.metadata)` and `list(...)` are copies to change.
"""

from __future__ import annotations

import copy
from typing import Any, Final, NoReturn

from hansard_compiler.errors import HansardError

_WHY: Final = "rows of the store are read-only; change a copy: dict(…), list(…) or copy.deepcopy(…)"


class ReadOnlyRowError(HansardError, TypeError):
    """A program tried to change a row that it was given."""

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
