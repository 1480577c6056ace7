"""The roots of a client as the boundary of a workspace: a file outside of them is refused.

Symlinks are followed before paths are compared, and what could be read in two ways (`..`, encoded
slashes, another machine's name) is refused as it is, not repaired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from hansard_compiler.compile.errors import InvalidInput, Problem
from hansard_compiler.mcp_context.fields import text_at

Resolve: TypeAlias = Callable[[str], str]  # an absolute path, with symlinks followed

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_FILE: Final = re.compile(r"file:(?://([^/?#]*))?(/[^?#]*)", re.IGNORECASE)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_OWN_HOSTS: Final = frozenset({"", "localhost"})


class Boundary(StrEnum):
    """Why a place is not of the workspace."""

    OUTSIDE = "outside_roots"
    NO_FILE = "not_a_file"
    OTHER_HOST = "other_host"
    UNCLEAR = "unclear_path"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A place that was refused, and why."""

    uri: str
    reason: Boundary
    detail: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folders that candidates may come from; `schemes` are permitted beside files."""

    roots: tuple[str, ...]
    resolve: Resolve
    schemes: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        roots: Iterable[Mapping[str, Any]],
        *,
        resolve: Resolve,
        schemes: Iterable[str] = (),
    ) -> Workspace:
        """Return the workspace of `roots/list`; raises InvalidInput for a root that is no folder.

        `resolve` follows symlinks: `os.path.realpath`. Without any root nothing is inside.
        """
        folders = []
        for root in roots:
            uri = text_at(root, "uri", "Root")
            path = file_path(uri)
            if isinstance(path, Refusal):
                raise InvalidInput("Root", [Problem("uri", path.detail)])
            folders.append(resolve(path))
        return cls(tuple(folders), resolve, frozenset(one.lower() for one in schemes))

    def refusal(self, uri: str) -> Refusal | None:
        """Return why a place is refused; None where it is of the workspace."""
        scheme = _SCHEME.match(uri)
        if scheme is not None and scheme[1].lower() in self.schemes - {"file"}:
            return None
        path = file_path(uri)
        if isinstance(path, Refusal):
            return path
        real = self.resolve(path)
        if any(_is_within(real, root) for root in self.roots):
            return None
        led = "" if real == path else f", which leads to {real}"
        return Refusal(uri, Boundary.OUTSIDE, f"{path}{led} is outside of the workspace")


def file_path(uri: str) -> str | Refusal:
    """Return the absolute path of a file: URI, decoded once."""
    scheme = _SCHEME.match(uri)
    if scheme is None or scheme[1].lower() != "file":
        return Refusal(uri, Boundary.NO_FILE, "only file: URIs are places of a workspace")
    match = _FILE.fullmatch(uri)
    if match is None:
        return Refusal(uri, Boundary.UNCLEAR, "the URI has no absolute path, or more than one")
    if (match[1] or "").lower() not in _OWN_HOSTS:
        return Refusal(uri, Boundary.OTHER_HOST, "the file is another machine's")
    path = _decoded(match[2])
    if path is None:
        return Refusal(uri, Boundary.UNCLEAR, "the path is encoded in a way that hides what it is")
    if ".." in path.split("/"):
        return Refusal(uri, Boundary.UNCLEAR, "the path goes up with ..")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/" + "/".join(parts)


def _decoded(raw: str) -> str | None:
    """Return a path without escapes; None for separators or control characters made by them."""
    data = raw.encode("utf-8", "surrogatepass")
    if data.count(b"%") != len(_ESCAPE.findall(data)):
        return None
    if any(byte[0] in b"/\\" for byte in map(_byte, _ESCAPE.findall(data))):
        return None
    try:
        path = _ESCAPE.sub(lambda found: _byte(found[1]), data).decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\\" in path or any(ord(one) < 0x20 or ord(one) == 0x7F for one in path):
        return None
    return path


def _byte(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode("ascii"))


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
