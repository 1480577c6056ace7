"""Tombstones: what is left of a run that was deleted, and of nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_compiler.errors import NotFoundError
from hansard_store.database.id_prefixes import find_row
from hansard_store.times import time_text

Reason = Literal["keep", "max_disk", "by hand", "purge"]

_ADD: Final = """
INSERT INTO tombstone (trace_id, deleted_ns, reason, span_count, digest, deleted_by)
VALUES (?, ?, ?, ?, ?, ?)
"""
_COLUMNS: Final = "trace_id, deleted_ns, reason, span_count, digest, deleted_by"
_ONE: Final = f"SELECT {_COLUMNS} FROM tombstone WHERE trace_id = ?"
_PREFIX: Final = f"""
SELECT {_COLUMNS} FROM tombstone WHERE trace_id BETWEEN :low AND :high
ORDER BY trace_id LIMIT :limit
"""
_WHY: Final = {
    "keep": ", by the setting keep",
    "max_disk": ", by the setting max_disk",
    "by hand": "",
    "purge": ", and purged: no byte of it is left",
}


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of a deleted run."""

    trace_id: bytes
    deleted_ns: int
    reason: str
    span_count: int
    digest: bytes  # sha256 over the macs of its spans, in order of id
    deleted_by: str | None  # None where a setting deleted it, and of runs deleted before 0.2

    @property
    def words(self) -> str:
        """When it was deleted, by whom and why, its number of spans and its digest."""
        deleted_at = str(time_text(self.deleted_ns))[:19].replace("T", " ")
        by = f" by {self.deleted_by}" if self.deleted_by else ""
        spans = "1 span" if self.span_count == 1 else f"{self.span_count:,} spans"
        why = _WHY.get(self.reason, "")
        return f"deleted at {deleted_at} UTC{by}{why}; it had {spans}, sha256:{self.digest.hex()}"


class RunDeletedError(NotFoundError):
    """The run was deleted; the message says by whom, when and why."""

    code = "run_deleted"

    def __init__(self, tombstone: Tombstone) -> None:
        super().__init__("run", tombstone.trace_id.hex())
        self.args = (f"run {tombstone.trace_id.hex()} was {tombstone.words}",)
        self.tombstone = tombstone


def add_tombstone(
    connection: apsw.Connection,
    trace_id: bytes,
    *,
    reason: Reason,
    by: str | None,
    span_count: int,
    digest: bytes,
) -> Tombstone:
    """Note that a run is deleted, before its first row goes."""
    made = Tombstone(trace_id, time.time_ns(), reason, span_count, digest, by)
    connection.execute(_ADD, (trace_id, made.deleted_ns, reason, span_count, digest, by))
    return made


def find_tombstone(connection: apsw.Connection, trace_id: bytes) -> Tombstone | None:
    """Return what is left of a run that was deleted."""
    row: Any = connection.execute(_ONE, (trace_id,)).fetchone()
    return None if row is None else Tombstone(*row)


def check_deleted(connection: apsw.Connection, prefix: str) -> None:
    """Raise RunDeletedError where an id, or its beginning, is that of one deleted run.

    Raises NotFoundError where it is no id of any, AmbiguousIdError where it is that of several.
    """
    raise RunDeletedError(Tombstone(*find_row(connection, _PREFIX, "run", prefix)))
