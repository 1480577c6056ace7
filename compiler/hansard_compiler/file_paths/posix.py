"""Paths as Linux and macOS resolve them, but for links on the disk.

path_resolution(7): empty and `.` components are dropped, `..` goes up and stays at the root. Unlike
`posixpath.normpath`, two leading slashes are one: neither system gives them a meaning. proc(5):
`/proc/PID/root` is the root, other links there lead anywhere.
"""

from __future__ import annotations

from hansard_compiler.file_paths.resolved import Resolved, step_up, unclear

_LINKS = frozenset(("cwd", "exe", "fd", "map_files"))


def resolve(path: str) -> Resolved:
    """Return what a path opens. Raises ValueError where its text does not say."""
    if not path:
        raise unclear(path, "it is empty")
    if "\0" in path:
        raise unclear(path, "it holds a NUL character")
    if path.startswith(("~", "$")):
        raise unclear(path, "a program may expand its beginning")
    is_absolute = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            step_up(parts, is_absolute=is_absolute)
        elif part not in ("", "."):
            parts.append(part)
            if is_absolute:
                _follow_kernel_link(path, parts)
    return Resolved("/" if is_absolute else "", tuple(parts))


def _follow_kernel_link(path: str, parts: list[str]) -> None:
    """Follow the links of /proc and /dev whose targets are known; the others cannot be judged."""
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
