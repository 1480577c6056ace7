"""OTLP/gRPC over real sockets: codes, trailers and limits, and what reaches the pipeline."""

from __future__ import annotations

import datetime
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from hansard._export.otlp.exporter import HELLO, PRODUCT
from hansard_collector.errors import StoreBusy
from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import Encoding, Signal
from hansard_collector.receivers import grpc as stalling
from hansard_collector.receivers.grpc import (
    NOT_FOR_SENDING,
    GrpcReceiver,
    GrpcSettings,
)
from hansard_compiler.errors import ConfigError
from tests.collector.receivers.maker import MemoryPipeline, OpenGrpc, require_bearer

MIB = 1 << 20
TRACES = f"/{CONTRACTS[Signal.TRACES].service}/Export"


def traces(*, spans: int = 1, name: str = "x", bad: int = 0) -> bytes:
    request = ExportTraceServiceRequest()
    scoped = request.resource_spans.add().scope_spans.add()
    for number in range(spans):
        length = 3 if number < bad else 16
        scoped.spans.add(trace_id=b"t" * length, span_id=b"s" * 8, name=name)
    encoded: bytes = request.SerializeToString()
    return encoded


def call(receiver: GrpcReceiver, body: bytes, method: str = TRACES, **options: Any) -> Any:
    """Send one message; the reply's bytes, or the grpc.RpcError that came in its place."""
    with grpc.insecure_channel(
        f"127.0.0.1:{receiver.port}", options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        try:
            return channel.unary_unary(method)(body, timeout=120, **options)
        except grpc.RpcError as error:
            return error


def trailers_of(error: Any) -> dict[str, Any]:
    return dict(error.trailing_metadata())


def details_of(error: Any) -> Status:
    return Status.FromString(trailers_of(error)["grpc-status-details-bin"])


def test_who_listens_is_told_to_everybody_and_nothing_else(open_grpc: OpenGrpc) -> None:
    receiver = open_grpc(authorise=require_bearer("secret"))

    assert call(receiver, b"", HELLO) == PRODUCT.encode()
    assert call(receiver, traces()).code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("signal", Signal)
def test_an_export_of_each_signal_reaches_the_pipeline_and_is_answered_empty(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, signal: Signal
) -> None:
    reply = call(open_grpc(), b"", f"/{CONTRACTS[signal].service}/Export")

    assert reply == b""
    ((request, _),) = pipeline.kept
    assert (request.signal, request.encoding) == (signal, Encoding.PROTOBUF)
    assert request.sender.transport == "grpc"
    assert request.sender.address.startswith("127.0.0.1:")
    assert "grpc-python" in request.sender.user_agent


@pytest.mark.covers("CO-03")
def test_a_gzipped_message_reaches_the_pipeline_decompressed(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    body = traces(name="word " * 1000)

    assert call(open_grpc(), body, compression=grpc.Compression.Gzip) == b""
    assert [request.body for request, _ in pipeline.kept] == [body]


def test_a_partial_success_counts_what_was_rejected_and_says_why(open_grpc: OpenGrpc) -> None:
    reply = call(open_grpc(), traces(spans=10, bad=2))

    partial = ExportTraceServiceResponse.FromString(reply).partial_success
    assert (partial.rejected_spans, partial.error_message) == (2, "2 spans have bad ids")


def test_an_undecodable_message_is_invalid_argument_with_bad_request(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    error = call(open_grpc(), traces()[:-3])

    bad_request = BadRequest()
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details_of(error).details[0].Unpack(bad_request)
    assert "cut off" in bad_request.field_violations[0].description
    assert "google.rpc.retryinfo-bin" not in trailers_of(error)
    assert pipeline.refused == []  # the pipeline had it, and counts it itself


@pytest.mark.parametrize("at_once", [True, False])
def test_a_busy_store_is_unavailable_with_the_delay_in_both_carriers(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, at_once: bool
) -> None:
    pipeline.failure, pipeline.fails_at_once = StoreBusy("the disk is full"), at_once

    error = call(open_grpc(), traces())

    assert (error.code(), error.details()) == (grpc.StatusCode.UNAVAILABLE, "the disk is full")
    detail = RetryInfo()
    assert details_of(error).details[0].Unpack(detail)
    trailer = RetryInfo.FromString(trailers_of(error)["google.rpc.retryinfo-bin"])
    assert trailer.retry_delay.seconds == detail.retry_delay.seconds == 1
    assert [refused.code for refused in pipeline.refused] == ["busy"]


def test_a_store_that_takes_too_long_is_unavailable_and_the_request_stays_queued(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(store_wait_s=0.05)
    pipeline.may_commit.clear()

    error = call(receiver, traces())
    pipeline.finish()

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "google.rpc.retryinfo-bin" in trailers_of(error)
    assert len(pipeline.kept) == 1


def test_a_bug_in_the_pipeline_is_internal_without_its_words_and_is_logged(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, caplog: pytest.LogCaptureFixture
) -> None:
    pipeline.failure = ZeroDivisionError("secret detail")

    error = call(open_grpc(), traces())

    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in error.details()
    assert "secret detail" in caplog.text


@pytest.mark.parametrize(
    "method",
    [
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Import",
    ],
)
def test_other_methods_are_unimplemented_and_counted(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, method: str
) -> None:
    error = call(open_grpc(), b"", method)

    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "traces, logs and metrics" in error.details()
    assert [refused.code for refused in pipeline.refused] == ["unknown_path"]


def test_very_long_sentences_still_fit_the_trailers(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    pipeline.failure = StoreBusy("é" * 5000)

    error = call(open_grpc(), traces())

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert error.details().endswith("é…")
    assert details_of(error).message == error.details()


# --------------------------------------------------------------------------------------- limits
def test_a_message_of_5_mib_is_taken_although_the_library_would_stop_at_4(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    assert call(open_grpc(), traces(name="x" * 5 * MIB)) == b""
    assert len(pipeline.kept[0][0].body) > 5 * MIB


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
def test_a_message_over_the_limit_is_refused_for_good_and_counted(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, compression: grpc.Compression | None
) -> None:
    receiver = open_grpc()

    error = call(receiver, traces(name="x" * 65 * MIB), compression=compression)
    reply = call(receiver, traces())
    receiver.stop()

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in trailers_of(error)
    assert reply == b""
    assert [refused.code for refused in pipeline.refused] == ["too_large"]
    assert len(pipeline.kept) == 1


def test_forty_requests_can_wait_for_the_same_commit(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(store_wait_s=120)
    pipeline.may_commit.clear()
    with ThreadPoolExecutor(40) as senders:
        replies = [senders.submit(call, receiver, traces()) for _ in range(40)]
        while pipeline.submitted < 40:  # each is waiting in the receiver, none is turned away
            assert pipeline.one_more.wait(60)
            pipeline.one_more.clear()
        pipeline.may_commit.set()

    assert [reply.result() for reply in replies] == [b""] * 40


# --------------------------------------------------------------------------------- who may send
def test_only_the_right_token_lets_a_call_in(open_grpc: OpenGrpc, pipeline: MemoryPipeline) -> None:
    receiver = open_grpc(authorise=require_bearer("s3cret"))
    refused = ["", "s3cret", "Bearer", "Bearer wrong", "Bearer s3cretx", "Basic s3cret"]
    allowed = ["Bearer s3cret", "bearer s3cret"]

    errors = [call(receiver, traces(), metadata=[("authorization", value)]) for value in refused]
    replies = [call(receiver, traces(), metadata=[("authorization", value)]) for value in allowed]
    without = call(receiver, traces())

    codes = {error.code() for error in [*errors, without]}
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert replies == [b"", b""]
    assert len(pipeline.kept) == 2
    assert {each.code for each in pipeline.refused} == {"unauthenticated"}
    assert "s3cret" not in str(pipeline.refused)


def test_a_token_without_the_right_to_send_is_permission_denied(open_grpc: OpenGrpc) -> None:
    error = call(open_grpc(authorise=lambda _: NOT_FOR_SENDING), traces())

    assert error.code() is grpc.StatusCode.PERMISSION_DENIED


def test_a_refusal_that_waits_ends_with_its_caller_and_with_the_receiver(
    open_grpc: OpenGrpc,
) -> None:
    began, over = threading.Semaphore(0), threading.Semaphore(0)

    @contextmanager
    def limiter(address: str) -> Iterator[float]:
        assert address == "127.0.0.1"
        began.release()
        try:
            yield 600.0
        finally:
            over.release()

    receiver = open_grpc(authorise=require_bearer("s3cret"), limiter=limiter)
    wrong = [("authorization", "Bearer wrong")]
    with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        left = channel.unary_unary(TRACES).future(traces(), metadata=wrong)
        assert began.acquire(timeout=20)
        left.cancel()
        ended_with_its_caller = over.acquire(timeout=20)
        channel.unary_unary(TRACES).future(traces(), metadata=wrong)
        assert began.acquire(timeout=20)
        receiver.stop()
        ended_with_the_receiver = over.acquire(timeout=20)

    assert (ended_with_its_caller, ended_with_the_receiver) == (True, True)
    assert not began.acquire(blocking=False)


# ------------------------------------------------------------------------------ start and stop
def test_a_taken_port_is_a_config_error_that_names_the_flag(pipeline: MemoryPipeline) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}.*--grpc-port"):
            GrpcReceiver(pipeline, GrpcSettings(port=port))


def test_a_port_another_receiver_listens_on_is_taken(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    port = open_grpc().port

    with pytest.raises(ConfigError):
        GrpcReceiver(pipeline, GrpcSettings(port=port))


def test_stop_lets_an_accepted_request_finish(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc()
    pipeline.may_commit.clear()
    with ThreadPoolExecutor(2) as others:
        reply = others.submit(call, receiver, traces())
        assert pipeline.one_more.wait(60)
        stopping = others.submit(receiver.stop)
        pipeline.may_commit.set()
        stopping.result(20)

    assert reply.result() == b""
    assert call(receiver, traces()).code() is grpc.StatusCode.UNAVAILABLE


def test_stop_can_be_called_twice(open_grpc: OpenGrpc) -> None:
    receiver = open_grpc()

    receiver.stop()
    receiver.stop()


# ------------------------------------------------------------------------------------------ TLS
@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_file, key_file


def test_with_a_certificate_calls_are_encrypted_and_plain_ones_fail(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, certificate: tuple[Path, Path]
) -> None:
    receiver = open_grpc(tls_certificate=certificate[0], tls_key=certificate[1])
    trusted = grpc.ssl_channel_credentials(certificate[0].read_bytes())
    target = f"localhost:{receiver.port}"

    with grpc.secure_channel(target, trusted) as channel:
        reply = channel.unary_unary(TRACES)(traces(), timeout=30)
    plain = call(receiver, traces())

    assert reply == b""
    assert plain.code() is grpc.StatusCode.UNAVAILABLE
    assert len(pipeline.kept) == 1


def test_a_certificate_without_its_key_is_a_config_error(
    pipeline: MemoryPipeline, certificate: tuple[Path, Path]
) -> None:
    with pytest.raises(ConfigError, match="go together"):
        GrpcReceiver(pipeline, GrpcSettings(port=0, tls_certificate=certificate[0]))


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nno\n"])
def test_a_certificate_that_cannot_be_used_is_a_config_error_before_the_first_call(
    pipeline: MemoryPipeline, certificate: tuple[Path, Path], content: bytes | None
) -> None:
    certificate_file, key_file = certificate
    certificate_file.unlink()
    if content is not None:
        certificate_file.write_bytes(content)

    with pytest.raises(ConfigError, match=r"cannot use --tls-cert .*cert\.pem"):
        GrpcReceiver(
            pipeline, GrpcSettings(port=0, tls_certificate=certificate_file, tls_key=key_file)
        )


# ---- calls whose message does not come


def stall(channel: grpc.Channel, ended: threading.Event) -> Any:
    """Begin a call and send no message until `ended`."""

    def messages() -> Iterator[bytes]:
        ended.wait()
        yield from ()

    return channel.stream_unary(TRACES).future(messages())


def test_eighty_calls_without_a_message_do_not_keep_an_honest_sender_waiting(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(busy_wait_s=0.3, message_wait_s=1)
    ended = threading.Event()
    with ExitStack() as open_channels:
        address, options = f"127.0.0.1:{receiver.port}", [("grpc.use_local_subchannel_pool", 1)]
        channels = [
            open_channels.enter_context(grpc.insecure_channel(address, options=options))
            for _ in range(4)
        ]
        open_channels.callback(ended.set)
        calls = [stall(channel, ended) for channel in channels for _ in range(20)]

        answer = call(receiver, traces())

        assert answer == b""
        assert len(pipeline.kept) == 1
        codes = {one.exception(timeout=240).code() for one in calls}
        assert codes == {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}
    receiver.stop()
    assert "sender_stalled" in {refused.code for refused in pipeline.refused}


def test_a_call_without_a_message_is_ended_in_time(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(message_wait_s=0.1)
    ended = threading.Event()
    with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        stalled = stall(channel, ended)

        error = stalled.exception(timeout=20)
        ended.set()

    assert error.code() is grpc.StatusCode.CANCELLED
    receiver.stop()
    assert [refused.code for refused in pipeline.refused] == ["sender_stalled"]


def test_while_memory_is_short_those_who_may_send_large_messages_wait_and_others_do_not(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalling, "_SHORT_FRESH_S", 60)  # on a slow machine, too
    receiver = open_grpc(short_bytes=-(1 << 40), store_wait_s=0.2)
    address, options = f"127.0.0.1:{receiver.port}", [("grpc.use_local_subchannel_pool", 1)]
    ended = threading.Event()
    with ExitStack() as open_channels:
        known, unknown = (
            open_channels.enter_context(grpc.insecure_channel(address, options=options))
            for _ in range(2)
        )
        open_channels.callback(ended.set)
        assert known.unary_unary(TRACES)(traces(), timeout=30) == b""
        grpc.channel_ready_future(unknown).result(timeout=30)
        stalled = stall(unknown, ended)

        refused = call(receiver, traces())
        answer = known.unary_unary(TRACES)(traces(), timeout=30)

        assert answer == b""
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert "google.rpc.retryinfo-bin" in trailers_of(refused)
        assert not stalled.done()
    receiver.stop()
    assert [one.code for one in pipeline.refused if one.code == "busy"] == ["busy"]


def test_a_new_sender_is_let_in_before_the_fifth_call_of_one_that_stalls(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc()
    ended = threading.Event()
    with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        stalled = [stall(channel, ended) for _ in range(12)]

        answer = call(receiver, traces())
        codes = {one.code() for one in stalled if one.done()}
        ended.set()

    assert answer == b""
    assert codes <= {grpc.StatusCode.UNAVAILABLE}
    receiver.stop()


def test_when_memory_is_short_few_large_messages_go_on(
    open_grpc: OpenGrpc, pipeline: MemoryPipeline
) -> None:
    receiver = open_grpc(max_growth_bytes=-(1 << 40))
    ended = threading.Event()
    with grpc.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        calls = [stall(channel, ended) for _ in range(6)]

        some_ended, until = threading.Event(), time.monotonic() + 60
        while sum(one.done() for one in calls) < 2 and time.monotonic() < until:
            some_ended.wait(0.01)
        cut = [one.code() for one in calls if one.done()]
        ended.set()

    assert cut == [grpc.StatusCode.CANCELLED] * 2
