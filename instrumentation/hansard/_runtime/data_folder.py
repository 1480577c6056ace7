"""The data folder as the SDK needs it: a place of its own rights, and the local key in it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

_KEY_BYTES = 32


def make_folder(path: Path) -> None:
    """Make a folder that only its owner may enter; one that is there keeps its rights.

    The ones that it needs are made so too: `mkdir(parents=True)` gives them what the umask leaves.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir(mode=0o700)


def read_or_make_key(folder: Path) -> bytes:
    """Return the local key that fingerprints are made with; made on first use, 0600.

    The file is the server's own: whoever comes first makes it, whole or not at all. OSError when
    the folder cannot be used.
    """
    file = folder / "key"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        make_folder(folder)
    mine = folder / f".key-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        mine.touch(mode=0o600)
        mine.write_bytes(secrets.token_bytes(_KEY_BYTES))
        os.link(mine, file)
    except FileExistsError:
        pass  # another process was first; its key is the folder's
    finally:
        mine.unlink(missing_ok=True)
    return file.read_bytes()
