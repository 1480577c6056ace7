"""Versions of memory records: written, superseded, ended. Every function runs in a transaction.

Nothing is overwritten. A newer version supersedes the current one of its key, unless it is much
less trusted, or dated earlier: then the current one stays. What a person invalidated
and a program says again waits for a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import apsw

from hansard_compiler.canonical import canonical_json
from hansard_compiler.models.memory import TRUST_GAP
from hansard_store.database.stored_json import json_text
from hansard_store.evaluation.verdicts import forget_words
from hansard_store.memory.errors import NotCurrent
from hansard_store.memory.maintenance import reviewed_supersessions
from hansard_store.memory.records import Ended, NewMemory
from hansard_store.stories import rows as stories

_CURRENT = """
SELECT id, memory_id, line, confidence, freshness_ns, expires_ns, content_hmac
FROM memory INDEXED BY memory_current WHERE key = ? AND state = 'current'
"""
_BY_ID = """
SELECT id, memory_id, line, confidence, freshness_ns, expires_ns, content_hmac, state
FROM memory WHERE memory_id = ?
"""
# A repeat of a record that does not stand: it waits for a person, or a person refused it.
_STATED_BEFORE = """
SELECT id, memory_id, line, confidence, freshness_ns, expires_ns, content_hmac, state
FROM memory INDEXED BY memory_key
WHERE key = ? AND content_hmac = ? AND state IN ('review', 'invalidated') ORDER BY id DESC LIMIT 1
"""
_LINE_OF_KEY = "SELECT line FROM memory WHERE key = ? ORDER BY id DESC LIMIT 1"
_LAST_VERSION = "SELECT coalesce(max(version), 0) FROM memory WHERE line = ?"
_NEXT_ID = "SELECT coalesce(max(id), 0) + 1 FROM memory"
_ADD = f"""
INSERT INTO memory (
  id, memory_id, key, line, version, memory_type, project, user, agent, trace_id, chain, slot,
  state, confidence, freshness_ns, expires_ns, created_ns, writer, written_by, source_trace,
  source_steps, approval_id, superseded_by, contests, content_hmac, written_method,
  written_principal, reads, last_read_ns
) VALUES ({", ".join("?" * 27)}, 0, 0)
"""
_ADD_BODY = """
INSERT INTO memory_body (memory, subject, attribute, content, scope, metadata, removed)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_ADD_TAG = "INSERT INTO memory_tag (tag, memory) VALUES (?, ?)"
_INDEX = "INSERT INTO memory_fts (rowid, body, place) VALUES (?, ?, ?)"
_STEP_BACK = "UPDATE memory SET state = 'superseded' WHERE id = ?"
_SUPERSEDED_BY = "UPDATE memory SET superseded_by = ? WHERE id = ?"
_STAND = "UPDATE memory SET state = 'current', contests = NULL WHERE id = ?"
_HOLD_BACK = """
UPDATE memory SET state = 'review', contests = (SELECT id FROM memory WHERE memory_id = ?)
WHERE id = ?
"""
_REPEAT = """
UPDATE memory SET freshness_ns = max(freshness_ns, :fresh_ns),
  expires_ns = coalesce(:expires_ns, expires_ns) WHERE id = :id
"""
_END = """
UPDATE memory SET state = :state, ended_ns = :ended_ns, ended_by = :by, ended_reason = :reason,
  ended_method = :method
WHERE id = :id
"""
_DUE = """
SELECT id, memory_id FROM memory INDEXED BY memory_expiry
WHERE state = 'current' AND expires_ns IS NOT NULL AND expires_ns <= ? ORDER BY expires_ns LIMIT ?
"""
_EXPIRE = "UPDATE memory SET state = 'expired' WHERE id = ?"
_WORKING_OF_RUN = "SELECT id FROM memory INDEXED BY memory_run WHERE trace_id = ? LIMIT ?"
_INDEX_STEMS = "INSERT INTO memory_stem_fts (rowid, body) VALUES (?, ?)"
_UNINDEX: Final = (
    "DELETE FROM memory_fts WHERE rowid = ?",
    "DELETE FROM memory_stem_fts WHERE rowid = ?",
)
_EMPTY: Final = (
    "DELETE FROM memory_embedding WHERE memory = ?",
    "DELETE FROM memory_tag WHERE memory = ?",
    "DELETE FROM memory_body WHERE memory = ?",
)
_REMOVALS: Final = (
    "DELETE FROM memory_access WHERE memory = ?",
    *_EMPTY,
    "DELETE FROM memory WHERE id = ?",
    *_UNINDEX,
)

Outcome = Literal["current", "superseded", "review", "repeat"]


@dataclass(frozen=True, slots=True)
class SupersededMemory:
    """What became of a write."""

    id: int
    memory_id: bytes
    outcome: Outcome
    superseded: tuple[bytes, ...] = ()  # what stood before it
    stands: bytes | None = None  # what stands in its place


