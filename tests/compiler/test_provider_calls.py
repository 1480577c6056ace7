"""Calls over real HTTP, by the official packages, against a server that answers as the APIs do."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import anthropic
import openai
import pytest

from hansard_compiler.calls import Json, ReasoningPart, TextPart, Tokens, ToolCallPart
from hansard_compiler.providers.adapter import Adapter, request_bytes
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport.failures import BrokenPairs, NotRenderable, OverLimit
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.compiler.provider_schemas import assert_fits
from tests.compiler.render_inputs import FORMATS, GIVEN, PATHS, PLAIN, result, with_messages
from tests.instrumentation.clients.provider import (
    MESSAGE,
    RESPONSE,
    STREAMS,
    Provider,
    Reply,
    json_reply,
    providing,
    stream_reply,
)

KEY = "test-key-1"
PROVIDERS = ["openai", "anthropic", "openai_compatible"]
by_provider = pytest.mark.parametrize("name", PROVIDERS)


@pytest.fixture
def server() -> Iterator[Provider]:
    """The server; whatever it received must fit the official packages' own types."""
    with providing() as provider:
        yield provider
    for request in provider.received:
        if "unchecked" not in request.json.get("model", ""):
            assert_fits(request.path, request.json)


@dataclass
class Opened:
    """Makes adapters for a server and closes them."""

    server: Provider
    adapters: list[Adapter]

    def __call__(self, name: str, **settings: Any) -> Adapter:
        connecting = {key: settings.pop(key) for key in _CONNECTION & set(settings)}
        base = self.server.address + ("" if name == "anthropic" else "/v1")
        given = {"api_key": KEY, "base_url": base, "max_retries": 0, "timeout_s": 5, **connecting}
        settings.setdefault("preflight", "off")
        adapter = adapter_for(name, AdapterSettings(Connection(**given), **settings))
        self.adapters.append(adapter)
        return adapter


_CONNECTION = {"api_key", "base_url", "max_retries", "timeout_s", "most_retry_wait_s", "headers"}


@pytest.fixture
def opened(server: Provider) -> Iterator[Opened]:
    made = Opened(server, [])
    yield made
    for adapter in made.adapters:
        adapter.close()


@pytest.mark.covers("PA-01", "PA-03", "PA-04", "PA-12", "PA-19", "PA-21")
@by_provider
def test_a_call_sends_the_rendered_bytes_and_reads_the_answer(name: str, opened: Opened) -> None:
    adapter = opened(name)

    answer = adapter.call(GIVEN)

    (received,) = opened.server.received
    assert received.path == PATHS[name]
    assert received.body == request_bytes(adapter.render_request(GIVEN))
    assert answer.exchange.request == received.body
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["content-type"] == "application/json"
    assert json.loads(answer.exchange.response) == answer.response
    assert answer.call.provider == name
    assert answer.call.input[-1].text == "Answer briefly."
    (output,) = answer.call.output
    spoken = [part for part in output.parts if not isinstance(part, ReasoningPart)]
    assert spoken[0] == TextPart("Grüße!")
    assert isinstance(spoken[1], ToolCallPart)
    assert (spoken[1].name, spoken[1].arguments) == ("get", {"k": 1})


@contextmanager
def official(name: str, server: Provider) -> Iterator[Callable[..., Any]]:
    """Give the official package's own way to make a call."""
    if name == "anthropic":
        with anthropic.Anthropic(api_key=KEY, base_url=server.address) as client:
            yield client.messages.create
        return
    with openai.OpenAI(api_key=KEY, base_url=f"{server.address}/v1") as other:
        yield other.responses.create if name == "openai" else other.chat.completions.create


