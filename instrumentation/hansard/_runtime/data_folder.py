"""The data folder of the SDK: its permissions, and the keys in it."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from hansard._runtime.warnings import warn_once

FOLDER: Final = "proposals"
_ID: Final = re.compile("[0-9a-f]{32}", re.ASCII)
_KEY_BYTES = 32


def make_folder(path: Path) -> None:
    """Make a folder that only its owner may enter; an existing one keeps its permissions.

    The ones that it needs are made so too: `mkdir(parents=True)` gives them what the umask leaves.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):
            one.mkdir(mode=0o700)


def read_or_make_key(folder: Path) -> bytes:
    """Return the local key that fingerprints are made with; made on first use, 0600.

    The file is the server's, too: the first process makes it, whole or not at all. OSError when
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


def key_or_random(folder: Path) -> bytes:
    """Return the same; where the folder cannot be used, a key for this process alone."""
    try:
        return read_or_make_key(folder)
    except OSError:  # equal secrets have no equal fingerprints elsewhere
        return secrets.token_bytes(_KEY_BYTES)


class Keys:
    """The proposer's keys, one file each: after a restart it may still run what it proposed.

    A key lets its holder claim one approved call, once. The store has its hash alone; the key
    itself is the program's own, readable by its owner. Never raises.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER

    def keep(self, approval_id: str, key: str) -> None:
        """Write a key down, whole or not at all."""
        if not _ID.fullmatch(approval_id):
            return
        part = self._folder / f".{approval_id}-{os.getpid()}-{secrets.token_hex(4)}"
        try:
            make_folder(self._folder)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(key)
            part.replace(self._folder / approval_id)
        except (OSError, UnicodeEncodeError) as error:
            warn_once(
                "gate keys",
                "what waits for a decision cannot be run after a restart: %s is not writable (%s)",
                self._folder,
                error,
            )

    def find(self, approval_id: str) -> str | None:
        """Return the key of a proposal, None where this program has none."""
        if not _ID.fullmatch(approval_id):
            return None
        try:
            return (self._folder / approval_id).read_text("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def forget(self, approval_id: str) -> None:
        """Remove a key that is used up."""
        if _ID.fullmatch(approval_id):
            try:
                (self._folder / approval_id).unlink(missing_ok=True)
            except OSError:
                return  # used up all the same: the store takes it once
