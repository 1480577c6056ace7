"""Codex's log records: no turn, no request has a name."""

from __future__ import annotations

from hansard_store.runs.status import TokenSums
from tests.collector.ingesting import Ingesting
from tests.collector.sessions.maker import (
    SESSION,
    at_ns,
    calls_of,
    codex,
    only_run,
    request,
    runs_of,
    steps_of,
    tools_of,
)
from tests.collector.sessions.scenes import CODEX_MODEL, codex_turn


def test_a_prompt_is_a_run_with_its_words_tokens_and_answer(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(), "codex"))

    run = only_run(ingesting)
    assert (run.agent_name, run.conversation_id) == ("codex", SESSION)
    assert (run.first_input, run.last_output) == ("Add a test", "Added the test.")
    assert (run.model_calls, run.tool_calls) == (3, 1)
    # Its input tokens hold the cached ones.
    assert run.tokens == TokenSums(
        input=4500, output=350, cache_read=3900, cache_write=None, reasoning=100
    )
    assert run.models == (CODEX_MODEL,)


def test_a_call_lasts_from_its_request_to_its_end(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(), "codex"))

    rows = [row[1:4] for row, _ in steps_of(ingesting, only_run(ingesting))]
    assert rows == [
        (at_ns(0), at_ns(9), "agent"),
        (at_ns(0.2), at_ns(0.5), "llm"),  # refused
        (at_ns(1.6), at_ns(4.01), "llm"),
        (at_ns(4.5), at_ns(6), "tool"),
        (at_ns(6.5), at_ns(9), "llm"),
    ]


def test_a_refused_request_is_a_call_that_failed(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(), "codex"))

    refused = calls_of(ingesting, only_run(ingesting))[0].call
    assert refused is not None
    assert refused.error is not None
    assert (refused.error.message, refused.error.http_status) == ("too many requests", 429)
    assert refused.tokens.input is None


def test_an_answer_stands_on_the_call_that_gave_it(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(), "codex"))

    calls = [normal.call for normal in calls_of(ingesting, only_run(ingesting))]
    assert [[message.text for message in call.output] for call in calls if call] == [
        [],
        [],
        ["Added the test."],
    ]


def test_a_failed_stream_is_a_call_that_failed(ingesting: Ingesting) -> None:
    records = [
        codex("user_prompt", 0, prompt="hi"),
        codex("sse_event", 3, duration_ms="3000", error__message="idle timeout waiting for SSE"),
    ]
    ingesting.send(request(records, "codex"))

    (normal,) = calls_of(ingesting, only_run(ingesting))
    assert normal.error is not None
    assert normal.error.message == "idle timeout waiting for SSE"
    assert only_run(ingesting).status == "error"


def test_a_tool_has_its_arguments_and_its_output(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(), "codex"))

    (normal,) = tools_of(ingesting, only_run(ingesting))
    assert normal.tool is not None
    assert (normal.tool.name, normal.tool.call_id) == ("shell", "call_10")
    assert normal.tool.arguments == {"command": ["pytest"]}
    assert normal.tool.result == "1 failed"
    assert normal.error is not None


def test_a_redacted_prompt_is_none(ingesting: Ingesting) -> None:
    ingesting.send(request(codex_turn(log_prompt=False), "codex"))

    assert only_run(ingesting).first_input is None


def test_records_belong_to_the_last_prompt_before_them(ingesting: Ingesting) -> None:
    records = codex_turn() + codex_turn(at_s=60, prompt="Now the docs")
    ingesting.send(request(records, "codex"))

    runs = runs_of(ingesting)
    assert [run.first_input for run in runs] == ["Add a test", "Now the docs"]
    assert [run.model_calls for run in runs] == [3, 3]


def test_prompts_that_name_one_turn_are_one_run(ingesting: Ingesting) -> None:
    records = [
        codex("user_prompt", 0, turn__id="t1", prompt="Do it"),
        codex("sse_event", 2, event__kind="response.completed", input_token_count="1",
              output_token_count="1"),
        codex("user_prompt", 3, turn__id="t1", prompt="but faster"),
        codex("sse_event", 4, event__kind="response.completed", input_token_count="1",
              output_token_count="1"),
    ]  # fmt: skip
    ingesting.send(request(records, "codex"))

    run = only_run(ingesting)
    assert run.model_calls == 2
    assert run.first_input is not None
    assert run.first_input.split() == ["Do", "it", "but", "faster"]


def test_a_late_prompt_takes_over_the_records_after_it(ingesting: Ingesting) -> None:
    first, second = codex_turn(), codex_turn(at_s=60, prompt="Now the docs")
    ingesting.send(request([*first, *second[1:]], "codex"))
    together = [run.model_calls for run in runs_of(ingesting)]
    ingesting.send(request(second[:1], "codex"))

    assert together == [6]
    runs = runs_of(ingesting)
    assert [run.model_calls for run in runs] == [3, 3]
    assert [run.ended_ns for run in runs] == [at_ns(9), at_ns(69)]
    assert [run.last_output for run in runs] == ["Added the test.", "Added the test."]
    assert ingesting.one("SELECT count(*) FROM span") == 10


def test_a_run_whose_prompt_came_last_is_no_other_run(ingesting: Ingesting) -> None:
    turn = codex_turn()
    ingesting.send(request(turn[1:], "codex"))
    (before,) = runs_of(ingesting)
    ingesting.send(request(turn[:1], "codex"))

    (after,) = runs_of(ingesting)
    assert after.run_id != before.run_id
    assert (after.first_input, after.model_calls, after.step_count) == ("Add a test", 3, 5)
    leftovers = ("run_facet WHERE run", "text_use WHERE run", "tool_event WHERE run")
    assert all(
        ingesting.one(f"SELECT count(*) FROM {table} = ?", before.id) == 0 for table in leftovers
    )