@dataclass(frozen=True, slots=True)
class Found:
    """A record as those see it who change it."""

    id: int
    memory_id: bytes
    line: int
    confidence: float
    freshness_ns: int
    expires_ns: int | None
    content_hmac: bytes
    state: str = "current"

    def has_expired(self, now_ns: int) -> bool:
        return self.expires_ns is not None and self.expires_ns <= now_ns


def write(connection: apsw.Connection, new: NewMemory, *, now_ns: int) -> SupersededMemory:
    """Add a record, and say what became of it. Raises NotCurrent."""
    current = _current(connection, new)
    replaced = _replaced(connection, new)
    if current is not None and _is_repeated(current, new, now_ns=now_ns):
        return _repeat(connection, current, new, now_ns=now_ns)
    refused = _refused(connection, new)
    if refused is not None and refused.state == "review":
        return _repeat(connection, refused, new, now_ns=now_ns)
    rivals = [one for one in dict.fromkeys((current, replaced)) if one is not None]
    against = _stronger(new, rivals, now_ns=now_ns)
    if against is None and refused is not None:
        against = refused, "review"
    if against is None:
        connection.executemany(_STEP_BACK, [(one.id,) for one in rivals])
        number = _add(connection, new, rivals, state="current", now_ns=now_ns)
        connection.executemany(_SUPERSEDED_BY, [(number, one.id) for one in rivals])
        before = tuple(one.memory_id for one in rivals)
        return SupersededMemory(number, new.memory_id, "current", superseded=before)
    rival, outcome = against
    number = _add(connection, new, rivals, state=outcome, against=rival.id, now_ns=now_ns)
    return SupersededMemory(number, new.memory_id, outcome, stands=rival.memory_id)


def _current(connection: apsw.Connection, new: NewMemory) -> Found | None:
    """Return what stands under a new record's key, or the same record under a key of 0.1."""
    row: Any = connection.execute(_CURRENT, (new.key,)).fetchone()
    if row is None and new.older_key is not None:
        row = connection.execute(_CURRENT, (new.older_key,)).fetchone()
        if row is not None and Found(*row).content_hmac != new.retained.hmac:
            return None
    return None if row is None else Found(*row)


def get(connection: apsw.Connection, memory_id: bytes) -> Found | None:
    """Return how a record stands."""
    row: Any = connection.execute(_BY_ID, (memory_id,)).fetchone()
    return None if row is None else Found(*row)


def end(connection: apsw.Connection, found: Found, ended: Ended) -> None:
    """Say that a record does not hold. The one before it does not come back."""
    _end(connection, found.id, "invalidated", ended)


def purge(connection: apsw.Connection, found: Found, ended: Ended) -> None:
    """Remove a record's content; who and why, its keyed hash and its history stay.

    The corrections of what it claimed are about the same: they go with it.
    """
    for number in (found.id, *forget_words(connection, found.id)):
        _end(connection, number, "purged", ended)
        for sql in (*_EMPTY, *_UNINDEX):
            connection.execute(sql, (number,))
        stories.forget(connection, number)
        reviewed_supersessions.forget_words(connection, number)


def accept(connection: apsw.Connection, found: Found, *, key: bytes) -> tuple[bytes, ...]:
    """Let a record that waits for a review stand; return what it supersedes."""
    row: Any = connection.execute(_CURRENT, (key,)).fetchone()
    current = None if row is None else Found(*row)
    if current is not None:
        connection.execute(_STEP_BACK, (current.id,))
        connection.execute(_SUPERSEDED_BY, (found.id, current.id))
    connection.execute(_STAND, (found.id,))
    return () if current is None else (current.memory_id,)


def hold_back(connection: apsw.Connection, number: int, *, against: bytes) -> None:
    """Let a record wait for a person, because of one that contradicts it and is trusted more."""
    connection.execute(_HOLD_BACK, (against, number))


def key_of(connection: apsw.Connection, number: int) -> bytes:
    """Return the key of a record."""
    return bytes(connection.execute("SELECT key FROM memory WHERE id = ?", (number,)).get)


def expire(connection: apsw.Connection, *, now_ns: int, most: int) -> list[tuple[int, bytes]]:
    """Mark records past their time, and return which. Reads leave them out before that."""
    rows: list[Any] = connection.execute(_DUE, (now_ns, most)).fetchall()
    connection.executemany(_EXPIRE, [(number,) for number, _ in rows])
    return [(number, bytes(memory_id)) for number, memory_id in rows]


def release_working(connection: apsw.Connection, trace_id: bytes, *, most: int) -> int:
    """Remove working memory of a run that is deleted, and return how much was."""
    rows: list[Any] = connection.execute(_WORKING_OF_RUN, (trace_id, most)).fetchall()
    for sql in _REMOVALS:
        connection.executemany(sql, rows)
    return len(rows)


