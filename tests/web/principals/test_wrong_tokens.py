"""A wrong token is a failed attempt on every route and port, also where none is needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grpc
import httpx2
import pytest

from hansard_store.principals.model import Scope
from tests import signing
from tests.journeys.processes import Serving, environment, hansard, hosting
from tests.signing import bearer
from tests.web.principals.test_grpc_guessing import export

pytestmark = pytest.mark.slow

ROUTES: Final = ("/v1/runs", "/runs", "/signin", "/v1/nothing-here", "/health")
PROGRAM: Final = """
import hansard
hansard.init()
from opentelemetry import trace
trace.get_tracer("program").start_span("work").end()
"""


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[Serving]:
    """A server without a configured token; its data folder is `tmp_path / "data"`."""
    with hosting(tmp_path / "data") as server:
        yield server


def add_token(tmp_path: Path, name: str = "ana") -> str:
    return signing.add_token(tmp_path / "data", name, Scope.READ)


def get(server: Serving, path: str, token: str = "") -> httpx2.Response:
    return httpx2.get(f"{server.http}{path}", headers=bearer(token) if token else {}, timeout=240)


@pytest.mark.parametrize("path", ROUTES)
def test_a_wrong_token_is_refused_where_none_is_needed(
    open_server: Serving, tmp_path: Path, path: str
) -> None:
    right = add_token(tmp_path)

    wrong = [get(open_server, path, token) for token in ("wrong", f"{right}x", "hst_wrong")]

    assert get(open_server, path).status_code < 500
    assert {one.status_code for one in wrong} == {401}
    assert get(open_server, path, right).status_code == get(open_server, path).status_code


def test_wrong_tokens_on_open_routes_are_slowed_and_counted(
    open_server: Serving, tmp_path: Path
) -> None:
    add_token(tmp_path)

    wrong = [get(open_server, "/v1/runs", f"wrong-{number}") for number in range(6)]
    health = get(open_server, "/health").text

    assert {one.json()["error"]["code"] for one in wrong} == {"unauthenticated"}
    assert wrong[-1].elapsed.total_seconds() >= 0.4
    count = health.partition("failed sign-ins")[2].partition("</span>")[0]
    assert count.rpartition(">")[2] == "6"


def test_public_routes_answer_any_token_alike(open_server: Serving, tmp_path: Path) -> None:
    right = add_token(tmp_path)

    answers = [get(open_server, "/healthz", token) for token in ("", "wrong", right)]

    assert {one.status_code for one in answers} == {200}
    assert {one.headers.get("cache-control") for one in answers} == {
        answers[0].headers.get("cache-control")
    }


def test_a_wrong_token_over_an_open_grpc_port_is_refused(
    open_server: Serving, tmp_path: Path
) -> None:
    right = add_token(tmp_path)

    with grpc.insecure_channel(open_server.grpc) as channel:
        codes = [export(channel, token)[0] for token in ("wrong", right, "")]

    ok = grpc.StatusCode.OK
    assert codes == [grpc.StatusCode.UNAUTHENTICATED, ok, ok]


def test_where_no_token_is_known_one_that_is_sent_is_ignored(
    open_server: Serving, tmp_path: Path
) -> None:
    assert get(open_server, "/v1/runs", "any").status_code == 200
    env = environment(
        HANSARD_TOKEN="left-over",
        HANSARD_ENDPOINT=open_server.http,
        HANSARD_DATA=str(tmp_path / "of the program"),
    )
    sent = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=240
    )

    assert sent.returncode == 0, sent.stderr
    assert len(get(open_server, "/v1/runs").json()["items"]) == 1
    with grpc.insecure_channel(open_server.grpc) as channel:
        assert export(channel, "any")[0] == grpc.StatusCode.OK

    gone = add_token(tmp_path)
    assert hansard("tokens", "revoke", "ana", "--data", str(tmp_path / "data")).returncode == 0
    assert get(open_server, "/v1/runs", gone).status_code == 200
