"""Calls of openai and anthropic clients over real sockets, and what is recorded of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from opentelemetry.trace import SpanKind, StatusCode

import hansard
from hansard import instrument_client, uninstrument_client
from hansard._runtime import recorder as _state
from tests.instrumentation.clients.asking import (
    APIS,
    CHAT,
    MESSAGES,
    OPENAI_MODEL,
    RESPONSES,
    Api,
    anthropic_client,
    ask,
    async_openai_client,
    openai_client,
    stream,
)
from tests.instrumentation.clients.provider import (
    SECRET,
    Provider,
    Reply,
    json_reply,
    providing,
    stream_reply,
)
from tests.instrumentation.clients.recording import Recorded, recording

Opened = Callable[[Any], Any]

each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
sync_and_async = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])

TOKENS = {
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.cache_read.input_tokens": 64,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.usage.reasoning.output_tokens": 8,
}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as found:
        yield found


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Records a client, and closes it when the test is over."""
    with ExitStack() as closing:
        yield lambda client: instrument_client(closing.enter_context(client))


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    with recording(tmp_path) as found:
        yield found


def content(recorded: Recorded, key: str) -> Any:
    """A message attribute, by value or by reference."""
    sent = recorded.attributes
    said = sent[key] if key in sent else recorded.payload(sent[f"{key}_ref"])
    return json.loads(said)


