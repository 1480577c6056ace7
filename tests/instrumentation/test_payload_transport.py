"""Payloads on their way: to a real collector, past others, and kept while nobody takes them."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from hansard._config.settings import Settings, load_settings
from hansard._export import spool as export_spool
from hansard._export.backoff import may_retry
from hansard._export.dropped import Losses, Sender
from hansard._export.orphaned_spools import OrphanedSpools, forward
from hansard._export.otlp.batches import Courier
from hansard._export.otlp.exporter import ACCEPTED, ExportOutcome, ExportResponse
from hansard._export.otlp.log_records import encode_payloads, payload_records
from hansard._export.payload_writer import PayloadWriter
from hansard._export.processor import SpanPipeline
from hansard._export.spool import FOLDER, RECORD_BYTES, Spool, SpooledPayload
from hansard._runtime import warnings as trouble
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.config import Config
from hansard_web.app.server import Server, running
from tests.instrumentation.collectors import collecting

RESOURCE = Resource({"service.name": "agent"})
SMALL, EDGE, LARGE = b"small", b"e" * RECORD_BYTES, b"prompt " * 450_000
SECRET = "sk-ant-api03-" + "Qx7Rm2Vp9Lk4" * 8 + "AA"


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Hansard itself, on free ports."""
    data = tmp_path_factory.mktemp("server")
    with running(Config(data=data, http_port=0, grpc_port=0)) as server:
        yield server


@dataclass
class Agent:
    """An instrumented program, as far as payloads go."""

    settings: Settings
    payloads: PayloadWriter = field(init=False)
    spool: Spool = field(init=False)
    courier: Courier = field(init=False)

    def __post_init__(self) -> None:
        self.spool = Spool(
            self.settings.data / FOLDER,
            max_bytes=self.settings.spool_max_bytes,
            losses=Losses(Sender("agent", "1")),
        )
        self.payloads = PayloadWriter(self.settings, Redactor(b"key"), self.spool)
        self.courier = Courier(self.settings, RESOURCE)

    def put(self, *data: bytes, media_type: str = "application/json") -> list[str]:
        return [self.payloads.put(one, media_type=media_type) for one in data]

    def send(self) -> ExportResponse:
        """Send what dead processes left, and what waits here."""
        orphans = OrphanedSpools(self.spool.root)
        answer = orphans.all(self.courier)
        orphans.leave()
        while answer.outcome is ExportOutcome.ACCEPTED and (pack := self.spool.first_pack()):
            answer = forward(self.courier, self.spool, pack)
            self.spool.release()
            answer = answer if may_retry(answer, pack.kind) else ACCEPTED
        return answer

    @property
    def waiting(self) -> int:
        """How many payloads wait on disk, of this process."""
        return sum(pack.items for pack in self.spool._packs)

    def lost(self) -> dict[str, int]:
        return self.spool.lost("payloads")

    def close(self) -> None:
        self.spool.leave()
        self.courier.close()


MakeAgent = Callable[..., Agent]


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[MakeAgent]:
    """Makes programs with given settings."""
    made: list[Agent] = []

    def make(**settings: Any) -> Agent:
        found = load_settings({"data": str(tmp_path), "timeout_s": 60.0} | settings, {})
        made.append(Agent(found))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


def stored(server: Server, ref: str) -> tuple[bytes, str]:
    """Return the bytes and the media type that the server has."""
    with urllib.request.urlopen(f"{server.endpoints.http}/v1/payloads/{ref}", timeout=60) as answer:
        return answer.read(), answer.headers["content-type"]


def endpoints(server: Server) -> dict[str, dict[str, str]]:
    http, grpc = server.endpoints.http, f"http://{server.endpoints.grpc}"
    return {
        "http": {"endpoint": http, "protocol": "http/protobuf"},
        "grpc": {"endpoint": grpc, "protocol": "grpc"},
        "grpc with an HTTP endpoint": {
            "endpoint": grpc, "protocol": "grpc", "http_endpoint": http
        },
    }  # fmt: skip


