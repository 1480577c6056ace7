"""What gRPC status codes mean, as the stock exporter tells them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from hansard._config.settings import load_settings
from hansard._export.otlp.exporter import ExportOutcome, GrpcSender, make_sender
from hansard._export.spool import SpoolKind
from tests.instrumentation.faulty import closed_port
from tests.journeys.processes import spans


class _Aborts(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc ships no types
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._told = code, details

    def service(self, _details: Any) -> grpc.RpcMethodHandler:
        def answer(_request: bytes, context: grpc.ServicerContext) -> bytes:
            context.abort(*self._told)
            raise AssertionError("abort() raises")

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def aborting(code: grpc.StatusCode, details: str) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(2), handlers=[_Aborts(code, details)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


@contextmanager
def sending(data: Path, port: int) -> Iterator[GrpcSender]:
    settings = {"data": data, "endpoint": f"http://127.0.0.1:{port}", "protocol": "grpc"}
    sender = GrpcSender(load_settings(settings, {}))
    try:
        yield sender
    finally:
        sender.close()


@pytest.mark.parametrize(
    ("code", "details", "outcome"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, "not protobuf", ExportOutcome.REFUSED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max", ExportOutcome.REFUSED),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "quota", ExportOutcome.LATER),
        (grpc.StatusCode.UNAVAILABLE, "busy", ExportOutcome.LATER),
        (grpc.StatusCode.UNAUTHENTICATED, "who?", ExportOutcome.LATER),
        (grpc.StatusCode.UNIMPLEMENTED, "no logs", ExportOutcome.NOT_RECEIVED),
        (grpc.StatusCode.INTERNAL, "a bug", ExportOutcome.DOUBTFUL),
    ],
)
def test_a_code_says_whether_the_batch_is_worth_another_attempt(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    code: grpc.StatusCode,
    details: str,
    outcome: ExportOutcome,
) -> None:
    with aborting(code, details) as port, sending(tmp_path, port) as sender:
        answers = [
            sender.send(SpoolKind.TRACES, spans(1)) for _ in range(2)
        ]  # the second line is a repeat

    assert [answer.outcome for answer in answers] == [outcome, outcome]
    assert code.name in answers[0].reason
    assert details in answers[0].reason
    assert caplog.text == ""


def test_a_program_that_logs_nothing_leaves_it_in_doubt(tmp_path: Path) -> None:
    logging.disable(logging.CRITICAL)
    try:
        code = grpc.StatusCode.INVALID_ARGUMENT
        with aborting(code, "no") as port, sending(tmp_path, port) as sender:
            assert sender.send(SpoolKind.TRACES, spans(1)).outcome is ExportOutcome.DOUBTFUL
    finally:
        logging.disable(logging.NOTSET)


def test_lines_of_the_programs_own_exporters_pass(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = grpc.StatusCode.INVALID_ARGUMENT
    with aborting(code, "no") as port, sending(tmp_path, port) as sender:
        sender.send(SpoolKind.TRACES, spans(1))
        logging.getLogger("opentelemetry.exporter.otlp.proto.grpc.exporter").error("of its own")

    assert caplog.messages == ["of its own"]


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_batch_that_comes_after_the_sender_was_closed_is_sent_later(
    tmp_path: Path, protocol: str
) -> None:
    """A busy program ends while its thread still sends: that is no fault of the batch."""
    endpoint = f"http://127.0.0.1:{closed_port()}"
    settings = {"data": tmp_path, "endpoint": endpoint, "protocol": protocol}
    sender = make_sender(load_settings(settings, {}))
    sender.send(SpoolKind.TRACES, spans(1))
    sender.close()

    assert sender.send(SpoolKind.TRACES, spans(1)).outcome is ExportOutcome.LATER
