"""Heads that somebody gave up: the event that says so, and the proof that Hansard wrote it.

Anybody who has the database in hand can append an event that continues the chain. So that such an
event makes no older head valid, its body is signed with the store's key, bound to the head before.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from typing import Any

import apsw

from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_bytes
from hansard_store.audit.event_types import Head

_WORD = b"hansard accepted heads\0"
_ACCEPTED = """
SELECT body, prev_hash FROM event INDEXED BY event_type
WHERE type = 'head.accepted' AND type NOT IN ('tool.called', 'tool.returned') ORDER BY seq
"""


def acceptance(key: bytes, after: Head, given_up: Sequence[Head]) -> Json:
    """Return the body of the event that gives heads up, to be appended after a head."""
    heads = [head.text for head in given_up]
    return {"head": after.text, "given_up": heads, "mac": _mac(key, after.hash, heads)}


def accepted_heads(connection: apsw.Connection, key: bytes) -> frozenset[str]:
    """Return the heads (SEQ:HASH) that need not be on the chain any more."""
    found: set[str] = set()
    for body, prev_hash in connection.execute(_ACCEPTED):
        try:
            record: Any = json.loads(body)
        except ValueError:  # it was altered, which the chain names
            continue
        heads = record.get("given_up") if isinstance(record, dict) else None
        if isinstance(heads, list) and hmac.compare_digest(
            str(record.get("mac")).encode(), _mac(key, prev_hash, heads).encode()
        ):
            found.update(heads)
    return frozenset(found)


def _mac(key: bytes, prev_hash: bytes, heads: Sequence[str]) -> str:
    bound = _WORD + prev_hash + canonical_bytes(list(heads))
    return hmac.digest(key, bound, "sha256").hex()
