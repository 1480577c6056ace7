"""Calls that fail, are made again, are left half-way; and a recorder that fails."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode, Tracer

from hansard import instrument_client
from hansard._clients import bodies
from hansard._clients import call as calls
from hansard._export.payload_writer import PayloadWriter
from hansard_compiler.redaction.redactor import Redactor
from tests.instrumentation.clients.asking import (
    APIS,
    CHAT,
    MESSAGES,
    RESPONSES,
    Api,
    anthropic_client,
    ask,
    async_openai_client,
    openai_client,
    stream,
)
from tests.instrumentation.clients.provider import (
    EVENTS,
    SECRET,
    STREAMS,
    Provider,
    Reply,
    event_bytes,
    json_reply,
    providing,
    stream_reply,
)
from tests.instrumentation.clients.recording import Recorded, recording

each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
sync_and_async = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    with recording(tmp_path) as found:
        yield found


def usual_stream(api: Api) -> list[Any]:
    paths = {
        "responses": "/v1/responses",
        "chat": "/v1/chat/completions",
        "messages": "/v1/messages",
    }
    return STREAMS[paths[api.name]]


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


# ---- errors of the provider


@each_api
@sync_and_async
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [400, 503])
def test_an_error_is_recorded_and_raised_unchanged(
    api: Api,
    is_async: bool,
    streamed: bool,
    status: int,
    provider: Provider,
    recorded: Recorded,
) -> None:
    body = {"error": {"type": "some_error", "message": f"no, and here is {SECRET}"}}
    provider.replies.append(json_reply(body, status=status))
    package = anthropic if api is MESSAGES else openai

    with pytest.raises(package.APIStatusError) as raised:
        (stream if streamed else ask)(api, provider, is_async=is_async)

    assert raised.value.status_code == status
    assert SECRET in str(raised.value)
    sent = recorded.attributes
    assert recorded.span.status.status_code is StatusCode.ERROR
    assert sent["error.type"].endswith(type(raised.value).__name__)
    assert sent["http.response.status_code"] == status
    assert b"some_error" in recorded.payload(sent["hansard.response.ref"])
    assert recorded.payload(sent["hansard.request.ref"]) == provider.received[0].body
    assert SECRET not in recorded.span.to_json()
    assert "gen_ai.output.messages" not in sent


@each_api
@sync_and_async
def test_tries_of_one_call_are_one_span(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    busy = json_reply({"error": {"message": "busy"}}, status=429, retry_after_ms="1")
    provider.replies.extend([busy, busy])

    ask(api, provider, is_async=is_async, max_retries=2)

    sent = recorded.attributes
    assert len(provider.received) == 3
    assert sent["http.request.resend_count"] == 2
    assert sent["http.response.status_code"] == 200
    assert sent["gen_ai.usage.output_tokens"] == 20
    assert recorded.span.status.status_code is StatusCode.UNSET
    tries = [event for event in recorded.span.events if event.name == "hansard.attempt"]
    assert [(event.attributes or {})["http.response.status_code"] for event in tries] == [429, 429]
    assert recorded.payload(sent["hansard.request.ref"]) == provider.received[-1].body


@each_api
@sync_and_async
def test_nobody_at_the_address_is_an_error(api: Api, is_async: bool, recorded: Recorded) -> None:
    with socket.socket() as held:  # bound and not listening: refused
        held.bind(("127.0.0.1", 0))
        nobody = Provider(f"http://127.0.0.1:{held.getsockname()[1]}")
        package = anthropic if api is MESSAGES else openai

        with pytest.raises(package.APIConnectionError):
            ask(api, nobody, is_async=is_async)

    sent = recorded.attributes
    assert sent["error.type"].endswith("APIConnectionError")
    assert "http.response.status_code" not in sent
    assert "hansard.request.ref" in sent


@sync_and_async
def test_a_timeout_is_recorded_as_one(
    is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    provider.replies.append(Reply([gate]))

    with pytest.raises(openai.APITimeoutError):
        ask(RESPONSES, provider, is_async=is_async, timeout=0.2)
    gate.set()

    assert recorded.attributes["error.type"].endswith("APITimeoutError")


@each_api
@sync_and_async
def test_a_stream_that_breaks_off_is_an_error(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    events = usual_stream(api)[:3]
    provider.replies.append(stream_reply(*events, breaks_off=True))
    package = anthropic if api is MESSAGES else openai

    with pytest.raises((package.APIError, httpx2.RemoteProtocolError)):
        stream(api, provider, is_async=is_async)

    assert recorded.span.status.status_code is StatusCode.ERROR
    assert "RemoteProtocolError" in recorded.attributes["error.type"]
    assert b"Gr" in recorded.payload(recorded.attributes["hansard.response.ref"])


@each_api
@sync_and_async
def test_an_error_told_inside_a_stream_is_an_error(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    error = {"type": "overloaded_error", "message": f"Overloaded {SECRET}"}
    events = [*usual_stream(api)[:2], {"type": "error", "error": error}]
    provider.replies.append(stream_reply(*events))
    package = anthropic if api is MESSAGES else openai

    with pytest.raises(package.APIError):
        stream(api, provider, is_async=is_async)

    assert recorded.span.status.status_code is StatusCode.ERROR
    assert recorded.attributes["error.type"] == "overloaded_error"
    assert "hansard.cancelled" not in recorded.attributes
    assert SECRET not in recorded.span.to_json()


def test_a_response_that_failed_tells_the_providers_words(
    provider: Provider, recorded: Recorded
) -> None:
    error = {"code": "server_error", "message": "something broke"}
    body = {"id": "r", "status": "failed", "error": error, "output": []}
    provider.replies.append(json_reply(body))

    assert ask(RESPONSES, provider, is_async=False).status == "failed"

    assert recorded.attributes["error.type"] == "server_error"
    assert recorded.span.status.description == "something broke"


# ---- streams that nobody reads to the end


@each_api
@sync_and_async
@pytest.mark.covers("OT-19")
def test_a_stream_that_is_left_half_way_is_closed_as_cancelled(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    provider.replies.append(stream_reply(*usual_stream(api), gate=gate))

    events = stream(api, provider, is_async=is_async, most=1)
    gc.collect()  # a stream of openai refers to itself
    span = recorded.await_span()
    gate.set()

    assert len(events) == 1
    assert told(span)["hansard.cancelled"] is True
    assert span.end_time is not None
    assert "hansard.response.ref" in told(span)


@each_api
@pytest.mark.covers("OT-19")
def test_a_stream_that_is_dropped_unread_is_closed_when_it_is_collected(
    api: Api, provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    provider.replies.append(stream_reply(*usual_stream(api), gate=gate))
    with instrument_client(api.sync(provider)) as client:
        dropped = api.call(client, stream=True)
        assert recorded.spans == []

        del dropped
        gc.collect()
        span = recorded.await_span()
        gate.set()

    assert told(span)["hansard.cancelled"] is True


@pytest.mark.covers("OT-19")
def test_a_stream_whose_task_is_cancelled_is_closed_as_cancelled(
    provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    provider.replies.append(stream_reply(*usual_stream(CHAT), gate=gate))

    async def run() -> None:
        async with instrument_client(async_openai_client(provider)) as client:
            has_begun = asyncio.Event()

            async def read() -> None:
                async for _ in await CHAT.call(client, stream=True):
                    has_begun.set()

            task = asyncio.create_task(read())
            await has_begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    gate.set()

    assert recorded.attributes["hansard.cancelled"] is True


@pytest.mark.covers("OT-19")
def test_a_call_whose_task_is_cancelled_is_closed_as_cancelled(
    provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    provider.replies.append(Reply([gate]))

    async def run() -> None:
        async with instrument_client(async_openai_client(provider)) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(RESPONSES.call(client), 0.2)

    asyncio.run(run())
    gate.set()

    assert recorded.attributes["hansard.cancelled"] is True
    assert recorded.span.status.status_code is StatusCode.UNSET


_LEFT_OPEN = """
import sys
from pathlib import Path
from tests.instrumentation.clients.asking import CHAT, openai_client
from tests.instrumentation.clients.provider import Provider
from tests.instrumentation.clients.recording import recording
from hansard import instrument_client
import atexit, hansard._runtime.recorder