def place_tokens(namespace: tuple[str, str, str]) -> Iterator[str]:
    """Yield one word of the index for each part of a namespace."""
    for part, name in zip("pua", namespace, strict=True):
        yield part + ("0" if not name else hashlib.sha256(name.encode()).hexdigest()[:16])


def _replaced(connection: apsw.Connection, new: NewMemory) -> Found | None:
    """Return the record that a write names as the one it replaces; raises NotCurrent."""
    if new.replaces is None:
        return None
    found = get(connection, new.replaces)
    if found is None or found.state != "current":
        state = "not there" if found is None else found.state
        raise NotCurrent(new.replaces.hex(), state=state, expected="current")
    return found


def _repeat(
    connection: apsw.Connection, found: Found, new: NewMemory, *, now_ns: int
) -> SupersededMemory:
    fresh = now_ns if new.freshness_ns is None else new.freshness_ns
    parameters = {"id": found.id, "fresh_ns": fresh, "expires_ns": new.expires_ns}
    connection.execute(_REPEAT, parameters)
    return SupersededMemory(found.id, found.memory_id, "repeat")


def _refused(connection: apsw.Connection, new: NewMemory) -> Found | None:
    """Return the same record where it waits for a review already, or was invalidated.

    What a person took back does not return because a program says it again; a person may.
    """
    if new.slot is not None or new.writer == "human_approved_summary":
        return None
    for key in (new.key, new.older_key):
        row: Any = key and connection.execute(_STATED_BEFORE, (key, new.retained.hmac)).fetchone()
        if row is not None:
            return Found(*row)
    return None


def _is_repeated(current: Found, new: NewMemory, *, now_ns: int) -> bool:
    """Return whether a record repeats another: then that is fresher, and there is no second one."""
    is_same = current.content_hmac == new.retained.hmac and current.confidence == new.confidence
    return is_same and not current.has_expired(now_ns) and new.replaces is None


def _stronger(
    new: NewMemory, rivals: list[Found], *, now_ns: int
) -> tuple[Found, Literal["superseded", "review"]] | None:
    """Return what a new record does not supersede, and what it is instead."""
    if new.slot is not None:
        return None  # working memory: the last write is current
    for rival in rivals:
        if rival.has_expired(now_ns):
            continue
        # Not where no time was stated: clocks are set back.
        if new.freshness_ns is not None and new.freshness_ns < rival.freshness_ns:
            return rival, "superseded"
        if new.confidence < rival.confidence - TRUST_GAP - 1e-9:
            return rival, "review"
    return None


def _add(
    connection: apsw.Connection,
    new: NewMemory,
    rivals: list[Found],
    *,
    state: str,
    now_ns: int,
    against: int | None = None,
) -> int:
    number = int(connection.execute(_NEXT_ID).get)
    line = rivals[0].line if rivals else connection.execute(_LINE_OF_KEY, (new.key,)).get or number
    version = int(connection.execute(_LAST_VERSION, (line,)).get) + 1
    fresh_ns = now_ns if new.freshness_ns is None else new.freshness_ns
    if state == "current" and new.freshness_ns is None:
        fresh_ns = max([now_ns, *(one.freshness_ns for one in rivals)])
    connection.execute(
        _ADD,
        (
            number, new.memory_id, new.key, line, version, new.memory_type, *new.namespace,
            new.trace_id, new.chain, new.slot, state, new.confidence, fresh_ns, new.expires_ns,
            now_ns, new.writer, new.written_by, new.source_trace, json_text(list(new.source_steps)),
            new.approval_id, against if state == "superseded" else None,
            against if state == "review" else None, new.retained.hmac, new.written_method,
            new.written_principal,
        ),
    )  # fmt: skip
    _add_body(connection, number, new)
    return number


def _add_body(connection: apsw.Connection, number: int, new: NewMemory) -> None:
    retained = new.retained
    connection.execute(
        _ADD_BODY,
        (
            number, retained.subject, retained.attribute, canonical_json(retained.content),
            canonical_json(retained.scope), canonical_json(retained.metadata),
            json_text(list(retained.removed)),
        ),
    )  # fmt: skip
    connection.executemany(_ADD_TAG, [(tag, number) for tag in retained.tags])
    connection.execute(_INDEX, (number, retained.searched, " ".join(place_tokens(new.namespace))))
    stated = "\n".join((retained.subject, retained.attribute, canonical_json(retained.content)))
    connection.execute(_INDEX_STEMS, (number, stated))


def _end(connection: apsw.Connection, number: int, state: str, ended: Ended) -> None:
    parameters = {
        "id": number,
        "state": state,
        "ended_ns": ended.time_ns,
        "by": ended.by,
        "method": ended.method,
        "reason": ended.reason,
    }
    connection.execute(_END, parameters)