@each_api
@sync_and_async
@pytest.mark.covers("OT-07", "OT-08", "OT-16")
def test_a_call_is_one_span_with_its_exact_bytes(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    answer = ask(api, provider, is_async=is_async)

    [request] = provider.received
    sent = recorded.attributes
    assert answer.id == sent["gen_ai.response.id"]
    assert recorded.span.name == f"chat {api.arguments['model']}"
    assert recorded.span.kind is SpanKind.CLIENT
    assert recorded.payload(sent["hansard.request.ref"]) == request.body
    assert json.loads(recorded.payload(sent["hansard.response.ref"]))["id"] == answer.id
    assert "hansard.request.redacted" not in sent


@each_api
@sync_and_async
@pytest.mark.covers("OT-16")
def test_model_tokens_and_tool_calls_are_told_in_the_conventions_words(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    ask(api, provider, is_async=is_async)

    sent = recorded.attributes
    expected = {
        **TOKENS,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic" if api is MESSAGES else "openai",
        "gen_ai.request.model": api.arguments["model"],
        "gen_ai.request.max_tokens": 50,
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
    }
    assert {key: sent.get(key) for key in expected} == expected
    [answer] = content(recorded, "gen_ai.output.messages")
    call = {"type": "tool_call", "id": _call_id(api), "name": "get", "arguments": {"k": 1}}
    assert answer["parts"][-2:] == [{"type": "text", "content": "Grüße!"}, call]
    asked = content(recorded, "gen_ai.input.messages")
    assert asked[-1] == {
        "role": "user",
        "parts": [{"type": "text", "content": "Grüß mich ✓"}],
    }
    [tool] = content(recorded, "gen_ai.tool.definitions")
    assert (tool["name"], tool["parameters"]["type"]) == ("get", "object")


def _call_id(api: Api) -> str:
    return "toolu_1" if api is MESSAGES else "call_1"


@each_api
@sync_and_async
@pytest.mark.covers("OT-18")
def test_a_streamed_call_has_its_first_chunks_time_and_its_last_numbers(
    api: Api, is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    events = stream(api, provider, is_async=is_async)

    sent = recorded.attributes
    assert len(events) > 3
    assert {key: sent[key] for key in TOKENS} == TOKENS
    assert sent["gen_ai.request.stream"] is True
    span = recorded.span
    assert span.start_time is not None
    assert span.end_time is not None
    lasted_s = (span.end_time - span.start_time) / 1e9
    assert 0 < sent["gen_ai.response.time_to_first_chunk"] <= lasted_s + 0.01
    assert "hansard.cancelled" not in sent
    assert span.status.status_code is StatusCode.UNSET
    [answer] = content(recorded, "gen_ai.output.messages")
    assert {"type": "text", "content": "Grüße!"} in answer["parts"]
    assert recorded.payload(sent["hansard.request.ref"]) == provider.received[0].body
    assert recorded.payload(sent["hansard.response.ref"]).startswith((b"event: ", b"data: "))


def test_the_bytes_of_a_stream_are_those_that_were_sent(
    provider: Provider, recorded: Recorded
) -> None:
    reply = stream_reply({"id": "c1", "model": "m", "choices": []}, "[DONE]")
    provider.replies.append(reply)

    stream(CHAT, provider, is_async=False)

    received = recorded.payload(recorded.attributes["hansard.response.ref"])
    assert received == b"".join(piece for piece in reply.pieces if isinstance(piece, bytes))


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_a_response_that_was_cut_short_tells_why(
    reason: str, provider: Provider, recorded: Recorded
) -> None:
    body = {"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason}}
    provider.replies.append(json_reply({**body, "output": []}))

    ask(RESPONSES, provider, is_async=False)

    assert recorded.attributes["gen_ai.response.finish_reasons"] == (reason,)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"type": "message", "content": []}, "stop"),
        (
            {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"},
            "tool_calls",
        ),
    ],
)
def test_a_response_that_is_complete_tells_whether_it_asks_for_tools(
    item: dict[str, Any], reason: str, provider: Provider, recorded: Recorded
) -> None:
    provider.replies.append(json_reply({"id": "r", "status": "completed", "output": [item]}))

    ask(RESPONSES, provider, is_async=False)

    assert recorded.attributes["gen_ai.response.finish_reasons"] == (reason,)


@pytest.mark.parametrize(("own", "shown"), [(None, "conv_1"), ("order 7", "order 7")])
def test_the_programs_conversation_goes_before_the_providers(
    own: str | None, shown: str, opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    provider.replies.append(json_reply({"id": "r", "conversation": {"id": "conv_1"}, "output": []}))
    client = opened(openai_client(provider))

    with started(own):
        client.responses.create(model="m", input="hi", conversation="conv_1")

    [call] = [span for span in recorded.spans if span.name == "chat m"]
    assert (call.attributes or {})["gen_ai.conversation.id"] == shown


def started(conversation: str | None) -> AbstractContextManager[Any]:
    """A run of a conversation, or none."""
    if conversation is None:
        return nullcontext()
    return hansard.start_run(agent_name="clerk", conversation_id=conversation)


@sync_and_async
def test_embeddings_tell_texts_and_tokens_and_no_vectors(
    is_async: bool, provider: Provider, recorded: Recorded
) -> None:
    embeddings = Api(
        "embeddings",
        openai_client,
        async_openai_client,
        "embeddings.create",
        {"model": "text-embedding-4", "input": ["eins", "zwei"]},
    )

    ask(embeddings, provider, is_async=is_async)

    assert recorded.span.name == "embeddings text-embedding-4"
    assert recorded.attributes["gen_ai.usage.input_tokens"] == 5
    [asked] = content(recorded, "gen_ai.input.messages")
    assert [part["content"] for part in asked["parts"]] == ["eins", "zwei"]
    assert "gen_ai.output.messages" not in recorded.attributes


def test_counting_tokens_is_no_usage(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    client = opened(anthropic_client(provider))
    client.messages.count_tokens(model="c", messages=[{"role": "user", "content": "hi"}])
    other = opened(openai_client(provider))
    other.responses.input_tokens.count(model="m", input="hi")

    assert [span.name for span in recorded.spans] == ["count_tokens c", "count_tokens m"]
    for span in recorded.spans:
        sent = dict(span.attributes or {})
        assert sent["hansard.token_count.input_tokens"] == 11
        assert "gen_ai.usage.input_tokens" not in sent


def test_calls_that_ask_no_model_are_not_recorded(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    client = opened(openai_client(provider))
    provider.replies.append(json_reply({"id": "conv_1", "object": "conversation"}))

    client.conversations.create()

    assert recorded.spans == []


@sync_and_async
def test_azure_is_recorded_as_azure(is_async: bool, provider: Provider, recorded: Recorded) -> None:
    def azure(found: Provider, **options: Any) -> Any:
        make = openai.AsyncAzureOpenAI if is_async else openai.AzureOpenAI
        return make(
            api_key="key", api_version="2026-01-01", azure_endpoint=found.address, **options
        )

    ask(Api("azure", azure, azure, CHAT.method, CHAT.arguments), provider, is_async=is_async)

    sent = recorded.attributes
    assert sent["gen_ai.provider.name"] == "azure.ai.openai"
    assert sent["url.path"] == f"/openai/deployments/{OPENAI_MODEL}/chat/completions"
    assert sent["url.query"] == "api-version=2026-01-01"
    assert recorded.payload(sent["hansard.request.ref"]) == provider.received[0].body


# ---- what never stands in a record


@each_api
def test_no_key_or_other_header_of_a_request_is_recorded(
    api: Api, provider: Provider, recorded: Recorded
) -> None:
    ask(api, provider, is_async=False, default_headers={"x-mine": SECRET, "cookie": SECRET})

    assert provider.received[0].headers["x-mine"] == SECRET
    told = recorded.span.to_json() + str(list(recorded.data.rglob("*")))
    stored = b"".join(path.read_bytes() for path in recorded.data.rglob("*") if path.is_file())
    assert SECRET not in told
    assert SECRET.encode() not in stored
    assert "authorization" not in told.lower()


def test_a_secret_in_a_prompt_is_cut_out_and_the_span_says_so(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    client = opened(openai_client(provider))

    client.responses.create(model="m", input=f"my key is {SECRET}")

    sent = recorded.attributes
    assert sent["hansard.request.redacted"] is True
    assert SECRET not in recorded.span.to_json()
    kept = recorded.payload(sent["hansard.request.ref"])
    assert SECRET.encode() not in kept
    assert "‹redacted:" in kept.decode()
    assert SECRET.encode() in provider.received[0].body


@pytest.mark.covers("OT-17")
def test_without_content_there_are_numbers_only(provider: Provider, tmp_path: Path) -> None:
    with recording(tmp_path, retention="metadata_only") as recorded:
        ask(CHAT, provider, is_async=False)
        provider.replies.append(
            json_reply({"error": {"type": "invalid", "message": "no Grüß mich"}}, status=400)
        )
        with pytest.raises(openai.BadRequestError):
            ask(RESPONSES, provider, is_async=False)

    told = "".join(span.to_json() for span in recorded.spans)
    assert recorded.spans[0].attributes is not None
    assert recorded.spans[0].attributes["gen_ai.usage.input_tokens"] == 100
    assert "Grüß" not in told
    assert "Gr\\u00fc" not in told
    assert "Be kind" not in told
    assert "sha256:" not in told
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# ---- switching it on and off


def test_nothing_is_recorded_before_init(
    opened: Opened, provider: Provider, tmp_path: Path
) -> None:
    assert _state.active() is None
    client = opened(openai_client(provider))
    client.responses.create(model="m", input="before")

    with recording(tmp_path) as recorded:
        client.responses.create(model="m", input="after")

    assert len(recorded.spans) == 1
    assert len(provider.received) == 2


def test_recording_twice_is_recording_once(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    client = opened(openai_client(provider))

    assert instrument_client(client) is client
    client.responses.create(model="m", input="hi")

    assert len(recorded.spans) == 1


@pytest.mark.parametrize("is_copied_first", [False, True])
def test_copies_of_a_recorded_client_are_recorded_and_others_are_not(
    is_copied_first: bool, provider: Provider, recorded: Recorded
) -> None:
    with openai_client(provider) as client:
        early = client.with_options(timeout=4)
        instrument_client(client)
        late = client.with_options(timeout=4).copy(max_retries=1)

        (early if is_copied_first else late).responses.create(model="m", input="hi")

    assert len(recorded.spans) == (0 if is_copied_first else 1)


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
def test_a_client_is_given_back_as_it_was(
    make: Callable[[Provider], Any], provider: Provider
) -> None:
    with make(provider) as client:
        before = dict(vars(client))
        assert vars(instrument_client(client)) != before

        assert uninstrument_client(client) is client

        assert vars(client) == before


def test_a_client_that_is_recorded_no_more_is_not_recorded(
    provider: Provider, recorded: Recorded
) -> None:
    with uninstrument_client(instrument_client(openai_client(provider))) as client:
        client.responses.create(model="m", input="hi")

    assert recorded.spans == []
    assert len(provider.received) == 1


def test_an_object_that_is_no_client_is_returned_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd:
        pass

    odd = Odd()

    assert instrument_client(odd) is odd
    assert uninstrument_client(odd) is odd
    assert "takes clients of the packages openai and anthropic" in caplog.text


def test_raw_and_streaming_responses_are_recorded_too(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    client = opened(openai_client(provider))

    raw = client.responses.with_raw_response.create(model="m", input="hi")
    with client.responses.with_streaming_response.create(model="m", input="hi") as streaming:
        lines = list(streaming.iter_lines())

    assert raw.parse().id == "resp_1"
    assert json.loads("".join(lines))["id"] == "resp_1"
    assert [(span.attributes or {})["gen_ai.response.id"] for span in recorded.spans] == [
        "resp_1",
        "resp_1",
    ]


def test_a_clients_own_http_client_may_be_of_any_transport(
    opened: Opened, recorded: Recorded
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"id": "r9", "output": []})

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = opened(openai.OpenAI(api_key="key", http_client=http))

    client.responses.create(model="m", input="hi")

    assert recorded.attributes["gen_ai.response.id"] == "r9"
    assert recorded.attributes["server.address"] == "api.openai.com"


def test_a_compressed_answer_is_kept_as_what_it_says(
    provider: Provider, recorded: Recorded
) -> None:
    import gzip

    body = json.dumps({"id": "r2", "output": []}).encode()
    events = b'data: {"id": "c2", "choices": []}\n\ndata: [DONE]\n\n'
    zipped = {"content-encoding": "gzip"}
    provider.replies.append(Reply([gzip.compress(body)], headers=zipped))
    provider.replies.append(
        Reply([gzip.compress(events)], media_type="text/event-stream", headers=zipped)
    )

    ask(RESPONSES, provider, is_async=False)
    stream(CHAT, provider, is_async=False)

    refs = [(span.attributes or {})["hansard.response.ref"] for span in recorded.spans]
    assert [recorded.payload(str(ref)) for ref in refs] == [body, events]


def test_parallel_calls_of_one_client_do_not_mix(provider: Provider, recorded: Recorded) -> None:
    import asyncio

    async def run() -> None:
        async with instrument_client(async_openai_client(provider)) as client:
            await asyncio.gather(
                *(client.responses.create(model=f"m{number}", input="hi") for number in range(8))
            )

    asyncio.run(run())

    models = sorted(str((span.attributes or {})["gen_ai.request.model"]) for span in recorded.spans)
    bodies = [
        json.loads(recorded.payload(str((span.attributes or {})["hansard.request.ref"])))["model"]
        == (span.attributes or {})["gen_ai.request.model"]
        for span in recorded.spans
    ]
    assert models == [f"m{number}" for number in range(8)]
    assert all(bodies)


def test_anthropics_own_span_gives_way_and_its_traceparent_names_ours(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    own = {"tracer_provider": recorded.recorder.provider}
    client = opened(anthropic_client(provider, open_telemetry=own))

    client.messages.create(model="c", max_tokens=5, messages=[{"role": "user", "content": "hi"}])

    context = recorded.span.get_span_context()
    assert context is not None
    assert provider.received[0].headers["traceparent"].split("-")[1:3] == [
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
    ]


def test_anthropics_own_span_is_made_when_nothing_records(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    own = {"tracer_provider": recorded.recorder.provider}
    client = opened(anthropic_client(provider, open_telemetry=own))
    _state.install(None)

    client.messages.create(model="c", max_tokens=5, messages=[{"role": "user", "content": "hi"}])

    assert recorded.span.name == "anthropic.messages.create"


def test_a_client_that_answers_without_sending_has_a_span_without_bytes(
    opened: Opened, provider: Provider, recorded: Recorded
) -> None:
    def cached(request: Any, call_next: Any) -> Any:
        return anthropic.types.Message.construct(id="cached")

    client = opened(anthropic_client(provider, middleware=[cached]))

    answer = client.messages.create(
        model="c", max_tokens=5, messages=[{"role": "user", "content": "hi"}]
    )

    assert answer.id == "cached"
    assert provider.received == []
    assert "hansard.request.ref" not in recorded.attributes