@pytest.mark.covers("OT-08")
@pytest.mark.parametrize("endpoint", ["http", "grpc", "grpc with an HTTP endpoint"])
def test_exact_bytes_arrive_and_leave_the_spool(
    server: Server, make_agent: MakeAgent, endpoint: str
) -> None:
    agent = make_agent(**endpoints(server)[endpoint])
    data = [endpoint.encode() + one for one in (b"", SMALL, b"\0\xff", EDGE, LARGE)]
    refs = agent.put(*data)
    assert agent.waiting == 5

    assert agent.send().outcome is ExportOutcome.ACCEPTED
    assert agent.waiting == 0
    assert [one for one in agent.settings.data.rglob("*") if one.is_file()] == [
        *agent.settings.data.rglob("lock")
    ]
    for ref, one in zip(refs, data, strict=True):
        assert stored(server, ref) == (one, "application/json")


def test_empty_payloads_arrive(server: Server, make_agent: MakeAgent) -> None:
    agent = make_agent(**endpoints(server)["http"])
    [ref] = agent.put(b"", media_type="text/plain")
    agent.send()

    assert stored(server, ref)[0] == b""


def test_what_a_dead_process_left_is_sent_by_the_next_one(
    server: Server, make_agent: MakeAgent
) -> None:
    gone = make_agent(endpoint="http://127.0.0.1:1")
    data = b"said before the end", b"large before the end " * 100_000
    refs = gone.put(*data)
    assert gone.send().outcome is ExportOutcome.LATER
    gone.close()

    later = make_agent(**endpoints(server)["http"])
    assert later.send().outcome is ExportOutcome.ACCEPTED
    assert [stored(server, ref)[0] for ref in refs] == list(data)


def test_what_another_process_sent_meanwhile_is_done(server: Server, make_agent: MakeAgent) -> None:
    one, other = (make_agent(**endpoints(server)["http"]) for _ in range(2))
    one.put(b"of both" * 20_000)
    other.put(b"of both" * 20_000)
    one.send()

    assert other.waiting == 1
    assert other.send().outcome is ExportOutcome.ACCEPTED
    assert other.waiting == 0
    assert other.lost() == {}


def test_a_torn_file_is_counted_and_no_other_one_suffers(
    server: Server, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_spool, "_IN_MEMORY_BYTES", 0)
    agent = make_agent(**endpoints(server)["http"])
    agent.put(b"will be torn", LARGE + b"torn too")
    for waiting in agent.spool._packs:
        data = waiting.path.read_bytes()
        waiting.path.write_bytes(data[:-5] + b"else\n")
    [good] = agent.put(b"whole")

    assert agent.send().outcome is ExportOutcome.ACCEPTED
    assert agent.lost() == {"spool file unreadable": 2}
    assert stored(server, good)[0] == b"whole"


@pytest.mark.parametrize("size", [100, 2_000_000], ids=["record", "upload"])
def test_the_token_is_sent_along(
    tmp_path_factory: pytest.TempPathFactory, make_agent: MakeAgent, size: int
) -> None:
    from hansard_web.app.config import load_config

    data = tmp_path_factory.mktemp("guarded")
    arguments = {"data": str(data), "http_port": "0", "grpc_port": "0", "token": "let-me-in-please"}
    with running(load_config(arguments, {})) as guarded:
        wrong = make_agent(endpoint=guarded.endpoints.http, token="wrong-token-12345")
        wrong.put(b"x" * size)
        assert wrong.send().outcome is ExportOutcome.LATER

        right = make_agent(endpoint=guarded.endpoints.http, token="let-me-in-please")
        assert right.send().outcome is ExportOutcome.ACCEPTED
        assert right.waiting == 0


# ---- other ends


@dataclass
class OtherEnd:
    """An HTTP server that is not Hansard: what it answers to what, and what it was sent."""

    logs: int = 200
    uploads: int = 404
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    url: str = ""

    def records(self) -> list[Any]:
        """Return the log records that it was sent."""
        found = []
        for path, body in self.requests:
            if path == "/v1/logs":
                request = ExportLogsServiceRequest.FromString(body)
                found += request.resource_logs[0].scope_logs[0].log_records
        return found


