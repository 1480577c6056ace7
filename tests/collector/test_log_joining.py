"""Log events that carry the ids of a span say what it says, in either order of arrival."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from hansard_collector.derivation.stored_span import read_step
from hansard_collector.dialects.engine.normal_form import Normalised
from hansard_compiler.calls import Call
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import RunItem, list_runs
from hansard_store.runs.status import TokenSums
from hansard_store.search.full_text import search_texts
from tests.collector.ingesting import (
    START_NS,
    TRACE,
    Ingesting,
    log,
    logs,
    pairs,
    span,
    span_id,
    traces,
)

BOTH_ORDERS = pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["span first", "log first"])
DETAILS = "gen_ai.client.inference.operation.details"
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "What is the weather?"}]}]
ANSWERED = [
    {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "id": "call_1", "name": "weather", "arguments": {"city": "Bern"}}
        ],
        "finish_reason": "tool_call",
    }
]


def structured(value: Any) -> AnyValue:
    """Return a value as instrumentation puts it into events: maps and lists, no JSON."""
    made = AnyValue()
    if isinstance(value, dict):
        made.kvlist_value.SetInParent()
        for key, inner in value.items():
            made.kvlist_value.values.add(key=key).value.CopyFrom(structured(inner))
    elif isinstance(value, list):
        made.array_value.SetInParent()
        made.array_value.values.extend(map(structured, value))
    else:
        made.string_value = value
    return made


def bare_call(number: int = 1, **attributes: Any) -> Message:
    """A model call whose content goes into events (EVENT_ONLY)."""
    sent = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
    }
    return traces([span(number, name="chat gpt-4o-mini", kind=3, attributes=sent | attributes)])


def details(number: int = 1) -> LogRecord:
    return log(
        number,
        event_name=DETAILS,
        attributes={
            "gen_ai.input.messages": structured(ASKED),
            "gen_ai.output.messages": structured(ANSWERED),
            "gen_ai.system_instructions": structured([{"type": "text", "content": "Be brief."}]),
            "gen_ai.tool.definitions": structured([{"type": "function", "name": "weather"}]),
        },
    )


def send(store: Ingesting, messages: Sequence[Message], order: Sequence[int]) -> None:
    for index in order:
        store.send(messages[index])


def meaning(store: Ingesting, number: int = 1) -> Normalised:
    row = store.one(
        "SELECT id FROM span WHERE trace_id = ? AND span_id = ?", TRACE, span_id(number)
    )
    return read_step(store.db, row).normal


def call_of(store: Ingesting, number: int = 1) -> Call:
    call = meaning(store, number).call
    assert call is not None
    return call


def only_run(store: Ingesting) -> RunItem:
    (run,) = list_runs(store.db, RunFilter(), now_ns=START_NS).items
    return run


@BOTH_ORDERS
def test_an_event_with_everything_is_the_call_s_conversation(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    send(ingesting, [bare_call(), logs([details()])], order)

    call = call_of(ingesting)
    assert [(message.role, message.text) for message in call.input] == [
        ("system", "Be brief."),
        ("user", "What is the weather?"),
    ]
    (asked,) = call.output[0].parts
    assert (getattr(asked, "name", None), getattr(asked, "arguments", None)) == (
        "weather",
        {"city": "Bern"},
    )
    assert [tool["name"] for tool in call.tools if isinstance(tool, dict)] == ["weather"]


@BOTH_ORDERS
def test_the_run_tells_and_counts_what_its_events_say(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    send(ingesting, [bare_call(), logs([details()])], order)

    run = only_run(ingesting)
    assert (run.first_input, run.last_output) == ("What is the weather?", "asks for weather")
    assert run.tokens == TokenSums(12, 7, None, None, None)
    assert (run.model_calls, run.tool_calls, run.span_count) == (1, 1, 1)
    hits = search_texts(ingesting.db, "weather", now_ns=START_NS).items
    assert "What is the weather?" in [hit.snippet.text for hit in hits]


@BOTH_ORDERS
def test_a_tool_that_an_event_asked_for_is_the_tool_that_ran(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    ran = span(
        2, 1, name="execute_tool weather",
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.id": "call_1",
        },
    )  # fmt: skip
    ingesting.send(traces([ran]))
    send(ingesting, [bare_call(), logs([details()])], order)

    assert only_run(ingesting).tool_calls == 1
    assert ingesting.one("SELECT count(*) FROM tool_event WHERE ran AND requested") == 1


def messages() -> list[LogRecord]:
    """The events of conventions 1.28 to 1.36, a message each."""

    def said(name: str, at: int, body: Any) -> LogRecord:
        record = log(1, event_name=name)
        record.time_unix_nano = START_NS + at
        record.body.CopyFrom(structured(body))
        return record

    return [
        said("gen_ai.system.message", 1, {"content": "Be brief."}),
        said("gen_ai.user.message", 2, {"content": "What is the weather?"}),
        said("gen_ai.choice", 3, {"index": "0", "finish_reason": "stop",
                                  "message": {"role": "assistant", "content": "Rain."}}),
    ]  # fmt: skip


@BOTH_ORDERS
def test_an_event_a_message_is_put_together_in_order_of_time(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    send(ingesting, [bare_call(), logs(reversed(messages()))], order)

    call = call_of(ingesting)
    assert [(message.role, message.text) for message in call.input] == [
        ("system", "Be brief."),
        ("user", "What is the weather?"),
    ]
    assert [message.text for message in call.output] == ["Rain."]
    assert call.finish_reason == "stop"


def test_events_that_come_one_by_one_around_their_span_are_all_heard(
    ingesting: Ingesting,
) -> None:
    first, second, third = messages()
    for message in (logs([third]), bare_call(), logs([first]), logs([second])):
        ingesting.send(message)

    call = call_of(ingesting)
    assert [message.text for message in (*call.input, *call.output)] == [
        "Be brief.",
        "What is the weather?",
        "Rain.",
    ]
    run = only_run(ingesting)
    assert (run.model_calls, run.first_input, run.last_output) == (
        1,
        "What is the weather?",
        "Rain.",
    )


@BOTH_ORDERS
def test_a_name_in_an_attribute_is_the_event_s_name(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    """As emitters older than OTLP 1.5 send it."""
    record = details()
    record.event_name = ""
    record.attributes.extend(pairs({"event.name": DETAILS}))
    send(ingesting, [bare_call(), logs([record])], order)

    assert [message.text for message in call_of(ingesting).input[1:]] == ["What is the weather?"]


@BOTH_ORDERS
def test_messages_as_json_in_an_event_are_read_too(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    record = log(1, event_name=DETAILS, attributes={"gen_ai.input.messages": json.dumps(ASKED)})
    send(ingesting, [bare_call(), logs([record])], order)

    assert [message.text for message in call_of(ingesting).input] == ["What is the weather?"]


@BOTH_ORDERS
def test_an_exception_event_is_the_error_of_a_failed_call(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    failed = traces(
        [span(1, status=2, attributes={"gen_ai.operation.name": "chat",
                                       "gen_ai.request.model": "gpt-4o-mini"})]
    )  # fmt: skip
    record = log(
        1, event_name="gen_ai.client.operation.exception",
        attributes={"exception.type": "RateLimitError", "exception.message": "slow down"},
    )  # fmt: skip
    send(ingesting, [failed, logs([record])], order)

    error = meaning(ingesting).error
    assert error is not None
    assert (error.type, error.message) == ("RateLimitError", "slow down")
    assert only_run(ingesting).status == "error"


@BOTH_ORDERS
def test_an_evaluation_stands_on_the_step_it_is_about(
    ingesting: Ingesting, order: Sequence[int]
) -> None:
    record = log(
        1, event_name="gen_ai.evaluation.result",
        attributes={"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.score.value": 0.9},
    )  # fmt: skip
    send(ingesting, [bare_call(), logs([record])], order)

    assert [dict(found) for found in meaning(ingesting).evaluations] == [
        {"name": "relevance", "score": 0.9}
    ]


def test_an_event_is_heard_by_its_own_span_only(ingesting: Ingesting) -> None:
    ingesting.send(logs([details(2)]))
    ingesting.send(bare_call(1))
    ingesting.send(bare_call(2))

    assert call_of(ingesting, 1).input == ()
    assert call_of(ingesting, 2).input != ()


@BOTH_ORDERS
def test_the_same_event_again_adds_nothing(ingesting: Ingesting, order: Sequence[int]) -> None:
    both = [bare_call(), logs(messages())]
    send(ingesting, both, order)
    before = (call_of(ingesting), only_run(ingesting))
    send(ingesting, both, order)

    assert (call_of(ingesting), only_run(ingesting)) == before


def test_an_event_without_its_span_is_kept_for_it(ingesting: Ingesting) -> None:
    ingesting.send(logs([details()]))

    assert ingesting.one("SELECT count(*) FROM run") == 0
    assert ingesting.one("SELECT hex(span_id) FROM log_record") == span_id(1).hex().upper()
