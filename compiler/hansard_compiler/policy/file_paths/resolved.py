"""A path as a system resolves it: where it starts, and the names from there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

# `$HOME`, `${x}`, `$(x)`, `%TEMP%`, braces that hold a slash or `..`; not `$id.tsx`, `A$B.class`.
_EXPANDED: Final = re.compile(
    r"\$\{|\$\(|`|\$[A-Z_][A-Z0-9_]*(?![A-Za-z0-9_])|\$env:|%[A-Za-z_][\w()]*%|![A-Za-z_]\w*!"
    r"|\{[^}]*$|\{[^}]*\.\."
)
_PATTERN: Final = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class Resolved:
    """`anchor` is "/", a drive or a share; "" for a relative path, which may begin with `..`."""

    anchor: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return repr(self.anchor + "/".join(self.parts))


def unclear(path: str, why: str) -> ValueError:
    """Return the error for a path of which the text alone does not show what it opens."""
    return ValueError(f"cannot judge {path!r}: {why}")


def check_path(path: str) -> None:
    """Raise ValueError for a path that no system opens."""
    if not path:
        raise unclear(path, "it is empty")
    if "\0" in path:
        raise unclear(path, "it holds a NUL character")


def step_up(parts: list[str], *, is_absolute: bool) -> None:
    """Apply `..` to the names so far; above a root there is nothing."""
    if parts and parts[-1] != "..":
        parts.pop()
    elif not is_absolute:
        parts.append("..")


def check_name(path: str, part: str) -> None:
    """Raise ValueError for a name that a program may expand to something else than a name here."""
    if _EXPANDED.search(part):
        raise unclear(path, f"a program may expand {part!r}")
    if part[0] in ".[" and part != ".." and fnmatchcase("..", part):
        raise unclear(path, f"{part!r} is a pattern that fits '..'")


def is_pattern(part: str) -> bool:
    """Whether a program that takes patterns reads a name as one: `e*c`, `{etc,srv}`."""
    return _PATTERN.search(part) is not None
