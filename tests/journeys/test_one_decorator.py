"""One decorator on a five-line function, and its run is there: through the real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.processes import Serving, environment, hosting
from tests.stored_bytes import stored_bytes

PLAIN = """
def answer(question):
    words = question.split()
    if "fail" in words:
        raise LookupError("nothing known about failures")
    return " ".join(reversed(words))
"""
CALL = """
import sys
print(answer(sys.argv[1]))
"""
DECORATED = f"import hansard\nhansard.init()\n\n@hansard.agent{PLAIN}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    # A server that keeps whatever it is sent: what is missing was taken out before.
    data = tmp_path_factory.mktemp("data")
    with hosting(data, retention="full_payloads") as running:
        yield running


def run(
    script: str, question: str, server: Serving, data: Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program as its user does."""
    return subprocess.run(
        [sys.executable, "-c", script + CALL, question],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(
            **{"HANSARD_DATA": str(data), "OTEL_EXPORTER_OTLP_ENDPOINT": server.http, **more}
        ),
    )


def run_of(server: Serving, question: str) -> dict[str, Any]:
    """Return the one run whose first words are these."""
    listed = json.loads(server.get("/v1/runs"))["items"]
    [found] = [run for run in listed if question in (run["first_input"] or "")]
    return dict(found)


def steps_of(server: Serving, run: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(server.get(f"/v1/runs/{run['run_id']}/steps"))["items"]
    return found


@pytest.mark.covers("OT-01", "OT-05")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_run_of_a_decorated_function_appears(
    protocol: str, server: Serving, tmp_path: Path
) -> None:
    question = f"why is the sky {protocol}"
    endpoint = server.grpc if protocol == "grpc" else server.http
    endpoint = endpoint if "://" in endpoint else f"http://{endpoint}"

    undecorated = run(PLAIN, question, server, tmp_path)
    decorated = run(
        *(DECORATED, question, server, tmp_path),
        OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
    )

    assert (decorated.stdout, decorated.stderr) == (undecorated.stdout, "")
    shown = run_of(server, question)
    assert (shown["status"], shown["agent"]) == ("ok", "answer")
    [step] = steps_of(server, shown)
    assert (step["name"], step["role"]) == ("invoke_agent answer", "agent")
    whole = json.loads(server.get(f"/v1/steps/{step['step_id']}"))
    assert json.loads(whole["input"]) == {"question": question}
    assert whole["output"] == undecorated.stdout.strip()


@pytest.mark.covers("OT-03")
def test_a_failure_is_the_same_and_is_shown(server: Serving, tmp_path: Path) -> None:
    decorated = run(DECORATED, "please fail", server, tmp_path)

    assert decorated.returncode == 1
    assert decorated.stderr.endswith("LookupError: nothing known about failures\n")
    shown = run_of(server, "please fail")
    assert shown["status"] == "error"
    [step] = steps_of(server, shown)
    whole = json.loads(server.get(f"/v1/steps/{step['step_id']}"))
    assert [event["name"] for event in whole["events"]] == ["exception"]


@pytest.mark.covers("OT-17")
@pytest.mark.parametrize("mode", ["metadata_only", "redacted_payloads"])
def test_what_the_retention_mode_does_not_keep_never_reaches_the_server(
    mode: str, server: Serving, tmp_path: Path
) -> None:
    canary = "sk-proj-" + "Ab3xK9mPq7Lw2Zt5" * 3
    before = json.loads(server.get("/v1/runs"))["items"]

    ended = run(DECORATED, f"open {canary} fail", server, tmp_path, HANSARD_RETENTION=mode)

    assert ended.returncode == 1
    known = {run["run_id"] for run in before}
    [shown] = [r for r in json.loads(server.get("/v1/runs"))["items"] if r["run_id"] not in known]
    [step] = steps_of(server, shown)
    whole = server.get(f"/v1/steps/{step['step_id']}").decode()
    assert canary not in whole
    assert ("fail" in whole.replace("failures", "")) is (mode == "redacted_payloads")
    files = stored_bytes(tmp_path, server.data)
    assert [path for path, content in files.items() if canary.encode() in content] == []


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_token_opens_the_server(protocol: str, tmp_path: Path) -> None:
    question = "may I come in"
    with hosting(tmp_path / "server", token="for-the-clerk") as server:
        endpoint = f"http://{server.grpc}" if protocol == "grpc" else server.http
        ended = run(
            *(DECORATED, question, server, tmp_path / "program"),
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
            HANSARD_TOKEN="ingest:for-the-clerk",
        )
        stored = server.count_spans()

    assert (ended.stdout, ended.stderr, stored) == ("in come I may\n", "", 1)
