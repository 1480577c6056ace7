"""Whatever a record holds, it is stored; what must not be kept is in no run made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from hansard_collector.log_sessions.marks import turn_id
from hansard_store.database.connections import open_for_ingest
from tests.collector.ingesting import Ingesting, metrics, pairs
from tests.collector.sessions.maker import (
    SESSION,
    at_ns,
    calls_of,
    claude,
    only_run,
    request,
    runs_of,
    tools_of,
)
from tests.collector.sessions.scenes import claude_turn, codex_turn, gemini_turn
from tests.strategies import UINT64, any_values

NAMES = (
    "claude_code.user_prompt", "claude_code.api_request", "claude_code.assistant_response",
    "claude_code.api_request_body", "claude_code.api_response_body", "claude_code.api_error",
    "claude_code.tool_decision", "claude_code.tool_result", "claude_code.compaction",
    "claude_code.subagent_completed", "codex.user_prompt", "codex.api_request", "codex.sse_event",
    "codex.agent_response", "codex.tool_result", "codex.sandbox_outcome", "gemini_cli.user_prompt",
    "gemini_cli.api_request", "gemini_cli.api_response", "gemini_cli.api_error",
    "gemini_cli.tool_call", "gemini_cli.agent.start", "gemini_cli.chat_compression",
    "gen_ai.client.inference.operation.details", "x.api_response", "x.tool_call",
    "x.assistant_response", "x.compaction",
)  # fmt: skip
KEYS = (
    "prompt", "prompt.id", "prompt_id", "turn.id", "request_id", "tool_use_id", "call_id", "model",
    "duration_ms", "input_tokens", "output_tokens", "cache_read_tokens", "input_token_count",
    "output_token_count", "thoughts_token_count", "tool_token_count", "total_token_count",
    "event.kind", "event.timestamp", "error", "error.message", "status_code", "success", "body",
    "response", "response_text", "request_text", "finish_reasons", "tool_name", "function_name",
    "function_args", "arguments", "output", "agent_id", "agent_name", "query_source",
    "http.response.status_code", "installation.id",
)  # fmt: skip
_DISTINCTIVE = st.sampled_from(
    ["1", "-1", "1e308", "9223372036854775807", "nan", "true", '{"tools": [[[]]]}', "<REDACTED>",
     '{"messages": 5, "stop_reason": {}}', '[{"role": "user"}]', "", "\U0001f600" * 40]
)  # fmt: skip
_VALUES = st.one_of(any_values(2), _DISTINCTIVE.map(lambda text: AnyValue(string_value=text)))


@st.composite
def events(draw: st.DrawFn) -> LogRecord:
    """An event of some agent, with anything in its attributes and any time."""
    sent = draw(st.dictionaries(st.sampled_from(KEYS), _VALUES, max_size=12))
    session = draw(st.sampled_from(["s1", "s2"]))
    named = {key: AnyValue(string_value=session) for key in ("session.id", "conversation.id")}
    return LogRecord(
        time_unix_nano=draw(st.one_of(UINT64, st.sampled_from([0, at_ns(0), at_ns(1)]))),
        event_name=draw(st.sampled_from(NAMES)),
        attributes=[KeyValue(key=key, value=value) for key, value in (named | sent).items()],
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(records=st.lists(events(), min_size=1, max_size=12))
def test_events_with_anything_in_them_are_stored(
    ingesting: Ingesting, records: list[LogRecord]
) -> None:
    before = ingesting.ledger("logs")
    result = ingesting.send(request(records, "any"))

    assert (result.accepted, result.rejected) == (len(records), 0)
    after = ingesting.ledger("logs")
    assert after["received"] - before["received"] == len(records)
    for run in runs_of(ingesting):
        assert run.step_count == ingesting.one(
            "SELECT count(*) FROM span WHERE run = ? AND flags & 5 = 0", run.id
        )


def test_secrets_of_a_record_are_in_no_step_made_of_it(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "aB3" * 31 + "AA"
    store = Ingesting(tmp_path / "data", retention="redacted_payloads")
    records = [
        claude("user_prompt", 0, prompt=f"my key is {secret}"),
        claude("tool_result", 2, tool_name="Bash", tool_use_id="t1", success="false",
               error=f"refused: {secret}", tool_parameters=f'{{"bash_command": "echo {secret}"}}'),
    ]  # fmt: skip
    store.send(request(records))
    run = only_run(store)
    words = (run.first_input, *(normal.tool for normal in tools_of(store, run)))
    store.close()

    assert "redacted" in str(words)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert secret.encode() not in kept


@pytest.mark.parametrize(
    ("agent", "records", "said"),
    [
        ("claude", claude_turn("p1") + claude_turn("p2", at_s=60), "Fix the failing test"),
        ("codex", codex_turn() + codex_turn(at_s=60), "Add a test"),
        ("gemini", gemini_turn(), "List the files"),
    ],
)
def test_metadata_alone_makes_the_same_runs_without_a_word(
    tmp_path: Path, agent: str, records: list[LogRecord], said: str
) -> None:
    whole = Ingesting(tmp_path / "whole")
    bare = Ingesting(tmp_path / "bare", retention="metadata_only")
    for store in (whole, bare):
        store.send(request(records, agent))
    kept, left = runs_of(whole), runs_of(bare)
    whole.close()
    bare.close()

    assert [run.run_id for run in left] == [run.run_id for run in kept]
    assert [run.tokens for run in left] == [run.tokens for run in kept]
    assert [run.step_count for run in left] == [run.step_count for run in kept]
    assert {run.first_input for run in left} == {None}
    stored = b"".join(
        path.read_bytes() for path in (tmp_path / "bare").rglob("*") if path.is_file()
    )
    assert said.encode() not in stored


def test_metrics_alone_make_no_run(ingesting: Ingesting) -> None:
    usage = Metric(name="claude_code.token.usage", unit="tokens")
    point = usage.sum.data_points.add(time_unix_nano=at_ns(1), as_double=1200)
    point.attributes.extend(pairs({"session.id": SESSION, "type": "input"}))
    ingesting.send(metrics([usage], service="claude-code"))

    assert runs_of(ingesting) == []
    assert ingesting.one("SELECT value FROM metric_point") == 1200


def test_metrics_beside_logs_are_not_added_to_them(ingesting: Ingesting) -> None:
    usage = Metric(name="claude_code.token.usage", unit="tokens")
    usage.sum.data_points.add(time_unix_nano=at_ns(1), as_double=999_999)
    ingesting.send(request(claude_turn()))
    ingesting.send(metrics([usage], service="claude-code"))

    tokens = only_run(ingesting).tokens
    assert tokens is not None
    assert (tokens.input, tokens.output) == (2430, 110)


def test_late_records_of_a_deleted_run_are_counted_and_not_stored(tmp_path: Path) -> None:
    store = Ingesting(tmp_path / "data")
    connection = open_for_ingest(store.folder)
    connection.execute(
        "INSERT INTO tombstone (trace_id, deleted_ns, reason, span_count, digest) "
        "VALUES (?, 1, 'by hand', 1, x'00')",
        (turn_id("claude_code", SESSION, "prompt-1"),),
    )
    connection.close()
    store.send(request(claude_turn()))
    counted, runs = store.ledger("logs"), runs_of(store)
    left = store.one("SELECT count(*) FROM session_log")
    store.close()

    assert (counted["deleted"], counted["stored"]) == (len(claude_turn()), 0)
    assert (runs, left) == ([], 0)


def test_a_call_that_is_told_twice_over_hours_is_one(ingesting: Ingesting) -> None:
    turn = claude_turn()
    for record in turn:
        ingesting.send(request([record]))
    late = claude("assistant_response", 7200, request_id="req_2prompt-1", response="Fixed it.")
    ingesting.send(request([late]))

    run = only_run(ingesting)
    assert run.model_calls == len(calls_of(ingesting, run)) == 3
    assert run.ended_ns == at_ns(7200)