@contextmanager
def other_end(end: OtherEnd) -> Iterator[OtherEnd]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self._answer({"/v1/logs": end.logs, "/v1/traces": 200}.get(self.path, 404))

        def do_PUT(self) -> None:
            self._answer(end.uploads)

        def do_GET(self) -> None:
            self._answer(404)

        def _answer(self, status: int) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            end.requests.append((self.path, body))
            self.send_response(status)
            for name, value in end.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    end.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield end
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_record_says_what_it_carries(make_agent: MakeAgent) -> None:
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url)
        [ref] = agent.put(SMALL, media_type="text/plain")
        agent.send()
        [record] = end.records()

    told = {one.key: one.value.string_value for one in record.attributes}
    assert record.event_name == "hansard.payload"
    assert record.body.bytes_value == SMALL
    assert told == {"hansard.payload.digest": ref, "hansard.payload.media_type": "text/plain"}


def test_a_collector_in_between_is_sent_large_ones_as_records(make_agent: MakeAgent) -> None:
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(LARGE, LARGE + b"again")
        answer = agent.send()

        assert answer.outcome is ExportOutcome.ACCEPTED
        assert [len(one.body.bytes_value) for one in end.records()] == [len(LARGE), len(LARGE) + 5]
        # It is asked for an upload once, and not for each payload.
        assert len([path for path, _ in end.requests if path.startswith("/v1/payloads")]) == 1


def test_what_no_door_takes_is_counted_and_the_setting_is_named(
    make_agent: MakeAgent, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "_warned", type(trouble._warned)())  # as in a new process
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(b"x" * (17 << 20), b"small enough")
        assert agent.send().outcome is ExportOutcome.ACCEPTED

        assert [one.body.bytes_value for one in end.records()] == [b"small enough"]
    assert agent.lost() == {"not received there": 1}
    assert "HANSARD_HTTP_ENDPOINT" in caplog.text


def test_large_ones_go_to_their_own_door(server: Server, make_agent: MakeAgent) -> None:
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url, http_endpoint=server.endpoints.http)
        [small, large] = agent.put(b"past a collector", LARGE + b"beside it")
        agent.send()

        assert [one.body.bytes_value for one in end.records()] == [b"past a collector"]
    assert stored(server, large)[0] == LARGE + b"beside it"
    assert small == ref_of(b"past a collector")


@pytest.mark.parametrize("status", [429, 502, 503, 504, 401, 403, 301, 307])
def test_what_cannot_be_taken_now_waits(make_agent: MakeAgent, status: int) -> None:
    end = OtherEnd(logs=status, uploads=status, headers={"location": "http://127.0.0.1:1/"})
    with other_end(end):
        agent = make_agent(endpoint=end.url)
        agent.put(SMALL)
        assert agent.send().outcome is ExportOutcome.LATER
        large = make_agent(endpoint=end.url, data=str(agent.settings.data / "large"))
        large.put(LARGE)
        assert large.send().outcome is ExportOutcome.LATER

        assert agent.waiting == large.waiting == 1
        end.logs = end.uploads = 200
        assert agent.send().outcome is large.send().outcome is ExportOutcome.ACCEPTED
        assert large.waiting == 0


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["record", "upload"])
def test_what_is_refused_for_good_is_counted_and_the_next_is_sent(
    make_agent: MakeAgent, data: bytes
) -> None:
    with other_end(OtherEnd(logs=400, uploads=400)) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(data)
        assert agent.send().outcome is ExportOutcome.ACCEPTED

        assert agent.lost() == {"refused by the collector": 1}
        assert agent.waiting == 0
        end.logs = 200
        agent.put(b"the next")
        assert agent.send().outcome is ExportOutcome.ACCEPTED


def test_an_upload_that_breaks_the_other_end_every_time_is_given_up(
    make_agent: MakeAgent,
) -> None:
    with other_end(OtherEnd(uploads=500)) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(LARGE)
        outcomes = [agent.send().outcome for _ in range(3)]

    assert outcomes == [ExportOutcome.DOUBTFUL, ExportOutcome.DOUBTFUL, ExportOutcome.ACCEPTED]
    assert agent.lost() == {"refused by the collector": 1}


