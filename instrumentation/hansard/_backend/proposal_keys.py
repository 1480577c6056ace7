"""The proposer's keys on disk: after a restart this program may still run what it proposed.

A key lets its holder claim one approved call, once. The store keeps its hash alone; the key itself
is the program's own, in its data folder, readable by its owner.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

from hansard._runtime.data_folder import make_folder
from hansard._runtime.warnings import warn_once

FOLDER: Final = "proposals"
_ID: Final = re.compile("[0-9a-f]{32}", re.ASCII)


class Keys:
    """A folder with one file a proposal; never raises."""

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
