"""OTLP/HTTP over real sockets: what is answered to whom, and what reaches the pipeline."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import socket
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from hansard_collector.errors import StoreBusy
from hansard_collector.pipeline.requests import Encoding, IngestResult, Signal
from hansard_collector.receivers.export_response import export_response
from hansard_collector.receivers.http_responses import status_response
from tests.collector.receivers.maker import Answer, HttpDoor, MemoryPipeline, OpenHttp

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MIB = 1 << 20
EMPTY_JSON = b"{}"


def traces(*, spans: int = 1, name: str = "x", bad: int = 0) -> bytes:
    request = ExportTraceServiceRequest()
    scoped = request.resource_spans.add().scope_spans.add()
    for number in range(spans):
        length = 3 if number < bad else 16
        scoped.spans.add(trace_id=b"t" * length, span_id=b"s" * 8, name=name)
    encoded: bytes = request.SerializeToString()
    return encoded


SOUND = traces()


def status_of(answer: Answer) -> Status:
    """The google.rpc.Status of a refusal, whichever of the two encodings it came in."""
    if answer.media_type == JSON:
        plain = json.loads(answer.body)
        plain.pop("details", None)
        return Status(**plain)
    assert answer.media_type == PROTOBUF
    return Status.FromString(answer.body)


# -------------------------------------------------------------------------------------- success
@pytest.mark.parametrize("signal", Signal)
@pytest.mark.parametrize(("content_type", "body"), [(PROTOBUF, b""), (JSON, EMPTY_JSON)])
def test_full_success_is_an_empty_message_in_the_requests_encoding(
    http_door: HttpDoor, signal: Signal, content_type: str, body: bytes
) -> None:
    answer = http_door.post(f"/v1/{signal}", body, content_type)

    assert (answer.status, answer.media_type, answer.body) == (200, content_type, body)
    ((request, _),) = http_door.pipeline.kept
    assert (request.signal, request.body) == (signal, body)
    assert request.encoding is (Encoding.JSON if content_type == JSON else Encoding.PROTOBUF)


def test_the_pipeline_hears_who_sent_a_request(http_door: HttpDoor) -> None:
    http_door.post("/v1/traces", SOUND, user_agent="OTel-OTLP-Exporter-Test/1.0")

    ((request, _),) = http_door.pipeline.kept
    assert request.sender.address.startswith("127.0.0.1:")
    assert (request.sender.user_agent, request.sender.transport) == (
        "OTel-OTLP-Exporter-Test/1.0",
        "http",
    )
    assert request.received_ns > 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    ("content_type", "answered"),
    [
        ("application/json; charset=utf-8", JSON),
        ("Application/JSON;charset=UTF-8", JSON),
        ("APPLICATION/X-PROTOBUF", PROTOBUF),
        ('application/x-protobuf; proto="x"', PROTOBUF),
        ("application/protobuf", "application/protobuf"),
    ],
)
def test_content_types_are_read_as_media_types(
    http_door: HttpDoor, content_type: str, answered: str
) -> None:
    body = EMPTY_JSON if answered == JSON else SOUND

    answer = http_door.post("/v1/traces", body, content_type)

    assert (answer.status, answer.media_type) == (200, answered)


@pytest.mark.covers("CO-03")
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", SOUND),
        ("gzip", gzip.compress(SOUND)),
        ("GZIP", gzip.compress(SOUND)),
        ("x-gzip", gzip.compress(SOUND)),
        ("gzip, identity", gzip.compress(SOUND[:9]) + gzip.compress(SOUND[9:])),
        ("deflate", zlib.compress(SOUND)),
        ("zstd", zstandard.ZstdCompressor().compress(SOUND)),
    ],
)
def test_compressed_bodies_reach_the_pipeline_decompressed(
    http_door: HttpDoor, encoding: str, body: bytes
) -> None:
    answer = http_door.post("/v1/traces", body, content_encoding=encoding)

    assert answer.status == 200
    assert [request.body for request, _ in http_door.pipeline.kept] == [SOUND]


def test_a_chunked_body_is_read_whole(http_door: HttpDoor) -> None:
    pieces = iter([SOUND[:7], SOUND[7:20], SOUND[20:]])

    answer = http_door.post("/v1/traces", pieces, transfer_encoding="chunked")

    assert answer.status == 200
    assert [request.body for request, _ in http_door.pipeline.kept] == [SOUND]


@pytest.mark.parametrize(
    "path",
    ["/v1/traces/", "//v1/traces", "/v1//traces//", "/otel/v1/traces", "/api/otel/v1/traces/"],
)
def test_slashes_and_known_prefixes_are_served_without_a_redirect(
    http_door: HttpDoor, path: str
) -> None:
    assert http_door.post(path, SOUND).status == 200
    assert len(http_door.pipeline.kept) == 1


def test_a_partial_success_counts_what_was_rejected_and_says_why(http_door: HttpDoor) -> None:
    answer = http_door.post("/v1/traces", traces(spans=10, bad=1))

    response = ExportTraceServiceResponse.FromString(answer.body)
    assert answer.status == 200
    assert response.partial_success.rejected_spans == 1
    assert response.partial_success.error_message == "1 spans have bad ids"


def test_a_partial_success_in_json_writes_the_count_as_a_string(http_door: HttpDoor) -> None:
    span = {"traceId": "zz", "spanId": "ab" * 8}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()

    answer = http_door.post("/v1/traces", body, JSON)

    partial = json.loads(answer.body)["partialSuccess"]
    assert (answer.status, partial["rejectedSpans"]) == (200, "1")
    assert "traceId must be an even number of hex digits" in partial["errorMessage"]


def test_a_warning_alone_is_a_partial_success_that_rejects_nothing(http_door: HttpDoor) -> None:
    answer = http_door.post("/v1/traces", b'{"resource_spans": []}', JSON)

    partial = json.loads(answer.body)["partialSuccess"]
    assert answer.status == 200
    assert list(partial) == ["errorMessage"]


def test_sentences_to_the_sender_are_cut_to_4_kib_between_characters(http_door: HttpDoor) -> None:
    http_door.pipeline.failure = StoreBusy("é" * 4000)

    refused = http_door.post("/v1/traces", SOUND)
    partial: Any = export_response(Signal.LOGS, IngestResult(accepted=0, message="a" + "é" * 4000))

    for sentence in (status_of(refused).message, partial.partial_success.error_message):
        assert 4090 < len(sentence.encode()) <= 4096
        assert sentence.endswith("é…")


# ------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("path", "content_type", "body", "headers", "status", "code", "words"),
    [
        ("/", PROTOBUF, SOUND, {}, 404, "unknown_path", "/v1/traces"),
        ("/", JSON, EMPTY_JSON, {}, 404, "unknown_path", "/v1/traces"),
        ("/v1development/profiles", JSON, EMPTY_JSON, {}, 404, "unknown_path", "this signal"),
        ("/v1/traces", "text/plain", EMPTY_JSON, {}, 415, "unsupported_type", "text/plain"),
        ("/v1/logs", "", SOUND, {}, 415, "unsupported_type", PROTOBUF),
        (
            *("/v1/traces", PROTOBUF, SOUND, {"content_encoding": "snappy"}),
            *(415, "unsupported_encoding", "gzip, deflate, zstd"),
        ),
        (
            *("/v1/traces", PROTOBUF, gzip.compress(SOUND)[:-9], {"content_encoding": "gzip"}),
            *(400, "malformed", "ends before its end mark"),
        ),
        (
            *("/v1/traces", JSON, EMPTY_JSON, {"content_encoding": "gzip"}),
            *(400, "malformed", "not gzip"),
        ),
        ("/v1/traces", PROTOBUF, b"", {"content_encoding": "zstd"}, 400, "malformed", "empty"),
    ],
)
def test_a_refusal_is_a_status_in_the_requests_encoding_and_is_counted(
    http_door: HttpDoor,
    path: str,
    content_type: str,
    body: bytes,
    headers: dict[str, str],
    status: int,
    code: str,
    words: str,
) -> None:
    answer = http_door.post(path, body, content_type, **headers)

    assert answer.status == status
    assert answer.media_type == (PROTOBUF if content_type == PROTOBUF else JSON)
    assert words in status_of(answer).message
    (refused,) = http_door.pipeline.refused
    assert (refused.code, refused.message) == (code, status_of(answer).message)
    assert refused.size_bytes == len(body)
    assert http_door.pipeline.kept == []


@pytest.mark.parametrize(
    ("content_type", "body"), [(PROTOBUF, SOUND[:-3]), (JSON, b"[]"), (JSON, b"")]
)
def test_an_undecodable_body_is_400_with_bad_request_details(
    http_door: HttpDoor, content_type: str, body: bytes
) -> None:
    answer = http_door.post("/v1/traces", body, content_type)

    assert (answer.status, answer.media_type) == (400, content_type)
    assert http_door.pipeline.refused == []  # the pipeline had it, and counts it itself
    if content_type == JSON:
        (detail,) = json.loads(answer.body)["details"]
        assert detail["@type"] == "type.googleapis.com/google.rpc.BadRequest"
        assert detail["fieldViolations"][0]["description"]
    else:
        bad_request = BadRequest()
        assert status_of(answer).details[0].Unpack(bad_request)
        assert "cut off" in bad_request.field_violations[0].description


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_405_and_name_the_one_that_works(
    http_door: HttpDoor, method: str
) -> None:
    answer = http_door.request(method, "/v1/traces", headers={"content-type": PROTOBUF})

    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    assert "sent with POST" in status_of(answer).message


def test_get_of_the_root_is_left_to_the_application(http_door: HttpDoor) -> None:
    answer = http_door.request("GET", "/")

    assert (answer.status, answer.body) == (404, b"Not Found")  # Starlette's own words
    assert http_door.pipeline.refused == []


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_a_busy_store_is_503_with_a_short_delay(
    http_door: HttpDoor, content_type: str, at_once: bool
) -> None:
    http_door.pipeline.failure = StoreBusy("the disk is full")
    http_door.pipeline.fails_at_once = at_once

    answer = http_door.post("/v1/traces", EMPTY_JSON, content_type)

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert status_of(answer).message == "the disk is full"
    assert [refused.code for refused in http_door.pipeline.refused] == ["busy"]
    if content_type == PROTOBUF:
        delay = RetryInfo()
        assert status_of(answer).details[0].Unpack(delay)
        assert delay.retry_delay.seconds == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_a_bug_in_the_pipeline_is_500_without_its_words_and_is_logged(
    http_door: HttpDoor, at_once: bool, caplog: pytest.LogCaptureFixture
) -> None:
    http_door.pipeline.failure = ZeroDivisionError("secret detail")
    http_door.pipeline.fails_at_once = at_once

    answer = http_door.post("/v1/traces", SOUND)

    assert answer.status == 500
    assert "secret" not in status_of(answer).message
    assert "retry-after" not in answer.headers
    assert "secret detail" in caplog.text


def test_a_store_that_takes_too_long_is_503_and_the_request_stays_queued(
    open_http: OpenHttp, pipeline: MemoryPipeline
) -> None:
    service = open_http(store_wait_s=0.05)
    pipeline.may_commit.clear()

    answer = service.post("/v1/traces", SOUND)
    pipeline.finish()

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert len(pipeline.kept) == 1


def test_a_request_is_not_answered_before_it_is_committed(http_door: HttpDoor) -> None:
    http_door.pipeline.may_commit.clear()
    connection = http.client.HTTPConnection("127.0.0.1", http_door.port, timeout=0.2)
    connection.request("POST", "/v1/traces", SOUND, {"content-type": PROTOBUF})

    with pytest.raises(TimeoutError):
        connection.getresponse()

    connection.close()
    http_door.pipeline.may_commit.set()


# --------------------------------------------------------------------------------------- limits
@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_over_the_limit_is_read_to_its_end_and_answered_413(
    open_http: OpenHttp, chunked: bool
) -> None:
    service = open_http(max_body_bytes=MIB, max_drained_bytes=8 * MIB)
    body: Any = iter([bytes(MIB)] * 6) if chunked else bytes(6 * MIB)
    headers = {"transfer_encoding": "chunked"} if chunked else {}

    answer = service.post("/v1/traces", body, JSON, **headers)

    assert (answer.status, answer.media_type) == (413, JSON)
    assert "larger than 1,048,576 bytes" in status_of(answer).message
    assert service.pipeline.refused[0].code == "too_large"


def test_a_body_of_exactly_the_limit_is_taken(open_http: OpenHttp) -> None:
    service = open_http(max_body_bytes=len(SOUND))

    assert service.post("/v1/traces", SOUND).status == 200
    assert service.post("/v1/traces", SOUND + b"\0").status == 413


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_bomb_is_413(open_http: OpenHttp, encoding: str) -> None:
    service = open_http(max_body_bytes=MIB)
    compressors: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "zstd": zstandard.ZstdCompressor().compress,
    }
    bomb = compressors[encoding](bytes(64 * MIB))

    answer = service.post("/v1/traces", bomb, content_encoding=encoding)

    assert answer.status == 413


def test_requests_over_the_common_memory_are_503_and_leave_it_free(open_http: OpenHttp) -> None:
    service = open_http(max_buffered_bytes=1000)

    refused = service.post("/v1/traces", bytes(1001))
    answers = [service.post("/v1/traces", traces(name="y" * 800)) for _ in range(5)]

    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert [answer.status for answer in answers] == [200] * 5


def test_a_sender_that_stalls_is_answered_and_counted(open_http: OpenHttp) -> None:
    service = open_http(chunk_wait_s=0.05)
    head = f"POST /v1/logs HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ncontent-length: 9\r\n\r\n"

    with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
        connection.sendall(head.encode() + b"{")
        answer = connection.makefile("rb").readline()

    assert answer.startswith(b"HTTP/1.1 408")
    assert [refused.code for refused in service.pipeline.refused] == ["sender_stalled"]


def test_a_sender_that_trickles_is_answered_when_its_time_is_over(open_http: OpenHttp) -> None:
    service = open_http(body_wait_s=0.3)
    head = f"POST /v1/logs HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\n"

    with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
        connection.sendall(f"{head}content-length: 9999\r\n\r\n".encode())
        connection.settimeout(0.01)
        answer = b""
        for _ in range(2_000):
            connection.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(100)
                break

    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_inflated_bytes_count_against_the_common_memory(open_http: OpenHttp, encoding: str) -> None:
    service = open_http(max_buffered_bytes=100_000)
    plain = traces(name="y" * 300_000)
    compress = gzip.compress if encoding == "gzip" else zstandard.ZstdCompressor().compress

    refused = service.post("/v1/traces", compress(plain), content_encoding=encoding)
    taken = service.post("/v1/traces", compress(traces()), content_encoding=encoding)

    assert (refused.status, refused.headers["retry-after"], taken.status) == (503, "1", 200)
    assert [one.code for one in service.pipeline.refused] == ["busy"]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_zeros_are_no_message_and_are_refused_without_being_kept(
    open_http: OpenHttp, content_type: str
) -> None:
    service = open_http(max_buffered_bytes=1_000_000)

    answer = service.post(
        "/v1/traces", gzip.compress(bytes(50 * MIB)), content_type, content_encoding="gzip"
    )

    assert answer.status == 400


def test_a_sender_that_asks_first_is_refused_before_it_sends(http_door: HttpDoor) -> None:
    head = "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 99\r\n\r\n"

    with socket.create_connection(("127.0.0.1", http_door.port), 10) as connection:
        connection.sendall(head.encode())
        answer = connection.makefile("rb").read()  # to the end: the server closes

    assert answer.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in answer.lower()


def test_a_connection_outlives_a_refusal(http_door: HttpDoor) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", http_door.port, timeout=20)
    statuses = []

    for path, body in (("/v1/traces", b"\xff" * 9), ("/", SOUND), ("/v1/traces", SOUND)):
        connection.request("POST", path, body, {"content-type": PROTOBUF})
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()

    assert statuses == [400, 404, 200]


# ----------------------------------------------------------------------------------------- CORS
PAGE = "https://app.example"
PREFLIGHT = {"origin": PAGE, "access-control-request-method": "POST"}


def test_no_cors_header_is_sent_by_default(http_door: HttpDoor) -> None:
    asked = http_door.request("OPTIONS", "/v1/traces", headers=PREFLIGHT)
    sent = http_door.post("/v1/traces", SOUND, origin=PAGE)

    assert asked.status == 405
    assert "--cors-origin https://app.example" in status_of(asked).message
    for answer in (asked, sent):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_preflight_of_an_allowed_origin_is_granted_with_the_headers_it_asks_for(
    open_http: OpenHttp,
) -> None:
    service = open_http(cors_origins=frozenset({PAGE}))
    asked = {"access-control-request-headers": "content-type,x-tenant"}

    answer = service.request("OPTIONS", "/v1/traces", headers=PREFLIGHT | asked)

    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-methods"] == "POST, OPTIONS"
    assert "content-encoding" in answer.headers["access-control-allow-headers"]
    assert "x-tenant" in answer.headers["access-control-allow-headers"]
    assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("path", ["/v1/traces", "/v1development/profiles", "/"])
@pytest.mark.parametrize("body", [SOUND, b"\xff"])
def test_every_answer_to_an_allowed_origin_can_be_read_by_its_page(
    open_http: OpenHttp, path: str, body: bytes
) -> None:
    service = open_http(cors_origins=frozenset({PAGE}))

    answer = service.post(path, body, origin=PAGE)

    assert answer.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://app.example.evil"])
def test_other_origins_get_no_permission(open_http: OpenHttp, origin: str) -> None:
    service = open_http(cors_origins=frozenset({PAGE}))

    asked = service.request("OPTIONS", "/v1/traces", headers=PREFLIGHT | {"origin": origin})
    sent = service.post("/v1/traces", SOUND, origin=origin)

    assert asked.status == 405
    for answer in (asked, sent):
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["vary"] == "Origin"


def test_a_middleware_can_answer_as_this_door_does() -> None:
    headers = {"content-type": "application/x-protobuf", "origin": PAGE}

    response = status_response(
        headers, http_code=401, grpc_code=16, message="no token", cors_origins={PAGE}
    )

    assert (response.status_code, response.headers["content-type"]) == (401, PROTOBUF)
    assert Status.FromString(bytes(response.body)) == Status(code=16, message="no token")
    assert response.headers["access-control-allow-origin"] == PAGE
