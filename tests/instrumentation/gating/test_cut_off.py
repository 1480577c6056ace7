"""Calls that are cut off inside of groups of exceptions, and calls that fork."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import smtplib
import socket
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import anthropic
import grpc
import httpx2
import openai
import pytest
import requests
import trio
import urllib3

import hansard
from hansard.errors import NotDecoratable
from tests.instrumentation.gating.gates import Desk, state_of

ROOT = Path(__file__).parents[3]


def broken() -> ValueError:
    """Return a new error each time: one that was raised remembers what was handled then."""
    return ValueError("no such person")


def raising(error: BaseException) -> Any:
    def send(to: str) -> None:
        raise error

    return hansard.tool(send, effect="write", name="send")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "state"),
    [
        (BaseExceptionGroup("a", [broken(), asyncio.CancelledError()]), "unknown"),
        (BaseExceptionGroup("a", [BaseExceptionGroup("b", [KeyboardInterrupt()])]), "unknown"),
        (BaseExceptionGroup("a", [broken(), BaseExceptionGroup("b", [SystemExit(0)])]), "unknown"),
        (ExceptionGroup("a", [broken(), ExceptionGroup("b", [TimeoutError()])]), "unknown"),
        (ExceptionGroup("a", [trio.TooSlowError()]), "unknown"),
        (trio.TooSlowError(), "unknown"),
        (SystemExit(1), "unknown"),
        (subprocess.TimeoutExpired("scp", 3), "unknown"),
        (requests.ReadTimeout(), "unknown"),
        (ExceptionGroup("a", [broken(), ExceptionGroup("b", [LookupError()])]), "failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)
def test_what_was_cut_off_somewhere_in_a_group_is_unknown(
    store: Desk, error: BaseException, state: str
) -> None:
    gate = store.gate(raising(error))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(type(error)):
        gate.run(identity)

    assert state_of(gate, identity) == ("approved", state)


def raised_from(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def raised_while(error: Exception, context: BaseException) -> Exception:
    error.__context__ = context
    error.__suppress_context__ = True  # `from None`
    return error


class DeadlineRpcError(grpc.RpcError):
    """What a call of grpc raises: the status stands behind a method."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code


