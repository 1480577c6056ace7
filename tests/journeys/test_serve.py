"""`hansard serve` from outside: doors, signals, crashes, wrong use."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import stat
import subprocess
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.journeys.processes import (
    HANSARD,
    Serving,
    count_spans,
    environment,
    export,
    grpc_exporter,
    hansard,
    http_exporter,
    serving,
    spans,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.mark.covers("CO-01", "CO-02", "CO-04", "TS-24")
def test_stock_exporters_store_their_spans_over_both_transports(server: Serving) -> None:
    before = server.count_spans()

    over_http = export(http_exporter(server), spans(7))
    over_grpc = export(grpc_exporter(server), spans(5))

    assert over_http
    assert over_grpc
    assert server.count_spans() == before + 12


def test_a_door_a_line_is_printed_when_it_listens(tmp_path: Path) -> None:
    command = [HANSARD, "serve", "--data", str(tmp_path), "--http-port", "0", "--grpc-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(6)]
        process.terminate()
        assert process.wait(30) == 0

    labels = ["Starting", "OTLP/gRPC", "OTLP/HTTP", "Browser", "Sign", "Data"]
    assert [line[0] for line in lines] == labels
    assert lines[4][2].startswith(f"{lines[3][1]}signin/link/")
    assert lines[5][1] == str(tmp_path)


def test_health_is_answered_without_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "only-for-friends") as server:
        assert json.loads(server.get("/healthz"))


@pytest.mark.parametrize("flag", ["--http-port", "--grpc-port"])
def test_a_taken_port_is_one_line_that_names_the_flag(flag: str, tmp_path: Path) -> None:
    other = "--grpc-port" if flag == "--http-port" else "--http-port"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        ended = hansard("serve", "--data", str(tmp_path), flag, port, other, "0")

    assert ended.returncode == 2
    assert ended.stdout == "Starting …\n"
    assert len(ended.stderr.splitlines()) == 1
    assert flag in ended.stderr
    assert port in ended.stderr


@pytest.mark.covers("CO-19")
def test_a_wider_address_without_a_token_is_refused_and_the_flag_named(tmp_path: Path) -> None:
    ended = hansard("serve", "--data", str(tmp_path), "--host", "0.0.0.0", "--http-port", "0")

    assert ended.returncode == 2
    assert "--token" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nothing"])
def test_a_data_folder_that_cannot_be_is_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    data = str(tmp_path / place)

    ended = hansard("serve", "--data", data, "--http-port", "0", "--grpc-port", "0")

    assert ended.returncode == 2
    assert f"cannot use --data {data}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_one_line_that_names_the_flag(
    host: str, tmp_path: Path
) -> None:
    ended = hansard("serve", "--data", str(tmp_path), "--host", host, "--token", "long-enough")

    assert ended.returncode == 2
    assert "--host" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "hansard.db"))
    connection.pragma("user_version", 9_999)
    connection.close()
    before = (tmp_path / "hansard.db").read_bytes()

    ended = hansard("serve", "--data", str(tmp_path), "--http-port", "0", "--grpc-port", "0")

    assert ended.returncode == 1
    assert "newer hansard" in ended.stderr
    assert (tmp_path / "hansard.db").read_bytes()[100:] == before[100:]


@pytest.mark.covers("CO-19")
def test_the_doors_are_on_the_loopback_unless_told_otherwise(server: Serving) -> None:
    for service in (server.http, server.grpc):
        host, _, port = service.removeprefix("http://").rpartition(":")
        assert host == "127.0.0.1"
        # A listener on every address would answer on this one too.
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", int(port)), timeout=5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_0_and_leaves_no_log_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        assert export(grpc_exporter(server), spans(3))

        assert server.stop(number) == 0

    wal = tmp_path / "hansard.db-wal"
    assert not wal.exists() or wal.stat().st_size == 0
    assert count_spans(tmp_path) == 3


def test_an_open_live_stream_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        host, _, port = server.http.removeprefix("http://").partition(":")
        follower = http.client.HTTPConnection(host, int(port), timeout=20)
        follower.request("GET", "/live/runs", headers={"accept": "text/event-stream"})
        assert follower.getresponse().status == 200

        assert server.stop() == 0

        follower.close()


def test_requests_that_were_accepted_are_finished_when_the_server_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        accepted: list[int] = []

        def send() -> None:
            while export(http_exporter(server), spans(50)):
                accepted.append(50)
                if len(accepted) == 3:
                    ready.set()

        ready = threading.Event()
        senders = [threading.Thread(target=send) for _ in range(2)]
        for sender in senders:
            sender.start()
        assert ready.wait(30)
        assert server.stop() == 0
        for sender in senders:
            sender.join(60)

    assert count_spans(tmp_path) >= sum(accepted)


@pytest.mark.covers("CO-06")
def test_every_acknowledged_span_survives_kill_9(tmp_path: Path) -> None:
    acknowledged = 0
    for _ in range(3):
        with serving(tmp_path) as server:
            for _ in range(4):
                acknowledged += 20 if export(grpc_exporter(server), spans(20)) else 0
                acknowledged += 20 if export(http_exporter(server), spans(20)) else 0
            assert server.stop(signal.SIGKILL) == -signal.SIGKILL

    assert acknowledged == 3 * 4 * 40
    assert count_spans(tmp_path) == acknowledged
    connection = apsw.Connection(str(tmp_path / "hansard.db"))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


def test_two_servers_on_one_data_folder_share_it(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path) as second:
        for _ in range(5):
            assert export(grpc_exporter(first), spans(10))
            assert export(http_exporter(second), spans(10))

        assert first.count_spans() == 100


def test_a_collector_stores_what_a_web_process_shows(tmp_path: Path) -> None:
    with (
        serving(tmp_path, command="collector") as collector,
        serving(tmp_path, command="web", ports=("http",)) as web,
    ):
        assert export(grpc_exporter(collector), spans(4))

        assert b"root" in web.get("/v1/runs")
        assert "grpc" not in web.endpoints
        assert json.loads(collector.get("/v1/ledger"))["spans"]["stored"] == 4
        assert json.loads(collector.get("/healthz"))
        for hidden in ("/", "/v1/runs", "/search"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                collector.get(hidden)


def test_a_web_process_takes_no_telemetry(tmp_path: Path) -> None:
    with serving(tmp_path, command="web", ports=("http",)) as web:
        assert not export(http_exporter(web), spans(1))

        assert web.count_spans() == 0


# ---- the Unix socket


def test_the_socket_is_its_owners_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "door"
    with serving(tmp_path / "data", "--socket", str(path)) as server:
        mode = stat.S_IMODE(path.stat().st_mode)
        answer = _get_over_socket(path, "/healthz")

        assert server.stop() == 0

    assert mode == 0o600
    assert answer == 200
    assert not path.exists()


def test_a_socket_left_by_a_crash_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "door"
    with serving(tmp_path / "data", "--socket", str(path)) as server:
        server.stop(signal.SIGKILL)
    assert path.exists()

    with serving(tmp_path / "data", "--socket", str(path)):
        assert _get_over_socket(path, "/healthz") == 200


def test_a_socket_in_use_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "door"
    with serving(tmp_path / "data", "--socket", str(path)):
        second = hansard(
            "serve", "--data", str(tmp_path / "other"), "--socket", str(path),
            "--http-port", "0", "--grpc-port", "0",
        )  # fmt: skip

        assert second.returncode == 2
        assert "in use" in second.stderr
        assert _get_over_socket(path, "/healthz") == 200


def test_a_file_in_the_place_of_the_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear to me")

    ended = hansard(
        "serve", "--data", str(tmp_path / "data"), "--socket", str(path),
        "--http-port", "0", "--grpc-port", "0",
    )  # fmt: skip

    assert ended.returncode == 2
    assert path.read_text() == "dear to me"


def _get_over_socket(path: Path, target: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return int(client.recv(100).split()[1])
