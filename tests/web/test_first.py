"""Who answers a person asks ingest to step aside, and says when the answer is given."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from hansard_collector.pipeline.group_commit import Courtesy
from hansard_web.app.application import PeopleFirst


class Watched(Courtesy):
    """A courtesy that tells how many wait."""

    @property
    def waiting(self) -> int:
        return self._waiting


def waited(path: str, *, method: str = "GET", fails: bool = False) -> tuple[int, int]:
    """Return how many waited while the app worked, and how many are left."""
    courtesy, seen = Watched(), []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(courtesy.waiting)
        if fails:
            raise ValueError("no answer")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})

    async def nothing(*_: Any) -> Message:
        return {"type": "http.request"}

    scope = {"type": "http", "path": path, "method": method}
    first = PeopleFirst(app, courtesy=courtesy)
    with contextlib.suppress(ValueError):
        asyncio.run(first(scope, nothing, nothing))  # type: ignore[arg-type]  # send answers None
    return seen[0], courtesy.waiting


@pytest.mark.parametrize("path", ["/", "/v1/runs", "/runs/0123"])
def test_pages_and_the_api_go_first(path: str) -> None:
    assert waited(path) == (1, 0)


@pytest.mark.parametrize(("path", "method"), [("/v1/traces", "POST"), ("/live/runs", "GET")])
def test_senders_and_streams_wait_their_turn(path: str, method: str) -> None:
    assert waited(path, method=method) == (0, 0)


def test_nobody_waits_any_more_when_the_answer_fails() -> None:
    assert waited("/", fails=True) == (1, 0)
