"""GenAI before 2026: message events, flat prompts, and three meanings of `gen_ai.prompt`."""

from __future__ import annotations

import json

import pytest

from hansard_collector.dialects.engine.item_views import LogView
from hansard_compiler.calls import Message, TextPart, ToolCallPart, ToolResultPart
from tests.collector.dialects.maker import call_of, event, log, read

_CHAT = {"gen_ai.operation.name": "chat"}


def test_the_three_meanings_of_gen_ai_prompt_do_not_mix() -> None:
    shown = read(
        {
            **_CHAT,
            "gen_ai.prompt.0.content": "flat",
            "gen_ai.prompt": '[{"role": "user", "content": "whole"}]',
            "gen_ai.prompt.name": "greeting",
            "gen_ai.prompt.version": "3",
            "gen_ai.prompt.variable.city": "Paris",
            "gen_ai.prompt.prompt_filter_results": "[]",
        }
    )

    assert shown.call is not None
    assert [message.text for message in shown.call.input] == ["flat"]
    assert shown.prompt == {
        "name": "greeting",
        "version": "3",
        "variables": {"city": "Paris"},
    }


def test_message_events_are_put_in_order_by_time_then_position() -> None:
    call = call_of(
        _CHAT,
        events=[
            event("gen_ai.user.message", {"content": "third"}, at_ms=2),
            event("gen_ai.user.message", {"content": "first"}, at_ms=1),
            event("gen_ai.assistant.message", {"content": "second"}, at_ms=1),
            event("gen_ai.choice", {"message": '{"content": "answer"}'}, at_ms=0),
        ],
    )

    assert [message.text for message in call.input] == ["first", "second", "third"]
    assert [message.text for message in call.output] == ["answer"]


def test_a_choice_with_tool_calls_and_no_content_is_an_answer() -> None:
    body = {
        "index": 0,
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
    }

    call = call_of(_CHAT, logs=[log("gen_ai.choice", body=body)])

    assert call.output == (Message("assistant", (ToolCallPart("c1", "f", {}),)),)
    assert (call.finish_reason, call.finish_reason_raw) == ("tool_call", "tool_calls")


def test_each_choice_is_an_answer_of_its_own() -> None:
    logs = [
        log("gen_ai.choice", body={"index": at, "message": {"content": text}}, at_ms=at)
        for at, text in enumerate(["one", "two"])
    ]

    assert [message.text for message in call_of(_CHAT, logs=logs).output] == ["one", "two"]


@pytest.mark.parametrize(
    "record",
    [
        log("gen_ai.user.message", body={"content": "Hi"}),
        log("gen_ai.user.message", body='{"role": "user", "content": "Hi"}'),
        log("gen_ai.user.message", body="Hi"),
        log("gen_ai.user.message", {"content": "Hi"}),
        log("gen_ai.user.message", {"gen_ai.event.content": '{"content": "Hi"}'}),
    ],
    ids=["body", "JSON body", "text body", "attributes", "Azure"],
)
def test_a_message_event_is_read_wherever_its_content_stands(record: LogView) -> None:
    assert call_of(_CHAT, logs=[record]).input == (Message("user", (TextPart("Hi"),)),)


def test_details_on_the_span_win_over_the_event_that_repeats_them() -> None:
    sent = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]

    call = call_of(
        {**_CHAT, "gen_ai.input.messages": json.dumps(sent)},
        logs=[
            log("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": sent}),
            log("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": sent}),
        ],
    )

    assert len(call.input) == 1


def test_a_details_event_sent_twice_tells_once() -> None:
    sent = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    details = log("gen_ai.client.inference.operation.details", {"gen_ai.input.messages": sent})

    assert len(call_of(_CHAT, logs=[details, details]).input) == 1


def test_anthropic_blocks_inside_a_flat_content_are_opened() -> None:
    call = call_of(
        {
            "llm.request.type": "completion",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": json.dumps(
                [{"type": "tool_result", "tool_use_id": "t1", "content": "18 °C"}]
            ),
        }
    )

    assert call.input == (Message("tool", (ToolResultPart("t1", "18 °C"),)),)


def test_json_that_is_no_block_stays_the_text_that_was_said() -> None:
    said = '{"city": "Paris"}'

    call = call_of({"llm.request.type": "chat", "gen_ai.prompt.0.content": said})

    assert call.input == (Message("user", (TextPart(said),)),)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.request.stream": True}, True),
        ({"gen_ai.is_streaming": "true"}, True),
        ({"llm.is_streaming": False}, False),
        ({}, None),
    ],
)
def test_a_stream_flag_is_shown_where_it_was_sent(
    attributes: dict[str, object], expected: bool | None
) -> None:
    assert call_of({**_CHAT, **attributes}).stream is expected


def test_chunk_events_show_that_the_answer_was_streamed() -> None:
    assert call_of(_CHAT, events=[event("gen_ai.content.completion.chunk")]).stream is True


def test_a_result_that_the_users_message_repeats_is_told_once() -> None:
    block = {"toolResult": {"toolUseId": "c1", "content": [{"text": "18 °C"}]}}

    call = call_of(
        _CHAT,
        logs=[
            log("gen_ai.tool.message", body={"id": "c1", "content": [{"text": "18 °C"}]}, at_ms=1),
            log("gen_ai.user.message", body={"content": [block]}, at_ms=2),
            log("gen_ai.user.message", body={"content": [{"text": "and now?"}]}, at_ms=3),
            log("gen_ai.user.message", body={"content": [block]}, at_ms=4),
        ],
    )

    result = Message("tool", (ToolResultPart("c1", "18 °C"),))
    assert call.input == (result, Message("user", (TextPart("and now?"),)), result)


def test_speakers_that_openllmetry_did_not_know_are_the_tool_and_the_model() -> None:
    call = call_of(
        {
            "llm.request.type": "chat",
            "gen_ai.prompt.0.role": "unknown",
            "gen_ai.prompt.0.content": "18 °C",
            "gen_ai.completion.0.role": "unknown",
            "gen_ai.completion.0.content": '""',
            "gen_ai.completion.0.tool_calls.0.name": "f",
            "gen_ai.completion.0.tool_calls.0.arguments": "{}",
        }
    )

    assert call.input == (Message("tool", (ToolResultPart(None, "18 °C"),)),)
    assert call.output == (Message("assistant", (ToolCallPart(None, "f", {}),)),)


def test_a_flat_text_that_was_written_as_json_loses_its_quotes() -> None:
    call = call_of(
        {
            "llm.request.type": "chat",
            "gen_ai.prompt.0.content": '"Say hello."',
            "gen_ai.prompt.1.content": '"To be" or "not"',
        }
    )

    assert [said.text for said in call.input] == ["Say hello.", '"To be" or "not"']
