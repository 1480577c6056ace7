"""Requests that carried an idempotency key, so that none is done twice."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hansard_compiler.calls import Json
from hansard_store.database.connections import accountability_transaction
from hansard_store.database.data_folder import DataFolder

_RETENTION_NS = 24 * 3600 * 1_000_000_000

_FIND = "SELECT request, status, response FROM idempotency_key WHERE key = ?"
_BEGIN = "INSERT INTO idempotency_key (key, request, time_ns) VALUES (?, ?, ?)"
_FORGET = "DELETE FROM idempotency_key WHERE time_ns < ?"
_END = "UPDATE idempotency_key SET status = :status, response = :response WHERE key = :key"
_GIVE_UP = "DELETE FROM idempotency_key WHERE key = ? AND status IS NULL"


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """An earlier request under the same key."""

    is_same: bool  # the body was the same
    status: int | None  # None: it began and did not end, or has not ended yet
    response: Json | None


class IdempotencyKeys:
    """The keys of one store. Each call commits on the caller's thread."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._key = folder.key()

    def begin(self, route: str, key: str, body: bytes, *, now_ns: int) -> EarlierRequest | None:
        """Claim a key, and return None; or what is known of the request that claimed it before."""
        name, mac = self._name(route, key), self._mac(b"body", body)
        with accountability_transaction(self._folder) as connection:
            connection.execute(_FORGET, (now_ns - _RETENTION_NS,))
            known: Any = connection.execute(_FIND, (name,)).fetchone()
            if known is None:
                connection.execute(_BEGIN, (name, mac, now_ns))
                return None
        request, status, response = known
        return EarlierRequest(
            request == mac, status, None if response is None else orjson.loads(response)
        )

    def end(self, route: str, key: str, *, status: int, response: Mapping[str, Any]) -> None:
        """Store how a request ended; `response` must hold no content."""
        bindings = {
            "key": self._name(route, key),
            "status": status,
            "response": orjson.dumps(response).decode(),
        }
        with accountability_transaction(self._folder) as connection:
            connection.execute(_END, bindings)

    def give_up(self, route: str, key: str) -> None:
        """Let a key be used again: nothing was done under it."""
        with accountability_transaction(self._folder) as connection:
            connection.execute(_GIVE_UP, (self._name(route, key),))

    def _name(self, route: str, key: str) -> bytes:
        return self._mac(b"key", f"{route}\n{key}".encode())

    def _mac(self, what: bytes, data: bytes) -> bytes:
        return hmac.digest(self._key, what + b"\0" + data, hashlib.sha256)
