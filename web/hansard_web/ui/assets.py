"""Static files: what is in the package, under addresses that may be cached for a year.

All files of one build live under `/static/<digest of all of them>/…`, so a module may import its
neighbour by a relative path and a new build is never mixed with an old one.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".LICENSE": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One static file, read once."""

    path: str  # "js/keys.js"
    body: bytes
    media_type: str


class Assets:
    """Every static file of the package, in memory (about 450 KiB), and their common digest."""

    def __init__(self) -> None:
        found = _read(files("hansard_web") / "static", "")
        self._by_path = {asset.path: asset for asset in found}
        self._integrity = {one.path: hashlib.sha384(one.body).digest() for one in found}
        digest = hashlib.sha256()
        for path in sorted(self._by_path):
            digest.update(path.encode() + b"\0" + self._by_path[path].body + b"\0")
        self.build = digest.hexdigest()[:12]

    def find(self, path: str) -> Asset | None:
        """Return a file by its path below `static/`; only files of the package can be named."""
        return self._by_path.get(path)

    def url(self, path: str) -> str:
        """Return the cacheable address of a file; KeyError for one that does not exist."""
        return f"/static/{self.build}/{self._by_path[path].path}"

    def integrity(self, path: str) -> str:
        """Return the subresource integrity value for the tag of a file."""
        return "sha384-" + base64.b64encode(self._integrity[path]).decode()


@cache
def package_assets() -> Assets:
    """Return the static files of this package, read once a process."""
    return Assets()


def _read(folder: Traversable, prefix: str) -> list[Asset]:
    found: list[Asset] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _read(entry, path + "/")
            continue
        suffix = "." + entry.name.rpartition(".")[2]
        if suffix in MEDIA_TYPES:
            found.append(Asset(path, entry.read_bytes(), MEDIA_TYPES[suffix]))
    return found
