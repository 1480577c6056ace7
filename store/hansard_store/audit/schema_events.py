"""What the audit log says of a schema that was altered, and of its repair.

While the schema is another one than Hansard's, ingest goes on and nothing is sealed. The first
transaction that ingests then holds an event `schema.altered`. So the rows of the next seal, which
names those events, are the ones that somebody else's trigger may have written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit import events
from hansard_store.audit.event_types import Actor, Event, EventType
from hansard_store.audit.schema import Alteration

_MOST_OBJECTS: Final = 20  # that an event names
_LAST: Final = """
SELECT body FROM event WHERE type = 'schema.altered' AND seq > (
  SELECT coalesce(max(seq), 0) FROM event WHERE type IN ('record.sealed', 'schema.repaired'))
ORDER BY seq DESC LIMIT 1
"""
_SINCE: Final = """
SELECT seq FROM event WHERE type IN ('schema.altered', 'schema.repaired') AND seq > ? ORDER BY seq
"""


def note_alteration(connection: apsw.Connection, altered: Sequence[Alteration]) -> None:
    """Log, inside the caller's transaction, that the schema is altered; once until it is not."""
    body = body_of(altered)
    if connection.execute(_LAST).get != canonical_bytes(body).decode():
        events.append(connection, _event(EventType.SCHEMA_ALTERED, Actor.SYSTEM, "hansard", body))


def note_repair(connection: apsw.Connection, mended: Sequence[Alteration], *, by: str) -> None:
    """Log, inside the caller's transaction, that somebody had the schema restored."""
    events.append(connection, _event(EventType.SCHEMA_REPAIRED, Actor.ME, by, body_of(mended)))


def alterations_since(connection: apsw.Connection, seq: int) -> list[int]:
    """Return the numbers of the events that say that the schema was altered, after a number."""
    rows: Any = connection.execute(_SINCE, (seq,)).fetchall()
    return [number for (number,) in rows]


def body_of(altered: Sequence[Alteration]) -> Json:
    """Return what an event says of altered objects."""
    return {"objects": [str(one) for one in altered[:_MOST_OBJECTS]], "count": len(altered)}


def _event(type_: EventType, actor: Actor, who: str, body: Json) -> Event:
    return Event(
        type=type_,
        actor=actor,
        who=who,
        action="schema",
        source="store",
        subject="store",
        time_ns=time.time_ns(),
        body=body,
    )
