"""An agent that sends traces and logs is counted once, whichever comes first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.derivation.rebuild import rebuild
from hansard_collector.derivation.stored_span import read_step
from hansard_store.database.connections import open_for_maintenance
from tests.collector.ingesting import TRACE, Ingesting, span, span_id, traces
from tests.collector.sessions.maker import (
    SESSION,
    claude,
    only_run,
    picture,
    request,
    runs_of,
)
from tests.collector.sessions.scenes import CLAUDE_MODEL, claude_turn

PROMPT, CALL, TOOL = 1, 2, 3


def traced_turn() -> ExportTraceServiceRequest:
    """The spans of one prompt, as Claude Code's traces beta sends them."""
    common = {"session.id": SESSION, "user.id": "a1b2c3"}
    return traces(
        [
            span(PROMPT, name="claude_code.interaction", start_s=0, duration_s=14, attributes=common
                 | {"span.type": "interaction", "user_prompt": "Fix the failing test",
                    "gen_ai.operation.name": "invoke_agent"}),
            span(CALL, PROMPT, name="claude_code.llm_request", start_s=2, duration_s=3,
                 attributes=common
                 | {"span.type": "llm_request", "model": CLAUDE_MODEL, "input_tokens": 10,
                    "output_tokens": 50, "cache_read_tokens": 1000, "cache_creation_tokens": 200,
                    "request_id": "req_1prompt-1", "success": True}),
            span(TOOL, PROMPT, name="claude_code.tool", start_s=5, duration_s=1, attributes=common
                 | {"span.type": "tool", "tool_name": "Bash",
                    "gen_ai.tool.call.id": "toolu_1prompt-1"}),
        ],
        service="claude-code",
        scope="com.anthropic.claude_code.tracing",
    )  # fmt: skip


def logged_turn() -> list[LogRecord]:
    """The same prompt, its log records without ids."""
    return [record for record in claude_turn() if "req_2" not in str(record)][:5]


def with_ids(record: LogRecord, number: int) -> LogRecord:
    made = LogRecord()
    made.CopyFrom(record)
    made.trace_id, made.span_id = TRACE, span_id(number)
    return made