kept = recording(Path(sys.argv[2])); recorded = kept.__enter__()
atexit.register(lambda: print([dict(s.attributes)["hansard.cancelled"] for s in recorded.spans]))
client = instrument_client(openai_client(Provider(sys.argv[1])))
left = CHAT.call(client, stream=True)
next(iter(left))
"""


@pytest.mark.slow
@pytest.mark.covers("OT-19")
def test_a_stream_that_is_open_when_the_program_ends_is_closed(
    provider: Provider, tmp_path: Path
) -> None:
    gate = threading.Event()
    provider.replies.append(stream_reply(*usual_stream(CHAT), gate=gate))
    command = [sys.executable, "-c", _LEFT_OPEN, provider.address, str(tmp_path)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    gate.set()

    assert ended.stdout == "[True]\n"


def test_a_stream_read_until_its_last_event_is_not_cancelled(
    provider: Provider, recorded: Recorded
) -> None:
    gate = threading.Event()
    pieces: list[bytes | threading.Event] = [event_bytes(event) for event in usual_stream(CHAT)]
    provider.replies.append(Reply([*pieces, gate], media_type=EVENTS))

    with instrument_client(openai_client(provider)) as client:
        assert len(list(CHAT.call(client, stream=True))) == len(pieces) - 1  # not [DONE]
        gate.set()

    assert "hansard.cancelled" not in recorded.attributes
    assert recorded.attributes["gen_ai.usage.output_tokens"] == 20


# ---- hostile bodies


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 5_000, b"null", b'{"usage": 7, "output": {"a": 1}}'],
    ids=["empty", "cut", "no text", "deep", "null", "of other types"],
)
@sync_and_async
def test_an_answer_that_is_no_answer_reaches_the_program_as_without_us(
    body: bytes, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    def outcome() -> str:
        provider.replies.append(Reply([body] if body else []))
        try:
            return repr(ask(RESPONSES, provider, is_async=is_async))
        except Exception as error:
            return repr(error)

    def unrecorded() -> str:
        provider.replies.append(Reply([body] if body else []))
        try:
            with openai_client(provider) as client:
                return repr(RESPONSES.call(client))
        except Exception as error:
            return repr(error)

    assert outcome() == unrecorded()
    assert len(recorded.spans) == 1


@sync_and_async
def test_pieces_may_be_cut_anywhere_and_a_line_may_be_huge(
    is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    said = "Grüße ✓ 🙂 " * 60_000
    choice = {"index": 0, "delta": {"content": said}, "finish_reason": "stop"}
    whole = event_bytes({"id": "c", "model": "m", "choices": [choice]}) + b"data: [DONE]\n\n"
    pieces = [whole[at : at + 4_099] for at in range(0, len(whole), 4_099)]
    provider.replies.append(Reply(pieces, media_type=EVENTS))

    stream(CHAT, provider, is_async=is_async)

    sent = recorded.attributes
    assert recorded.payload(sent["hansard.response.ref"]) == whole
    [answer] = json.loads(recorded.payload(sent["gen_ai.output.messages_ref"]))
    assert answer["parts"] == [{"type": "text", "content": said}]
    assert all(len(str(value)) < 5_000 for value in sent.values())


@pytest.mark.parametrize(
    "line", ["{", '{"choices": 7}', '{"choices": [7]}', '{"choices": [{"delta": []}]}', "nonsense"]
)
def test_events_that_are_no_events_are_passed_over(
    line: str, provider: Provider, recorded: Recorded
) -> None:
    good = {"id": "c1", "model": "m", "choices": []}
    provider.replies.append(stream_reply(good, line, "[DONE]"))

    with instrument_client(openai_client(provider)) as client:
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        received = b"".join(raw.http_response.iter_bytes())

    assert recorded.attributes["gen_ai.response.id"] == "c1"
    assert recorded.payload(recorded.attributes["hansard.response.ref"]) == received


# ---- a recorder that fails


@each_api
@sync_and_async
@pytest.mark.parametrize("part", ["payloads", "redactor", "content", "wire"])
def test_a_failing_recorder_does_not_reach_the_program(
    part: str,
    api: Api,
    is_async: bool,
    provider: Provider,
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"no {name}")

    if part == "payloads":
        recorded.recorder.payloads = cast(PayloadWriter, Broken())
    elif part == "redactor":
        recorded.recorder.redactor = cast(Redactor, Broken())
    elif part == "content":
        monkeypatch.setattr(calls, "dumps", Broken().__getattr__)
    else:
        monkeypatch.setattr(calls, "body_of", Broken().__getattr__)
        monkeypatch.setattr(bodies, "read_events", Broken().__getattr__)

    answer = ask(api, provider, is_async=is_async)
    events = stream(api, provider, is_async=is_async)
    provider.replies.append(json_reply({"error": {"message": "no"}}, status=400))
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)):
        ask(api, provider, is_async=is_async)

    assert answer.id in ("resp_1", "chatcmpl_1", "msg_1")
    assert len(events) > 3
    assert len(recorded.spans) == 3
    assert all(span.end_time is not None for span in recorded.spans)


def test_a_tracer_that_fails_does_not_reach_the_program(
    provider: Provider, recorded: Recorded
) -> None:
    class Broken:
        def start_span(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("no span")

    recorded.recorder.tracer = cast(Tracer, Broken())

    assert ask(RESPONSES, provider, is_async=False).id == "resp_1"
    assert ask(MESSAGES, provider, is_async=True).id == "msg_1"


def test_trouble_is_told_once_and_without_content(
    provider: Provider, recorded: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def put(self, data: bytes, *, media_type: str) -> str:
            raise ArithmeticError(f"cannot keep {data!r}")

    recorded.recorder.payloads = cast(PayloadWriter, Broken())

    with instrument_client(anthropic_client(provider)) as client:
        for _ in range(3):
            MESSAGES.call(client)

    lines = [line for line in caplog.messages if "ArithmeticError" in line]
    assert len(lines) == 1
    assert "Gr" not in lines[0]
