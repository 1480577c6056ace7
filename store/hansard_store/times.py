"""Times as people and programs read them."""

from __future__ import annotations

from datetime import UTC, datetime

_NANO = 1_000_000_000


def time_text(ns: int | None) -> str | None:
    """Return RFC 3339 in UTC with nanoseconds; None for None."""
    if ns is None:
        return None
    seconds, rest = divmod(ns, _NANO)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"
