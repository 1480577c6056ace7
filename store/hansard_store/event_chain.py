"""The hash chain of the audit log: pure, over rows from wherever.

The hash of an event is the sha256 of the canonical JSON of a list: the word below, then every
column in the order of the table, ids and hashes as hex digits. The previous hash is among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from hansard_compiler.canonical import canonical_bytes
from hansard_store.event_types import (
    EMPTY_HEAD,
    ChainBreak,
    ChainReport,
    Event,
    Head,
    StoredEvent,
)

_FORM = "hansard.event/1"


def chained(event: Event, after: Head) -> StoredEvent:
    """Return an event as it stands after the last one."""
    body = dict(event.body)
    if event.contents:
        body["contents"] = {one.name: one.ref for one in event.contents}
    made = StoredEvent(
        seq=after.seq + 1,
        time_ns=event.time_ns,
        late=event.late,
        type=str(event.type),
        actor=str(event.actor),
        who=event.who,
        action=event.action,
        source=event.source,
        subject=event.subject,
        approval_id=event.approval_id,
        trace_id=event.trace_id,
        span_id=event.span_id,
        body=canonical_bytes(body).decode(),
        prev_hash=after.hash,
        hash=b"",
        contents={one.name: one.value for one in event.contents},
    )
    return replace(made, hash=event_hash(made))


def event_hash(event: StoredEvent) -> bytes:
    """Return the hash of an event's columns, the previous hash included."""
    columns = [
        _FORM, event.seq, event.time_ns, int(event.late), event.type, event.actor, event.who,
        event.action, event.source, event.subject, _hex(event.approval_id), _hex(event.trace_id),
        _hex(event.span_id), event.body, event.prev_hash.hex(),
    ]  # fmt: skip
    return hashlib.sha256(canonical_bytes(columns)).digest()


Reference = Callable[[StoredEvent], str | None]  # the first thing wrong with an event's contents


def check_chain(
    events: Iterable[StoredEvent],
    *,
    anchor: Head | None = None,
    check_contents: Reference = lambda _: None,
) -> ChainReport:
    """Follow the chain from its beginning to the first row that was altered, added or removed."""
    last, checked = EMPTY_HEAD, 0
    for event in events:
        problem = _problem(event, last) or check_contents(event)
        if problem is None and anchor is not None and event.seq == anchor.seq:
            problem = _differs(event, anchor)
        if problem is not None:
            return ChainReport(last, checked, ChainBreak(event.seq, problem), anchor)
        last, checked = Head(event.seq, event.hash), checked + 1
    if anchor is not None and anchor.seq > last.seq:
        gone = f"the log ends at {last.seq}, before the anchor {anchor.seq}: its end was removed"
        return ChainReport(last, checked, ChainBreak(last.seq + 1, gone), anchor)
    return ChainReport(last, checked, None, anchor)


def _problem(event: StoredEvent, last: Head) -> str | None:
    if event.seq > last.seq + 1:
        return f"follows {last.seq}: what stood between was removed"
    if event.seq <= last.seq:
        return f"stands after {last.seq}: it was inserted"
    if event.prev_hash != last.hash:
        return f"does not continue {last.seq}: one of the two was altered, or put in its place"
    try:
        found = event_hash(event)
    except (TypeError, ValueError):
        found = b""
    return None if found == event.hash else "was altered: its hash is another one"


def _differs(event: StoredEvent, anchor: Head) -> str | None:
    if event.hash == anchor.hash:
        return None
    return "is not the event of the anchor: the log was written anew"


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