def test_many_small_ones_share_requests(make_agent: MakeAgent) -> None:
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(*(b"number %d" % at for at in range(1100)))
        agent.send()

        assert len(end.records()) == 1100
        assert len(end.requests) == 3


def test_what_was_just_written_is_not_read_again_up_to_a_bound(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_spool, "_IN_MEMORY_BYTES", 130)
    with other_end(OtherEnd()) as end:
        agent = make_agent(endpoint=end.url)
        agent.put(b"a" * 60, b"b" * 60)
        assert agent.spool.first_pack() is not None  # the next one is another pack
        agent.put(b"c" * 60)
        kept = [one.payloads is not None for one in agent.spool._packs]
        agent.send()
        bodies = [record.body.bytes_value for record in end.records()]

    assert kept == [True, False]
    assert bodies == [b"a" * 60, b"b" * 60, b"c" * 60]


def test_payloads_are_due_after_a_while_or_when_they_fill_a_request(make_agent: MakeAgent) -> None:
    agent = make_agent(endpoint="http://127.0.0.1:1")
    assert agent.spool.payloads_due_s(0.5) is None

    began_s = time.monotonic()
    agent.put(SMALL)
    due_s = agent.spool.payloads_due_s(0.5)
    assert due_s is not None
    assert began_s + 0.5 <= due_s <= time.monotonic() + 0.5

    agent.put(b"x" * (2 << 20))
    assert agent.spool.payloads_due_s(0.5) == 0.0


def test_payloads_of_one_moment_share_a_request_and_go_before_the_spans(tmp_path: Path) -> None:
    an_hour = {"data": str(tmp_path), "export_delay_ms": 3_600_000}  # nothing is due by itself
    with collecting() as collector:
        settings = load_settings({**an_hour, "endpoint": collector.url}, {})
        pipeline = SpanPipeline(settings, RESOURCE, instance_id="one", redactor=Redactor(b"key"))
        provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
        provider.add_span_processor(pipeline)
        payloads = PayloadWriter(settings, Redactor(b"key"), pipeline.spool)
        tracer = provider.get_tracer("agent")
        for number in range(50):
            ref = payloads.put(b"prompt %d" % number, media_type="text/plain")
            tracer.start_span("call", attributes={"prompt_ref": ref}).end()
        pipeline.force_flush(20_000)
        pipeline.close(5_000)

    assert collector.requests == ["/v1/logs", "/v1/traces"]
    assert (len(collector.logs), len(collector.spans)) == (50, 50)


@pytest.mark.parametrize("compression", ["none", "gzip", "deflate"])
def test_records_arrive_however_they_are_compressed(
    server: Server, make_agent: MakeAgent, compression: str
) -> None:
    agent = make_agent(**endpoints(server)["http"], compression=compression)
    data = f"said with {compression}; ".encode() * 100
    [ref] = agent.put(data)

    assert agent.send().outcome is ExportOutcome.ACCEPTED
    assert stored(server, ref)[0] == data


def test_records_are_encoded_as_the_stock_encoder_does() -> None:
    payloads = [
        SpooledPayload(ref_of(data), media_type, data)
        for data, media_type in [(b"", "text/plain"), (b"\xff\x00", "image/png"), (SMALL, "")]
    ]

    ours = ExportLogsServiceRequest.FromString(encode_payloads(payloads, RESOURCE))
    stock = encode_logs(payload_records(payloads, RESOURCE))

    for request in (ours, stock):
        for record in request.resource_logs[0].scope_logs[0].log_records:
            record.ClearField("time_unix_nano")
            record.ClearField("observed_time_unix_nano")
    assert ours == stock


def test_nobody_at_the_other_end_keeps_everything(make_agent: MakeAgent) -> None:
    agent = make_agent(endpoint="http://127.0.0.1:1")
    agent.put(SMALL, LARGE)
    assert agent.send().outcome is ExportOutcome.LATER

    assert agent.waiting == 2
    assert agent.lost() == {}
