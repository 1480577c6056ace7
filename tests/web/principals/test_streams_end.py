"""Live streams and requests that wait end with the session or token that they began with."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import httpx2
import pytest
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hansard_store.principals.model import Scope as TokenScope
from hansard_web.app.security import LOOK_S, TokensInForce
from hansard_web.principals.dependencies import SESSION_COOKIE
from tests.journeys.processes import Serving, export, hosting, http_exporter, spans
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, bearer, session_of
from tests.web.forms import form_token

ADMIN: Final = "configured-secret-1234"
MOST_S: Final = 6.0  # on a busy machine: it takes half a second, and without an end for ever


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("streams") / "data", token=f"admin:{ADMIN}") as server:
        batch = spans(2)
        assert export(http_exporter(server, **bearer(ADMIN)), batch)
        yield server


def a_run(serving: Serving) -> str:
    answer = httpx2.get(f"{serving.http}/v1/runs", headers=bearer(ADMIN))
    return str(answer.json()["items"][0]["run_id"])


class Stream:
    """An open stream, read in a thread of its own until it ends."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self._response = response
        self._thread = ThreadPoolExecutor(1)
        self._read = self._thread.submit(self._drain)

    def _drain(self) -> float:
        for _ in self._response.iter_bytes():
            pass
        return time.monotonic()

    @property
    def is_open(self) -> bool:
        return not self._read.done()

    def seconds_until_end(self, since_s: float) -> float:
        """Return how long it went on after a moment; raises where it was cut in a chunk."""
        return self._read.result(10) - since_s


@contextmanager
def streaming(serving: Serving, path: str, **headers: str) -> Iterator[Stream]:
    with (
        httpx2.Client(timeout=httpx2.Timeout(5, read=10)) as client,
        client.stream("GET", f"{serving.http}{path}", headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        yield Stream(response)


def cookie(value: str) -> dict[str, str]:
    return {"Cookie": f"{SESSION_COOKIE}={value}"}


def paths_of(serving: Serving) -> list[str]:
    return ["/live/runs", "/live/approvals", f"/live/runs/{a_run(serving)}"]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_a_live_page_ends_when_its_browser_signs_out(serving: Serving, number: int) -> None:
    value = session_of(serving.data, "ana")[SESSION_COOKIE]
    other = session_of(serving.data, "ben")[SESSION_COOKIE]
    path = paths_of(serving)[number]

    with (
        streaming(serving, path, **cookie(value)) as mine,
        streaming(serving, path, **cookie(other)) as theirs,
        streaming(serving, path, **bearer(ADMIN)) as configured,
    ):
        page = httpx2.get(f"{serving.http}/", headers=cookie(value))
        form = {"csrf": form_token(page.text)}
        since_s = time.monotonic()
        httpx2.post(f"{serving.http}/signout", data=form, headers=cookie(value))
        took_s = mine.seconds_until_end(since_s)
        again = httpx2.get(f"{serving.http}{path}", headers=cookie(value))
        others = (theirs.is_open, configured.is_open)
        end(serving, "ben")

    assert took_s < MOST_S
    assert again.status_code in (303, 401)
    assert others == (True, True)


def end(serving: Serving, name: str) -> float:
    """Revoke a token in another process, and return when that was done."""
    ended = run_command("tokens", "revoke", name, "--data", str(serving.data))
    assert ended.returncode == 0, ended.stderr
    return time.monotonic()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["session", "token"])
def test_a_stream_ends_when_its_token_is_revoked_by_another_process(
    serving: Serving, kind: str
) -> None:
    secret = add_token(serving.data, "kim", TokenScope.READ)
    own = bearer(secret) if kind == "token" else cookie(signed_in(serving, secret))

    with streaming(serving, "/live/runs", **own) as stream:
        before = stream.is_open
        took_s = stream.seconds_until_end(end(serving, "kim"))
        again = httpx2.get(f"{serving.http}/live/runs", headers=own)

    assert before
    assert took_s < MOST_S
    assert again.status_code in (303, 401)


def signed_in(serving: Serving, secret: str) -> str:
    with httpx2.Client() as client:
        page = client.get(f"{serving.http}/signin")
        client.post(f"{serving.http}/signin", data={"csrf": form_token(page.text), "token": secret})
        return str(client.cookies[SESSION_COOKIE])


@pytest.mark.slow
def test_a_request_that_waits_is_refused_when_its_token_is_revoked(serving: Serving) -> None:
    secret = add_token(serving.data, "lin", TokenScope.READ, TokenScope.INGEST)
    wire = {"tool": "wire_money", "arguments": {"to": "me"}, "agent": "bot"}
    made = httpx2.post(f"{serving.http}/v1/approvals", json=wire, headers=bearer(secret)).json()
    path = f"{serving.http}/v1/approvals/{made['approval_id']}?wait=20"

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(httpx2.get, path, headers=bearer(secret), timeout=30)
        since_s = end(serving, "lin")
        answer = waiting.result(30)
        took_s = time.monotonic() - since_s

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthenticated"
    assert took_s < MOST_S


async def served(
    app: ASGIApp, *, method: str = "GET", is_in_force: Callable[[], bool] = lambda: False
) -> list[Message]:
    """Serve an app to a credential that has ended meanwhile; return what was sent."""
    sent: list[Message] = []

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": method, "path": "/", "headers": []}
    ended = PlainTextResponse("ended", 401)
    await TokensInForce(app).serve(scope, receive, send, is_in_force=is_in_force, ended=ended)
    return sent


def slow(kind: str) -> StreamingResponse:
    async def lines() -> AsyncIterator[bytes]:
        yield b"one"
        await anyio.sleep(2.5 * LOOK_S)
        yield b"two"

    return StreamingResponse(lines(), media_type=kind)


def test_a_download_is_not_cut_where_it_would_look_complete() -> None:
    download = anyio.run(served, slow("application/x-ndjson"))
    stream = anyio.run(served, slow("text/event-stream"))

    assert [one["body"] for one in download[1:]] == [b"one", b"two", b""]
    assert [one["body"] for one in stream[1:]] == [b"one", b""]
    assert stream[-1]["more_body"] is False


def test_a_request_that_may_change_something_is_answered_as_it_ended() -> None:
    async def change(scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.sleep(2.5 * LOOK_S)
        await PlainTextResponse("changed")(scope, receive, send)

    post = anyio.run(partial(served, change, method="POST"))
    get = anyio.run(served, change)

    assert [post[0]["status"], get[0]["status"]] == [200, 401]


def test_an_error_of_a_route_arrives_as_it_was_raised() -> None:
    async def fail(scope: Scope, receive: Receive, send: Send) -> None:
        raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        anyio.run(partial(served, fail, is_in_force=lambda: True))


@pytest.mark.slow
def test_an_open_server_keeps_streams_of_readers_without_a_credential(tmp_path: Path) -> None:
    with (
        hosting(tmp_path / "data") as server,
        streaming(server, "/live/runs") as nobody,
        streaming(server, "/live/runs", **cookie("made-up")) as unknown,
    ):
        value = session_of(server.data, "ana")[SESSION_COOKIE]
        with streaming(server, "/live/runs", **cookie(value)) as mine:
            mine.seconds_until_end(end(server, "ana"))
        others = (nobody.is_open, unknown.is_open)

    assert others == (True, True)