def logged_on(store: Ingesting, number: int) -> list[str]:
    """Return the names of the log records that stand on a span of the trace."""
    rows = store.all(
        "SELECT event_name FROM log_record WHERE trace_id = ? AND span_id = ? ORDER BY event_name",
        TRACE,
        span_id(number),
    )
    return [name for (name,) in rows]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_records_without_ids_join_the_spans_of_their_requests(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    both: list[Message] = [traced_turn(), request(logged_turn())]
    for index in order:
        ingesting.send(both[index])

    run = only_run(ingesting)
    assert (run.run_id, run.synthetic) == (TRACE.hex(), False)
    assert (run.model_calls, run.tool_calls, run.step_count) == (1, 1, 3)
    assert run.tokens is not None
    assert (run.tokens.input, run.tokens.output) == (1210, 50)
    assert logged_on(ingesting, CALL) == ["api_request", "assistant_response"]
    assert logged_on(ingesting, TOOL) == ["tool_decision", "tool_result"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_only_the_logs_say_is_said_by_the_span(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    both: list[Message] = [traced_turn(), request(logged_turn())]
    for index in order:
        ingesting.send(both[index])

    number = ingesting.one("SELECT id FROM span WHERE span_id = ?", span_id(CALL))
    call = read_step(ingesting.db, number).normal.call
    assert call is not None
    assert call.cost is not None
    assert call.cost.reported_usd == 0.0123
    assert [message.text for message in call.output] == ["I will run the tests."]
    assert ingesting.one("SELECT last_output FROM run") == "I will run the tests."


def test_any_order_of_single_records_and_spans_is_counted_once(ingesting: Ingesting) -> None:
    spans = traced_turn()
    one_by_one: list[Message] = [request([record]) for record in logged_turn()]
    for index in range(3):
        single = ExportTraceServiceRequest()
        single.CopyFrom(spans)
        kept = single.resource_spans[0].scope_spans[0].spans[index]
        wanted = kept.SerializeToString()
        del single.resource_spans[0].scope_spans[0].spans[:]
        single.resource_spans[0].scope_spans[0].spans.add().ParseFromString(wanted)
        one_by_one.insert(2 * index + 1, single)
    for message in one_by_one:
        ingesting.send(message)

    run = only_run(ingesting)
    assert (run.model_calls, run.tool_calls, run.step_count) == (1, 1, 3)
    assert logged_on(ingesting, TOOL) == ["tool_decision", "tool_result"]


def test_a_prompt_logged_before_its_trace_began_makes_no_run_of_its_own(
    ingesting: Ingesting,
) -> None:
    """Records made outside of any span carry no ids; those of the same prompt that do tell."""
    prompt, called, *_ = claude_turn()
    for message in (
        request([prompt]),
        request([with_ids(called, CALL)]),
        traced_turn(),
    ):
        ingesting.send(message)

    run = only_run(ingesting)
    assert (run.run_id, run.first_input) == (TRACE.hex(), "Fix the failing test")
    assert ingesting.one("SELECT count(*) FROM log_record WHERE trace_id = ?", TRACE) == 2
    assert ingesting.one("SELECT count(*) FROM span") == 3


def test_records_with_ids_alone_make_no_run(ingesting: Ingesting) -> None:
    ingesting.send(request([with_ids(record, CALL) for record in claude_turn()]))

    assert runs_of(ingesting) == []


def test_a_turn_without_traces_stays_a_run_beside_one_with(ingesting: Ingesting) -> None:
    ingesting.send(traced_turn())
    ingesting.send(request(logged_turn() + claude_turn("prompt-2", at_s=100)))

    assert [(run.synthetic, run.model_calls) for run in runs_of(ingesting)] == [
        (False, 1),
        (True, 3),
    ]


def test_a_run_that_turned_out_to_be_traced_leaves_nothing(ingesting: Ingesting) -> None:
    ingesting.send(request(logged_turn()))
    (made,) = runs_of(ingesting)
    ingesting.send(traced_turn())

    for table in ("run_facet", "text_use", "tool_event"):
        assert ingesting.one(f"SELECT count(*) FROM {table} WHERE run = ?", made.id) == 0
    assert ingesting.one("SELECT count(*) FROM run") == 1
    indexed = ingesting.one("SELECT count(*) FROM attribute_fts")
    assert indexed == 3


def test_the_order_of_traces_and_logs_makes_no_difference(ingesting: Ingesting) -> None:
    ingesting.send(request(logged_turn()))
    ingesting.send(traced_turn())
    seen = picture(ingesting)

    ingesting.send(traced_turn())
    ingesting.send(request(logged_turn()))

    assert picture(ingesting) == seen


def test_a_late_note_of_a_traced_prompt_goes_to_its_trace(ingesting: Ingesting) -> None:
    ingesting.send(traced_turn())
    ingesting.send(request(logged_turn()))
    ingesting.send(request([claude("hook_execution_complete", 100, hook_name="Stop")]))

    assert (
        ingesting.one(
            "SELECT trace_id FROM log_record WHERE event_name = 'hook_execution_complete'"
        )
        == TRACE
    )
    assert ingesting.one("SELECT count(*) FROM run") == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_records_with_the_turns_ids_stand_on_the_spans_of_their_requests(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    both: list[Message] = [
        traced_turn(),
        request([with_ids(record, PROMPT) for record in logged_turn()]),
    ]
    for index in order:
        ingesting.send(both[index])

    assert logged_on(ingesting, CALL) == ["api_request", "assistant_response"]
    assert logged_on(ingesting, TOOL) == ["tool_decision", "tool_result"]
    number = ingesting.one("SELECT id FROM span WHERE span_id = ?", span_id(CALL))
    call = read_step(ingesting.db, number).normal.call
    assert call is not None
    assert call.cost is not None
    assert (call.cost.reported_usd, call.response_model) == (0.0123, CLAUDE_MODEL)
    assert [message.text for message in call.output] == ["I will run the tests."]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_record_of_another_trace_of_the_session_finds_its_request(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    elsewhere = request([with_ids(record, PROMPT) for record in logged_turn()])
    for record in elsewhere.resource_logs[0].scope_logs[0].log_records:
        record.trace_id = b"e" * 16
    both: list[Message] = [traced_turn(), elsewhere]
    for index in order:
        ingesting.send(both[index])

    assert logged_on(ingesting, CALL) == ["api_request", "assistant_response"]


def test_a_record_of_another_session_with_the_same_request_id_stays_where_it_is(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traced_turn())
    foreign = request([with_ids(record, PROMPT) for record in logged_turn()])
    for record in foreign.resource_logs[0].scope_logs[0].log_records:
        record.trace_id = b"e" * 16
        for pair in record.attributes:
            if pair.key == "session.id":
                pair.value.string_value = "another"
    ingesting.send(foreign)

    assert logged_on(ingesting, CALL) == []


@pytest.mark.parametrize(("success", "status"), [(False, "error"), (True, "ok")])
def test_a_turn_without_a_status_ends_as_its_last_call_did(
    ingesting: Ingesting, success: bool, status: str
) -> None:
    common = {"session.id": SESSION, "span.type": "llm_request", "model": CLAUDE_MODEL}
    last = span(CALL, PROMPT, name="claude_code.llm_request", start_s=6, duration_s=1,
                attributes=common | {"request_id": "req_9", "success": success,
                                     "error": "Overloaded"})  # fmt: skip
    first = traced_turn()
    calls = traces([last], service="claude-code", scope="com.anthropic.claude_code.tracing")
    calls.resource_spans[0].scope_spans[0].spans[0].span_id = span_id(9)
    ingesting.send(first)
    ingesting.send(calls)

    assert only_run(ingesting).status == status


def test_records_with_ids_that_an_older_version_left_on_the_turn_are_brought_to_their_steps(
    ingesting: Ingesting,
) -> None:
    ingesting.send(traced_turn())
    ingesting.send(request([with_ids(record, PROMPT) for record in logged_turn()]))
    older = open_for_maintenance(ingesting.folder)
    older.execute("DELETE FROM session_log WHERE entry_type <> 'prompt'")
    older.execute("UPDATE log_record SET span_id = ?", (span_id(PROMPT),))
    older.close()

    rebuild(ingesting.folder)

    assert logged_on(ingesting, CALL) == ["api_request", "assistant_response"]
    assert logged_on(ingesting, TOOL) == ["tool_decision", "tool_result"]
