"""Doing a request once, however often it is sent, and under the same ids."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Header

from hansard_compiler.calls import Json
from hansard_store.database.idempotency_keys import IdempotencyKeys
from hansard_web.api.router import ApiResponse
from hansard_web.sidecar.errors import KeyReused, StillWorking

IdempotencyKey = Annotated[
    str | None,
    Header(
        description="sent again with the same key and body, a request does nothing twice",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
    ),
]
_AGAIN: Final = {"Idempotent-Replayed": "true"}


@dataclass(frozen=True, slots=True)
class Ids:
    """Gives one request its ids: the same for the same idempotency key, else random ones."""

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


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a request: what is stored of it under its key, and what is content."""

    stored: Mapping[str, Any]
    content: Mapping[str, object] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK

    def answer(self) -> ApiResponse:
        return ApiResponse({**self.stored, **self.content}, status_code=self.status)


@dataclass(frozen=True, slots=True)
class IdempotentRequests:
    """One request with its key. `repeats`: to do it twice does no harm, the ids are the same."""

    keys: IdempotencyKeys
    route: str
    key: str | None
    body: bytes
    ids: Ids
    repeats: bool = True

    def do(
        self,
        work: Callable[[], Done],
        *,
        again: Callable[[Json], Mapping[str, object]] | None = None,
    ) -> ApiResponse:
        """Do it, or answer what was done; `again` finds the content of an earlier answer."""
        if self.key is None:
            return work().answer()
        known = self.keys.begin(self.route, self.key, self.body, now_ns=time.time_ns())
        if known is not None:
            if not known.is_same:
                raise KeyReused
            if known.response is not None and known.status is not None:
                content = {} if again is None else again(known.response)
                return ApiResponse(
                    {**known.response, **content}, status_code=known.status, headers=_AGAIN
                )
            if not self.repeats:
                raise StillWorking
        return self._work(self.key, work)

    def _work(self, key: str, work: Callable[[], Done]) -> ApiResponse:
        try:
            done = work()
        except BaseException:
            self.keys.give_up(self.route, key)
            raise
        self.keys.end(self.route, key, status=done.status, response=done.stored)
        return done.answer()
