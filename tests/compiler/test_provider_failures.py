"""Everything a provider can answer instead of an answer, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hansard_compiler.errors import ConfigError, HansardError
from hansard_compiler.providers.adapter import Adapter
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from hansard_compiler.providers.transport import failures
from hansard_compiler.providers.transport.failure_mapping import retry_after_s
from hansard_compiler.providers.transport.failures import (
    AnswerTruncated,
    AuthenticationFailed,
    BadRequest,
    CallFailed,
    ConnectionFailed,
    ContentFiltered,
    ContextTooLong,
    InvalidResponse,
    KeyMissing,
    ModelUnknown,
    NotPermitted,
    Overloaded,
    ProviderBroken,
    QuotaExceeded,
    RateLimited,
    StreamBroken,
    TimedOut,
)
from hansard_compiler.providers.transport.vendor_sdk import Connection, anthropic_wire, openai_wire
from tests.compiler.render_inputs import PATHS, PLAIN
from tests.instrumentation.clients.provider import (
    CHAT,
    MESSAGE,
    RESPONSE,
    SECRET,
    STREAMS,
    Provider,
    Reply,
    json_reply,
    providing,
    stream_reply,
)

PROVIDERS = ["openai", "anthropic", "openai_compatible"]
by_provider = pytest.mark.parametrize("name", PROVIDERS)


@pytest.fixture
def server() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@contextmanager
def opened(server: Provider, name: str, **connecting: Any) -> Iterator[Adapter]:
    base = server.address + ("" if name == "anthropic" else "/v1")
    given = {"api_key": "k", "base_url": base, "max_retries": 0, "timeout_s": 5, **connecting}
    adapter = adapter_for(name, AdapterSettings(Connection(**given), preflight="off"))
    yield adapter
    adapter.close()


def error(code: str | None = None, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "code": code, **more}}


def anthropic_error(type: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "r"}


ANSWERED: list[tuple[str, int, Any, type[CallFailed]]] = [
    ("openai", 400, error("context_length_exceeded"), ContextTooLong),
    ("openai", 400, error("content_filter"), ContentFiltered),
    ("openai", 400, error("unknown_parameter"), BadRequest),
    ("openai", 401, error("invalid_api_key"), AuthenticationFailed),
    ("openai", 403, error("unsupported_country"), NotPermitted),
    ("openai", 404, error("model_not_found"), ModelUnknown),
    ("openai", 429, error("rate_limit_exceeded"), RateLimited),
    ("openai", 429, error("insufficient_quota"), QuotaExceeded),
    ("openai", 500, error(type="server_error"), ProviderBroken),
    ("openai", 503, error(), Overloaded),
    ("openai", 500, "<html>bad gateway", ProviderBroken),
    ("openai", 502, [], ProviderBroken),
    ("anthropic", 400, anthropic_error("invalid_request_error"), BadRequest),
    (
        "anthropic",
        400,
        anthropic_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        ContextTooLong,
    ),
    ("anthropic", 401, anthropic_error("authentication_error"), AuthenticationFailed),
    ("anthropic", 402, anthropic_error("billing_error"), QuotaExceeded),
    ("anthropic", 403, anthropic_error("permission_error"), NotPermitted),
    ("anthropic", 404, anthropic_error("not_found_error", "model: claude-x"), ModelUnknown),
    ("anthropic", 413, anthropic_error("request_too_large"), ContextTooLong),
    ("anthropic", 429, anthropic_error("rate_limit_error"), RateLimited),
    ("anthropic", 500, anthropic_error("api_error"), ProviderBroken),
    ("anthropic", 504, anthropic_error("timeout_error"), TimedOut),
    ("anthropic", 529, anthropic_error("overloaded_error"), Overloaded),
    ("openai_compatible", 400, error(message="maximum context length is 4096"), ContextTooLong),
    ("openai_compatible", 404, {"error": 'model "x" not found, try pulling it'}, ModelUnknown),
    ("openai_compatible", 418, {"detail": "teapot"}, BadRequest),
]


@pytest.mark.covers("PA-22")
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("name", "status", "body", "kind"), ANSWERED)
def test_an_error_answer_is_a_failure_of_its_kind_with_its_bytes(
    name: str, status: int, body: Any, kind: type[CallFailed], is_stream: bool, server: Provider
) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    server.replies.append(Reply([raw], status=status))

    with opened(server, name) as adapter, pytest.raises(CallFailed) as failed:
        adapter.call(replace(PLAIN, stream=is_stream))

    assert type(failed.value) is kind
    assert failed.value.http_status == status
    assert failed.value.request_id == "req_1"
    assert str(failed.value).startswith(f"{name}: ")
    assert failed.value.exchange is not None
    assert failed.value.exchange.response == raw
    assert failed.value.exchange.request == server.received[0].body


@pytest.mark.covers("PA-22")
@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
    ],
)
@by_provider
def test_a_rate_limit_says_how_long_to_wait(
    name: str, headers: dict[str, str], wait_s: float | None, server: Provider
) -> None:
    server.replies.append(json_reply(error("rate_limit_exceeded"), status=429))
    server.replies[0].headers.update(headers)

    with opened(server, name) as adapter, pytest.raises(RateLimited) as failed:
        adapter.call(PLAIN)

    assert failed.value.retry_after_s == wait_s
    assert failed.value.is_retryable


def test_a_wait_given_as_a_date_is_told_in_seconds() -> None:
    assert retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert (retry_after_s({"retry-after": "Wed, 21 Oct 2999 07:28:00 GMT"}) or 0) > 1e9


@pytest.mark.covers("PA-22")
@by_provider
def test_every_attempt_of_a_retried_call_is_kept(name: str, server: Provider) -> None:
    for status in (500, 429):
        server.replies.append(json_reply(error(), status=status, retry_after_ms="1"))

    with opened(server, name, max_retries=2) as adapter:
        answer = adapter.call(PLAIN)

    assert [attempt.status for attempt in answer.exchange.attempts] == [500, 429, 200]
    assert len({attempt.request for attempt in answer.exchange.attempts}) == 1
    assert answer.exchange.response_ref is not None


@by_provider
def test_a_wait_longer_than_allowed_ends_the_retrying(name: str, server: Provider) -> None:
    server.replies.append(json_reply(error("rate_limit_exceeded"), status=429, retry_after="90"))

    with opened(server, name, max_retries=2) as adapter, pytest.raises(RateLimited) as failed:
        adapter.call(PLAIN)

    assert failed.value.retry_after_s == 90
    assert len(server.received) == 1


@by_provider
def test_no_answer_in_time_is_told_as_such(name: str, server: Provider) -> None:
    gate = threading.Event()
    server.replies.append(Reply([gate, b"{}"]))

    with opened(server, name, timeout_s=0.05) as adapter, pytest.raises(TimedOut) as failed:
        adapter.call(PLAIN)
    gate.set()

    assert failed.value.is_retryable
    assert failed.value.exchange is not None
    assert failed.value.exchange.attempts[0].error == "ReadTimeout"


@by_provider
def test_a_stream_that_goes_silent_times_out_with_what_came(name: str, server: Provider) -> None:
    gate = threading.Event()
    server.replies.append(stream_reply(*STREAMS[PATHS[name]], gate=gate))

    with opened(server, name, timeout_s=0.1) as adapter, pytest.raises(TimedOut) as failed:
        adapter.call(replace(PLAIN, stream=True))
    gate.set()

    assert failed.value.exchange is not None
    assert failed.value.exchange.response.count(b"data: ") == 1


@by_provider
def test_a_server_that_is_not_there_is_a_failed_connection(name: str, server: Provider) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        base = f"http://127.0.0.1:{port}/v1"
        with (
            opened(server, name, base_url=base) as adapter,
            pytest.raises(ConnectionFailed) as failed,
        ):
            adapter.call(PLAIN)

    assert failed.value.exchange is not None
    assert failed.value.exchange.attempts[0].status is None


@pytest.mark.covers("PA-22")
@pytest.mark.parametrize("breaks_off", [True, False])
@by_provider
def test_a_stream_that_stops_early_is_broken_and_keeps_what_came(
    name: str, breaks_off: bool, server: Provider
) -> None:
    server.replies.append(stream_reply(*STREAMS[PATHS[name]][:3], breaks_off=breaks_off))

    with opened(server, name) as adapter, pytest.raises(StreamBroken) as failed:
        adapter.call(replace(PLAIN, stream=True))

    assert failed.value.is_retryable
    assert failed.value.exchange is not None
    assert failed.value.exchange.response.count(b"data: ") == 3


def test_what_a_callback_raises_is_the_callers_own(server: Provider) -> None:
    def on_event(event: Any) -> None:
        raise ValueError("mine")

    with opened(server, "openai") as adapter, pytest.raises(ValueError, match="mine"):
        adapter.call(replace(PLAIN, stream=True), on_event=on_event)


IN_STREAM: list[tuple[str, Any, type[CallFailed]]] = [
    ("anthropic", anthropic_error("overloaded_error"), Overloaded),
    ("anthropic", anthropic_error("api_error"), ProviderBroken),
    ("openai", {"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, RateLimited),
    (
        "openai",
        {
            "type": "response.failed",
            "response": {**RESPONSE, "error": {"code": "server_error", "message": "no"}},
        },
        ProviderBroken,
    ),
    ("openai_compatible", error("server_error"), ProviderBroken),
]


@pytest.mark.covers("PA-22")
@pytest.mark.parametrize(("name", "event", "kind"), IN_STREAM)
def test_an_error_within_a_stream_is_a_failure_of_its_kind(
    name: str, event: Any, kind: type[CallFailed], server: Provider
) -> None:
    server.replies.append(stream_reply(*STREAMS[PATHS[name]][:2], event))

    with opened(server, name) as adapter, pytest.raises(CallFailed) as failed:
        adapter.call(replace(PLAIN, stream=True))

    assert type(failed.value) is kind
    assert failed.value.http_status is None
    assert failed.value.exchange is not None


@pytest.mark.parametrize("body", [b"{", b"[]", b"nothing", b"\xff", b""])
@by_provider
def test_an_answer_that_is_no_json_object_is_a_bad_answer(
    name: str, body: bytes, server: Provider
) -> None:
    server.replies.append(Reply([body] if body else []))

    with opened(server, name) as adapter, pytest.raises(InvalidResponse) as failed:
        adapter.call(PLAIN)

    assert failed.value.exchange is not None
    assert failed.value.exchange.response == body


@by_provider
def test_a_stream_of_nonsense_is_a_bad_answer(name: str, server: Provider) -> None:
    pieces = [b"event: message_start\ndata: {no\n\n"]
    server.replies.append(Reply(pieces, media_type="text/event-stream"))

    with opened(server, name) as adapter, pytest.raises(InvalidResponse):
        adapter.call(replace(PLAIN, stream=True))


EMPTY = [{}, {"id": "x", "usage": {}}, {"choices": []}, {"content": []}, {"output": None},
         {"error": {"message": "no"}}, {"choices": [{"message": {}}]}]  # fmt: skip


@by_provider
@pytest.mark.parametrize("body", EMPTY)
def test_an_answer_that_says_nothing_is_no_answer(
    server: Provider, name: str, body: dict[str, Any]
) -> None:
    server.replies.append(json_reply(body))

    with (
        opened(server, name) as adapter,
        pytest.raises(InvalidResponse, match="no message and no fin"),
    ):
        adapter.call(PLAIN)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai", {"status": "completed", "output": []}),
        ("anthropic", {"content": [], "stop_reason": "end_turn"}),
        ("openai_compatible", {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}),
    ],
)
def test_a_model_may_say_nothing_and_stop(
    server: Provider, name: str, body: dict[str, Any]
) -> None:
    server.replies.append(json_reply(body))

    with opened(server, name) as adapter:
        assert adapter.call(PLAIN).shortfall is None


@pytest.mark.covers("PA-22")
@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("anthropic", {**MESSAGE, "stop_reason": "max_tokens"}, AnswerTruncated),
        ("anthropic", {**MESSAGE, "stop_reason": "refusal"}, ContentFiltered),
        (
            "openai",
            {
                **RESPONSE,
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            AnswerTruncated,
        ),
        (
            "openai_compatible",
            {**CHAT, "choices": [{**CHAT["choices"][0], "finish_reason": "length"}]},
            AnswerTruncated,
        ),
        (
            "openai_compatible",
            {**CHAT, "choices": [{**CHAT["choices"][0], "finish_reason": "content_filter"}]},
            ContentFiltered,
        ),
    ],
)
def test_an_answer_that_falls_short_is_given_with_its_typed_shortfall(
    name: str, body: Any, kind: type[CallFailed], server: Provider
) -> None:
    server.replies.append(json_reply(body))

    with opened(server, name) as adapter:
        answer = adapter.call(PLAIN)

    assert type(answer.shortfall) is kind
    assert answer.call.output


def test_a_provider_that_repeats_the_key_does_not_get_it_into_the_message(server: Provider) -> None:
    server.replies.append(json_reply(error("invalid_api_key", f"wrong key {SECRET}"), status=401))

    with (
        opened(server, "openai", api_key=SECRET) as adapter,
        pytest.raises(AuthenticationFailed) as failed,
    ):
        adapter.call(PLAIN)

    assert SECRET not in str(failed.value)
    assert "‹redacted:" in str(failed.value)
    exchange = failed.value.exchange
    assert exchange is not None
    assert SECRET not in repr(exchange.last and exchange.last.headers)


def test_only_known_headers_of_an_answer_are_kept(server: Provider) -> None:
    server.replies.append(json_reply(MESSAGE, set_cookie="a=b", x_ratelimit_remaining="3"))

    with opened(server, "anthropic") as adapter:
        answer = adapter.call(PLAIN)

    assert set(answer.exchange.attempts[0].headers) == {
        "content-type",
        "x-request-id",
        "x-ratelimit-remaining",
    }


@pytest.mark.covers("PA-20")
@pytest.mark.parametrize(
    ("make", "variable"),
    [(openai_wire, "OPENAI_API_KEY"), (anthropic_wire, "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_named_before_anything_is_sent(make: Any, variable: str) -> None:
    wire = make(Connection(), environment={})

    with pytest.raises(KeyMissing, match=variable) as missing:
        wire.post("/v1/x", b"{}", stream=False)

    assert missing.value.variable == variable
    assert isinstance(missing.value, ConfigError)


def test_the_key_of_the_environment_is_taken_when_none_is_given(server: Provider) -> None:
    wire = anthropic_wire(
        Connection(base_url=server.address), environment={"ANTHROPIC_API_KEY": "from-environment"}
    )

    wire.post("/v1/messages", b"{}", stream=False)
    wire.close()

    assert server.received[0].headers["authorization"] == "Bearer from-environment"


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("openal", AdapterSettings(), "no provider 'openal'; there are openai, anthropic"),
        ("openai_compatible", AdapterSettings(), "base_url"),
        ("scripted", AdapterSettings(), "needs a script"),
    ],
)
def test_an_adapter_that_cannot_be_made_says_why(
    name: str, settings: AdapterSettings, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        adapter_for(name, settings)


def test_every_failure_has_a_code_of_its_own() -> None:
    kinds = [
        kind
        for kind in vars(failures).values()
        if isinstance(kind, type) and issubclass(kind, HansardError) and kind is not HansardError
    ]

    codes = [kind.code for kind in kinds if kind.__module__ == failures.__name__]
    assert len(set(codes)) == len(codes) == 25
