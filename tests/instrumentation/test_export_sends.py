"""Spans of a program reach a real server by both stock exporters, and nothing is left on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.instrumentation.programs import AGENT, run, settings, spooled
from tests.journeys.processes import Serving, hosting

pytestmark = pytest.mark.slow


def endpoint(server: Serving, protocol: str) -> str:
    return server.http if protocol != "grpc" else f"http://{server.grpc}"


@pytest.mark.covers("OT-05")
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_program_sends_its_spans_and_ends_at_once(tmp_path: Path, protocol: str) -> None:
    own = tmp_path / "own"
    with hosting(tmp_path / "server") as server:
        ended = run(AGENT, settings(own, endpoint(server, protocol), protocol))

        assert server.count_spans() == 4
    assert (ended.status, ended.output, ended.errors) == (7, "result 42\n", [])
    assert spooled(own) == []
