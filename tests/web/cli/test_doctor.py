"""doctor and open, against servers that run and stores that do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest

from hansard_web.app.server_file import find_server
from hansard_web.health.offline import prove_offline
from tests.journeys.processes import Serving, export, http_exporter, serving, spans
from tests.web.cli.conftest import Cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("data"), "--token", "for-the-doctor") as running:
        yield running


def test_all_is_well_with_a_running_server(anywhere: Cli, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ended = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path))

    findings = {f["check"]: f for f in json.loads(ended.stdout)}
    assert ended.exit_code == 0
    assert findings["server"]["text"] == f"answers at {server.http}"
    assert findings["grpc"]["text"] == f"listens at {server.grpc}"
    assert {f["level"] for f in findings.values()} == {"ok"}


def test_a_test_span_is_sent_to_each_door_and_read_back(anywhere: Cli, server: Serving) -> None:
    before = server.count_spans()

    ended = anywhere(
        "doctor",
        "--send-test-span",
        HANSARD_DATA=str(server.data),
        HANSARD_TOKEN="for-the-doctor",
    )

    assert ended.exit_code == 0, ended.output
    assert ended.stdout.count("sent, stored and read back") == 2
    assert server.count_spans() == before + 2


def test_a_test_span_without_the_token_fails_and_says_why(anywhere: Cli, server: Serving) -> None:
    ended = anywhere("doctor", "--send-test-span", HANSARD_DATA=str(server.data))

    assert ended.exit_code == 1
    assert ended.stdout.count("HANSARD_TOKEN") == 2


def test_what_was_refused_last_is_told(anywhere: Cli, tmp_path: Path) -> None:
    with serving(tmp_path, "--token", "for-the-doctor") as server:
        assert not export(http_exporter(server), spans(1))

        ended = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path))

    refused = next(f for f in json.loads(ended.stdout) if f["check"] == "refused")
    assert refused["level"] == "warn"
    assert "token" in refused["text"]
    assert ended.exit_code == 0


def test_a_test_span_needs_a_server(anywhere: Cli, tmp_path: Path) -> None:
    ended = anywhere("doctor", "--send-test-span", HANSARD_DATA=str(tmp_path))

    assert ended.exit_code == 1
    assert "hansard serve" in ended.stdout


def test_files_open_to_others_are_told(anywhere: Cli, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    ended = anywhere("doctor", HANSARD_DATA=str(tmp_path))

    assert ended.exit_code == 0
    assert f"chmod 700 {tmp_path}" in ended.stdout


def test_a_port_that_is_taken_is_told_with_its_flag(
    anywhere: Cli, server: Serving, tmp_path: Path
) -> None:
    port = server.http.rpartition(":")[2]

    ended = anywhere("doctor", "--http-port", port, HANSARD_DATA=str(tmp_path))

    assert "--http-port 0" in ended.stdout


@pytest.mark.covers("CO-18", "EX-20")
def test_the_demo_needs_and_tries_no_network() -> None:
    proof = prove_offline()

    assert proof.is_possible, proof.story
    assert proof.has_worked, proof.story
    assert proof.attempts == 0


# ---- open, and how a server is found


def test_open_prints_where_the_running_server_is(anywhere: Cli, server: Serving) -> None:
    ended = anywhere("open", "--print", HANSARD_DATA=str(server.data))

    address = ended.stdout.strip()
    assert address.startswith(f"{server.http}/signin/link/")
    with httpx2.Client(follow_redirects=True) as browser:
        opened = browser.get(address)
        again = browser.get(address)  # what is printed works until the server stops
    assert (str(opened.url), opened.status_code) == (f"{server.http}/", 200)
    assert (str(again.url), "Sign out" in again.text) == (f"{server.http}/", True)


def test_open_without_a_server_says_what_to_do(anywhere: Cli, tmp_path: Path) -> None:
    ended = anywhere("open", "--print", HANSARD_DATA=str(tmp_path))

    assert ended.exit_code == 1
    assert "hansard serve" in ended.stderr


def test_a_server_that_stopped_is_not_found(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert find_server(tmp_path) is not None
        server.stop()

    assert not (tmp_path / "server.json").exists()
    assert find_server(tmp_path) is None


def test_a_server_that_crashed_is_not_believed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.process.kill()
        server.process.wait()

    assert (tmp_path / "server.json").exists()
    assert find_server(tmp_path) is None


def test_the_instrumentors_that_are_installed_are_shown_with_their_versions(
    anywhere: Cli, tmp_path: Path
) -> None:
    ended = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path))

    found = json.loads(ended.stdout.partition("\nError")[0])
    texts = [finding["text"] for finding in found if finding["check"] == "instrument"]
    name = "opentelemetry-instrumentation-genai-openai"
    wanted = f"openai by {name} {version(name)}; left off: openinference-instrumentation-openai"
    assert wanted in texts


def test_the_settings_of_the_sdk_are_shown_with_where_they_come_from(
    anywhere: Cli, tmp_path: Path
) -> None:
    (tmp_path / "hansard.toml").write_text("[sdk]\nservice_name = 'clerk'\ncolour = 'red'\n")

    ended = anywhere(
        "doctor",
        "--json",
        HANSARD_DATA=str(tmp_path),
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4317",
        HANSARD_TOKEN="for-the-doctor",
    )

    found = [f for f in json.loads(ended.stdout.partition("\nError")[0]) if f["check"] == "sdk"]
    texts = [finding["text"] for finding in found]
    file = tmp_path / "hansard.toml"
    source = "environment OTEL_EXPORTER_OTLP_ENDPOINT"
    assert f"endpoint = http://127.0.0.1:4317 ({source})" in texts
    assert "protocol = grpc (default for port 4317)" in texts
    assert f"service_name = clerk (file {file})" in texts
    assert "retention = redacted_payloads (default)" in texts
    assert "token = set (environment HANSARD_TOKEN)" in texts
    assert [f["text"] for f in found if f["level"] == "warn"] == [
        f"{file}: 'colour' is no setting of [sdk]; it is passed over"
    ]
    assert "for-the-doctor" not in ended.output


def test_settings_are_those_of_the_running_server(anywhere: Cli, tmp_path: Path) -> None:
    with serving(tmp_path, "--decide", "anyone", "--heads-copy", "off", "--token", "short-one"):
        ended = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path), HANSARD_TOKEN="x" * 40)
    stopped = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path))

    told = {f["check"]: (f["level"], f["text"]) for f in json.loads(ended.stdout)}
    assert told["decide"][0] == "warn"
    assert "anyone who reaches the server decides at http://127.0.0.1:" in told["decide"][1]
    assert "another decide, heads_copy, short_tokens" in told["settings"][1]
    assert told["heads"][1] == "are kept in the data folder alone"
    assert "1 configured token shorter" in told["token"][1]
    without = {f["check"]: f["text"] for f in json.loads(stopped.stdout)}
    assert without["decide"] == "only principals decide: see hansard tokens list"
    assert "settings" not in without


def test_a_server_that_reports_no_settings_is_said_to(anywhere: Cli, tmp_path: Path) -> None:
    with serving(tmp_path):
        path = tmp_path / "server.json"
        told = json.loads(path.read_text())
        del told["settings"]
        path.write_text(json.dumps(told))
        ended = anywhere("doctor", "--json", HANSARD_DATA=str(tmp_path))

    found = {f["check"]: f["text"] for f in json.loads(ended.stdout)}
    assert "does not report its own" in found["settings"]
