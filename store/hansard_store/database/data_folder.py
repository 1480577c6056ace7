"""The data folder: where everything of one store lives, and the local key in it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hansard_store.errors import (
    StoreError,
)

# Folders that are their owner's alone, whatever the umask is.


def make_private(path: Path) -> None:
    """Make a folder, and the ones that it needs, 0700; those that are there stay as they are.

    `Path.mkdir(mode=…, parents=True)` gives its mode to the last one only.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        with suppress(FileExistsError):  # of another process, just now
            one.mkdir(mode=0o700)


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Where everything of one store lives. The folder is the owner's alone (0700)."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "hansard.db"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def heads(self) -> Path:
        """Heads of the audit log, a file a day (kept_heads.py)."""
        return self.path / "heads"

    @property
    def replaying(self) -> Path:
        """Locks of the processes that make replays, a folder each (hansard_web.replay.engine)."""
        return self.path / "replaying"

    @property
    def scanning(self) -> Path:
        """The lock of the scan for stories (hansard_collector.scanning)."""
        return self.path / "scanning"

    @property
    def heartbeat(self) -> Path:
        """The lock of the process that runs a cycle (hansard_collector.heartbeat)."""
        return self.path / "heartbeat"

    @property
    def reports(self) -> Path:
        """Status reports with their acknowledgements (reports/files.py)."""
        return self.path / "reports"

    @property
    def key_file(self) -> Path:
        return self.path / "key"

    @property
    def has_store(self) -> bool:
        """Whether there is a database; raises StoreError where this user may not even look."""
        try:
            return self.database.exists()
        except PermissionError as error:
            raise StoreError(f"cannot look into {self.path}: {error.strerror}") from None

    def create(self) -> None:
        """Make the folder and its parts; of existing ones others lose every permission."""
        make_private(self.path)
        shut_out_others(self.path)
        make_private(self.blobs)
        shut_out_others(self.blobs)

    def key(self) -> bytes:
        """Return the local secret that keys HMACs and redaction fingerprints; made on first use.

        Two processes may start at once: the first to link its file wins, both read that one.
        """
        if not self.key_file.exists():
            mine = self.path / f".key-{os.getpid()}-{secrets.token_hex(4)}"
            mine.touch(mode=0o600)
            mine.write_bytes(secrets.token_bytes(32))
            try:
                os.link(mine, self.key_file)
            except FileExistsError:
                # The other process was first; its key is the store's.
                return self.key_file.read_bytes()
            finally:
                mine.unlink()
        return self.key_file.read_bytes()


def shut_out_others(path: Path) -> None:
    """Take every permission from others, and give none: what its owner made read-only stays so.

    What a symbolic link leads to is not ours to change.
    """
    found = path.lstat().st_mode
    mode = stat.S_IMODE(found)
    if mode & 0o077 and not stat.S_ISLNK(found):
        path.chmod(mode & 0o700)
