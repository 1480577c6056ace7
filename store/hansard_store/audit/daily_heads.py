"""Heads of the audit log as they were day by day, in files beside the database.

A chain whose end was cut off is sound, and shorter. Someone with the file of the database in hand
can cut it, and what is stored elsewhere tells. A file a day, `heads/2026-11-22`, holds `SEQ:HASH`
as `hansard events head` prints it: to be copied to where others cannot change it. Where a clock was
set back, days come again: the second file of one is `2026-11-22.2`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hansard_store.audit.event_types import (
    EMPTY_HEAD,
    ChainBreak,
    ChainReport,
    EventFilter,
    EventLog,
    Head,
)
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreError

_NAME = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.\d+)?", re.ASCII)
_TEXT = re.compile(r"(\d{1,19}):([0-9a-f]{64})\s*", re.ASCII)
_SECOND_NS = 1_000_000_000
_DAY_NS = 24 * 3600 * _SECOND_NS


@dataclass(frozen=True, slots=True)
class KeptHead:
    """The head as it was at some time of a day (UTC)."""

    day: str
    head: Head


def keep_head(folder: DataFolder, log: EventLog, *, now_ns: int) -> Head | None:
    """Keep the head as it is today, once, and return it; None where there is nothing to keep.

    That is where nothing came before today since the last one: a day's events are stored with the
    first look of another day. What came later than now, by a clock that was set back since, has
    waited long enough. Two processes may try at once; the first to link its file is the day's.
    """
    day = datetime.fromtimestamp(now_ns // _SECOND_NS, UTC).date().isoformat()
    names = _names(folder)
    if names and names[-1].startswith(day):
        return None  # as a rule: without reading them all
    heads = read_heads(folder)
    last = heads[-1] if heads else KeptHead("", EMPTY_HEAD)
    if last.day == day:
        return None
    first = log.read(EventFilter(), before=last.head.seq + 2, limit=1)
    if not first or first[0].seq <= last.head.seq:
        return None
    if now_ns - now_ns % _DAY_NS <= first[0].time_ns <= now_ns:
        return None
    times = sum(one.day == day for one in heads)
    path = folder.heads / (f"{day}.{times + 1}" if times else day)
    head = log.head()
    folder.heads.mkdir(mode=0o700, exist_ok=True)
    mine = folder.heads / f".{day}-{secrets.token_hex(4)}"
    try:
        _write(mine, f"{head.text}\n")
        os.link(mine, path)
    except FileExistsError:
        return None
    finally:
        mine.unlink(missing_ok=True)
    return head


def read_heads(folder: DataFolder) -> list[KeptHead]:
    """Return what was stored, the oldest first; raises StoreError for a file that holds no head.

    By the log itself: days need not come in their order.
    """
    heads = [KeptHead(name.partition(".")[0], _head(folder, name)) for name in _names(folder)]
    return sorted(heads, key=lambda one: (one.head.seq, one.day))


def _names(folder: DataFolder) -> list[str]:
    if not folder.heads.is_dir():
        return []
    return sorted(one.name for one in folder.heads.iterdir() if _NAME.fullmatch(one.name))


def verify_with_heads(
    folder: DataFolder,
    verify: Callable[[Sequence[Head]], ChainReport],
    *,
    latest: Callable[[], Sequence[Head]] = tuple,
    given_up: frozenset[str] = frozenset(),
) -> ChainReport:
    """Check a chain against every head that was stored of it; a file that holds none is a break.

    `latest` returns those of decisions and claims; heads that were given up are left out.
    """
    try:
        heads = [*(one.head for one in read_heads(folder)), *latest()]
    except StoreError as error:
        report = verify(())
        problem = f"cannot be held against what was kept of it: {error}"
        return replace(report, broken=report.broken or ChainBreak(report.head.seq, problem))
    return verify([one for one in dict.fromkeys(heads) if one.text not in given_up])


def _head(folder: DataFolder, day: str) -> Head:
    path = folder.heads / day
    try:
        found = _TEXT.fullmatch(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if found is None:
        raise StoreError(f"{str(path)!r} holds no head of the audit log (SEQ:HASH)")
    return Head(int(found[1]), bytes.fromhex(found[2]))


def _write(path: os.PathLike[str], text: str) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
