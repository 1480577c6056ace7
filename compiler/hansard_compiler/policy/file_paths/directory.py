"""A directory that a rule names, and whether a path lies in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from hansard_compiler.policy.file_paths import posix, windows
from hansard_compiler.policy.file_paths.resolved import Resolved, is_pattern

System: TypeAlias = Literal["posix", "windows"]

_RESOLVERS = {"posix": posix.resolve, "windows": windows.resolve}
_MOST_DECODED = 3
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
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
    fields = value if isinstance(value, Mapping) else {"path": value}
    unknown = sorted(map(str, set(fields) - _KEYS))
    if unknown:
        raise ValueError(f"expected path, system and ignore_case, found {', '.join(unknown)}")
    text, ignore_case = fields.get("path"), fields.get("ignore_case", False)
    if not isinstance(text, str) or not isinstance(ignore_case, bool):
        raise ValueError(f"expected a path, or a mapping with one, found {value!r}")
    roots = tuple(
        (system, _RESOLVERS[system](text)) for system in _systems(text, fields.get("system"))
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
    """Whether a path is the directory or lies below it. Raises ValueError: cannot be judged.

    The system opens a path as it is written, and a program may decode, trim or normalize it first:
    where that would make a difference, it cannot be judged.
    """
    results = {_is_under(path, directory)}
    for read in _READINGS:
        other = read(path)
        if other != path:
            results.add(_is_under(other, _read_so(directory, read)))
    if len(results) > 1:
        raise ValueError(f"cannot judge {path!r}: programs may read it in different ways")
    return results.pop()


def _is_under(path: str, directory: Directory) -> bool:
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


def _read_so(directory: Directory, read: Callable[[str], str]) -> Directory:
    """Return the directory as a program reads its name that reads paths so."""
    text = read(directory.text)
    if text == directory.text:
        return directory
    roots = tuple((system, _RESOLVERS[system](text)) for system, _ in directory.roots)
    return replace(directory, text=text, roots=roots)


def _decoded(path: str) -> str:
    """Return a path without percent-encoding, also where that was applied several times."""
    for _ in range(_MOST_DECODED):
        if "%" not in path:
            break
        path = _ENCODED.sub(_characters, path)
    return path


def _characters(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")


def _composed(path: str) -> str:
    """Return a path of compatible characters (`\uff45` is `e`), without invisible ones."""
    if path.isascii():
        return path
    plain = unicodedata.normalize("NFKC", path)
    return "".join(one for one in plain if unicodedata.category(one) != "Cf")


def _with_slashes(path: str) -> str:
    return path.replace("\\", "/")


def _as_read(path: str) -> str:
    return _with_slashes(_composed(_decoded(path))).strip()


_READINGS: tuple[Callable[[str], str], ...] = (
    str.strip, _decoded, _composed, _with_slashes, _as_read,
)  # fmt: skip


def _lies_under(path: str, system: System, root: Resolved, *, ignore_case: bool) -> bool:
    found = _RESOLVERS[system](path)
    if system == "posix" and (posix.on_macos(found), posix.on_macos(root)) != (found, root):
        here = _compared(path, system, found, root, ignore_case=ignore_case)
        there = (posix.on_macos(found), posix.on_macos(root))
        if here is not _compared(path, system, *there, ignore_case=ignore_case):
            raise ValueError(f"cannot judge {path!r}: on macOS it is another name of {root}")
        return here
    return _compared(path, system, found, root, ignore_case=ignore_case)


def _compared(
    path: str, system: System, found: Resolved, root: Resolved, *, ignore_case: bool
) -> bool:
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
    pairs = [(one, fold(one) == fold(o)) for one, o in zip(found.parts, root.parts, strict=False)]
    first = next((one for one, is_same in pairs if not is_same), None)
    if first is not None and is_pattern(first):
        raise ValueError(f"cannot judge {path!r}: a program may read {first!r} as a pattern")
    return first is None and len(found.parts) >= len(root.parts)


def _folded(part: str) -> str:
    """Return a name as systems compare it that ignore case: composed and decomposed alike.

    A character that folds into several stays: systems fold one by one.
    """
    if any(unicodedata.category(one) == "Cf" for one in part):
        raise ValueError(f"cannot judge {part!r}: some systems ignore its invisible characters")
    decomposed = unicodedata.normalize("NFD", part)
    return "".join(one.casefold() if len(one.casefold()) == 1 else one for one in decomposed)
