"""A path as a system resolves it: where it starts, and the names from there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resolved:
    """`anchor` is "/", a drive or a share; "" for a relative path, which may begin with `..`."""

    anchor: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return repr(self.anchor + "/".join(self.parts))


def unclear(path: str, why: str) -> ValueError:
    """Return the error for a path of which the text alone does not say what it opens."""
    return ValueError(f"cannot judge {path!r}: {why}")


def step_up(parts: list[str], *, is_absolute: bool) -> None:
    """Apply `..` to the names so far; above a root there is nothing."""
    if parts and parts[-1] != "..":
        parts.pop()
    elif not is_absolute:
        parts.append("..")
