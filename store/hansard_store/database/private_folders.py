"""Folders that are their owner's alone, whatever the umask is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def make_private(path: Path) -> None:
    """Make a folder, and the ones that it needs, 0700; those that are there stay as they are.

    `Path.mkdir(mode=…, parents=True)` gives its mode to the last one only.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):  # of another process, just now
            one.mkdir(mode=0o700)
