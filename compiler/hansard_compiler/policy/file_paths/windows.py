r"""Paths as Windows resolves them, but for links on the disk.

Source: Microsoft, "File path formats on Windows systems" and "Naming Files, Paths, and Namespaces":
`/` is `\`, trailing dots and spaces of a name are dropped, case does not count, `name:stream` is a
stream of `name`, and `\\?\` switches the rewriting off.
"""

from __future__ import annotations

import re

from hansard_compiler.policy.file_paths.resolved import (
    Resolved,
    check_name,
    check_path,
    step_up,
    unclear,
)

_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"\\\\[?.]\\|\\\?\?\\")
_SHORT_NAME = re.compile(r"~\d")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\.|$)", re.I)
_OWN_HOST = re.compile(
    r"localhost\.?$|127\.|::1$|0--1\.ipv6|\.$|\?$|;|wsl(?:\$|\.localhost)$", re.I
)


def is_windows(path: str) -> bool:
    """Whether only Windows would write a path so: with a drive, a share or backslashes."""
    return bool(_DRIVE.match(path)) or "\\" in path


def resolve(path: str) -> Resolved:
    """Return what a path opens. Raises ValueError where its text does not show it."""
    check_path(path)
    text = path.replace("/", "\\")
    is_literal = bool(_DEVICE.match(text))
    if is_literal:
        text = _without_device(path, text)
    anchor, rest = _anchored(path, text)
    parts: list[str] = []
    for part in rest.split("\\"):
        if part in ("..", ".") and is_literal:
            raise unclear(path, "its dots are names")
        if part == "..":
            step_up(parts, is_absolute=bool(anchor))
        elif part not in ("", "."):
            parts.append(_name(path, part, is_literal=is_literal))
    return Resolved(anchor, tuple(parts))


def _without_device(path: str, text: str) -> str:
    rest = _DEVICE.sub("", text, count=1)
    if rest[:4].upper() == "UNC\\":
        return "\\\\" + rest[4:]
    if not re.match(r"[A-Za-z]:\\", rest):
        raise unclear(path, "it names a device")
    return rest


def _anchored(path: str, text: str) -> tuple[str, str]:
    """Split off the drive or share."""
    if text.startswith("\\\\"):
        host, _, below = text.lstrip("\\").partition("\\")
        share, _, rest = below.partition("\\")
        if _OWN_HOST.match(host) or share.rstrip(". ").endswith("$"):
            raise unclear(path, "it reaches a drive of a machine by way of the network")
        return f"\\\\{host}\\{share}", rest
    if _DRIVE.match(text):
        if text[2:3] != "\\":
            raise unclear(path, "it is relative to the current folder of a drive")
        return text[:2], text[3:]
    if text.startswith("\\"):
        raise unclear(path, "it is relative to the current drive")
    if text.startswith(("~", "$", "%")):
        raise unclear(path, "a program may expand its beginning")
    return "", text


def _name(path: str, part: str, *, is_literal: bool) -> str:
    name = part.partition(":")[0]
    stem = name.rstrip(". ")
    if not stem or (is_literal and stem != name):
        raise unclear(path, f"versions of Windows read {part!r} differently")
    if _SHORT_NAME.search(stem):
        raise unclear(path, f"{part!r} may be the short name of another file")
    if _RESERVED.match(stem):
        raise unclear(path, f"{part!r} is a device")
    check_name(path, part)
    return stem