@pytest.mark.parametrize("stream", [False, True])
@by_provider
def test_the_official_package_would_have_sent_the_same_request(
    name: str, stream: bool, opened: Opened
) -> None:
    adapter = opened(name)
    asked = replace(GIVEN, stream=stream)
    adapter.call(asked)

    with official(name, opened.server) as create:
        answer = create(**adapter.render_request(asked))
        for _ in answer if stream else ():
            pass

    ours, theirs = opened.server.received
    assert ours.path == theirs.path
    # The package puts the fields of a body in an order of its own; below, all is alike.
    assert {name: json.dumps(value) for name, value in ours.json.items()} == {
        name: json.dumps(value) for name, value in theirs.json.items()
    }


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("openai", Tokens(input=100, output=20, cache_read=64, cache_write=16, reasoning=8)),
        (
            "anthropic",
            Tokens(
                input=100,
                output=20,
                cache_read=64,
                cache_write=16,
                cache_write_5m=16,
                cache_write_1h=0,
                reasoning=8,
            ),
        ),
        ("openai_compatible", Tokens(input=100, output=20, cache_read=64, reasoning=8)),
    ],
)
def test_tokens_mean_the_same_for_each_provider(name: str, tokens: Tokens, opened: Opened) -> None:
    call = opened(name).call(PLAIN).call

    assert call.tokens == tokens
    assert set(call.sources) == {
        f"tokens.{field}" for field in Tokens.__slots__ if getattr(tokens, field) is not None
    }
    assert "input_tokens" in call.sources["tokens.input"] or name == "openai_compatible"


@pytest.mark.parametrize("name", PROVIDERS)
def test_usage_that_was_not_sent_is_unknown_and_not_zero(name: str, opened: Opened) -> None:
    form = opened(name).format

    call = form.parse({"usage": None}, {})

    assert call.tokens == Tokens()
    assert call.sources == {}


@pytest.mark.covers("PA-16")
@by_provider
def test_a_streamed_answer_is_read_to_the_same_call(name: str, opened: Opened) -> None:
    adapter, events = opened(name), list[Json]()

    whole = adapter.call(GIVEN)
    streamed = adapter.call(replace(GIVEN, stream=True), on_event=events.append)

    timed = streamed.call.time_to_first_token_ms
    assert replace(streamed.call, stream=False, time_to_first_token_ms=None) == whole.call
    assert timed is not None
    assert 0 < timed <= streamed.exchange.attempts[0].duration_ms
    sent = [one for one in STREAMS[PATHS[name]] if one != "[DONE]" and one.get("type") != "ping"]
    assert events == sent
    assert streamed.exchange.response.decode().count("data: ") == len(STREAMS[PATHS[name]])


def test_the_first_piece_of_a_stream_is_seen_before_the_rest_is_sent(opened: Opened) -> None:
    gate = threading.Event()
    opened.server.replies.append(stream_reply(*STREAMS["/v1/messages"], gate=gate))
    seen: list[Json] = []

    def on_event(event: Json) -> None:
        seen.append(event)
        gate.set()  # the server sends the rest only when the first event was handed on

    answer = opened("anthropic").call(replace(PLAIN, stream=True), on_event=on_event)

    assert len(seen) > 1
    assert answer.call.finish_reason == "tool_call"


@by_provider
def test_stored_bytes_are_sent_again_as_they_are(name: str, opened: Opened) -> None:
    stored = b' {"model": "unchecked",  "stream": true, "extra": "\\u00fc"}\n'

    answer = opened(name).resend(stored)

    assert opened.server.received[0].body == stored
    assert answer.exchange.request_ref.startswith("sha256:")
    assert answer.call.stream


@pytest.mark.parametrize("stored", [b"no", b"[]", b'"x"'])
def test_stored_bytes_that_are_no_request_are_not_sent(stored: bytes, opened: Opened) -> None:
    with pytest.raises(NotRenderable):
        opened("openai").resend(stored)

    assert opened.server.received == []


@pytest.mark.covers("PA-06")
@by_provider
def test_a_tool_call_is_answered_and_the_conversation_goes_on(name: str, opened: Opened) -> None:
    adapter = opened(name)
    first = adapter.call(PLAIN)
    spoken = adapter.format.continuation(first.response)
    call_id = next(part.id for part in spoken.parts if isinstance(part, ToolCallPart))

    adapter.call(with_messages(*PLAIN.messages, spoken, result(call_id or "", "42")))

    body = json.dumps(opened.server.received[1].json)
    assert body.count(call_id or "-") == 2
    assert "42" in body