REQUEST = httpx2.Request("POST", "http://x")
CONNECT_TIMEOUT = raised_from(httpx2.ConnectTimeout("x"), TimeoutError())
REFUSED = requests.ConnectionError(
    urllib3.exceptions.MaxRetryError(
        None,  # type: ignore[arg-type]  # no pool
        "u",
        urllib3.exceptions.NewConnectionError(None, "refused"),  # type: ignore[arg-type]
    )
)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (httpx2.ReadTimeout("x", request=REQUEST), "unknown"),
        (httpx2.WriteTimeout("x", request=REQUEST), "unknown"),
        (httpx2.ReadError("x", request=REQUEST), "unknown"),
        (httpx2.RemoteProtocolError("x", request=REQUEST), "unknown"),
        (openai.APITimeoutError(request=REQUEST), "unknown"),  # type: ignore[arg-type]
        (openai.APIConnectionError(request=REQUEST), "unknown"),  # type: ignore[arg-type]
        (anthropic.APITimeoutError(request=REQUEST), "unknown"),  # type: ignore[arg-type]
        (urllib.error.URLError(TimeoutError("timed out")), "unknown"),
        (urllib3.exceptions.ReadTimeoutError(None, "u", "x"), "unknown"),  # type: ignore[arg-type]
        (urllib3.exceptions.ProtocolError("x", RemoteDisconnected()), "unknown"),
        (requests.ConnectionError("Read timed out."), "unknown"),
        (requests.exceptions.ChunkedEncodingError(), "unknown"),
        (concurrent.futures.CancelledError(), "unknown"),
        (raised_from(RuntimeError("wrapped"), TimeoutError("inner")), "unknown"),
        (raised_while(RuntimeError("wrapped"), TimeoutError("inner")), "unknown"),
        (ExceptionGroup("a", [raised_from(RuntimeError(), ConnectionResetError())]), "unknown"),
        (RemoteDisconnected(), "unknown"),
        (ConnectionResetError(), "unknown"),
        (BrokenPipeError(), "unknown"),
        (smtplib.SMTPServerDisconnected(), "unknown"),
        (DeadlineRpcError(grpc.StatusCode.DEADLINE_EXCEEDED), "unknown"),
        (DeadlineRpcError(grpc.StatusCode.UNAVAILABLE), "unknown"),
        (raised_from(RuntimeError(), KeyboardInterrupt()), "unknown"),
        # A second attempt found no connection; the first was cut off.
        (raised_while(httpx2.ConnectError("x"), httpx2.ReadTimeout("x")), "unknown"),
        # Nothing was sent.
        (httpx2.ConnectError("x", request=REQUEST), "failed"),
        (CONNECT_TIMEOUT, "failed"),
        (httpx2.PoolTimeout("x"), "failed"),
        (raised_from(openai.APIConnectionError(request=REQUEST), CONNECT_TIMEOUT),  # type: ignore[arg-type]
         "failed"),
        (ConnectionRefusedError(), "failed"),
        (urllib.error.URLError(socket.gaierror(-2, "no such name")), "failed"),
        (requests.ConnectTimeout(), "failed"),
        (REFUSED, "failed"),
        # An answer, and errors whose names only sound like it.
        (DeadlineRpcError(grpc.StatusCode.INVALID_ARGUMENT), "failed"),
        (urllib.error.HTTPError("u", 500, "x", None, None), "failed"),  # type: ignore[arg-type]
        (tarfile.ReadError(), "failed"),
        (type("OrderCancelledError", (ValueError,), {})(), "failed"),
        (type("InvalidTimeoutValue", (ValueError,), {})(), "failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)  # fmt: skip
def test_a_call_that_may_have_had_its_effect_is_unknown(
    store: Desk, error: BaseException, state: str
) -> None:
    gate = store.gate(raising(error))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(type(error)):
        gate.run(identity)

    assert state_of(gate, identity) == ("approved", state)


def test_what_the_caller_was_handling_says_nothing_of_the_call(store: Desk) -> None:
    gate = store.gate(raising(broken()))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    try:
        raise TimeoutError("of the caller")
    except TimeoutError:
        with pytest.raises(ValueError, match="no such person"):
            gate.run(identity)

    assert state_of(gate, identity) == ("approved", "failed")


def test_a_read_that_times_out_over_a_real_socket_is_unknown(store: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"

        def send(to: str) -> None:
            urllib.request.urlopen(address, data=to.encode(), timeout=0.2)

        gate = store.gate(hansard.tool(send, effect="write", name="send"))
        identity = store.approve(gate.call("send", {"to": "Maria"}))
        with pytest.raises(TimeoutError):
            gate.run(identity)

    assert state_of(gate, identity) == ("approved", "unknown")


def test_a_nursery_of_trio_that_is_cancelled_from_outside_is_unknown(store: Desk) -> None:
    done: list[str] = []

    async def send(to: str) -> None:
        async with trio.open_nursery() as nursery:
            done.append(to)
            nursery.start_soon(trio.sleep, 5)
            nursery.start_soon(trio.sleep, 6)

    gate = store.gate(hansard.tool(send, effect="write"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    async def main() -> None:
        with trio.move_on_after(0.05):
            await gate.arun(identity)

    trio.run(main)

    assert done == ["Maria"]
    assert state_of(gate, identity) == ("approved", "unknown")


def test_a_task_group_with_a_timeout_in_a_child_is_unknown(store: Desk) -> None:
    async def send(to: str) -> None:
        async def one() -> None:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(5)

        async with asyncio.TaskGroup() as group:
            group.create_task(one())

    gate = store.gate(hansard.tool(send, effect="write"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))

    with pytest.raises(ExceptionGroup):
        asyncio.run(gate.arun(identity))

    assert state_of(gate, identity) == ("approved", "unknown")


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["read", "write"])
def test_only_the_process_that_claimed_a_call_records_its_end(tmp_path: Path, effect: str) -> None:
    program = [sys.executable, "-m", "tests.instrumentation.gating.forked", str(tmp_path), effect]
    ended = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, timeout=240, check=True)
    told = json.loads(ended.stdout)

    if effect == "write":
        assert told["state"] == ["approved", "failed"]
    else:
        assert told["events"] == ["tool.called send", "tool.returned send"]
        assert told["error"] == "ValueError"


def test_a_function_that_is_given_with_an_effect_is_a_tool(store: Desk) -> None:
    done: list[str] = []

    def send(to: str) -> None:
        done.append(to)

    gate = store.gate(hansard.tool(send, effect="write", describe="Send to {to}"))
    identity = store.approve(gate.call("send", {"to": "Maria"}))
    gate.run(identity)

    assert done == ["Maria"]
    assert state_of(gate, identity) == ("approved", "done")


def test_what_is_no_function_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(NotDecoratable):
        hansard.tool("send", effect="write")  # type: ignore[call-overload]
