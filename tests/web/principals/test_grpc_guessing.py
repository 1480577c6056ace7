"""Guessing tokens over OTLP/gRPC: slowed like over HTTP, counted, logged, and nobody else waits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc
import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import Signal
from hansard_collector.receivers.grpc import MOST_HELD
from hansard_web.principals.attempts import MOST_WAITING
from tests.journeys.processes import Serving, hosting
from tests.signing import bearer

pytestmark = pytest.mark.slow

SENDER: Final = "senders-secret-1234"
ADMIN: Final = "admins-secret-1234"
EXPORT: Final = f"/{CONTRACTS[Signal.TRACES].service}/Export"
WAITS_S: Final = (0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.6)  # of the first failures of an address


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    tokens = (f"ingest:{SENDER}", f"admin:{ADMIN}")
    with hosting(tmp_path / "data", token=tokens) as server:
        yield server


def a_span() -> bytes:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    spans.add(trace_id=b"t" * 16, span_id=b"s" * 8, name="x")
    encoded: bytes = request.SerializeToString()
    return encoded


def export(channel: grpc.Channel, token: str) -> tuple[Any, float]:
    """Send one span; return the code of the answer, and the seconds it took."""
    since_s = time.monotonic()
    metadata = [("authorization", f"Bearer {token}")] if token else []
    try:
        channel.unary_unary(EXPORT)(a_span(), timeout=30, metadata=metadata)
    except grpc.RpcError as error:
        return error.code(), time.monotonic() - since_s
    return grpc.StatusCode.OK, time.monotonic() - since_s


def test_later_guesses_wait_and_the_right_token_and_calls_without_one_do_not(
    serving: Serving,
) -> None:
    with grpc.insecure_channel(serving.grpc) as channel:
        guesses = [export(channel, f"wrong-{number}") for number in range(len(WAITS_S))]
        right = export(channel, SENDER)
        without = export(channel, "")
    over_http = time.monotonic()
    wrong = httpx2.get(f"{serving.http}/v1/runs", headers=bearer("wrong-too"))
    http_s = time.monotonic() - over_http
    health = httpx2.get(f"{serving.http}/health", headers=bearer(ADMIN)).text

    assert {code for code, _ in guesses} == {grpc.StatusCode.UNAUTHENTICATED}
    assert all(took_s >= wait_s for (_, took_s), wait_s in zip(guesses, WAITS_S, strict=True))
    assert (right[0], right[1] < WAITS_S[-1]) == (grpc.StatusCode.OK, True)
    assert (without[0], without[1] < WAITS_S[-1]) == (grpc.StatusCode.UNAUTHENTICATED, True)
    assert (wrong.status_code, http_s >= 2) == (401, True)  # one address, by both ways
    count = health.partition("failed sign-ins")[2].partition("</span>")[0]
    assert count.rpartition(">")[2] == str(len(WAITS_S) + 1)


def test_many_guesses_at_once_hold_few_threads_and_no_honest_sender(serving: Serving) -> None:
    most_threads, is_over = 0, threading.Event()

    def watch() -> None:
        nonlocal most_threads
        while not is_over.wait(0.02):
            names = [one.name for one in threading.enumerate()]
            most_threads = max(most_threads, sum("otlp-grpc_" in name for name in names))

    with (
        grpc.insecure_channel(serving.grpc) as channel,
        grpc.insecure_channel(serving.grpc, [("grpc.use_local_subchannel_pool", 1)]) as honest,
        ThreadPoolExecutor(101) as threads,
    ):
        for number in range(8):  # from here on each guess would wait two seconds
            export(channel, f"first-{number}")
        threads.submit(watch)
        begun_s = time.monotonic()
        guesses = [threads.submit(export, channel, f"wrong-{n}") for n in range(400)]
        sent = [export(honest, SENDER) for _ in range(20)]
        codes = {one.result()[0] for one in guesses}
        took_s = time.monotonic() - begun_s
        is_over.set()

    # UNAVAILABLE: more streams than one connection may begin at once, refused by the library.
    assert codes - {grpc.StatusCode.UNAVAILABLE} == {grpc.StatusCode.UNAUTHENTICATED}
    assert {code for code, _ in sent} == {grpc.StatusCode.OK}
    assert max(seconds for _, seconds in sent) < 8  # 400 of two seconds, on all workers, are 13
    assert most_threads <= 64 + MOST_HELD
    assert MOST_HELD == MOST_WAITING
    assert took_s < 60  # one after the other they would take 800


def test_failures_over_grpc_are_logged(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "hansard.approvals"),
        grpc.insecure_channel(serving.grpc) as channel,
    ):
        for number in range(3):
            export(channel, f"wrong-{number}")
        deadline_s = time.monotonic() + 60
        while "to authenticate failed" not in caplog.text and time.monotonic() < deadline_s:
            threading.Event().wait(0.1)

    assert "attempt" in caplog.text
    assert "wrong-" not in caplog.text