def test_signed_thinking_and_reasoning_items_go_back_as_they_came(opened: Opened) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    opened.server.replies.append(
        json_reply({**MESSAGE, "content": [thinking, *MESSAGE["content"]]})
    )
    for name, path, block in (
        ("anthropic", ("messages", 1, "content", 0), thinking),
        ("openai", ("input", 1), RESPONSE["output"][0]),
    ):
        adapter = opened(name)
        spoken = adapter.format.continuation(adapter.call(PLAIN).response)
        call_id = next(part.id for part in spoken.parts if isinstance(part, ToolCallPart))

        adapter.call(with_messages(*PLAIN.messages, spoken, result(call_id or "", "42")))

        found: Any = opened.server.received[-1].json
        for key in path:
            found = found[key]
        assert found == block


@pytest.mark.covers("PA-10")
def test_the_second_call_carries_the_id_of_the_first_response(opened: Opened) -> None:
    adapter = opened("openai")
    first = adapter.call(PLAIN)

    adapter.call(
        with_messages(
            result("call_1", "42"), previous_response_id=first.call.response_id, held_messages=0
        )
    )

    sent = opened.server.received[1].json
    assert sent["previous_response_id"] == "resp_1"
    # What the provider holds under that id is not sent again: only what is new.
    assert [one["type"] for one in sent["input"]] == ["function_call_output"]
    assert sent["input"][0]["call_id"] == "call_1"
    whole = json.dumps(opened.server.received[0].json["input"])
    assert json.dumps(sent["input"]) not in whole
    assert opened.server.received[0].json["input"][0] not in sent["input"]


@pytest.mark.covers("PA-09")
def test_hashes_and_the_estimate_stand_beside_the_answer(opened: Opened) -> None:
    answer = opened("openai").call(GIVEN)

    assert answer.metadata["stable_prefix_hash"] == "sha256:" + "ab" * 32
    assert answer.metadata["volatile_suffix_hash"] == "sha256:" + "cd" * 32
    assert answer.metadata["estimated_input_tokens"] > 50
    assert answer.metadata["estimated_by"].startswith("estimated by ")
    assert len(answer.metadata["omitted"]) == 1


@pytest.mark.covers("PA-17")
@by_provider
def test_an_orphan_result_is_refused_before_anything_is_sent(name: str, opened: Opened) -> None:
    with pytest.raises(BrokenPairs) as refused:
        opened(name, preflight="provider").call(
            with_messages(*PLAIN.messages, result("call_9", "x"))
        )

    assert "call_9" in refused.value.problems[0]
    assert opened.server.received == []


@pytest.mark.covers("PA-14")
@pytest.mark.parametrize(
    ("name", "path"),
    [("anthropic", "/v1/messages/count_tokens"), ("openai", "/v1/responses/input_tokens")],
)
def test_a_request_over_its_limit_by_the_providers_count_is_not_sent(
    name: str, path: str, opened: Opened
) -> None:
    adapter = opened(name, preflight="provider")

    with pytest.raises(OverLimit) as refused:
        adapter.call(replace(GIVEN, max_input_tokens=10, stream=True))
    adapter.call(replace(GIVEN, max_input_tokens=11))

    assert (refused.value.tokens, refused.value.limit) == (11, 10)
    assert refused.value.counted_by == f"counted by {name}"
    assert [request.path for request in opened.server.received] == [path, path, PATHS[name]]
    counted = opened.server.received[0].json
    assert counted["tools"]
    assert "max_tokens" not in counted


@pytest.mark.covers("PA-14")
@by_provider
def test_a_request_over_its_limit_by_the_estimate_is_not_sent(name: str, opened: Opened) -> None:
    adapter = opened(name, preflight="estimate")
    tokens = adapter.count_tokens(GIVEN)

    with pytest.raises(OverLimit, match="estimated by"):
        adapter.call(replace(GIVEN, max_input_tokens=tokens - 1))
    adapter.call(replace(GIVEN, max_input_tokens=tokens))

    assert [request.path for request in opened.server.received] == [PATHS[name]]


def test_anthropic_is_asked_for_its_count_unless_told_otherwise(opened: Opened) -> None:
    adapter = opened("anthropic", preflight=None)

    adapter.call(replace(PLAIN, max_input_tokens=11))

    assert [request.path for request in opened.server.received] == [
        "/v1/messages/count_tokens",
        "/v1/messages",
    ]


