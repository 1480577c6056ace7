"""A tool that is called over MCP, recorded from the MCP package 2.3.0, which has spans of its own.

An agent lists the tools; calls one from within a tool of its own of the same name; then calls it
directly. The recording holds what the program and the package sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hansard_collector.pipeline.requests import Signal
from tests.collector.ingesting import Ingesting

RECORDING = Path(__file__).parent.parent / "fixtures" / "mcp" / "sdk_2_3.traces.binpb"
STEPS = """
SELECT name, role, flags & 1 FROM span
WHERE run = (SELECT id FROM run WHERE name LIKE '%calculator') ORDER BY sort_ns, id
"""


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path)
    made.send_bytes(Signal.TRACES, RECORDING.read_bytes())
    yield made
    made.close()


def test_a_tool_and_its_server_are_one_tool_call(stored: Ingesting) -> None:
    assert stored.one("SELECT max(tool_calls) FROM run") == 2
    assert stored.all(STEPS) == [
        ("invoke_agent calculator", "agent", 0),
        ("tools/list", "mcp", 0),
        ("execute_tool add", "tool", 0),
        ("tools/call add", "tool", 1),
        ("tools/call add", "tool", 0),
    ]
