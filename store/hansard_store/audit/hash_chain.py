"""The hash chain of the audit log: pure, over rows from wherever.

The hash of an event is the sha256 of the canonical JSON of a list: the word below, then every
column in the order of the table, ids and hashes as hex digits. The previous hash is among them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit.event_types import (
    EMPTY_HEAD,
    ChainBreak,
    ChainReport,
    Content,
    Event,
    Head,
    StoredEvent,
)

_FORM = "hansard.event/1"


def chained_row(event: Event, after: Head) -> tuple[Any, ...]:
    """Return an event as a row of the table, as it stands after the last one."""
    body = event.body
    if event.contents:
        body = {**body, "contents": {one.name: one.ref for one in event.contents}}
    columns = (
        after.seq + 1, event.time_ns, int(event.late), str(event.type), str(event.actor),
        event.who, event.action, event.source, event.subject, event.approval_id, event.trace_id,
        event.span_id, canonical_bytes(body).decode(), after.hash,
    )  # fmt: skip
    return (*columns, _hash_of(columns))


def stored_event(
    row: Sequence[Any], *, contents: Mapping[str, Any], salts: Mapping[str, bytes]
) -> StoredEvent:
    """Return the event of a row, with what it refers to."""
    seq, time_ns, late, *others = row
    return StoredEvent(*(seq, time_ns, bool(late), *others, contents, salts))


def event_hash(event: StoredEvent) -> bytes:
    """Return the hash of an event's columns, the previous hash included."""
    return _hash_of(
        (
            event.seq, event.time_ns, int(event.late), event.type, event.actor, event.who,
            event.action, event.source, event.subject, event.approval_id, event.trace_id,
            event.span_id, event.body, event.prev_hash,
        )
    )  # fmt: skip


def _hash_of(columns: Sequence[Any]) -> bytes:
    """Return the hash of all columns of a row but the hash itself."""
    *plain, approval_id, trace_id, span_id, body, prev_hash = columns
    ids = (_hex(approval_id), _hex(trace_id), _hex(span_id))
    return hashlib.sha256(_columns_bytes([_FORM, *plain, *ids, body, prev_hash.hex()])).digest()


def _columns_bytes(columns: list[Any]) -> bytes:
    """Return canonical JSON of texts and whole numbers, which orjson writes the same, and sooner.

    It refuses lone surrogates and numbers of over 64 bits; those have the longer way.
    """
    try:
        return orjson.dumps(columns)
    except TypeError:
        return canonical_bytes(columns)


def content_of(name: str, value: Any) -> Content:
    """Return what an event is to refer to; `value` must be without secrets already."""
    salt = secrets.token_bytes(16)
    return Content(name, value, salt, content_ref(salt, value))


def content_ref(salt: bytes, value: Any) -> str:
    """Return the reference of a content."""
    return "salted-sha256:" + hashlib.sha256(salt + canonical_bytes(value)).hexdigest()


def check_chain(
    events: Iterable[StoredEvent], *, anchor: Head | None = None, heads: Sequence[Head] = ()
) -> ChainReport:
    """Follow the chain from its beginning to the first row that was altered, added or removed.

    `anchor` and `heads` are earlier heads: the chain must contain each of them.
    """
    expected: dict[int, list[Head]] = {}
    for head in (*heads, *([] if anchor is None else [anchor])):
        expected.setdefault(head.seq, []).append(head)
    last, checked = EMPTY_HEAD, 0
    for event in events:
        problem = _problem(event, last) or _content_problem(event)
        if problem is None and event.seq in expected:
            problem = _differs(event, expected[event.seq])
        if problem is not None:
            return ChainReport(last, checked, ChainBreak(event.seq, problem), anchor, len(heads))
        last, checked = Head(event.seq, event.hash), checked + 1
    furthest = max(expected, default=0)
    if furthest > last.seq:
        ends = f"the log ends at {last.seq}, before the anchor {furthest}"
        gone = f"is missing: {ends}: its end was removed"
        return ChainReport(last, checked, ChainBreak(last.seq + 1, gone), anchor, len(heads))
    return ChainReport(last, checked, None, anchor, len(heads))


# Each problem goes on from "event 7 …" and "It …".
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


def _content_problem(event: StoredEvent) -> str | None:
    body = json.loads(event.body)
    refs = body.get("contents", {}) if isinstance(body, dict) else {}
    if not isinstance(refs, dict):
        return "names no drafts and notes as Hansard writes them: it was altered"
    for name, ref in refs.items():
        if name not in event.contents:
            return f"has lost its {name}: it was removed"
        if content_ref(event.salts[name], event.contents[name]) != ref:
            return f"has another {name} than was written: it was altered"
    added = set(event.contents) - set(refs)
    return f"has a {min(added)} that was added later" if added else None


def _differs(event: StoredEvent, anchors: Sequence[Head]) -> str | None:
    if all(event.hash == anchor.hash for anchor in anchors):
        return None
    return "is not the event of the anchor: the log was written anew"


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
