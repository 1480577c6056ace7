"""Heads of the audit log at each decision and claim, stored beside the store and apart.

A database that was put back to an earlier state is sound in itself: it ends sooner, and what it
would run again has run. So the head is written to `heads/latest` in the data folder and to one file
per store id in the platform's state directory (setting `heads_copy`), after the commit and before
the action runs. A store that has not come by a head that was stored of it runs no approved action.

Format of both files, a line for each data folder that the store was used in: `SEQ:HASH`, a space,
`-` or `forked`, a space, the folder's absolute path. `forked`: that folder was restored from an
older state and went its own way, which somebody accepted; it says nothing of the other folders.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit.event_types import EventLog, Head
from hansard_store.database.data_folder import DataFolder, make_private
from hansard_store.errors import StoreBusyError

if sys.platform == "win32":

    def _lock(descriptor: int) -> None:
        """Two processes that decide in one moment may lose the newer head here."""

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


ENVIRONMENT: Final = "HANSARD_HEADS_COPY"
OFF: Final = "off"
LATEST: Final = "latest"
_LINE: Final = re.compile(r"(\d{1,19}):([0-9a-f]{64}) (-|forked) (.+)", re.ASCII)
_MOST_FOLDERS: Final = 50  # of one store: the newest
_RESERVED_BYTES: Final = 4096  # written before the commit, so that a full disk refuses there
_log = logging.getLogger("hansard.approvals")


@dataclass(frozen=True, slots=True)
class Anchor:
    """A head that was stored of the store in one folder."""

    head: Head
    folder: str
    is_fork: bool
    path: Path  # the file that holds it

    @property
    def line(self) -> str:
        return f"{self.head.text} {'forked' if self.is_fork else '-'} {self.folder}"


def copy_folder(setting: str | None = None) -> Path | None:
    """Return where second copies of heads are kept; None where that is switched off.

    `setting`: a folder, or `off`; None asks the environment, then the platform. Every process that
    opens a store must come to the same, whatever configured it, so the environment is read here.
    """
    chosen = setting or os.environ.get(ENVIRONMENT)
    if chosen:
        return None if chosen == OFF else Path(chosen).expanduser()
    from platformdirs import user_state_path  # only this line needs it

    try:
        return user_state_path("hansard", appauthor=False) / "heads"
    except RuntimeError:  # a container's user that is in no passwd
        return None


def store_id(key: bytes) -> str:
    """Return the id of a store: a hash of its key, so that a copy of it has the same one."""
    return hashlib.blake2b(key, digest_size=16, person=b"hansard store id").hexdigest()


@dataclass(frozen=True, slots=True)
class AnchoredChain:
    """An audit log, and the heads that it need not have come by."""

    log: EventLog
    given_up: frozenset[str] = frozenset()

    def has_passed(self, head: Head) -> bool:
        """Say whether the chain came by a head, or somebody accepted that it did not."""
        return self.holds(head) or head.text in self.given_up

    def holds(self, head: Head) -> bool:
        """Say whether the chain came by a head."""
        return self.log.hash_at(head.seq) == head.hash


class Anchors:
    """Keeps and reads the heads of one store; threads may share it."""

    def __init__(self, folder: DataFolder, key: bytes, *, copy: Path | None) -> None:
        self._here = str(folder.path.resolve())
        self._local = folder.heads / LATEST
        self._copy = None if copy is None else copy / store_id(key)

    def broken(self, chain: AnchoredChain, *, skips_damaged: bool = False) -> list[Anchor]:
        """Return the heads that this store has not come by: it is older, or went another way.

        Those that somebody accepted as given up are left out. Raises StoreBusyError for a file
        that cannot be read, or holds no heads unless those are skipped.
        """
        found = self._read_all(skips_damaged=skips_damaged)
        anchors = [one for one in found if one.folder == self._here]
        if not any(one.is_fork for one in anchors):  # other folders bear on it as well
            anchors += [one for one in found if one.folder != self._here and not one.is_fork]
        return [one for one in anchors if not chain.has_passed(one.head)]

    def stored(self) -> list[Anchor]:
        """Return the heads that this folder came by: its own, and what it was copied with.

        What the second copy holds of other folders is left out: a backup is older than its store.
        """
        found = self._read_all()
        return [one for one in found if one.folder == self._here or one.path == self._local]

    def is_behind(self, head: Head) -> bool:
        """Say whether the data folder's own file holds an earlier head, or none."""
        mine = [one for one in _read(self._local, skips_damaged=True) if one.folder == self._here]
        return not mine or mine[0].head.seq < head.seq

    @contextmanager
    def keeping(self) -> Iterator[Keeping]:
        """Reserve the files before a transaction begins, for `Keeping`.

        Raises StoreBusyError where the data folder takes none: the transaction must not begin. A
        second copy that cannot be written is left out; `hansard doctor` says so.
        """
        reserved = [_reserve(self._local)]
        try:
            if self._copy is not None:
                with suppress(StoreBusyError):
                    reserved.append(_reserve(self._copy))
            yield Keeping(self._here, reserved)
        finally:
            for one in reserved:
                one.path.unlink(missing_ok=True)

    def _read_all(self, *, skips_damaged: bool = False) -> list[Anchor]:
        places = [self._local, *([] if self._copy is None else [self._copy])]
        return [one for path in places for one in _read(path, skips_damaged=skips_damaged)]


