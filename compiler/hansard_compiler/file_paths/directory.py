"""A directory that a rule names, and whether a path lies in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hansard_compiler.file_paths import posix, windows
from hansard_compiler.file_paths.resolved import Resolved

System: TypeAlias = Literal["posix", "windows"]

_RESOLVERS = {"posix": posix.resolve, "windows": windows.resolve}
_KEYS = frozenset(("path", "system", "ignore_case"))
# A program that takes addresses opens another file than one that takes paths.
_ADDRESS = re.compile(r"file:|[A-Za-z][A-Za-z0-9+.-]*:/[^\\]?/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Directory:
    """Where a path has to lie. A relative one that names no system is judged as by both."""

    text: str
    ignore_case: bool
    roots: tuple[tuple[System, Resolved], ...]


def parse_directory(value: Any) -> Directory:
    """Read a path, or `{"path", "system": "posix"|"windows", "ignore_case": bool}`.

    Without a system, a drive or a share is Windows' and a path from `/` is POSIX'. On Windows case
    never counts. Raises ValueError.
    """
    given = value if isinstance(value, Mapping) else {"path": value}
    unknown = sorted(map(str, set(given) - _KEYS))
    if unknown:
        raise ValueError(f"expected path, system and ignore_case, found {', '.join(unknown)}")
    text, ignore_case = given.get("path"), given.get("ignore_case", False)
    if not isinstance(text, str) or not isinstance(ignore_case, bool):
        raise ValueError(f"expected a path, or a mapping with one, found {value!r}")
    roots = tuple(
        (system, _RESOLVERS[system](text)) for system in _systems(text, given.get("system"))
    )
    return Directory(text, ignore_case, roots)


def _systems(text: str, named: Any) -> tuple[System, ...]:
    if named == "posix":
        return ("posix",)
    if named == "windows" or windows.is_windows(text):
        return ("windows",)
    if named is not None:
        raise ValueError(f"expected posix or windows, found {named!r}")
    return ("posix",) if text.startswith("/") else ("posix", "windows")


def is_under(path: str, directory: Directory) -> bool:
    """Whether a path is the directory or lies below it. Raises ValueError: cannot be judged."""
    if _ADDRESS.match(path):
        raise ValueError(f"cannot judge {path!r}: an address, where a path is expected")
    results = {
        _lies_under(path, system, root, ignore_case=directory.ignore_case)
        for system, root in directory.roots
    }
    if len(results) > 1:
        raise ValueError(
            f"cannot judge {path!r}: under {directory.text!r} on one of POSIX and Windows, and not "
            'on the other; name the "system"'
        )
    return results.pop()


def _lies_under(path: str, system: System, root: Resolved, *, ignore_case: bool) -> bool:
    found = _RESOLVERS[system](path)
    if bool(found.anchor) is not bool(root.anchor):
        raise ValueError(f"cannot compare {path!r} with {root}: one path is relative")
    fold = _folded if ignore_case or system == "windows" else str
    if fold(found.anchor) != fold(root.anchor):
        return False
    above, needed = found.parts.count(".."), root.parts.count("..")
    if above != needed and len(found.parts) > above:
        raise ValueError(
            f"cannot compare {path!r} with {root}: it leaves the folder, and may return"
        )
    return [fold(one) for one in found.parts[: len(root.parts)]] == [fold(o) for o in root.parts]


def _folded(part: str) -> str:
    """Return a name as systems compare it that ignore case: composed and decomposed alike.

    A character that folds into several stays: systems fold one by one.
    """
    if any(unicodedata.category(one) == "Cf" for one in part):
        raise ValueError(f"cannot judge {part!r}: some systems ignore its invisible characters")
    decomposed = unicodedata.normalize("NFD", part)
    return "".join(one.casefold() if len(one.casefold()) == 1 else one for one in decomposed)
