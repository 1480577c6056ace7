"""Paths as Linux and macOS resolve them, but for links on the disk.

path_resolution(7): empty and `.` components are dropped, `..` goes up and stays at the root. Unlike
`posixpath.normpath`, two leading slashes are one: neither system gives them a meaning. proc(5):
`/proc/PID/root` is the root, other links there lead anywhere.
"""

from __future__ import annotations

from hansard_compiler.policy.file_paths.resolved import (
    Resolved,
    check_name,
    check_path,
    step_up,
    unclear,
)

# macOS opens files by their numbers below these.
_BY_NUMBER = frozenset((".vol", ".resolve", ".nofollow"))
_DATA = ("System", "Volumes", "Data")
_PRIVATE = frozenset(("etc", "tmp", "var"))
_LINKS = frozenset(("cwd", "exe", "fd", "map_files"))


def resolve(path: str) -> Resolved:
    """Return what a path opens. Raises ValueError where its text does not show it."""
    check_path(path)
    if path.startswith(("~", "$")):
        raise unclear(path, "a program may expand its beginning")
    is_absolute = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            step_up(parts, is_absolute=is_absolute)
        elif part not in ("", "."):
            check_name(path, part)
            parts.append(part)
            if is_absolute:
                _follow_kernel_link(path, parts)
    return Resolved("/" if is_absolute else "", tuple(parts))


def on_macos(found: Resolved) -> Resolved:
    """Return where a path leads on macOS, whose `/etc` is `/private/etc`, without these detours."""
    parts = found.parts[3:] if found.parts[:3] == _DATA else found.parts
    is_private = parts[:1] == ("private",) and parts[1:2] and parts[1] in _PRIVATE
    return Resolved(found.anchor, parts[1:] if is_private else parts)


def _follow_kernel_link(path: str, parts: list[str]) -> None:
    """Follow the links of /proc and /dev whose targets are known; the others cannot be judged."""
    if parts[0] in _BY_NUMBER:
        raise unclear(path, "macOS opens any file so")
    if parts[0] == "dev":
        if parts[1:2] == ["fd"] or parts[1:2] in (["stdin"], ["stdout"], ["stderr"]):
            raise unclear(path, "it names an open file of the process")
        return
    if parts[0] != "proc" or len(parts) < 3:
        return
    below = parts[2:]
    if below[0] == "task" and len(below) >= 3:
        below = below[2:]
    if below == ["root"]:
        parts.clear()
    elif below[0] in _LINKS:
        raise unclear(path, "it leads through a link of the kernel")
