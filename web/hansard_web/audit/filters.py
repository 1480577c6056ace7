"""Lists of events and what they can be narrowed by, for the API and the command line."""

from __future__ import annotations

from collections.abc import Callable

from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.event_types import Actor, EventFilter, EventType, Head, StoredEvent
from hansard_store.database.cursors import Page
from hansard_store.errors import InvalidQueryError
from hansard_web.api.queries import read_numbered, read_times, read_word

_Find = Callable[[str], bytes]


def event_filter(
    *,
    find_approval: _Find,
    find_run: _Find,
    approval: str | None,
    run: str | None,
    since: str | None,
    until: str | None,
    type: str | None,
    actor: str | None,
    with_seals: bool = False,
    **fields: str | None,
) -> EventFilter:
    """Return a filter; an empty value is no filter. Raises InvalidQueryError."""
    since_ns, until_ns = read_times(since, until)
    return EventFilter(
        type=read_word("type", type, list(EventType)),
        actor=read_word("actor", actor, list(Actor)),
        approval_id=find_approval(approval) if approval else None,
        trace_id=find_run(run) if run else None,
        since_ns=since_ns,
        until_ns=until_ns,
        with_seals=with_seals,
        **{name: value or None for name, value in fields.items()},
    )


def events_page(
    store: ApprovalService, filters: EventFilter, cursor: str | None, *, limit: int
) -> Page[StoredEvent]:
    """Return a page of events, the newest first; raises InvalidCursorError."""
    return read_numbered(
        "events",
        cursor,
        lambda before: store.events(filters, before=before, limit=limit),
        limit=limit,
        number=lambda event: event.seq,
    )


def read_anchor(text: str | None) -> Head | None:
    """Return a head as it was stored; raises InvalidQueryError."""
    if not text:
        return None
    number, _, digits = text.strip().partition(":")
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        digest = b""
    if not (number.isascii() and number.isdigit() and len(number) < 19 and len(digest) == 32):
        raise InvalidQueryError(
            "anchor", f"anchor is {text[:80]!r}; it is SEQ:HASH, as `head` says it"
        )
    return Head(int(number), digest)
