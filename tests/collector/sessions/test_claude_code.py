"""Claude Code's log records become a run for each prompt."""

from __future__ import annotations

import json

import pytest

from hansard_collector.log_sessions.marks import turn_id
from hansard_store.runs.status import TokenSums
from tests.collector.ingesting import Ingesting
from tests.collector.sessions.maker import (
    SESSION,
    at_ns,
    calls_of,
    claude,
    only_run,
    request,
    runs_of,
    steps_of,
    tools_of,
)
from tests.collector.sessions.scenes import CLAUDE_MODEL, claude_turn

MS = 1_000_000


def test_a_prompt_is_a_run_with_its_words_tokens_and_answer(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    run = only_run(ingesting)
    assert run.synthetic
    assert run.run_id == turn_id("claude_code", SESSION, "prompt-1").hex()
    assert (run.agent_name, run.conversation_id, run.user_id) == ("claude-code", SESSION, "a1b2c3")
    assert (run.first_input, run.last_output) == ("Fix the failing test", "Fixed it.")
    assert (run.started_ns, run.ended_ns) == (at_ns(0), at_ns(14))
    assert (run.model_calls, run.tool_calls, run.error_count) == (3, 1, 1)
    # Its input tokens leave the cached ones out: 10 + 1000 + 200, and 20 + 1200.
    assert run.tokens == TokenSums(
        input=2430, output=110, cache_read=2200, cache_write=200, reasoning=None
    )
    assert run.models == (CLAUDE_MODEL,)


def test_each_record_of_work_is_a_step_with_its_time(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    steps = steps_of(ingesting, only_run(ingesting))
    assert [row[1:5] for row, _ in steps] == [
        (at_ns(0), at_ns(14), "agent", "claude_code.interaction"),
        (at_ns(2), at_ns(5), "llm", "claude_code.llm_request"),
        (at_ns(5.3), at_ns(6), "tool", "claude_code.tool"),
        (at_ns(6.5), at_ns(7), "llm", "claude_code.llm_request"),
        (at_ns(8.1), at_ns(9), "task", "claude_code.compaction"),
        (at_ns(9.5), at_ns(13), "llm", "claude_code.llm_request"),
    ]
    root = steps[0][0]
    assert {row[5] for row, _ in steps[1:]} == {
        ingesting.one("SELECT span_id FROM span WHERE id = ?", root[0])
    }


def test_a_call_has_its_cost_its_answer_and_its_first_token(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    first = calls_of(ingesting, only_run(ingesting))[0].call
    assert first is not None
    assert first.cost is not None
    assert first.cost.reported_usd == 0.0123
    assert [message.text for message in first.output] == ["I will run the tests."]
    assert first.time_to_first_token_ms == 800
    assert first.response_id == "req_1prompt-1"
    assert first.provider == "anthropic"


def test_a_failed_request_has_its_error_and_no_tokens(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    failed = calls_of(ingesting, only_run(ingesting))[1].call
    assert failed is not None
    assert failed.error is not None
    assert (failed.error.message, failed.error.http_status) == ("Overloaded", 529)
    assert failed.tokens.input is None
    assert failed.output == ()


def test_a_tool_has_its_decision_and_its_arguments(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()))

    (tool,) = tools_of(ingesting, only_run(ingesting))
    assert tool.tool is not None
    assert (tool.tool.name, tool.tool.call_id) == ("Bash", "toolu_1prompt-1")
    assert tool.tool.arguments == {"bash_command": "pytest -x"}
    attributes = ingesting.all("SELECT flags, summary FROM span WHERE role = 'tool'")
    assert attributes[0][1] == "bash_command: pytest -x"


def test_a_tool_that_was_refused_is_shown_as_decided(ingesting: Ingesting) -> None:
    refused = claude("tool_decision", 1, tool_name="Write", tool_use_id="t1", decision="reject")
    ingesting.send(request([claude("user_prompt", 0, prompt="hi"), refused]))

    (tool,) = tools_of(ingesting, only_run(ingesting))
    assert tool.tool is not None
    assert (tool.tool.name, tool.tool.result, tool.error) == ("Write", None, None)


def test_a_tool_that_failed_says_why(ingesting: Ingesting) -> None:
    failed = claude(
        "tool_result", 2, tool_name="Bash", tool_use_id="t1", success="false",
        error="exit code 1", duration_ms="10",
    )  # fmt: skip
    ingesting.send(request([claude("user_prompt", 0, prompt="hi"), failed]))

    (tool,) = tools_of(ingesting, only_run(ingesting))
    assert tool.error is not None
    assert tool.error.message == "exit code 1"
    assert only_run(ingesting).error_count == 1


def test_content_that_was_redacted_is_none(ingesting: Ingesting) -> None:
    ingesting.send(
        request(
            [
                claude("user_prompt", 0, prompt="<REDACTED>", prompt_length="44"),
                claude("api_request", 3, model=CLAUDE_MODEL, input_tokens=5, output_tokens=7,
                       duration_ms=1000, request_id="r1"),
                claude("assistant_response", 3, response="<REDACTED>", response_length="9",
                       request_id="r1"),
            ]
        )
    )  # fmt: skip

    run = only_run(ingesting)
    assert (run.first_input, run.last_output) == (None, None)
    (call,) = calls_of(ingesting, run)
    assert call.call is not None
    assert call.call.output == ()
    assert call.call.tokens.input == 5


def test_two_prompts_of_a_session_are_two_runs_of_one_conversation(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn("a") + claude_turn("b", at_s=60)))

    runs = runs_of(ingesting)
    assert [run.started_ns for run in runs] == [at_ns(0), at_ns(60)]
    assert [run.model_calls for run in runs] == [3, 3]
    assert {run.conversation_id for run in runs} == {SESSION}


def test_prompts_without_an_id_are_told_apart_by_time(ingesting: Ingesting) -> None:
    """As versions before 2.1 sent them."""
    first = claude_turn(None)
    second = [claude("user_prompt", 60, turn=None, prompt="And now the docs"),
              claude("api_request", 70, turn=None, model=CLAUDE_MODEL, input_tokens=1,
                     output_tokens=2, duration_ms=100, request_id="later")]  # fmt: skip
    ingesting.send(request([*second, *first]))

    runs = runs_of(ingesting)
    assert [run.first_input for run in runs] == ["Fix the failing test", "And now the docs"]
    assert [run.model_calls for run in runs] == [3, 1]


def test_a_call_without_request_ids_gets_its_answer_by_time(ingesting: Ingesting) -> None:
    """Bedrock and Vertex name no requests."""
    records = [claude("user_prompt", 0, prompt="hi")]
    for end in (5, 9):
        records += [
            claude("api_request", end, model=CLAUDE_MODEL, input_tokens=end, output_tokens=1,
                   duration_ms=2000),
            claude("assistant_response", end + 0.02, response=f"answer {end}"),
        ]  # fmt: skip
    ingesting.send(request(records))

    calls = [normal.call for normal in calls_of(ingesting, only_run(ingesting))]
    assert [(call.tokens.input, call.output[0].text) for call in calls if call] == [
        (5, "answer 5"),
        (9, "answer 9"),
    ]


def test_raw_bodies_are_the_conversation_of_their_call(ingesting: Ingesting) -> None:
    asked = {
        "model": CLAUDE_MODEL,
        "system": "You are terse.",
        "messages": [{"role": "user", "content": "What is 2 + 2?"}],
        "tools": [{"name": "calc", "input_schema": {"type": "object"}}],
    }
    answered = {
        "id": "msg_1",
        "content": [{"type": "tool_use", "id": "tu1", "name": "calc", "input": {"a": 2}}],
        "stop_reason": "tool_use",
    }
    ingesting.send(
        request(
            [
                claude("user_prompt", 0, prompt="What is 2 + 2?"),
                claude("api_request_body", 1, body=json.dumps(asked), query_source="main"),
                claude("api_request_body", 1.1, body=json.dumps({"messages": []}),
                       query_source="title"),
                claude("api_request", 3, model=CLAUDE_MODEL, input_tokens=9, output_tokens=4,
                       duration_ms=2000, request_id="r1", query_source="main"),
                claude("api_response_body", 3, body=json.dumps(answered), request_id="r1"),
            ]
        )
    )  # fmt: skip

    (normal,) = calls_of(ingesting, only_run(ingesting))
    call = normal.call
    assert call is not None
    assert [(message.role, message.text) for message in call.input] == [
        ("system", "You are terse."),
        ("user", "What is 2 + 2?"),
    ]
    assert [part.name for part in call.output[0].parts if hasattr(part, "name")] == ["calc"]
    assert call.finish_reason == "tool_call"
    assert [tool["name"] for tool in call.tools if isinstance(tool, dict)] == ["calc"]


def test_a_body_that_was_cut_off_is_not_taken_for_a_message(ingesting: Ingesting) -> None:
    ingesting.send(
        request(
            [
                claude("api_request_body", 1, body='{"messages": [{"role": "us',
                       body_truncated="true"),
                claude("api_request", 3, model=CLAUDE_MODEL, input_tokens=9, output_tokens=4,
                       duration_ms=2000, request_id="r1"),
            ]
        )
    )  # fmt: skip

    (normal,) = calls_of(ingesting, only_run(ingesting))
    assert normal.call is not None
    assert normal.call.input == ()


def test_a_turn_whose_last_call_failed_is_an_error(ingesting: Ingesting) -> None:
    turn = claude_turn()
    ingesting.send(request(turn[:6]))
    failed = only_run(ingesting).status
    ingesting.send(request(turn[6:]))

    assert (failed, only_run(ingesting).status) == ("error", "ok")


def test_later_records_move_the_end_of_their_run(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()[:3]))
    before = only_run(ingesting)
    ingesting.send(request([claude("hook_execution_complete", 7200, hook_name="Stop")]))

    after = only_run(ingesting)
    assert (before.ended_ns, after.ended_ns) == (at_ns(5.01), at_ns(7200))
    assert after.version > before.version


def test_records_before_anybody_listened_to_the_prompt_are_a_run(ingesting: Ingesting) -> None:
    ingesting.send(request(claude_turn()[1:]))

    run = only_run(ingesting)
    assert (run.first_input, run.model_calls) == (None, 3)
    assert (run.agent_name, run.conversation_id) == ("claude-code", SESSION)


@pytest.mark.parametrize("event", ["mcp_server_connection", "auth", "plugin_loaded"])
def test_what_happens_before_any_prompt_makes_no_run(ingesting: Ingesting, event: str) -> None:
    ingesting.send(request([claude(event, -5, turn=None)]))
    before = runs_of(ingesting)
    ingesting.send(request([claude("user_prompt", 0, turn=None, prompt="hi")]))

    assert before == []
    run = only_run(ingesting)
    assert run.started_ns == at_ns(0)
    assert ingesting.all("SELECT trace_id FROM log_record") == [
        (bytes.fromhex(run.run_id),),
        (bytes.fromhex(run.run_id),),
    ]


def test_a_record_that_names_no_session_is_a_log_record_only(ingesting: Ingesting) -> None:
    record = claude("api_request", 1, model="m", input_tokens=1, output_tokens=1)
    kept = [pair for pair in record.attributes if pair.key != "session.id"]
    del record.attributes[:]
    record.attributes.extend(kept)
    ingesting.send(request([record]))

    assert runs_of(ingesting) == []
    assert ingesting.one("SELECT trace_id FROM log_record") is None