@dataclass(frozen=True, slots=True)
class _Reserved:
    """A file that has room for what replaces the target beside it."""

    path: Path
    target: Path

    def replace(self, found: Sequence[Anchor], mine: Anchor) -> None:
        others = [one for one in found if one.folder != mine.folder]
        text = "".join(f"{one.line}\n" for one in [*others[-_MOST_FOLDERS + 1 :], mine])
        with self.path.open("r+b") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self.path.replace(self.target)


@dataclass(frozen=True, slots=True)
class _PendingHead:
    """A file that takes the head of a commit."""

    reserved: _Reserved
    is_over: bool  # over whatever is there: it was given up
    is_fork: bool


@dataclass(slots=True)
class Keeping:
    """Files that wait for the head of one commit."""

    _here: str
    _reserved: list[_Reserved]
    _head: Head | None = None
    _pending: list[_PendingHead] = field(default_factory=list)

    def prepare(self, chain: AnchoredChain, *, accepts: bool = False) -> None:
        """Take the head inside the transaction; a kept one that the chain has not come by stays.

        `accepts`: unless somebody just accepted that, over a damaged file as well. Where another
        folder of the store is further, this one is a fork from there on.
        """
        self._head = chain.log.head()
        for one in self._reserved:
            try:
                found = _read(one.target, skips_damaged=accepts)
            except StoreBusyError:
                continue  # claims are refused for it, decisions are not
            mine = self._mine(found)
            if mine is not None and not chain.has_passed(mine.head):
                continue
            others = [other for other in found if other.folder != self._here and not other.is_fork]
            is_apart = accepts and not all(chain.holds(other.head) for other in others)
            is_fork = is_apart or (mine is not None and mine.is_fork)
            is_over = accepts or (mine is not None and not chain.holds(mine.head))
            self._pending.append(_PendingHead(one, is_over, is_fork))

    def keep(self) -> None:
        """Write the head after the commit and before what it allows begins. Needs no database."""
        assert self._head is not None
        for one in self._pending:
            path = one.reserved.target
            try:
                with _locked(path.parent):
                    found = _read(path, skips_damaged=one.is_over)
                    mine = self._mine(found)
                    if mine is None or one.is_over or mine.head.seq < self._head.seq:
                        anchor = Anchor(self._head, self._here, one.is_fork, path)
                        one.reserved.replace(found, anchor)
            except (OSError, StoreBusyError) as error:  # it is committed, and has its earlier head
                _log.error("the head of the audit log was not kept: %s", error)

    def _mine(self, found: Sequence[Anchor]) -> Anchor | None:
        return next((one for one in found if one.folder == self._here), None)


def _read(path: Path, *, skips_damaged: bool = False) -> list[Anchor]:
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if path.name != LATEST:
            return []  # the second copy is an addition; the folder's own must be readable
        raise StoreBusyError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    found = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None and not skips_damaged:
            raise StoreBusyError(
                f"{str(path)!r} holds no head of the audit log (SEQ:HASH); look at "
                "`hansard verify`, then `hansard events accept-head`"
            )
        if match is not None:
            head = Head(int(match[1]), bytes.fromhex(match[2]))
            found.append(Anchor(head, match[4], match[3] == "forked", path))
    return found


def _reserve(target: Path) -> _Reserved:
    path = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        make_private(target.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(bytes(_RESERVED_BYTES))
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise StoreBusyError(
            f"the head of the audit log cannot be kept in {str(target.parent)!r}: {error.strerror}"
        ) from None
    return _Reserved(path, target)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time read and replace the files of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


# Heads that somebody gave up: the event that says so, and the proof that Hansard wrote it.
#
# Anybody who has the database in hand can append an event that continues the chain. So that such an
# event makes no older head valid, its body is signed with the store's key, bound to the head
# before.

_WORD = b"hansard accepted heads\0"
_ACCEPTED = """
SELECT body, prev_hash FROM event INDEXED BY event_type
WHERE type = 'head.accepted' AND type NOT IN ('tool.called', 'tool.returned') ORDER BY seq
"""


def acceptance(key: bytes, after: Head, given_up: Sequence[Head]) -> Json:
    """Return the body of the event that gives heads up, to be appended after a head."""
    heads = [head.text for head in given_up]
    return {"head": after.text, "given_up": heads, "mac": _accepted_mac(key, after.hash, heads)}


def accepted_heads(connection: apsw.Connection, key: bytes) -> frozenset[str]:
    """Return the heads (SEQ:HASH) that need not be on the chain any more."""
    found: set[str] = set()
    for body, prev_hash in connection.execute(_ACCEPTED):
        try:
            record: Any = json.loads(body)
        except ValueError:  # it was altered, which the chain names
            continue
        heads = record.get("given_up") if isinstance(record, dict) else None
        if isinstance(heads, list) and hmac.compare_digest(
            str(record.get("mac")).encode(), _accepted_mac(key, prev_hash, heads).encode()
        ):
            found.update(heads)
    return frozenset(found)


def _accepted_mac(key: bytes, prev_hash: bytes, heads: Sequence[str]) -> str:
    bound = _WORD + prev_hash + canonical_bytes(list(heads))
    return hmac.digest(key, bound, "sha256").hex()
