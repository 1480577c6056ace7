"""Ids of what is told: random, or from the idempotency key, so that one request makes one span."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Final

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?P<span>(?!0{16})[0-9a-f]{16})"
    r"-[0-9a-f]{2}(?:-.*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Ids:
    """Gives one request its ids; `seed` None makes them random."""

    key: bytes  # of the store
    seed: bytes | None = None

    def trace_id(self) -> str:
        """Return a trace id, 32 hex digits."""
        return self._digits("trace", 16)

    def span_id(self, name: str) -> str:
        """Return a span id, 16 hex digits; `name` tells apart those of one request."""
        return self._digits(f"span {name}", 8)

    def _digits(self, name: str, size: int) -> str:
        if self.seed is None:
            made = secrets.token_bytes(size)
        else:
            made = hmac.digest(self.key, self.seed + b"\0" + name.encode(), hashlib.sha256)[:size]
        # All zeros is no id; the chance of it is 2^-64.
        return made.hex() if any(made) else "1".zfill(size * 2)


def traceparent_of(trace_id: str, span_id: str) -> str:
    """Return the W3C header that makes a span the parent of what another process does."""
    return f"00-{trace_id}-{span_id}-01"


def parse_traceparent(text: str | None) -> tuple[str, str] | None:
    """Return trace id and span id of a `traceparent`; None where it is none (the W3C rule)."""
    found = None if text is None else _TRACEPARENT.fullmatch(text.strip().lower())
    return None if found is None else (found["trace"], found["span"])
