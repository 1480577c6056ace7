"""The runs made of log records are a function of the records: how they come is of no matter."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.collector.ingesting import Ingesting
from tests.collector.sessions.maker import SESSION, claude, picture, request, runs_of
from tests.collector.sessions.scenes import CLAUDE_MODEL, claude_turn, codex_turn, gemini_turn


def bedrock_turn(at_s: float) -> list[LogRecord]:
    """A turn of Claude Code that names neither its prompt nor its requests."""
    records = [claude("user_prompt", at_s, turn=None, prompt=f"at {at_s}")]
    for end in (at_s + 4, at_s + 8):
        records += [
            claude("api_request", end, turn=None, model=CLAUDE_MODEL, input_tokens=end,
                   output_tokens=1, duration_ms=2000),
            claude("assistant_response", end + 0.02, turn=None, response=f"answer {end}"),
        ]  # fmt: skip
    return records


SESSIONS: dict[str, tuple[str, list[LogRecord]]] = {
    "claude": ("claude", claude_turn("a") + claude_turn("b", at_s=30)),
    "bedrock": ("claude", bedrock_turn(0) + bedrock_turn(20) + bedrock_turn(40)),
    "codex": ("codex", codex_turn() + codex_turn(at_s=30) + codex_turn(at_s=60)),
    "gemini": ("gemini", gemini_turn() + gemini_turn(at_s=30, turn=f"{SESSION}########1")),
}


def sent(agent: str, requests: Sequence[Sequence[LogRecord]]) -> list[Any]:
    """Return the picture of a fresh store after some requests."""
    with tempfile.TemporaryDirectory() as path:
        store = Ingesting(Path(path) / "data")
        for records in requests:
            store.send(request(records, agent))
        try:
            return [run[:-1] for run in picture(store)]
        finally:
            store.close()


@st.composite
def deliveries(draw: st.DrawFn, records: Sequence[LogRecord]) -> list[list[LogRecord]]:
    """The records in any order, in any number of requests, some of them sent again."""
    order = draw(st.permutations(records))
    cuts = sorted(draw(st.sets(st.integers(1, len(order) - 1), max_size=6)))
    parts = [order[start:end] for start, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    again = draw(st.lists(st.sampled_from(parts), max_size=2))
    return [list(part) for part in (*parts, *again)]


@pytest.mark.parametrize("name", SESSIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_order_and_any_cut_makes_the_same_runs(name: str, data: st.DataObject) -> None:
    agent, records = SESSIONS[name]

    assert sent(agent, data.draw(deliveries(records))) == sent(agent, [records])


@pytest.mark.parametrize("name", SESSIONS)
def test_records_one_by_one_backwards_make_the_same_runs(name: str) -> None:
    agent, records = SESSIONS[name]

    assert sent(agent, [[record] for record in reversed(records)]) == sent(agent, [records])


def test_the_same_request_again_changes_nothing(ingesting: Ingesting) -> None:
    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))
    before = picture(ingesting), [run.version for run in runs_of(ingesting)]

    for agent, records in SESSIONS.values():
        ingesting.send(request(records, agent))

    assert (picture(ingesting), [run.version for run in runs_of(ingesting)]) == before
    ledger = ingesting.ledger("logs")
    assert ledger["received"] == 2 * ledger["stored"] == 2 * ledger["duplicate"]


def test_the_same_record_twice_in_one_request_is_one_step(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn() + claude_turn()))

    (run,) = runs_of(ingesting)
    assert (run.step_count, run.model_calls, run.first_input) == (6, 3, "Fix the failing test")
    assert run.last_output == "Fixed it."


def test_only_what_was_received_is_counted(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    assert ingesting.ledger("logs")["stored"] == len(claude_turn())
    assert ingesting.ledger("traces")["received"] == 0
