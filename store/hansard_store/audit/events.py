"""The audit log in SQLite: append, head, read, verify.

It is for audit and debugging; no state is ever restored from it. It knows nothing of approvals: an
event carries the id of one, and that is all.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import apsw
import orjson

from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit.event_types import (
    EMPTY_HEAD,
    ChainReport,
    Event,
    EventFilter,
    EventType,
    Head,
    StoredEvent,
)
from hansard_store.audit.hash_chain import chained_row, check_chain, stored_event
from hansard_store.database.stored_json import json_of, read_only

_NAMES = (
    "seq", "time_ns", "late", "type", "actor", "who", "action", "source", "subject", "approval_id",
    "trace_id", "span_id", "body", "prev_hash", "hash",
)  # fmt: skip
_COLUMNS = ", ".join(_NAMES)
_HEAD = "SELECT seq, hash FROM event WHERE seq = (SELECT max(seq) FROM event)"
_HASH_AT = "SELECT hash FROM event WHERE seq = ?"
_ADD = f"INSERT INTO event ({_COLUMNS}) VALUES ({', '.join('?' * 15)})"
_ADD_CONTENT = "INSERT INTO event_content (event, name, salt, body) VALUES (?, ?, ?, ?)"
_LIST = f"SELECT {_COLUMNS} FROM event {{index}} WHERE seq < :before AND {{wanted}}"
_NEWEST = " ORDER BY seq DESC LIMIT :limit"
_WALK = f"SELECT {_COLUMNS} FROM event WHERE seq > :after ORDER BY seq LIMIT :limit"
_CONTENTS = """
SELECT event, name, salt, body FROM event_content
WHERE event IN (SELECT value FROM json_each(:events))
"""
# What nearly all events have, so that walking back from the newest finds it: no index holds it,
# as every index is paid for by each call of a tool.
_USUAL_TYPES = ("tool.called", "tool.returned")
_USUAL_SOURCES = ("sdk", "api")
_USUAL_ACTORS = ("agent", "tool")
# The filters, the narrowest first: the first one present drives the list.
_FILTERS = {
    "approval_id": "approval_id = :approval_id",
    "trace_id": "trace_id = :trace_id",
    "subject": "subject = :subject",
    "action": "action = :action",
    "who": "who = :who",
    "type": "type = :type",
    "source": "source = :source",
    "actor": "actor = :actor",
    "usual_type": "type = :usual_type",
    "usual_source": "source = :usual_source",
    "usual_actor": "actor = :usual_actor",
    "since_ns": "time_ns >= :since_ns",
    "until_ns": "time_ns < :until_ns",
}
# The indexes that serve what drives, and what each holds of it. A tool is named as the action of
# what it did, and found by that.
_INDEXES = {
    "approval_id": (("event_approval", "true"),),
    "trace_id": (("event_run", "true"),),
    "subject": (("event_subject", "true"),),
    "action": (("event_action", "true"),),
    "who": (
        ("event_who_else", "who <> '' AND NOT (actor = 'tool' AND who = action)"),
        ("event_action", "action = :who AND actor = 'tool'"),
    ),
    "type": (("event_type", f"type NOT IN {_USUAL_TYPES}"),),
    "source": (("event_source", f"source NOT IN {_USUAL_SOURCES}"),),
    "actor": (("event_actor", f"actor NOT IN {_USUAL_ACTORS}"),),
}
_WALKING_BACK = (("", "true"),)
_NO_SEALS = "type <> 'record.sealed'"
_WALKING_BACK_WITHOUT_SEALS = (("event_told", _NO_SEALS),)
_ABOVE_ALL = (1 << 63) - 1
_AT_ONCE = 500
_ALL = EventFilter()


def append(connection: apsw.Connection, event: Event) -> int:
    """Add an event inside the caller's transaction, and return its number.

    The numbers have no gap and the chain no fork: the appender holds the write lock.
    Raises TypeError for a type that is not of the list.
    """
    if not isinstance(event.type, EventType):
        raise TypeError(f"{event.type!r} is no type of event")
    row = chained_row(event, head(connection))
    connection.execute(_ADD, row)
    seq: int = row[0]
    for one in event.contents:
        body = canonical_bytes(one.value).decode()
        connection.execute(_ADD_CONTENT, (seq, one.name, one.salt, body))
    return seq


def head(connection: apsw.Connection) -> Head:
    """Return the last event's number and hash; of an empty log 0 and zero bytes."""
    row: Any = connection.execute(_HEAD).fetchone()
    return EMPTY_HEAD if row is None else Head(*row)


