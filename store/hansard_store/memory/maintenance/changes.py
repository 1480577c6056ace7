"""What a write is to the memory that stood before it: add, update, delete or ignore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import apsw

from hansard_compiler.conflicts import is_denial
from hansard_compiler.models.memory import Change, WriteMemory
from hansard_store.approvals.unit_of_work import Who
from hansard_store.memory.maintenance import supersessions
from hansard_store.memory.maintenance.supersessions import Cause, NewSupersession
from hansard_store.memory.records import MemoryConflict
from hansard_store.memory.versions import Written

_NUMBER: Final = "SELECT id FROM memory WHERE memory_id = ?"
_NEWER: Final = "a newer version of the same subject and attribute"
_OLDER: Final = "it tells of an earlier time than the version that stands"
_ACCEPTED: Final = "a person let the newer version stand"


def change_of(
    asked: WriteMemory, made: Written, conflicts: Sequence[MemoryConflict] = ()
) -> Change:
    """Return how a write compares with what stood.

    - `ignore`: it says nothing new, or tells of an earlier time
    - `delete`: it only denies what stood, or gives its attribute no value
    - `update`: it says otherwise than what stood
    - `add`: nothing that stood is about the same, or what is may hold beside it

    Where it waits for a review, this is what it will be once a person accepts it.
    """
    if made.outcome in ("repeat", "superseded"):
        return "ignore"
    certain = [one for one in conflicts if one.is_certain]
    if not made.superseded and made.stands is None and not certain:
        return "add"
    return "delete" if _denies(asked.content) else "update"


def record_versions(
    connection: apsw.Connection,
    number: int,
    superseded: Iterable[bytes],
    *,
    cause: Cause,
    judge: str,
    now_ns: int,
    stands: Iterable[bytes] = (),
    by: Who | None = None,
    step_id: str | None = None,
) -> None:
    """Record which versions a written or accepted record superseded, and which supersede it."""
    why = _ACCEPTED if cause == "accepted" else _NEWER
    links = [
        NewSupersession(_number(connection, one), number, cause, why, judge, step_id=step_id)
        for one in superseded
    ]
    links += [
        NewSupersession(number, _number(connection, one), cause, _OLDER, judge, step_id=step_id)
        for one in stands
    ]
    for link in links:
        supersessions.add(connection, link, state="applied", now_ns=now_ns, by=by)


def _denies(content: Any) -> bool:
    if isinstance(content, Mapping):
        return "value" in content and content["value"] is None
    return isinstance(content, str) and is_denial(content)


def _number(connection: apsw.Connection, memory_id: bytes) -> int:
    return int(connection.execute(_NUMBER, (memory_id,)).get)
