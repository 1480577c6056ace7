"""What a list of events can be narrowed by, read once for the API and the command line."""

from __future__ import annotations

from collections.abc import Callable

from hansard_store.audit.event_types import Actor, EventFilter, EventType, Head
from hansard_store.errors import InvalidQueryError
from hansard_web.api.queries import read_times

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
        type=_known("type", type, EventType),
        actor=_known("actor", actor, Actor),
        approval_id=find_approval(approval) if approval else None,
        trace_id=find_run(run) if run else None,
        since_ns=since_ns,
        until_ns=until_ns,
        with_seals=with_seals,
        **{name: value or None for name, value in fields.items()},
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


def _known(name: str, text: str | None, kind: type[EventType] | type[Actor]) -> str | None:
    if not text:
        return None
    if text not in list(kind):
        raise InvalidQueryError(name, f"{name} is {text[:40]!r}; known are {', '.join(kind)}")
    return text
