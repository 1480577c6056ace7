"""Gemini CLI's log records, with the event of the conventions beside each call."""

from __future__ import annotations

from typing import Any

from hansard_store.runs.status import TokenSums
from tests.collector.ingesting import Ingesting
from tests.collector.sessions.maker import (
    SESSION,
    at_ns,
    calls_of,
    gemini,
    only_run,
    request,
    runs_of,
    steps_of,
    tools_of,
)
from tests.collector.sessions.scenes import GEMINI_MODEL, gemini_turn


def test_a_prompt_is_a_run_with_its_words_tokens_and_answer(ingesting: Ingesting) -> None:
    ingesting.send(request(gemini_turn(), "gemini"))

    run = only_run(ingesting)
    assert (run.agent_name, run.conversation_id) == ("gemini-cli", SESSION)
    assert (run.first_input, run.last_output) == ("List the files", "Two files.")
    assert (run.model_calls, run.tool_calls) == (3, 1)
    # Thoughts (30) and tool prompts (5) are counted apart by the sender.
    assert run.tokens == TokenSums(
        input=305, output=60, cache_read=40, cache_write=None, reasoning=30
    )
    assert run.models == (GEMINI_MODEL,)


def test_each_record_of_work_is_a_step_with_its_time(ingesting: Ingesting) -> None:
    ingesting.send(request(gemini_turn(), "gemini"))

    rows = [row[1:5] for row, _ in steps_of(ingesting, only_run(ingesting))]
    assert rows == [
        (at_ns(0), at_ns(10), "agent", "invoke_agent gemini-cli"),
        (at_ns(1), at_ns(3), "llm", f"chat {GEMINI_MODEL}"),
        (at_ns(3.96), at_ns(4), "tool", "execute_tool list_directory"),
        (at_ns(5), at_ns(6), "llm", f"chat {GEMINI_MODEL}"),
        (at_ns(7), at_ns(9), "llm", f"chat {GEMINI_MODEL}"),
        (at_ns(10), at_ns(10), "other", "gemini_cli.chat_compression"),
    ]


def test_a_call_says_what_was_said_wherever_it_was_logged(ingesting: Ingesting) -> None:
    ingesting.send(request(gemini_turn(), "gemini"))

    first, _, last = (normal.call for normal in calls_of(ingesting, only_run(ingesting)))
    assert first is not None
    assert last is not None
    assert [message.text for message in first.input] == ["List the files"]
    assert [message.text for message in first.output] == ["Listing."]  # from the conventions' event
    assert first.response_id == "resp-1"
    assert [message.text for message in last.input] == ["List the files"]  # from request_text
    assert [message.text for message in last.output] == ["Two files."]  # from response_text


def test_a_failed_call_has_its_error(ingesting: Ingesting) -> None:
    ingesting.send(request(gemini_turn(), "gemini"))

    failed = calls_of(ingesting, only_run(ingesting))[1].call
    assert failed is not None
    assert failed.error is not None
    assert (failed.error.type, failed.error.message, failed.error.http_status) == (
        "ApiError",
        "Quota exceeded",
        429,
    )


def test_a_tool_has_its_arguments(ingesting: Ingesting) -> None:
    ingesting.send(request(gemini_turn(), "gemini"))

    (normal,) = tools_of(ingesting, only_run(ingesting))
    assert normal.tool is not None
    assert (normal.tool.name, normal.tool.arguments) == ("list_directory", {"path": "."})


def test_a_response_without_usage_has_no_tokens_rather_than_none_spent(
    ingesting: Ingesting,
) -> None:
    zeros: dict[str, Any] = dict.fromkeys(
        ("input_token_count", "output_token_count", "cached_content_token_count",
         "thoughts_token_count", "tool_token_count", "total_token_count"), 0,
    )  # fmt: skip
    record = gemini("api_response", 3, model=GEMINI_MODEL, duration_ms=100, **zeros)
    ingesting.send(request([gemini("user_prompt", 0, prompt="hi"), record], "gemini"))

    assert only_run(ingesting).tokens is None


def test_the_prompts_of_a_sub_agent_belong_to_the_turn_they_serve(ingesting: Ingesting) -> None:
    inner = gemini(
        "api_response", 4, turn=f"{SESSION}########0-investigator-x1#2", model=GEMINI_MODEL,
        duration_ms=500, input_token_count=7, output_token_count=1, total_token_count=8,
    )  # fmt: skip
    ingesting.send(request([gemini("user_prompt", 0, prompt="hi"), inner], "gemini"))

    assert only_run(ingesting).model_calls == 1


def test_calls_at_one_time_keep_their_own_requests(ingesting: Ingesting) -> None:
    records = [gemini("user_prompt", 0, prompt="hi")]
    for name, start, end in (("a", 1.0, 5.0), ("b", 2.0, 3.0)):
        records += [
            gemini("api_request", start, model="m", request_text=f"ask {name}"),
            gemini("api_response", end, model="m", duration_ms=(end - start) * 1000,
                   input_token_count=1, output_token_count=1, total_token_count=2,
                   response_text=f"answer {name}"),
        ]  # fmt: skip
    ingesting.send(request(records, "gemini"))

    calls = [normal.call for normal in calls_of(ingesting, only_run(ingesting))]
    said = [(call.input[0].text, call.output[0].text) for call in calls if call is not None]
    assert said == [("ask a", "answer a"), ("ask b", "answer b")]


def test_two_prompts_are_two_runs(ingesting: Ingesting) -> None:
    ingesting.send(
        request(gemini_turn() + gemini_turn(at_s=60, turn=f"{SESSION}########1"), "gemini")
    )

    runs = runs_of(ingesting)
    assert [run.model_calls for run in runs] == [3, 3]
    assert [run.step_count for run in runs] == [6, 6]
