"""`hansard tail` while a server receives."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from tests.journeys.processes import (
    HANSARD,
    environment,
    export,
    grpc_exporter,
    http_exporter,
    serving,
    spans,
)


def test_runs_are_told_as_they_happen_until_interrupted(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert export(grpc_exporter(server), spans(2))
        command = [HANSARD, "tail", "--all", "--json", "--data", str(tmp_path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment()
        ) as tailing:
            assert tailing.stdout is not None
            before = json.loads(tailing.stdout.readline())
            assert export(http_exporter(server), spans(5))
            after = json.loads(tailing.stdout.readline())
            tailing.send_signal(signal.SIGINT)
            status = tailing.wait(20)

    assert before["span_count"] == 2
    assert after["span_count"] == 5
    assert after["run_id"] != before["run_id"]
    assert status == 0


def test_people_get_a_line_a_run(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert export(grpc_exporter(server), spans(3))
        command = [HANSARD, "tail", "--all", "--data", str(tmp_path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment()
        ) as tailing:
            assert tailing.stdout is not None
            line = tailing.stdout.readline()
            tailing.terminate()
            assert tailing.wait(20) == 0

    assert "root" in line
    assert "3 steps" in line