def read_events(
    connection: apsw.Connection,
    filters: EventFilter = _ALL,
    *,
    before: int | None = None,
    limit: int = 50,
) -> list[StoredEvent]:
    """Return events with their contents, the newest first, those below a number."""
    sql, parameters = events_query(filters)
    bindings = {**parameters, "before": _ABOVE_ALL if before is None else before, "limit": limit}
    return _with_contents(connection, connection.execute(sql, bindings).fetchall())


def events_query(filters: EventFilter) -> tuple[str, dict[str, Any]]:
    """Return the statement of a list of events, and what it is filtered by."""
    parameters = _filter_values(filters)
    conditions = [_FILTERS[name] for name in parameters]
    is_told = filters.type is None and not filters.with_seals
    if is_told:
        conditions.append(_NO_SEALS)
    ways = _INDEXES.get(
        next(iter(parameters), ""), _WALKING_BACK_WITHOUT_SEALS if is_told else _WALKING_BACK
    )
    parts = [
        _LIST.format(
            index=f"INDEXED BY {index}" if index else "", wanted=" AND ".join([held, *conditions])
        )
        for index, held in ways
    ]
    return " UNION ALL ".join(parts) + _NEWEST, parameters


def _filter_values(filters: EventFilter) -> dict[str, Any]:
    """Return what is requested by name of its filter, the narrowest first."""
    fields = {name: getattr(filters, name, None) for name in _FILTERS}
    usual = {"type": _USUAL_TYPES, "source": _USUAL_SOURCES, "actor": _USUAL_ACTORS}
    for name, values in usual.items():
        if fields[name] in values:
            fields |= {name: None, f"usual_{name}": str(fields[name])}
    return {name: value for name, value in fields.items() if value is not None}


def walk_events(connection: apsw.Connection, *, after: int = 0) -> Iterator[StoredEvent]:
    """Yield events in their order, some hundred at a time."""
    while True:
        bindings = {"after": after, "limit": _AT_ONCE}
        rows = _with_contents(connection, connection.execute(_WALK, bindings).fetchall())
        yield from rows
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1].seq


def verify_events(
    connection: apsw.Connection, *, anchor: Head | None = None, heads: Sequence[Head] = ()
) -> ChainReport:
    """Check the whole chain, and the drafts and notes it refers to.

    A cut end is seen only with a head as it was stored elsewhere: an anchor, or one of each day.
    """
    return check_chain(walk_events(connection), anchor=anchor, heads=heads)


def keyed_hash(key: bytes, data: bytes) -> str:
    """Return a hash that says nothing without the store's key."""
    made = _keyed(key).copy()
    made.update(data)
    return f"hmac-sha256:{made.hexdigest()}"


@lru_cache(maxsize=8)
def _keyed(key: bytes) -> hmac.HMAC:
    """Return the hash of a key and nothing yet: its copy is made in half the time of a new one."""
    return hmac.new(key, digestmod=hashlib.sha256)


class SqliteEventLog:
    """The audit log of a connection, as the facade uses it (EventLog)."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def append(self, event: Event) -> int:
        return append(self._connection, event)

    def head(self) -> Head:
        return head(self._connection)

    def hash_at(self, seq: int) -> bytes | None:
        if seq == EMPTY_HEAD.seq:
            return EMPTY_HEAD.hash
        found: bytes | None = self._connection.execute(_HASH_AT, (seq,)).get
        return found

    def read(
        self, filters: EventFilter = _ALL, *, before: int | None = None, limit: int = 50
    ) -> Sequence[StoredEvent]:
        return read_events(self._connection, filters, before=before, limit=limit)

    def count(self, filters: EventFilter, *, at_most: int) -> int:
        sql, parameters = events_query(filters)
        bindings = {**parameters, "before": _ABOVE_ALL, "limit": at_most}
        found: int = self._connection.execute(f"SELECT count(*) FROM ({sql})", bindings).get
        return found

    def verify(self, *, anchor: Head | None = None, heads: Sequence[Head] = ()) -> ChainReport:
        return verify_events(self._connection, anchor=anchor, heads=heads)


def _content_of(body: str) -> Any:
    """Return a draft or note; one that is no JSON, altered by hand, as text: no hash fits it."""
    try:
        return json_of(body)
    except ValueError:
        return body


def _with_contents(connection: apsw.Connection, rows: Sequence[Any]) -> list[StoredEvent]:
    contents: dict[int, dict[str, Any]] = {}
    salts: dict[int, dict[str, bytes]] = {}
    numbers = orjson.dumps([row[0] for row in rows]).decode()
    for number, name, salt, body in connection.execute(_CONTENTS, {"events": numbers}):
        contents.setdefault(number, {})[name] = read_only(_content_of(body))
        salts.setdefault(number, {})[name] = salt
    return [
        stored_event(
            row,
            contents=read_only(contents.get(row[0], {})),
            salts=read_only(salts.get(row[0], {})),
        )
        for row in rows
    ]