def test_without_a_limit_nothing_is_counted_by_the_provider(opened: Opened) -> None:
    opened("anthropic", preflight="provider").call(PLAIN)

    assert len(opened.server.received) == 1


def test_what_bills_taught_scales_the_estimate(opened: Opened) -> None:
    plain, taught = (opened("anthropic", multiplier=m).estimate(GIVEN) for m in (1.0, 1.5))

    assert taught.tokens > plain.tokens
    assert taught.counted_by.endswith("~1.5")


def test_a_server_of_ones_own_needs_no_key(opened: Opened) -> None:
    opened("openai_compatible", api_key=None).call(PLAIN)

    assert opened.server.received[0].headers["authorization"] == "Bearer none"


def test_the_official_packages_trace_nothing_of_themselves(opened: Opened) -> None:
    opened("anthropic").call(PLAIN)

    assert "traceparent" not in opened.server.received[0].headers


def test_an_answer_that_travelled_compressed_is_kept_as_it_came_and_read(opened: Opened) -> None:
    packed = gzip.compress(json.dumps(MESSAGE).encode(), mtime=0)
    opened.server.replies.append(Reply([packed], headers={"content-encoding": "gzip"}))

    answer = opened("anthropic").call(PLAIN)

    assert opened.server.received[0].headers["accept-encoding"] == "identity"
    assert answer.exchange.response == packed
    assert answer.response == MESSAGE


def test_a_recorded_exchange_is_read_again_without_a_network(opened: Opened) -> None:
    adapter = opened("anthropic")
    answer = adapter.call(replace(GIVEN, stream=True))
    opened.server.received.clear()

    again = adapter.read(answer.exchange)

    assert again.response == answer.response
    assert again.call.output == answer.call.output
    assert opened.server.received == []


def test_one_adapter_serves_several_threads_and_keeps_their_bytes_apart(opened: Opened) -> None:
    adapter = opened("openai")
    answers: dict[int, bytes] = {}

    def ask(number: int) -> None:
        given = replace(PLAIN, system=(f"Number {number}.",), stream=bool(number % 2))
        answers[number] = adapter.call(given).exchange.attempts[0].request

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(answers) == 8
    assert all(f"Number {number}.".encode() in body for number, body in answers.items())


FINISHED: list[tuple[str, Json, str | None]] = [
    ("anthropic", {"stop_reason": "end_turn"}, "stop"),
    ("anthropic", {"stop_reason": "pause_turn"}, "other"),
    ("anthropic", {"stop_reason": None}, None),
    ("openai", {"status": "in_progress"}, None),
    ("openai", {"status": "completed"}, "stop"),
    (
        "openai",
        {"status": "completed", "output": [{"type": "function_call", "name": "look_up"}]},
        "tool_call",
    ),
    ("openai", {"status": "completed", "output": [{"type": "web_search_call"}]}, "stop"),
    ("openai", {"status": "failed"}, "error"),
    (
        "openai",
        {"status": "incomplete", "incomplete_details": {"reason": "steered"}},
        "other",
    ),
    ("openai_compatible", {"choices": [{"finish_reason": "stop"}]}, "stop"),
    ("openai_compatible", {"choices": []}, None),
]


@pytest.mark.parametrize(("name", "response", "finish"), FINISHED)
def test_why_an_answer_ended_is_told_in_words_of_our_own(
    name: str, response: Json, finish: str | None
) -> None:
    form = next(one for one in FORMATS if one.provider == name)

    assert form.parse(response, {}).finish_reason == finish


@pytest.mark.parametrize(
    ("name", "response"),
    [
        (
            "openai",
            {
                "output": [
                    {"type": "message", "content": [{"type": "refusal", "refusal": "I may not."}]}
                ]
            },
        ),
        (
            "openai_compatible",
            {"choices": [{"message": {"content": None, "refusal": "I may not."}}]},
        ),
    ],
)
def test_a_refusal_in_words_is_the_text_of_the_answer(name: str, response: Json) -> None:
    form = next(one for one in FORMATS if one.provider == name)

    (answer,) = form.parse(response, {}).output

    assert answer.parts == (TextPart("I may not."),)
